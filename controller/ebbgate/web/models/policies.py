# SPDX-License-Identifier: GPL-2.0-only
"""Models of policies. Pure data."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import StrictFloat, StrictInt, StrictStr

from ebbgate.intents.validation import POLICY_NAME
from ebbgate.web.models.base import Model, doc

HOURS_MAX: Final = 24.0
"""How far back a dry run can go."""
_HOURS: Final = {"exclusiveMinimum": 0, "maximum": HOURS_MAX}
_NAME: Final = f"^{POLICY_NAME.pattern}$"


class PolicyProblem(Model):
    """An error in a policy, with its place."""

    file: Annotated[str, doc("The file.")]
    line: Annotated[int, doc("From 1.", "line")]
    column: Annotated[int, doc("From 1.", "column")]
    message: Annotated[str, doc("What is wrong.")]
    expected: Annotated[str | None, doc("What was expected; null if unknown.")]
    nearest: Annotated[str | None, doc("The nearest known word; null if none is near.")]


class PolicyFile(Model):
    """A policy file of the administrator."""

    name: Annotated[
        str, doc("File name without extension, as `policy_save` and `policy_remove` take it.")
    ]
    path: Annotated[str, doc("The whole path.")]
    ok: Annotated[bool, doc("Whether it is valid together with the others.")]
    errors: Annotated[list[PolicyProblem], doc("Errors.")]
    text: Annotated[str | None, doc("Its text; null if it cannot be read.")]


class ShippedPolicy(Model):
    """A policy shipped with ebbgate."""

    name: Annotated[str, doc("Its name.")]
    why: Annotated[str, doc("Its purpose in a sentence.")]
    text: Annotated[str, doc("Its text.")]


class EffectivePolicy(Model):
    """The policy of a volume now."""

    volume: Annotated[str, doc("The volume.")]
    title: Annotated[str, doc("Its display name.")]
    policy: Annotated[str, doc("Name of the policy.")]
    overlay: Annotated[str | None, doc("The part of its schedule that is in force.")]
    file: Annotated[str | None, doc("Its file; null if it is shipped.")]


class Policies(Model):
    """All policies of the machine."""

    folder: Annotated[str, doc("Folder of the administrator's files.")]
    folder_why: Annotated[str | None, doc("Why the folder cannot be read; null if it can.")]
    files: Annotated[list[PolicyFile], doc("The administrator's, in order of precedence.")]
    shipped: Annotated[list[ShippedPolicy], doc("Policies shipped with ebbgate.")]
    effective: Annotated[list[EffectivePolicy], doc("What runs for each volume.")]


class PolicyText(Model, extra="forbid"):
    """A policy to check as if it were a file in the folder."""

    name: Annotated[
        StrictStr, doc("File name without extension.", example="night", bounds={"pattern": _NAME})
    ]
    text: Annotated[StrictStr, doc("Its text.")]


class PolicyCheck(Model):
    """The result of a check."""

    ok: Annotated[bool, doc("Whether the policy is valid.")]
    errors: Annotated[list[PolicyProblem], doc("Errors.")]


class DryRunRequest(Model, extra="forbid"):
    """A policy to try on the recorded history of a volume."""

    volume: Annotated[StrictStr, doc("The volume.", example="bcache0")]
    text: Annotated[StrictStr, doc("Text of the policy.")]
    against: Annotated[
        StrictStr | None, doc("Name of the policy to compare with; null for the current one.")
    ] = None
    hours: Annotated[StrictFloat | StrictInt, doc("How far back.", "h", bounds=_HOURS)] = HOURS_MAX


class DryRunDifference(Model):
    """A time in which the two policies differed."""

    at_unix_s: Annotated[float, doc("From.", "s since 1970")]
    until_unix_s: Annotated[float, doc("Until.", "s since 1970")]
    setting: Annotated[str, doc("What differed: destage, streams and so on.")]
    before: Annotated[str, doc("What the other policy decided.")]
    after: Annotated[str, doc("What this policy would have decided.")]
    why_before: Annotated[str, doc("The other policy's reason.")]
    why_after: Annotated[str, doc("This policy's reason.")]


class DryRunSpent(Model):
    """How long each policy would have set each gate."""

    before: Annotated[dict[str, float], doc("The other policy, by gate.", "s")]
    after: Annotated[dict[str, float], doc("This policy, by gate.", "s")]


class DryRunResult(Model):
    """How the decisions of a policy would have differed."""

    from_unix_s: Annotated[float, doc("Start of the time.", "s since 1970")]
    until_unix_s: Annotated[float, doc("Its end.", "s since 1970")]
    frames: Annotated[int, doc("Samples used.", "samples")]
    coverage_ratio: Annotated[float, doc("The share of the time that has samples.", "1")]
    differences: Annotated[list[DryRunDifference], doc("In order of time, at most 1000.")]
    left_out: Annotated[int, doc("Shorter differences that are left out.", "differences")]
    destage_s: Annotated[DryRunSpent, doc("How long each gate would have been set.")]
    notes: Annotated[list[str], doc("What the history cannot show, one sentence each.")]

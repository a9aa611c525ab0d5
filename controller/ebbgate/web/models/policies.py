# SPDX-License-Identifier: GPL-2.0-only
"""What the API says of policies, and what it takes. Pure data."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import StrictFloat, StrictInt, StrictStr

from ebbgate.intents.validation import POLICY_NAME
from ebbgate.web.models.base import Model, doc

HOURS_MAX: Final = 24.0
"""So far back a dry run goes."""
_HOURS: Final = {"exclusiveMinimum": 0, "maximum": HOURS_MAX}
_NAME: Final = f"^{POLICY_NAME.pattern}$"


class PolicyProblem(Model):
    """One thing that is wrong with a policy, and where."""

    file: Annotated[str, doc("In which file.")]
    line: Annotated[int, doc("From 1.", "line")]
    column: Annotated[int, doc("From 1.", "column")]
    message: Annotated[str, doc("What is wrong.")]
    expected: Annotated[str | None, doc("What would be right.")]
    nearest: Annotated[str | None, doc("The nearest word that is known.")]


class PolicyFile(Model):
    """A file of the administrator."""

    name: Annotated[str, doc("Without its ending; by it `policy_save` and `policy_remove` go.")]
    path: Annotated[str, doc("The whole path.")]
    ok: Annotated[bool, doc("Is it right, with the others beside it?")]
    errors: Annotated[list[PolicyProblem], doc("What is not.")]
    text: Annotated[str | None, doc("What it says; null: it cannot be read.")]


class ShippedPolicy(Model):
    """A policy that comes with ebbgate."""

    name: Annotated[str, doc("Its name.")]
    why: Annotated[str, doc("What it is for, in a sentence.")]
    text: Annotated[str, doc("What it says.")]


class EffectivePolicy(Model):
    """What runs for a volume now."""

    volume: Annotated[str, doc("The volume.")]
    title: Annotated[str, doc("What people call it.")]
    policy: Annotated[str, doc("The policy by its name.")]
    overlay: Annotated[str | None, doc("The part of its schedule that is in force.")]
    file: Annotated[str | None, doc("Its file, of an administrator's; null: shipped.")]


class Policies(Model):
    """All policies of the machine."""

    folder: Annotated[str, doc("Where the administrator's are.")]
    folder_why: Annotated[str | None, doc("Why the folder cannot be read; null where it can.")]
    files: Annotated[list[PolicyFile], doc("The administrator's, in order of precedence.")]
    shipped: Annotated[list[ShippedPolicy], doc("Those that come with ebbgate.")]
    effective: Annotated[list[EffectivePolicy], doc("What the daemon said that it runs.")]


class PolicyText(Model, extra="forbid"):
    """A policy to check as if it were a file of the folder."""

    name: Annotated[
        StrictStr,
        doc("File name without extension.", example="night", bounds={"pattern": _NAME}),
    ]
    text: Annotated[StrictStr, doc("What it says.")]


class Checked(Model):
    """Is a policy right?"""

    ok: Annotated[bool, doc("Is it?")]
    errors: Annotated[list[PolicyProblem], doc("What is not.")]


class DryRunOf(Model, extra="forbid"):
    """A policy to run on what the history has of a volume."""

    volume: Annotated[StrictStr, doc("Which volume.", example="bcache0")]
    text: Annotated[StrictStr, doc("What the policy says.")]
    against: Annotated[
        StrictStr | None,
        doc("The policy to compare with, by name; null: the current one."),
    ] = None
    hours: Annotated[StrictFloat | StrictInt, doc("How far back.", "h", bounds=_HOURS)] = HOURS_MAX


class DryRunDifference(Model):
    """For so long the two wanted different things."""

    at_unix_s: Annotated[float, doc("From.", "s since 1970")]
    until_unix_s: Annotated[float, doc("Until.", "s since 1970")]
    setting: Annotated[str, doc("Of what: destage, streams and so on.")]
    before: Annotated[str, doc("What the other policy wanted.")]
    after: Annotated[str, doc("What this one would have wanted.")]
    why_before: Annotated[str, doc("Its reason.")]
    why_after: Annotated[str, doc("The reason of this one.")]


class DryRunSpent(Model):
    """For how long each wanted which gate."""

    before: Annotated[dict[str, float], doc("The other policy, by what it wanted.", "s")]
    after: Annotated[dict[str, float], doc("This one, by what it wanted.", "s")]


class DryRunResult(Model):
    """What a policy would have decided otherwise."""

    from_unix_s: Annotated[float, doc("The begin of the time.", "s since 1970")]
    until_unix_s: Annotated[float, doc("Its end.", "s since 1970")]
    frames: Annotated[int, doc("Samples that were looked at.", "samples")]
    coverage_ratio: Annotated[float, doc("The share of the time with any.", "1")]
    differences: Annotated[list[DryRunDifference], doc("In the order of time, at most a thousand.")]
    left_out: Annotated[int, doc("Shorter differences that are not listed.", "differences")]
    destage_s: Annotated[DryRunSpent, doc("For how long which gate was wanted.")]
    notes: Annotated[list[str], doc("What the history cannot tell, each in a sentence.")]

# SPDX-License-Identifier: GPL-2.0-only
"""Models of policies. Pure data."""

from __future__ import annotations

from typing import Final

from pydantic import StrictFloat, StrictInt, StrictStr

from ebbgate.intents.arguments import POLICY_NAME
from ebbgate.web.models.base import Model, doc

HOURS_MAX: Final = 24.0
"""How far back a dry run can go."""
_HOURS: Final = {"exclusiveMinimum": 0, "maximum": HOURS_MAX}
_NAME: Final = f"^{POLICY_NAME.pattern}$"


class PolicyProblem(Model):
    """An error in a policy, or a key without effect, with its place."""

    file: str = doc("The file.")
    line: int = doc("From 1.", "line")
    column: int = doc("From 1.", "column")
    message: str = doc("What is wrong.")
    expected: str | None = doc("What was expected; null if unknown.")
    nearest: str | None = doc("The nearest known word; null if none is near.")


class PolicyFile(Model):
    """A policy file of the administrator."""

    name: str = doc("File name without extension, as `policy_save` and `policy_remove` take it.")
    path: str = doc("The whole path.")
    ok: bool = doc("Whether it is valid together with the others.")
    errors: list[PolicyProblem] = doc("Errors.")
    text: str | None = doc("Its text; null if it cannot be read.")


class ShippedPolicy(Model):
    """A policy shipped with ebbgate."""

    name: str = doc("Its name.")
    why: str = doc("Its purpose in a sentence.")
    text: str = doc("Its text.")


class EffectivePolicy(Model):
    """The policy of a volume now."""

    volume: str = doc("The volume.")
    title: str = doc("Its display name.")
    policy: str = doc("Name of the policy.")
    overlay: str | None = doc("The part of its schedule that is in force.")
    file: str | None = doc("Its file; null if it is shipped.")


class Policies(Model):
    """All policies of the machine."""

    folder: str = doc("Folder of the administrator's files.")
    folder_why: str | None = doc("Why the folder cannot be read; null if it can.")
    files: list[PolicyFile] = doc("The administrator's, in order of precedence.")
    shipped: list[ShippedPolicy] = doc("Policies shipped with ebbgate.")
    effective: list[EffectivePolicy] = doc("What runs for each volume.")


class PolicyText(Model, extra="forbid"):
    """A policy to check as if it were a file in the folder."""

    name: StrictStr = doc(
        "File name without extension.", example="night", bounds={"pattern": _NAME}
    )
    text: StrictStr = doc("Its text.")


class PolicyCheck(Model):
    """The result of a check."""

    ok: bool = doc("Whether the policy is valid.")
    errors: list[PolicyProblem] = doc("Errors.")
    notes: list[PolicyProblem] = doc("Keys that have no effect.")


class DryRunRequest(Model, extra="forbid"):
    """A policy to try on the recorded history of a volume."""

    volume: StrictStr = doc("The volume.", example="bcache0")
    text: StrictStr = doc("Text of the policy.")
    against: StrictStr | None = doc(
        "Name of the policy to compare with; null for the current one.", default=None
    )
    hours: StrictFloat | StrictInt = doc("How far back.", "h", bounds=_HOURS, default=HOURS_MAX)


class DryRunDifference(Model):
    """A time in which the two policies differed."""

    at_unix_s: float = doc("From.", "s since 1970")
    until_unix_s: float = doc("Until.", "s since 1970")
    setting: str = doc("What differed: destage, streams and so on.")
    before: str = doc("What the other policy decided.")
    after: str = doc("What this policy would have decided.")
    why_before: str = doc("The other policy's reason.")
    why_after: str = doc("This policy's reason.")


class DryRunSpent(Model):
    """How long each policy would have set each gate."""

    before: dict[str, float] = doc("The other policy, by gate.", "s")
    after: dict[str, float] = doc("This policy, by gate.", "s")


class DryRunResult(Model):
    """How the decisions of a policy would have differed."""

    from_unix_s: float = doc("Start of the time.", "s since 1970")
    until_unix_s: float = doc("Its end.", "s since 1970")
    frames: int = doc("Samples used.", "samples")
    coverage_ratio: float = doc("The share of the time that has samples.", "1")
    differences: list[DryRunDifference] = doc("In order of time, at most 1000.")
    left_out: int = doc("Shorter differences that are left out.", "differences")
    destage_s: DryRunSpent = doc("How long each gate would have been set.")
    notes: list[str] = doc("What the history cannot show, one sentence each.")

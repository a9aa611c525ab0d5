# SPDX-License-Identifier: GPL-2.0-only
"""What the API says of policies, and what it takes. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from ebbgate.intents.validation import POLICY_NAME
from ebbgate.web.models.field_doc import Of

HOURS_MAX: Final = 24.0
"""So far back a dry run goes."""
_HOURS: Final = {"exclusiveMinimum": 0, "maximum": HOURS_MAX}
_NAME: Final = f"^{POLICY_NAME.pattern}$"


@dataclass(frozen=True, slots=True)
class PolicyProblem:
    """One thing that is wrong with a policy, and where."""

    file: Annotated[str, Of("In which file.")]
    line: Annotated[int, Of("From 1.", "line")]
    column: Annotated[int, Of("From 1.", "column")]
    message: Annotated[str, Of("What is wrong.")]
    expected: Annotated[str | None, Of("What would be right.")]
    nearest: Annotated[str | None, Of("The nearest word that is known.")]


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A file of the administrator."""

    name: Annotated[str, Of("Without its ending; by it `policy_save` and `policy_remove` go.")]
    path: Annotated[str, Of("The whole path.")]
    ok: Annotated[bool, Of("Is it right, with the others beside it?")]
    errors: Annotated[list[PolicyProblem], Of("What is not.")]
    text: Annotated[str | None, Of("What it says; null: it cannot be read.")]


@dataclass(frozen=True, slots=True)
class ShippedPolicy:
    """A policy that comes with ebbgate."""

    name: Annotated[str, Of("Its name.")]
    why: Annotated[str, Of("What it is for, in a sentence.")]
    text: Annotated[str, Of("What it says.")]


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """What runs for a volume now."""

    volume: Annotated[str, Of("The volume.")]
    title: Annotated[str, Of("What people call it.")]
    policy: Annotated[str, Of("The policy by its name.")]
    overlay: Annotated[str | None, Of("The part of its schedule that is in force.")]
    file: Annotated[str | None, Of("Its file, of an administrator's; null: shipped.")]


@dataclass(frozen=True, slots=True)
class Policies:
    """All policies of the machine."""

    folder: Annotated[str, Of("Where the administrator's are.")]
    folder_why: Annotated[str | None, Of("Why the folder cannot be read; null where it can.")]
    files: Annotated[list[PolicyFile], Of("The administrator's, in the order in which they count.")]
    shipped: Annotated[list[ShippedPolicy], Of("Those that come with ebbgate.")]
    effective: Annotated[list[EffectivePolicy], Of("What the daemon said that it runs.")]


@dataclass(frozen=True, slots=True)
class PolicyText:
    """A policy to check as if it were a file of the folder."""

    name: Annotated[
        str, Of("Of the file, without its ending.", example="night", bounds={"pattern": _NAME})
    ]
    text: Annotated[str, Of("What it says.")]


@dataclass(frozen=True, slots=True)
class Checked:
    """Is a policy right?"""

    ok: Annotated[bool, Of("Is it?")]
    errors: Annotated[list[PolicyProblem], Of("What is not.")]


@dataclass(frozen=True, slots=True)
class DryRunOf:
    """A policy to run on what the history has of a volume."""

    volume: Annotated[str, Of("Which volume.", example="bcache0")]
    text: Annotated[str, Of("What the policy says.")]
    against: Annotated[
        str | None, Of("The policy to compare with, by name; null: the one that it is under.")
    ] = None
    hours: Annotated[float, Of("How far back.", "h", bounds=_HOURS)] = HOURS_MAX


@dataclass(frozen=True, slots=True)
class DryRunDifference:
    """For so long the two wanted different things."""

    at_unix_s: Annotated[float, Of("From.", "s since 1970")]
    until_unix_s: Annotated[float, Of("Until.", "s since 1970")]
    setting: Annotated[str, Of("Of what: destage, streams and so on.")]
    before: Annotated[str, Of("What the other policy wanted.")]
    after: Annotated[str, Of("What this one would have wanted.")]
    why_before: Annotated[str, Of("Its reason.")]
    why_after: Annotated[str, Of("The reason of this one.")]


@dataclass(frozen=True, slots=True)
class DryRunSpent:
    """For how long each wanted which gate."""

    before: Annotated[dict[str, float], Of("The other policy, by what it wanted.", "s")]
    after: Annotated[dict[str, float], Of("This one, by what it wanted.", "s")]


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """What a policy would have decided otherwise."""

    from_unix_s: Annotated[float, Of("The begin of the time.", "s since 1970")]
    until_unix_s: Annotated[float, Of("Its end.", "s since 1970")]
    frames: Annotated[int, Of("Samples that were looked at.", "samples")]
    coverage_ratio: Annotated[float, Of("The share of the time with any.", "1")]
    differences: Annotated[list[DryRunDifference], Of("In the order of time, at most a thousand.")]
    left_out: Annotated[int, Of("Shorter differences that are not listed.", "differences")]
    destage_s: Annotated[DryRunSpent, Of("For how long which gate was wanted.")]
    notes: Annotated[list[str], Of("What the history cannot tell, each in a sentence.")]

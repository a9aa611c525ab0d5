# SPDX-License-Identifier: GPL-2.0-only
"""Whether an advice can be carried out here and now, with what, and how it is undone. Pure.

The same for `ebbgate apply`, the web and the daemon.

An advice that was applied is no longer advised, and what it has set is kept as overrides, which do
not name it. So what is applied is told from the requests that people made and from the overrides in
force: an override of a knob that the advice sets, and that began during the request, is its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ebbgate.doctor.model import Advice, Change
from ebbgate.errors import EbbgateError, NotFound, UsageError
from ebbgate.knobs.catalog import BY_NAME, CONGESTED, CUTOFF, PERCENT
from ebbgate.knobs.settable import is_trigger
from ebbgate.model.override import OverrideKind
from ebbgate.model.volume import Mode, Volume
from ebbgate.units import NS_PER_S

UNDO: Final = "undo: "
"""Before a command that takes back what was done."""
NOTHING_LEFT: Final = "nothing is left to undo"


def advice_id(text: str) -> str:
    """`EBB-206` from what a person writes: `ebb-206`, `206`."""
    return f"EBB-{text.upper().removeprefix('EBB-')}"


def chosen(found: Iterable[Advice], number: str, volume: Volume) -> Advice:
    """The advice of this number. Raises NotFound, with what is advised, where it does not hold."""
    known = {each.id: each for each in found}
    if number not in known:
        now = f"advised now: {', '.join(known)}" if known else "nothing is advised now"
        raise NotFound(f"{number} is not advised for {volume.title}", now)
    return known[number]


def change_of(advice: Advice, volume: Volume, mode: str | None) -> Change:
    """What would be done. Raises UsageError for what a person has to do, or what ebbgate does
    already in this `mode` (None: unknown).
    """
    if advice.change is None:
        by_hand = f"by hand: {advice.command}" if advice.command else "see ebbgate doctor"
        raise UsageError(f"ebbgate does not carry out {advice.id}", by_hand)
    driven = [knob for knob, _ in advice.change.knobs if BY_NAME[knob].gate]
    if driven and mode == Mode.ENFORCE:
        raise UsageError(
            f"{volume.title} is in enforce, in which ebbgate drives {driven[0]} itself",
            f"give it back: ebbgate release {volume.title} {driven[0]}",
        )
    return advice.change


def by_daemon(advice: Advice, volume: Volume, mode: str | None) -> Change:
    """What the daemon would set: it runs no program. Raises UsageError as `change_of`, and for a
    command of LVM.
    """
    change = change_of(advice, volume, mode)
    if not change.knobs:
        raise UsageError(
            f"{advice.id} is a command of LVM, which the daemon never runs",
            f"ebbgate apply {advice.id} {volume.title}, or by hand: {shlex.join(change.argv)}",
        )
    return change


def why_not(advice: Advice, volume: Volume, mode: str | None) -> str:
    """Why the daemon would not carry it out, and what to do; empty where it would. A page that
    shows it has the command already, as a line of its own.
    """
    if advice.change is None:
        return "ebbgate does not do this itself" + (": use the command" if advice.command else "")
    try:
        by_daemon(advice, volume, mode)
    except EbbgateError as error:
        return f"{error.message}; {error.hint}"
    return ""


def undo_commands(change: Change, volume: Volume) -> list[str]:
    """What takes it back, command by command; nothing where nothing stays behind."""
    if change.argv:
        return [shlex.join(change.undo_argv)]
    return [
        f"ebbgate release {volume.title} {knob}" for knob, _ in change.knobs if not is_trigger(knob)
    ]


def is_undo(line: str) -> bool:
    """Does a line of an answer only say how to undo it?"""
    return line.startswith(UNDO) or line == NOTHING_LEFT


KNOBS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "EBB-205": CONGESTED,
    "EBB-206": (CUTOFF,),
    "EBB-209": (PERCENT,),
    "EBB-210": (PERCENT,),
    "EBB-211": (PERCENT,),
    "EBB-213": (CUTOFF,),
}
"""The knobs that each advice sets; triggers and commands of LVM leave no override behind."""
_CLOCK_STEP_NS: Final = NS_PER_S
"""The wall clock may be set while a request is under way."""


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """A request to apply an advice that was carried out. Times are of the wall clock."""

    advice: str
    volume: str
    who: str
    at_unix_ns: int
    resolved_unix_ns: int


@dataclass(frozen=True, slots=True)
class Applied:
    """An advice of which something is in force. `knobs`: those that it set and that still have the
    value, which is what an undo releases; each with its value as the kernel takes it.
    """

    request: ApplyRequest
    knobs: tuple[tuple[str, str], ...]


def applied(
    requests: Iterable[ApplyRequest], overrides: Mapping[str, Iterable[Mapping[str, Any]]]
) -> list[Applied]:
    """What is in force of the requests, given newest first; `overrides`: by volume, as the daemon
    tells them. An override that was set anew since belongs to the newer request.
    """
    found: list[Applied] = []
    taken: set[tuple[str, str]] = set()
    for request in requests:
        knobs = tuple(
            (str(each["knob"]), str(each["value"]))
            for each in overrides.get(request.volume, ())
            if _is_of(each, request) and (request.volume, each["knob"]) not in taken
        )
        if knobs:
            found.append(Applied(request, knobs))
            taken |= {(request.volume, knob) for knob, _ in knobs}
    return found


def _is_of(override: Mapping[str, Any], request: ApplyRequest) -> bool:
    since_ns = override.get("since_unix_ns")
    if override.get("kind") != OverrideKind.SET or not isinstance(since_ns, int):
        return False
    if override.get("knob") not in KNOBS_OF.get(request.advice, ()):
        return False
    begin_ns = request.at_unix_ns - _CLOCK_STEP_NS
    return begin_ns <= since_ns <= request.resolved_unix_ns + _CLOCK_STEP_NS

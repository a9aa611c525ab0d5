# SPDX-License-Identifier: GPL-2.0-only
"""Whether advice can be applied now, how, and how to undo it. Pure.

Used by `ebbgate apply`, the web and the daemon. Overrides do not name the advice that made them. An
override belongs to an applied advice if it is of a knob that the advice sets and began during the
request that applied it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ebbgate.doctor.model import KNOB_CHANGES, Advice, Change
from ebbgate.errors import EbbgateError, NotFound, UsageError
from ebbgate.knobs.catalog import knob_row
from ebbgate.knobs.settable import is_trigger
from ebbgate.model.override import OverrideKind
from ebbgate.model.status import AbsentVolume, OverrideStatus
from ebbgate.model.volume import Mode, Volume
from ebbgate.units import NS_PER_S

UNDO: Final = "undo: "
"""Precedes a command that undoes the change."""
NOTHING_LEFT: Final = "there is nothing to undo"


def device_mapper_text(why: str) -> str:
    """Return the text for a daemon that cannot query it; `why` as DeviceMapper.blocked gives it."""
    return (
        f"ebbgated cannot query device-mapper ({why}): dm-cache and dm-writecache volumes are not"
        " tuned; check DeviceAllow= and CapabilityBoundingSet= (systemctl cat ebbgated), then run:"
        " systemctl restart ebbgated"
    )


def forget_command(absent: AbsentVolume) -> str:
    """Return the command that drops what is kept for a volume."""
    return f"ebbgate forget {shlex.quote(absent.owner)}"


def advice_id(text: str) -> str:
    """Normalize `ebb-206` or `206` to `EBB-206`."""
    return f"EBB-{text.upper().removeprefix('EBB-')}"


def advice_by_id(found: Iterable[Advice], number: str, volume: Volume) -> Advice:
    """Return the advice with this number. Raises NotFound, which lists what does apply."""
    known = {each.id: each for each in found}
    if number not in known:
        now = f"these apply now: {', '.join(known)}" if known else "there is no advice for it now"
        raise NotFound(f"{number} does not apply to {volume.title}", now)
    return known[number]


def change_of(advice: Advice, volume: Volume, mode: Mode | None) -> Change:
    """Return what would be done.

    Raises UsageError if a person has to do it, or if ebbgate does it already in this `mode` (None:
    unknown).
    """
    if advice.change is None:
        by_hand = f"by hand: {advice.command}" if advice.command else "see ebbgate doctor"
        raise UsageError(f"ebbgate cannot apply {advice.id}", by_hand)
    tuned = [knob for knob, _ in advice.change.knobs if knob_row(knob).gate]
    if tuned and mode == Mode.ENFORCE:
        raise UsageError(
            f"{volume.title} is in enforce: ebbgate tunes {tuned[0]} already",
            f"return it to ebbgate: ebbgate release {volume.title} {tuned[0]}",
        )
    return advice.change


def by_daemon(advice: Advice, volume: Volume, mode: Mode | None) -> Change:
    """Return what the daemon would set. Raises UsageError as `change_of`, and for LVM commands."""
    change = change_of(advice, volume, mode)
    if not change.knobs:
        raise UsageError(
            f"{advice.id} is an LVM command, which the daemon does not run",
            f"run: ebbgate apply {advice.id} {volume.title}, or by hand: {shlex.join(change.argv)}",
        )
    return change


def why_not(advice: Advice, volume: Volume, mode: Mode | None) -> str:
    """Return why the daemon cannot apply it, and what to do; empty if it can.

    The command itself is left out: pages show it anyway.
    """
    if advice.change is None:
        return "ebbgate cannot do this" + (": run the command" if advice.command else "")
    try:
        by_daemon(advice, volume, mode)
    except EbbgateError as error:
        return f"{error.message}; {error.hint}"
    return ""


def undo_commands(change: Change, volume: Volume) -> list[str]:
    """Return the commands that undo the change; none if there is nothing to undo."""
    if change.argv:
        return [shlex.join(change.undo_argv)]
    return [
        f"ebbgate release {volume.title} {knob}" for knob, _ in change.knobs if not is_trigger(knob)
    ]


def is_undo(line: str) -> bool:
    """Whether a line of an answer only says how to undo it."""
    return line.startswith(UNDO) or line == NOTHING_LEFT


_CLOCK_STEP_NS: Final = NS_PER_S
"""The wall clock may be set while a request runs."""


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """A completed request to apply an advice. Times are of the wall clock."""

    advice: str
    volume: str
    who: str
    at_unix_ns: int
    resolved_unix_ns: int


@dataclass(frozen=True, slots=True)
class Applied:
    """An applied advice. `knobs`: those still set, with their values; undo releases them."""

    request: ApplyRequest
    knobs: tuple[tuple[str, str], ...]


def applied(
    requests: Iterable[ApplyRequest], overrides: Mapping[str, Iterable[OverrideStatus]]
) -> list[Applied]:
    """Return what is still in force. `requests`: newest first; `overrides`: of each volume.

    An override that was set again belongs to the newer request.
    """
    found: list[Applied] = []
    taken: set[tuple[str, str]] = set()
    for request in requests:
        knobs = tuple(
            (str(each.knob), str(each.value))
            for each in overrides.get(request.volume, ())
            if _is_of(each, request) and (request.volume, each.knob) not in taken
        )
        if knobs:
            found.append(Applied(request, knobs))
            taken |= {(request.volume, knob) for knob, _ in knobs}
    return found


def _is_of(override: OverrideStatus, request: ApplyRequest) -> bool:
    since_ns = override.since_unix_ns
    if override.kind != OverrideKind.SET or since_ns is None:
        return False
    change = KNOB_CHANGES.get(request.advice)
    if change is None or override.knob not in dict(change.knobs):
        return False
    begin_ns = request.at_unix_ns - _CLOCK_STEP_NS
    return begin_ns <= since_ns <= request.resolved_unix_ns + _CLOCK_STEP_NS

# SPDX-License-Identifier: GPL-2.0-only
"""Wishes of people: when they end, and what they say in a decision. Pure.

A wish ends when either clock says so. The monotonic one knows no steps, but neither a restart of
the daemon nor a machine that slept; the wall clock knows both, and may be set. So a clock that is
set forward ends a wish early, which is the safe side, and one that is set back prolongs it by no
more than what was asked for.
"""

from __future__ import annotations

from ebbgate.knobs.catalog import CUTOFF
from ebbgate.model.decision import Gate, GateKind, Proposal
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import UNWRITABLE, VolumeState
from ebbgate.units import format_ns

OVERRIDE = "wish"


def ends_ns(wish: Override, wall_ns: int, now_ns: int) -> int | None:
    """When a wish that is taken up now ends, on the monotonic clock; None: when released."""
    if wish.until_unix_ns is None or wish.for_ns is None:
        return None
    return now_ns + min(max(0, wish.until_unix_ns - wall_ns), wish.for_ns)


def is_over(standing: ActiveOverride, wall_ns: int, now_ns: int) -> bool:
    """Has its time come?"""
    until = standing.override.until_unix_ns
    if standing.ends_ns is None or until is None:
        return False
    return now_ns >= standing.ends_ns or wall_ns >= until


def unwritable_reason(state: VolumeState | None) -> str:
    """Why no knob of the volume may be written now; empty when it may."""
    if state is None or state.state is None:
        return "its state is unknown"
    return UNWRITABLE.get(state.state, "")


def override_text(standing: ActiveOverride, now_ns: int, value: str) -> str:
    """Return e.g. `sequential_cutoff 1 MiB, requested by jo, 9.5 min left`."""
    wish, left = standing.override, standing.left_ns(now_ns)
    what = f"{wish.knob} {value}" if wish.kind is OverrideKind.SET else str(wish.kind)
    rest = "until released" if left is None else f"{format_ns(left)} left"
    return f"{what}, requested by {wish.who}, {rest}"


def proposal(
    sets: tuple[tuple[ActiveOverride, str], ...], gate_knobs: frozenset[str], now_ns: int
) -> Proposal:
    """What the wishes for knobs take from all strategies. `sets`: each with its value in words;
    `gate_knobs`: of this kind of volume, which make sense only together.
    """
    knobs = tuple((each.override.knob, each.override.value) for each, _ in sets)
    names = frozenset(knob for knob, _ in knobs)
    cutoff = next((int(value) for knob, value in knobs if knob == CUTOFF), None)
    return Proposal(
        OVERRIDE,
        "; ".join(override_text(each, now_ns, value) for each, value in sets),
        gate=None if names.isdisjoint(gate_knobs) else Gate(GateKind.RELEASED),
        sequential_cutoff_bytes=cutoff,
        knobs=knobs,
    )

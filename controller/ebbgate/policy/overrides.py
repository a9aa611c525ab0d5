# SPDX-License-Identifier: GPL-2.0-only
"""Overrides: when they end, and their proposal in a decision. Pure.

An override ends when either clock says so. The monotonic clock has no steps, but it does not count
through a restart of the daemon or the machine's sleep. The wall clock does, but may be set. So a
clock that is set forward ends an override early, which is safe, and one that is set back prolongs
it by no more than its length.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ebbgate.knobs.catalog import CUTOFF
from ebbgate.model.decision import Gate, GateKind, Proposal
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import UNWRITABLE, VolumeState
from ebbgate.units import NS_PER_S, format_ns

OVERRIDE = "override"
_STEP_NS_MIN: Final = NS_PER_S
"""Clocks that are kept right by small steps differ by less."""


def ends_ns(override: Override, wall_ns: int, now_ns: int) -> int | None:
    """Return when an override taken up now ends, on the monotonic clock; None: when released."""
    if override.until_unix_ns is None or override.for_ns is None:
        return None
    return now_ns + min(max(0, override.until_unix_ns - wall_ns), override.for_ns)


def after_sleep(active: ActiveOverride, wall_ns: int, now_ns: int) -> ActiveOverride:
    """Return the override with the end of the wall clock, if the machine has slept meanwhile.

    Otherwise a drain would plan with time that is not left.
    """
    ends = ends_ns(active.override, wall_ns, now_ns)
    if ends is None or active.ends_ns is None or ends >= active.ends_ns - _STEP_NS_MIN:
        return active
    return replace(active, ends_ns=ends)


def is_over(active: ActiveOverride, wall_ns: int, now_ns: int) -> bool:
    """Return whether its time is over."""
    until = active.override.until_unix_ns
    if active.ends_ns is None or until is None:
        return False
    return now_ns >= active.ends_ns or wall_ns >= until


def unwritable_reason(state: VolumeState | None) -> str:
    """Return why no knob of the volume may be written now; empty if one may."""
    if state is None or state.state is None:
        return "its state is unknown"
    return UNWRITABLE.get(state.state, "")


def override_text(active: ActiveOverride, now_ns: int, value: str) -> str:
    """Return e.g. `sequential_cutoff 1 MiB, requested by jo, 9.5 min left`."""
    override, left = active.override, active.left_ns(now_ns)
    what = f"{override.knob} {value}" if override.kind is OverrideKind.SET else str(override.kind)
    rest = "until released" if left is None else f"{format_ns(left)} left"
    return f"{what}, requested by {override.who}, {rest}"


def proposal(
    sets: tuple[tuple[ActiveOverride, str], ...], gate_knobs: frozenset[str], now_ns: int
) -> Proposal:
    """Return the proposal of the overridden knobs.

    `sets`: each override with its value as text. `gate_knobs`: the knobs of the gate on this kind
    of volume, which make sense only together.
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

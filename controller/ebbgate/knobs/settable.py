# SPDX-License-Identifier: GPL-2.0-only
"""What a person may set: a knob that ebbgate writes anyway, within its hard bounds. Pure.

The command line looks before it asks, the daemon before it obeys: whoever adds an intent row.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

from ebbgate.errors import UsageError
from ebbgate.knobs.bounds import (
    BOUNDS,
    CUTOFF,
    NEVER,
    RATE,
    TRIGGERS,
    format_range,
    format_value,
    parse_figure,
)
from ebbgate.knobs.catalog import knob_path, knobs_of
from ebbgate.knobs.dm_cache import THRESHOLD
from ebbgate.model.volume import Kind, Volume
from ebbgate.policy.limits import Bounds, Limits
from ebbgate.units import bytes_to_sectors


def settable(volume: Volume) -> tuple[str, ...]:
    """The knobs of this kind of volume that a person may set through ebbgate."""
    return tuple(knob.name for knob in knobs_of(volume) if knob.name in BOUNDS)


def check_knob(volume: Volume, knob: str) -> None:
    """Raises UsageError, with the nearest name, for what is no knob to be set here."""
    known = settable(volume)
    if knob in known:
        if knob_path(volume, knob) is None:
            raise UsageError(f"{volume.title} has no {knob} now: no cache is attached")
        return
    if not known and knob not in NEVER:
        raise UsageError(
            f"{volume.title} is {volume.kind}, which has no knob to set while it runs",
            "see ebbgate doctor",
        )
    raise _no_knob(knob, f"{volume.title} has no knob", known)


def asked_value(volume: Volume, knob: str, text: str) -> str:
    """The value as the kernel takes it. Raises UsageError, which says what is allowed."""
    check_knob(volume, knob)
    return bounded_value(knob, text)


def check_name(knob: str) -> None:
    """Raises UsageError for what is a knob of no kind of volume, without a look at one."""
    if not may_be_set(knob):
        raise _no_knob(knob, "", tuple(BOUNDS))


def may_be_set(knob: str) -> bool:
    """Is it a knob that a person may set through ebbgate, on a volume that has it?"""
    return knob in BOUNDS


def bounded_value(knob: str, text: str) -> str:
    """The value of a knob of any volume, as the kernel takes it. Raises UsageError."""
    bound = BOUNDS[knob]
    try:
        value = parse_figure(knob, text)
    except ValueError as error:
        raise UsageError(str(error), f"{knob} takes {format_range(knob)}") from error
    if not bound.low <= value <= bound.high:
        why = f"{knob} takes {format_range(knob)}: {bound.why}"
        raise UsageError(f"{text} is out of bounds for {knob}", why)
    return str(value)


def beyond_limits(volume: Volume, knob: str, value: int, limits: Limits) -> str:
    """By what a person's value is beyond the limits of the policy, in words; empty where it is not.

    `value`: as the kernel takes it. They bind strategies and rules; a person wins, but is told.
    """
    low, high = _in_unit(volume, knob, limits)
    words = []
    if low is not None and value < low:
        words.append(f"under the {format_value(knob, low)}")
    if high is not None and value > high:
        words.append(f"above the {format_value(knob, high)}")
    return " and ".join(words)


def _in_unit(volume: Volume, knob: str, limits: Limits) -> tuple[int | None, int | None]:
    """The limits of a knob in the unit in which the kernel takes it."""
    if knob == CUTOFF:
        return limits.sequential_cutoff.low, limits.sequential_cutoff.high
    if knob == RATE:
        return _converted(limits.destage_rate, bytes_to_sectors)
    if knob == THRESHOLD and volume.mapping is not None:
        sectors = volume.mapping.block_sectors
        return _converted(limits.destage_depth, lambda pieces: pieces * sectors)
    return None, None


def _converted(bounds: Bounds, convert: Callable[[int], int]) -> tuple[int | None, int | None]:
    low, high = bounds.low, bounds.high
    return None if low is None else convert(low), None if high is None else convert(high)


def _no_knob(knob: str, what: str, known: tuple[str, ...]) -> UsageError:
    if knob in NEVER:
        why = f"ebbgate never writes {knob}: it {NEVER[knob]}"
        return UsageError(why, "write it by hand if you must")
    close = difflib.get_close_matches(knob, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"knobs: {', '.join(known)}"
    return UsageError(f"{what or 'there is no knob'} {knob} that ebbgate may write", hint)


def is_trigger(knob: str) -> bool:
    """Does a write of it start something and leave no value behind?"""
    return knob in TRIGGERS


def drain_refusal(volume: Volume) -> str:
    """Why this kind of volume cannot be drained by a time; empty where it can."""
    if volume.kind is Kind.DM_WRITECACHE:
        return "dm-writecache has no gate to open; ebbgate clean writes everything back"
    return ""

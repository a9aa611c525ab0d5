# SPDX-License-Identifier: GPL-2.0-only
"""Checks what a person may set: knobs that ebbgate writes anyway, within their bounds. Pure."""

from __future__ import annotations

import difflib

from ebbgate.errors import UsageError
from ebbgate.knobs.catalog import KNOBS, NEVER, bounds_of, find_knob, knob_row
from ebbgate.knobs.places import knob_path, knobs_of
from ebbgate.knobs.values import format_range, format_value, parse_figure
from ebbgate.model.volume import Kind, Volume


def settable(volume: Volume) -> tuple[str, ...]:
    """Return the knobs of a volume that a person may set through ebbgate."""
    return tuple(knob.name for knob in knobs_of(volume) if knob.settable)


def check_knob(volume: Volume, knob: str) -> None:
    """Check that the volume has a knob that may be set. Raises UsageError with the nearest name."""
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


def checked_value(volume: Volume, knob: str, text: str) -> str:
    """Return the value as the kernel takes it. Raises UsageError, which says what is allowed."""
    check_knob(volume, knob)
    return bounded_value(knob, text)


def check_name(knob: str) -> None:
    """Check a name without a volume. Raises UsageError for one that can be set nowhere."""
    if not may_be_set(knob):
        names = (f"{row.name}:DISK" if row.per_disk else row.name for row in KNOBS)
        known = tuple(name for name in names if may_be_set(name))
        raise _no_knob(knob, "", known)


def may_be_set(knob: str) -> bool:
    """Is it a knob that a person may set through ebbgate, on a volume that has it?"""
    row = find_knob(knob)
    return row is not None and row.settable and row.per_disk == (":" in knob)


def bounded_value(knob: str, text: str) -> str:
    """Return the value as the kernel takes it, without a look at a volume. Raises UsageError."""
    bound = bounds_of(knob)
    try:
        value = parse_figure(knob, text)
    except ValueError as error:
        raise UsageError(str(error), f"{knob} takes {format_range(knob)}") from error
    if not bound.low <= value <= bound.high:
        why = f"{knob} takes {format_range(knob)}: {bound.why}"
        raise UsageError(f"{text} is out of bounds for {knob}", why)
    return str(value)


def beyond_limits(knob: str, value: int, low: int | None, high: int | None) -> str:
    """Return how a value exceeds the limits of the policy, in words; empty where it does not.

    All in the kernel's unit. The limits bind strategies and rules; a person may exceed them.
    """
    words = []
    if low is not None and value < low:
        words.append(f"under the {format_value(knob, low)}")
    if high is not None and value > high:
        words.append(f"above the {format_value(knob, high)}")
    return " and ".join(words)


def _no_knob(knob: str, what: str, known: tuple[str, ...]) -> UsageError:
    if knob in NEVER:
        why = f"ebbgate never writes {knob}: it {NEVER[knob]}"
        return UsageError(why, "write it by hand if you must")
    close = difflib.get_close_matches(knob, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"knobs: {', '.join(known)}"
    return UsageError(f"{what or 'there is no knob'} {knob} that ebbgate may write", hint)


def is_trigger(knob: str) -> bool:
    """Does a write start something and leave no value behind?"""
    return knob_row(knob).trigger


def drain_refusal(volume: Volume) -> str:
    """Return why this kind of volume cannot be drained by a time; empty where it can."""
    if volume.kind is Kind.DM_WRITECACHE:
        return "dm-writecache has no gate to open; ebbgate clean writes everything back"
    return ""

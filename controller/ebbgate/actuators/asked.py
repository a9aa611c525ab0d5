# SPDX-License-Identifier: GPL-2.0-only
"""What a person may set: a knob that ebbgate writes anyway, within its hard bounds. Pure.

The command line looks before it asks, the daemon before it obeys: whoever adds an intent row.
"""

from __future__ import annotations

import difflib

from ebbgate.actuators.bounds import BOUNDS, NEVER, parse_figure, span
from ebbgate.actuators.plan import TRIGGERS
from ebbgate.errors import UsageError
from ebbgate.model.volume import Kind, Volume
from ebbgate.probes.knobs import knob_path, knobs_of


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
    if knob in NEVER:
        why = f"ebbgate never writes {knob}: it {NEVER[knob]}"
        raise UsageError(why, "write it by hand if you must")
    if not known:
        raise UsageError(
            f"{volume.title} is {volume.kind}, which has no knob to set while it runs",
            "see ebbgate doctor",
        )
    close = difflib.get_close_matches(knob, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"knobs: {', '.join(known)}"
    raise UsageError(f"{volume.title} has no knob {knob} that ebbgate may write", hint)


def asked_value(volume: Volume, knob: str, text: str) -> str:
    """The value as the kernel takes it. Raises UsageError, which says what is allowed."""
    check_knob(volume, knob)
    bound = BOUNDS[knob]
    try:
        value = parse_figure(knob, text)
    except ValueError as error:
        raise UsageError(str(error), f"{knob} takes {span(knob)}") from error
    if not bound.low <= value <= bound.high:
        why = f"{knob} takes {span(knob)}: {bound.why}"
        raise UsageError(f"{text} is out of bounds for {knob}", why)
    return str(value)


def is_trigger(knob: str) -> bool:
    """Does a write of it start something and leave no value behind?"""
    return knob in TRIGGERS


def drain_refusal(volume: Volume) -> str:
    """Why this kind of volume cannot be drained by a time; empty where it can."""
    if volume.kind is Kind.DM_WRITECACHE:
        return "dm-writecache has no gate to open; ebbgate clean writes everything back"
    return ""

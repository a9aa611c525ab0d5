# SPDX-License-Identifier: GPL-2.0-only
"""`set`, `drain`, `release`, `forget`: make and end overrides.

I/O: the control socket; the history, for completion.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import click

from ebbgate.cli.context import Context, emit, volume_argument, with_context
from ebbgate.cli.daemon_status import look
from ebbgate.cli.intents import ask, draw_outcome, named, parse_for
from ebbgate.errors import EbbgateError, UsageError
from ebbgate.model.override import IntentKind
from ebbgate.units import NS_PER_S


def parse_by(text: str, wall_ns: int) -> int:
    """Return the time (ns) until the clock next shows e.g. `06:00`. Raises UsageError."""
    now = datetime.fromtimestamp(wall_ns / NS_PER_S).astimezone()
    try:
        clock = datetime.strptime(text.strip(), "%H:%M")
    except ValueError as error:
        raise UsageError(f"--by: not a time of day: {text!r}", "for example --by 06:00") from error
    # Without a zone, so that the time of day is right across a change to or from summer time.
    due = now.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0, tzinfo=None)
    if due.astimezone() <= now:
        # When the clock goes back, it shows an hour twice.
        again = due.replace(fold=1)
        due = again if again.astimezone() > now else due + timedelta(days=1)
    return round((due.astimezone() - now).total_seconds() * NS_PER_S)


@click.command("set")
@volume_argument()
@click.argument("knob")
@click.argument("value")
@click.argument("words", nargs=-1, metavar="[for TIME]")
@click.option(
    "--for", "lasting", metavar="TIME", help="Release the knob after this time, such as 10min."
)
@with_context
def set_knob(
    context: Context,
    volume: str,
    knob: str,
    value: str,
    words: tuple[str, ...],
    lasting: str | None,
) -> None:
    """Set KNOB of VOLUME to VALUE; ebbgate does not change it until it is released.

    VALUE takes a unit (4MiB, 10MiB/s, 20%, 2ms); a bare number is in the kernel's unit. Only knobs
    that ebbgate tunes can be set, within safe bounds. The original value is restored when the time
    is over, also after a restart of the daemon. Without a time the setting lasts until
    `ebbgate release VOLUME KNOB`. While a knob of the gate is set, ebbgate does not control
    write-back.
    """
    found = named(context, volume)
    for_ns = _time(words, lasting, "for")
    args: dict[str, Any] = {"knob": knob, "value": value}
    if for_ns is not None:
        args["for_ns"] = for_ns
    emit(context, ask(context, IntentKind.SET, found, args), draw_outcome)


@click.command()
@volume_argument()
@click.option("--by", metavar="HH:MM", help="Finish by this time of day.")
@click.option("--within", metavar="TIME", help="Finish within this time, such as 2h.")
@with_context
def drain(context: Context, volume: str, by: str | None, within: str | None) -> None:
    """Write all dirty data of VOLUME back by a given time, no faster than needed.

    While users are idle, ebbgate writes back as usual; under load only as fast as the time left
    requires. `ebbgate status` shows the progress and whether it will finish in time. It ends when
    the volume is clean, when the time is over, or with `ebbgate release VOLUME`. In `enforce` only.
    """
    found = named(context, volume)
    if (by is None) == (within is None):
        raise UsageError("drain needs either --by or --within", "for example --by 06:00")
    if by is not None:
        for_ns = parse_by(by, context.wall_ns())
    else:
        for_ns = parse_for(within or "", "--within")
    args = {"for_ns": for_ns}
    emit(context, ask(context, IntentKind.DRAIN, found, args), draw_outcome)


@click.command()
@volume_argument()
@click.argument("knob", required=False)
@with_context
def release(context: Context, volume: str, knob: str | None) -> None:
    """Return KNOB of VOLUME (or all of them) to ebbgate.

    Ends `set`, `drain` and `hold`. ebbgate also tunes knobs again that someone else has changed;
    the present value of such a knob then counts as its original.
    """
    found = named(context, volume)
    args = {} if knob is None else {"knob": knob}
    emit(context, ask(context, IntentKind.RELEASE, found, args), draw_outcome)


set = set_knob
"""The name under which the table of commands finds it."""


def _time(words: tuple[str, ...], option: str | None, word: str) -> int | None:
    """Parse `for 10min` after the value, or the option `--for`."""
    if not words:
        return None if option is None else parse_for(option, f"--{word}")
    if words[0] != word or option is not None:
        raise UsageError(f"unexpected argument: {' '.join(words)}", f"for example: {word} 10min")
    return parse_for(" ".join(words[1:]), word)


def _absent_names(ctx: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    try:
        daemon = look(ctx.ensure_object(Context)).daemon
    except EbbgateError:
        return []
    absent = (daemon.absent or ()) if daemon else ()
    return [each.owner for each in absent if each.owner.startswith(begun)]


@click.command()
@click.argument("volume", shell_complete=_absent_names)
@with_context
def forget(context: Context, volume: str) -> None:
    """Drop all that is kept for VOLUME, which is gone.

    VOLUME is the uuid of the volume, or the name that it had last: `ebbgate status` lists both, and
    what is kept. That is its mode, its holds, drains and set values, what somebody else wrote, and
    its pins. If the volume comes back, it is a new one. A volume that is here is refused.
    """
    answer = ask(context, IntentKind.FORGET, None, {"absent": volume.removeprefix("/dev/")})
    emit(context, answer, draw_outcome)

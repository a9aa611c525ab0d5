# SPDX-License-Identifier: GPL-2.0-only
"""`clean`: writes all dirty data of a dm volume back, after asking. I/O: the control socket."""

from __future__ import annotations

import click

from ebbgate.cli.context import (
    Context,
    duration_of,
    emit,
    need_terminal,
    print_note,
    volume_argument,
    with_context,
)
from ebbgate.cli.daemon_status import need_daemon
from ebbgate.cli.intents import ask, draw_outcome
from ebbgate.errors import UsageError
from ebbgate.model.override import IntentKind
from ebbgate.model.volume import Kind
from ebbgate.probes.topology import find
from ebbgate.text import clean_text
from ebbgate.units import DAY_NS, NS_PER_S

_SHORTEST_NS = 10 * NS_PER_S
_LONGEST_NS = 7 * DAY_NS
_WARNING_FLUSH = (
    "The kernel writes everything back at once; requests of users are slow meanwhile. It cannot be"
    " stopped early."
)
_WARNING = (
    "This loads another device-mapper table, twice; each time the volume pauses for a second or"
    " two. Meanwhile nothing new is cached and requests are slower. Afterwards the cache has to"
    " learn again which blocks are used often."
)


@click.command()
@volume_argument()
@click.option(
    "--within", default="30min", show_default=True, help="Give up after this time, such as 30min."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@with_context
def clean(context: Context, volume: str, within: str, yes: bool) -> None:
    """Write all dirty data of VOLUME back now, even under load.

    dm-writecache is flushed. dm-cache gets the policy `cleaner`; its old table is loaded again once
    it is clean, when the time is over, on `ebbgate restore` and when the daemon ends.
    `ebbgate status` shows the progress.
    """
    context.need_root("ebbgate clean")
    found = find(context.sysfs, volume)
    if found.kind is Kind.BCACHE:
        raise UsageError(
            f"{found.title} is bcache; clean is for dm-cache and dm-writecache",
            f"use: ebbgate drain {found.title} --within 30min",
        )
    within_ns = _duration_ns(within)
    need_daemon(context)
    if not yes:
        need_terminal()
        print_note(_WARNING if found.kind is Kind.DM_CACHE else _WARNING_FLUSH)
        click.confirm(f"Clean {clean_text(found.title)}?", abort=True, err=True)
    answer = ask(context, IntentKind.CLEAN, found, {"within_ns": within_ns})
    emit(context, answer, draw_outcome)


def _duration_ns(text: str) -> int:
    hint = "for example --within 30min"
    duration_ns = duration_of("--within", text, hint)
    if not _SHORTEST_NS <= duration_ns <= _LONGEST_NS:
        raise UsageError("--within must be 10 s to 168 h", hint)
    return duration_ns

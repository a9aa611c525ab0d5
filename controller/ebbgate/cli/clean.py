# SPDX-License-Identifier: GPL-2.0-only
"""`clean`: dm-cache's cleaner with a deadline, dm-writecache's flush, once a person has said yes.

I/O: the control socket.
"""

from __future__ import annotations

import click

from ebbgate.cli.context import Context, json_option
from ebbgate.cli.daemon_status import need_daemon
from ebbgate.cli.intents import ask, draw_outcome
from ebbgate.cli.output import emit, print_note
from ebbgate.errors import UsageError
from ebbgate.model.override import IntentKind
from ebbgate.model.volume import Kind
from ebbgate.probes.topology import find
from ebbgate.units import NS_PER_S, clean_text, parse_duration_ns

_SHORTEST_NS = 10 * NS_PER_S
_LONGEST_NS = 7 * 24 * 3600 * NS_PER_S
_PRICE_FLUSH = (
    "The kernel writes everything back at once, and users wait beside it. Nothing ends that early."
)
_PRICE = (
    "This loads another table twice: each time the volume stands still for a second or two. "
    "While it lasts nothing is promoted and users wait longer; afterwards the cache learns anew "
    "which blocks are hot."
)


@click.command()
@click.argument("volume")
@click.option("--within", default="30min", show_default=True, help="Given up after so long.")
@click.option("--yes", is_flag=True, help="Do not ask back.")
@json_option
@click.pass_obj
def clean(context: Context, volume: str, within: str, yes: bool) -> None:
    """Write all dirty data of VOLUME back, under any load.

    dm-writecache is flushed. dm-cache gets the cleaner policy; the old table comes back when it is
    clean, when the time is over, on `ebbgate restore`, and when the daemon ends. `ebbgate status`
    shows how far it is.
    """
    context.need_root("ebbgate clean")
    found = find(context.sysfs, volume)
    if found.kind is Kind.BCACHE:
        raise UsageError(
            f"{found.title} is bcache, which drains by itself, under load too",
            "see ebbgate status",
        )
    within_ns = _duration_ns(within)
    need_daemon(context)
    if not yes:
        print_note(_PRICE if found.kind is Kind.DM_CACHE else _PRICE_FLUSH)
        click.confirm(f"Clean {clean_text(found.title)}?", abort=True, err=True)
    answer = ask(context, IntentKind.CLEAN, found.name, {"within_ns": within_ns})
    emit(context, answer, draw_outcome)


def _duration_ns(text: str) -> int:
    try:
        duration_ns = parse_duration_ns(text)
    except ValueError as error:
        raise UsageError(f"--within: {error}", "for example --within 30min") from error
    if not _SHORTEST_NS <= duration_ns <= _LONGEST_NS:
        raise UsageError("--within takes 10 s to 168 h", "for example --within 30min")
    return duration_ns

# SPDX-License-Identifier: GPL-2.0-only
"""`restore`: every knob gets its original back. I/O: intents, or sysfs where no daemon runs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebbgate.actuators.restore import restore as put_back
from ebbgate.actuators.volume_workers import VolumeWorkers
from ebbgate.cli.ask import ask, who
from ebbgate.cli.context import Context, json_option
from ebbgate.cli.link import no_daemon
from ebbgate.cli.output import Document, emit
from ebbgate.errors import ActuationError, EbbgateError
from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.model.wish import IntentKind, Wish, WishKind
from ebbgate.probes.topology import find
from ebbgate.store.intents import Intents
from ebbgate.store.last_written import LastWritten
from ebbgate.store.leftovers import Leftovers

if TYPE_CHECKING:
    from ebbgate.cli.page import Cell, Page


@click.command()
@click.argument("volume", required=False)
@click.option(
    "--keep-wishes",
    is_flag=True,
    help="Without a daemon: what was set, held or drained goes on with the next one.",
)
@json_option
@click.pass_obj
def restore(context: Context, volume: str | None, keep_wishes: bool) -> None:
    """Put every knob of VOLUME (or of all volumes) back to what it was before ebbgate.

    A running daemon does it and goes on in `advise`. Without one it is done here and now, so it
    also cleans up after a daemon that was killed. Values from before a reboot are not put back:
    the kernel's own are there again. What people set, held or drained is over with it, unless
    --keep-wishes is said, as systemd does after each end of the daemon.
    """
    context.need_root("ebbgate restore")
    with no_daemon(context.config.lock_path) as alone:
        if alone:
            document = _here(context, volume)
            document["wishes"] = [] if keep_wishes else _end_wishes(context, volume)
        else:
            name = find(context.sysfs, volume).name if volume else None
            document = {"by": "daemon", **ask(context, IntentKind.RESTORE, name, {})}
    emit(context, document, _draw)
    failed = [row for row in document.get("knobs", ()) if row["outcome"] == OutcomeKind.FAILED]
    if failed:
        first = failed[0]
        raise ActuationError(
            f"{len(failed)} of {len(document['knobs'])} knobs could not be put back, "
            f"the first is {first['volume']} {first['knob']}: {first['note']}",
            "their originals are still kept: run ebbgate restore again",
        )


def _here(context: Context, volume: str | None) -> dict[str, Any]:
    """Write the originals from this process; the volume may be gone: its name is not looked up."""
    name = volume.removeprefix("/dev/") if volume else None
    # The file is left as it is: a daemon that starts moves a damaged one aside.
    last_written = _last_written(context.config.last_written_path)
    journal = Leftovers.open(context.config.journal_path, last_written, heal=False)
    try:
        workers = VolumeWorkers(context.sysfs.dm.forget_handle)
        outcomes = put_back(journal, context.sysfs, context.boot_id, name, workers)
    finally:
        journal.close()
        if last_written is not None:
            last_written.close()
    return {
        "by": "command line",
        "knobs": [_row(outcome) for outcome in outcomes],
        "journal": journal.complaint or "up to date",
    }


def _last_written(path: Path) -> LastWritten | None:
    """Without it each knob is compared with what the journal alone says."""
    try:
        return LastWritten(path)
    except OSError:
        return None


def _end_wishes(context: Context, volume: str | None) -> list[str]:
    """Else the next daemon would set them again; what could not be ended is said."""
    if not context.config.intents_path.exists():
        return []
    name = volume.removeprefix("/dev/") if volume else None
    ended: list[str] = []
    try:
        intents = Intents.open(context.config.intents_path)
        with closing(intents):
            for wish in intents.wishes():
                if wish.kind is not WishKind.MANUAL and name in (None, wish.volume):
                    intents.end_wish(wish.id, f"{who()} asked to restore")
                    ended.append(_ended(wish))
    except (EbbgateError, sqlite3.Error) as error:
        ended.append(f"what people had set or held could not be ended: {error}")
    return ended


def _ended(wish: Wish) -> str:
    what = f"{wish.knob} {wish.value}" if wish.knob else f"the {wish.kind}"
    return f"{wish.volume}: {what} of {wish.who} is over"


def _row(outcome: Outcome) -> dict[str, str]:
    action = outcome.action
    return {
        "volume": action.volume,
        "knob": action.knob,
        "original": action.new,
        "outcome": str(outcome.kind),
        "note": outcome.error,
    }


def _draw(page: Page, document: Document) -> None:
    if document["by"] == "daemon":
        page.line(document["outcome"])
        return
    for text in document["wishes"]:
        page.line(text)
    rows = document["knobs"]
    if not rows:
        page.line("nothing to put back: ebbgate holds no knob")
        return
    page.table(
        ("VOLUME", "KNOB", "ORIGINAL", ""),
        [(row["volume"], row["knob"], row["original"], _said(row)) for row in rows],
    )
    if document["journal"] != "up to date":
        page.line(document["journal"], "yellow")


def _said(row: Document) -> Cell:
    if row["outcome"] == OutcomeKind.CHANGED:
        return "put back"
    if row["outcome"] == OutcomeKind.FAILED:
        return f"FAILED: {row['note']}", "red"
    return str(row["note"])

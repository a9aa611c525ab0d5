# SPDX-License-Identifier: GPL-2.0-only
"""`restore`: every knob gets its original back. I/O: intents, or sysfs where no daemon runs."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ebbgate.actuators.restore import restore as put_back
from ebbgate.actuators.volume_workers import VolumeWorkers
from ebbgate.cli.context import Context, json_option
from ebbgate.cli.intents import ask, name_of, named, who
from ebbgate.cli.output import Document, emit
from ebbgate.errors import ActuationError, EbbgateError, Unavailable
from ebbgate.intents.client import NotAnswering, NotRunning
from ebbgate.intents.database import OverrideDatabase
from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.model.override import IntentKind, Override, OverrideKind
from ebbgate.store.access import make_runtime_folder
from ebbgate.store.daemon_lock import DaemonLock, Held, Part
from ebbgate.store.last_written import LastWritten
from ebbgate.store.unrestored import Leftovers

if TYPE_CHECKING:
    from ebbgate.cli.page import Cell, Page


_PATIENCE_S: Final = 15.0
"""Longer than a daemon or another restore waits for a volume that hangs."""
_LOOK_S: Final = 0.2


@click.command()
@click.argument("volume", required=False)
@click.option(
    "--keep-overrides",
    "--keep-wishes",
    "keep_overrides",
    is_flag=True,
    help="Without a daemon: what was set, held or drained goes on with the next one.",
)
@json_option
@click.pass_obj
def restore(context: Context, volume: str | None, keep_overrides: bool) -> None:
    """Put every knob of VOLUME (or of all volumes) back to what it was before ebbgate.

    A running daemon does it and goes on in `advise`. Without one it is done here and now, so it
    also cleans up after a daemon that was killed. A value that somebody else has written since
    stays, and is named. Values from before a reboot are not put back: the kernel's own are there
    again. What people set, held or drained ends with it, unless --keep-overrides is given, as
    systemd does after each end of the daemon. Exit code 74: some original is not back; it is kept.
    """
    context.need_root("ebbgate restore")
    document = _restored(context, volume, keep_overrides)
    emit(context, document, _draw)
    failed = [row for row in document.get("knobs", ()) if row["outcome"] == OutcomeKind.FAILED]
    if failed:
        first = failed[0]
        raise ActuationError(
            f"{len(failed)} of {len(document['knobs'])} knobs could not be put back, "
            f"the first is {first['volume']} {first['knob']}: {first['note']}",
            "their originals are still kept: run ebbgate restore again",
        )


def _restored(context: Context, volume: str | None, keep_overrides: bool) -> Document:
    """By the daemon where one lives, else by this process.

    A daemon that starts or stops, and another restore, are waited for: all of them take seconds.
    Raises AlreadyRunning where they take longer, and what `ask` raises.
    """
    make_runtime_folder(context.config.runtime_dir)
    until_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            with DaemonLock(context.config.lock_path, Part.RESTORE, patience_s=_LOOK_S):
                document = _here(context, volume)
                document["overrides"] = [] if keep_overrides else _end_overrides(context, volume)
                return document
        except Held as error:
            late = time.monotonic() >= until_s
            if error.holder.part is Part.DAEMON:
                try:
                    return _by_daemon(context, volume)
                except NotRunning:
                    # It has the lock, but not its socket yet, or any more.
                    if late:
                        raise
            elif late:
                raise
            time.sleep(_LOOK_S)


def _by_daemon(context: Context, volume: str | None) -> Document:
    """Raises what `ask` raises."""
    name = name_of(named(context, volume)) if volume else None
    try:
        return {"by": "daemon", **ask(context, IntentKind.RESTORE, name, {})}
    except NotAnswering as error:
        raise Unavailable(
            f"ebbgated (pid {error.pid or 'unknown'}) does not answer",
            "end it with `systemctl kill -s KILL ebbgated`; then run ebbgate restore again",
        ) from error


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


def _end_overrides(context: Context, volume: str | None) -> list[str]:
    """Else the next daemon would set them again; what could not be ended is said."""
    path = context.config.overrides_path
    if not path.exists():
        return []
    name = volume.removeprefix("/dev/") if volume else None
    try:
        with closing(OverrideDatabase.open(path, heal=False)) as database:
            over = [
                each
                for each in database.load().overrides
                if each.kind is not OverrideKind.MANUAL and name in (None, each.volume)
            ]
            why = f"{who()} asked to restore"
            database.end({each.id: why for each in over}, context.wall_ns())
    except (EbbgateError, OSError, sqlite3.Error) as error:
        return [f"what people had set or held could not be ended: {error}"]
    return [_ended(each) for each in over]


def _ended(override: Override) -> str:
    what = f"{override.knob} {override.value}" if override.knob else f"the {override.kind}"
    return f"{override.volume}: {what} of {override.who} is over"


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
    for text in document["overrides"]:
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
    if row["outcome"] == OutcomeKind.MANUAL:
        return str(row["note"]), "yellow"
    return str(row["note"])

# SPDX-License-Identifier: GPL-2.0-only
"""`restore`: restores original knob values. I/O: the control socket; sysfs without a daemon."""

from __future__ import annotations

import logging
import shlex
import sqlite3
import time
from collections.abc import Collection
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ebbgate.actuators.ownership import short
from ebbgate.actuators.restore import log_restored
from ebbgate.actuators.restore import restore as put_back
from ebbgate.actuators.volume_workers import VolumeWorkers
from ebbgate.cli.context import (
    Context,
    Document,
    emit,
    print_note,
    volume_argument,
    with_context,
)
from ebbgate.cli.intents import ask, named, who
from ebbgate.errors import ActuationError, ConfigError, EbbgateError, NotFound, Unavailable
from ebbgate.intents.client import Busy, NotAnswering, NotRunning, greet
from ebbgate.intents.database import OverrideDatabase
from ebbgate.log_messages.service import SETTINGS_WRONG_FOR_RESTORE
from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.model.override import IntentKind, Override, OverrideKind
from ebbgate.probes.dm_status import lvm_dm_name
from ebbgate.probes.topology import find
from ebbgate.store import state_dirs
from ebbgate.store.access import make_runtime_folder, runtime_folder_refused
from ebbgate.store.connection import Damaged
from ebbgate.store.daemon_lock import DaemonLock, Holder, LockHeld, LockRole
from ebbgate.store.last_written import LastWritten
from ebbgate.store.unrestored import UnrestoredOriginals
from ebbgate.systemd_log import log_to_journal, logs_to_journal
from ebbgate.text import clean_lines

if TYPE_CHECKING:
    from ebbgate.cli.page import Cell, Page


_LOG = logging.getLogger("ebbgate")
_PATIENCE_S: Final = 15.0
"""Longer than a daemon or another restore waits for a volume that hangs."""
_LOOK_S: Final = 0.2
_CHARS: Final = 24
"""Of an original in the table: a line has room for the knob's name, too. JSON has all of it."""


@click.command()
@volume_argument(required=False)
@click.option(
    "--keep-overrides",
    is_flag=True,
    help="Keep what was set, held or drained for the next daemon; change nothing while one runs.",
)
@click.option("--keep-wishes", is_flag=True, hidden=True)
@with_context
def restore(context: Context, volume: str | None, keep_overrides: bool, keep_wishes: bool) -> None:
    """Restore the original value of every knob of VOLUME (or of all volumes).

    A running daemon does it and continues in `advise`. Without a daemon this command does it, also
    after the daemon was killed. A value that someone else has written since then is left alone and
    named. After a reboot nothing is restored: the kernel starts with its own values. `set`, `hold`
    and `drain` end, unless --keep-overrides is given (systemd uses it after the daemon has ended);
    with it, a daemon that runs keeps its knobs, and nothing is changed.
    Of the settings only the folders are needed: an error in ebbgate.toml is named and skipped.
    Exit code 74: an original could not be restored; it stays saved.
    """
    context.need_root("ebbgate restore")
    # The units run it, too.
    log_to_journal("ebbgate", logging.WARNING, logging.Formatter)
    wrong = context.accept_wrong_settings()
    if wrong is not None:
        _warn(wrong, context.config.state_dir)
    # The unit of 0.1 says --keep-wishes.
    document = _restored(context, volume, keep_overrides or keep_wishes)
    emit(context, document, _draw)
    failed = [row for row in document.get("knobs", ()) if row["outcome"] == OutcomeKind.FAILED]
    if failed:
        first = failed[0]
        raise ActuationError(
            f"{len(failed)} of {len(document['knobs'])} knobs could not be restored, "
            f"the first is {first['volume']} {first['knob']}: {first['note']}",
            "their original values stay saved: run ebbgate restore again",
        )


def _warn(wrong: ConfigError, state_dir: Path) -> None:
    """Name the error in the settings, which does not stop a restore."""
    text = f"{wrong}\n  restoring all the same, from the journal in {state_dir}"
    if logs_to_journal():
        _LOG.warning(SETTINGS_WRONG_FOR_RESTORE, clean_lines(text))
    else:
        print_note(f"ebbgate: {text}")


def _restored(context: Context, volume: str | None, keep_overrides: bool) -> Document:
    """Restore through the daemon if one runs, else in this process.

    With `keep_overrides` it changes nothing while a daemon runs. Waits for a daemon that starts or
    stops and for another restore. Raises AlreadyRunning if they take longer than some seconds, and
    what `ask` raises.
    """
    folder = context.config.runtime_dir
    try:
        make_runtime_folder(folder)
    except OSError as error:
        raise runtime_folder_refused(folder, error) from error
    until_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            with DaemonLock(context.config.lock_path, LockRole.RESTORE, patience_s=_LOOK_S):
                document = _here(context, volume)
                document["overrides"] = [] if keep_overrides else _end_overrides(context, volume)
                return document
        except LockHeld as error:
            late = time.monotonic() >= until_s
            if error.holder.role is LockRole.DAEMON:
                try:
                    if keep_overrides:
                        return _left_alone(context, error.holder, late)
                    return _by_daemon(context, volume)
                except NotRunning:
                    # It holds the lock but has no socket: it is starting or stopping, or could not
                    # make one. It lives all the same.
                    if late:
                        raise error from None
            elif late:
                raise
            time.sleep(_LOOK_S)


def _by_daemon(context: Context, volume: str | None) -> Document:
    """Raises what `ask` raises."""
    found = named(context, volume) if volume else None
    try:
        return {"by": "daemon", **ask(context, IntentKind.RESTORE, found, {})}
    except NotAnswering as error:
        raise _hung(error) from error


def _left_alone(context: Context, holder: Holder, late: bool) -> Document:
    """Change nothing if the daemon runs: it owns the knobs and restores them when it ends.

    Raises NotRunning while it may be starting or stopping, and Unavailable if it hangs.
    """
    try:
        greet(context.config.socket_path, context.answer_timeout_s)
    except Busy:
        # It runs and has as many connections as it takes.
        pass
    except NotRunning:
        # A daemon whose socket could not be made tunes without one.
        if not late:
            raise
    except NotAnswering as error:
        raise _hung(error) from error
    text = f"nothing is changed: ebbgated (pid {holder.pid}) runs and restores its knobs itself"
    return {"by": "daemon", "outcome": text}


def _hung(error: NotAnswering) -> Unavailable:
    return Unavailable(
        f"ebbgated (pid {error.pid or 'unknown'}) does not answer",
        "kill it with `systemctl kill -s KILL ebbgated`; then run ebbgate restore again",
    )


def _here(context: Context, volume: str | None) -> dict[str, Any]:
    """Write the originals in this process. The volume may be gone.

    The journals of earlier state folders come after the present one. Raises EbbgateError for a
    journal that cannot be read, after the others; NotFound for a name that means nothing here.
    """
    config = context.config
    # A damaged file is left for the next daemon, which moves it aside.
    last_written = _last_written(config.last_written_path)
    others = state_dirs.other_journals(config.state_dirs_path, config.journal_path)
    rows, warnings, errors = [], [], []
    saved: set[str] = set()
    try:
        for path in (config.journal_path, *others):
            try:
                outcomes, warning, volumes = _from_journal(context, path, volume, last_written)
            except EbbgateError as error:
                errors.append(error)
            else:
                rows += [_row(outcome) for outcome in outcomes]
                warnings.append(warning)
                saved |= volumes
    finally:
        if last_written is not None:
            last_written.close()
    if errors:
        raise errors[0]
    if volume and saved and not rows:
        _need_known(context, volume, saved)
    journal = "; ".join(filter(None, warnings)) or "up to date"
    return {"by": "command line", "knobs": rows, "journal": journal}


def _from_journal(
    context: Context, path: Path, volume: str | None, last_written: LastWritten | None
) -> tuple[list[Outcome], str, set[str]]:
    """Write the originals of one journal; return what was done, what the journal lacks, and the
    volumes of which it had originals.
    """
    try:
        journal = UnrestoredOriginals.open(path, last_written, renew=False)
    except Damaged as error:
        # Its own hint is for ebbgated: to run this command.
        error.hint = (
            "no original in it can be read: reboot, since the kernel then starts with its own"
            f" values; then move it away: mv {shlex.quote(str(path))}"
            f" {shlex.quote(f'{path}.damaged')}"
        )
        raise
    try:
        saved = {entry.volume for entry in journal.entries()}
        name = _name_among(context, volume, saved) if volume and saved else None
        workers = VolumeWorkers(context.sysfs.dm.forget_handle)
        outcomes = put_back(journal, context.sysfs, context.boot_id, name, workers)
        if logs_to_journal():
            log_restored(outcomes)
    finally:
        journal.close()
    return outcomes, journal.warning, saved


def _name_among(context: Context, volume: str, saved: Collection[str]) -> str:
    """Return the name that originals and overrides of a volume have; it may be gone.

    Their own names come first: a look at all devices may wait for the lock of bcache.
    """
    plain = volume.removeprefix("/dev/").removeprefix("mapper/")
    for name in (plain, lvm_dm_name(plain)):
        if name in saved:
            return name
    try:
        return find(context.sysfs, volume).name
    except NotFound:
        return plain


def _need_known(context: Context, volume: str, saved: Collection[str]) -> None:
    """Raise NotFound for a name of no volume, of which there is no override either."""
    try:
        find(context.sysfs, volume)
    except NotFound as error:
        with suppress(EbbgateError, OSError, sqlite3.Error):
            if _overrides_of(context, volume):
                return
        raise NotFound(
            f"no original of {volume} is saved: {error.message}",
            f"originals are saved of: {', '.join(sorted(saved))}",
        ) from error


def _last_written(path: Path) -> LastWritten | None:
    """Open the list of last written values; without it only the journal is compared."""
    try:
        return LastWritten(path)
    except OSError:
        return None


def _end_overrides(context: Context, volume: str | None) -> list[str]:
    """End overrides, which the next daemon would apply again; return a line on each."""
    try:
        over = _overrides_of(context, volume)
        if over:
            path, why = context.config.overrides_path, f"{who()} requested restore"
            with closing(OverrideDatabase.open(path, heal=False)) as database:
                database.end({each.id: why for each in over}, context.wall_ns())
    except (EbbgateError, OSError, sqlite3.Error) as error:
        return [f"overrides (set, hold, drain) could not be ended: {error}"]
    return [_ended(each) for each in over]


def _overrides_of(context: Context, volume: str | None) -> list[Override]:
    """Return what people asked for of a volume, or of all. Raises what the database raises."""
    path = context.config.overrides_path
    if not path.exists():
        return []
    with closing(OverrideDatabase.open(path, heal=False)) as database:
        loaded = database.load().overrides
    over = [each for each in loaded if each.kind is not OverrideKind.MANUAL]
    if volume is None:
        return over
    try:
        found = find(context.sysfs, volume)
    except NotFound:
        name, uuid = _name_among(context, volume, {each.volume for each in over}), ""
    else:
        name, uuid = found.name, found.uuid
    return [each for each in over if _is_of(each, name, uuid)]


def _is_of(override: Override, name: str, uuid: str) -> bool:
    """Return whether an override is of the volume that has this name, and this uuid if any."""
    if uuid and override.device_uuid:
        return override.device_uuid == uuid
    return override.volume == name


def _ended(override: Override) -> str:
    what = f"{override.knob} {override.value}" if override.knob else str(override.kind)
    return f"{override.volume}: {what}, requested by {override.who}, ended"


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
        page.line("nothing to restore: ebbgate has changed no knob")
        return
    page.table(
        ("VOLUME", "KNOB", "ORIGINAL", ""),
        [(row["volume"], row["knob"], short(row["original"], _CHARS), _said(row)) for row in rows],
    )
    if document["journal"] != "up to date":
        page.line(document["journal"], "yellow")


def _said(row: Document) -> Cell:
    if row["outcome"] == OutcomeKind.CHANGED:
        return "restored"
    if row["outcome"] == OutcomeKind.FAILED:
        return f"FAILED: {row['note']}", "red"
    if row["outcome"] == OutcomeKind.MANUAL:
        return str(row["note"]), "yellow"
    return str(row["note"])

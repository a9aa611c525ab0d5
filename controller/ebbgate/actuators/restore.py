# SPDX-License-Identifier: GPL-2.0-only
"""Puts every journalled knob back, with or without a daemon. I/O: sysfs writes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ebbgate.actuators.bounds import BOUNDS, PERCENT, RUNNING
from ebbgate.model.decision import Action, JournalEntry, Outcome, OutcomeKind
from ebbgate.probes.dm_knobs import TABLE
from ebbgate.sysfs import Sysfs


class OpenJournal(Protocol):
    """The entries that were not closed, oldest first."""

    def entries(self, boot_id: str | None = None) -> Sequence[JournalEntry]:
        """Open entries; of all boots without `boot_id`."""

    def remove(self, volume: str, knob: str, how: str) -> None:
        """Take an entry out."""


def restore(
    store: OpenJournal, sysfs: Sysfs, boot_id: str, volume: str | None = None
) -> list[Outcome]:
    """Write the originals back, newest first; of one volume or of all.

    An entry of another boot is closed without a write: the kernel starts with its own values, and
    the same name may be another device now. A knob whose file is gone went with its device.
    """
    outcomes = []
    for entry in reversed(store.entries()):
        if volume is not None and entry.volume != volume:
            continue
        outcome = _restore_one(entry, sysfs, boot_id)
        outcomes.append(outcome)
        if outcome.kind is not OutcomeKind.FAILED:
            store.remove(entry.volume, entry.knob, outcome.error or "restored")
    return outcomes


def _restore_one(entry: JournalEntry, sysfs: Sysfs, boot_id: str) -> Outcome:
    action = Action(
        entry.volume, entry.knob, None, entry.original, "restore", f"journalled by {entry.by}"
    )
    if entry.boot_id != boot_id:
        return _outcome(action, OutcomeKind.UNCHANGED, "from another boot: nothing to put back")
    if entry.knob not in (*BOUNDS, TABLE) or Path(entry.path).name != entry.knob:
        # A journal that something has damaged must not lead to a file that is never written.
        return _outcome(action, OutcomeKind.UNCHANGED, "no knob of ebbgate: left alone")
    if not sysfs.exists(entry.path):
        return _outcome(action, OutcomeKind.UNCHANGED, "the device is gone, and the knob with it")
    if entry.knob == TABLE and sysfs.read_text(entry.path) != entry.last_written:
        # A volume that was changed meanwhile must not get the table of what it was before.
        return _outcome(action, OutcomeKind.UNCHANGED, "another table was loaded since")
    try:
        sysfs.write_text(entry.path, entry.original)
        if entry.knob == PERCENT:
            _wake(entry, sysfs)
    except OSError as error:
        return _outcome(action, OutcomeKind.FAILED, str(error))
    return _outcome(action, OutcomeKind.CHANGED, "")


def _wake(entry: JournalEntry, sysfs: Sysfs) -> None:
    """Let the writeback thread see the old percentage now, not after its present sleep."""
    running = str(entry.path).removesuffix(PERCENT) + RUNNING
    if sysfs.read_text(running) == "1":
        sysfs.write_text(running, "1")


def _outcome(action: Action, kind: OutcomeKind, error: str) -> Outcome:
    return Outcome(action, kind, time.monotonic_ns(), error=error)

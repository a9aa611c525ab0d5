# SPDX-License-Identifier: GPL-2.0-only
"""A short run of the actuators on one volume, and the restore after it.

Real are KnobWriter, gates, journal and `restore`. The machine may be a fake one of files or the one
that this runs on. I/O: knobs and files of the journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ebbgate.actuators.bcache_steps import cutoff_steps
from ebbgate.actuators.gate_plan import split_steps
from ebbgate.actuators.gate_worker import drive
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.actuators.reason import Reason
from ebbgate.actuators.restore import Workers, one_by_one, restore
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.knobs.catalog import BY_NAME, same_value
from ebbgate.knobs.knob import parse_value
from ebbgate.knobs.places import knob_path
from ebbgate.model.decision import Gate, GateKind, Outcome
from ebbgate.model.volume import Kind, Volume
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten
from ebbgate.store.unrestored import UnrestoredOriginals
from ebbgate.units import KIB, MIB

CUTOFF_BYTES = 512 * KIB
BY_ADMINISTRATOR: Final[Mapping[str, str]] = {
    "writeback_delay": "17",
    "writeback_rate_update_seconds": "7",
    "writeback_percent": "23",
    "sequential_cutoff": "3145728",
    "migration_threshold": "7777",
    "max_sectors_kb": "96",
}
"""Values that are neither originals nor ebbgate's. Not of writeback_rate, which the kernel writes
itself, and not of a switch, which has no third value.
"""
_REASON = Reason("idle_destage", "a test")
_CLOSED = {Kind.BCACHE: Gate(GateKind.CLOSED, 512), Kind.DM_CACHE: Gate(GateKind.CLOSED)}
_PACED = {
    Kind.BCACHE: Gate(GateKind.PACED, 8 * MIB),
    Kind.DM_CACHE: Gate(GateKind.PACED, depth_ios=4),
}
_OPEN = Gate(GateKind.OPEN)


@dataclass(frozen=True, slots=True)
class Home:
    """The machine, and the folder in which ebbgate keeps its journal."""

    sysfs: Sysfs
    folder: Path
    boot_id: str

    def live(self, volume: Volume) -> list[Outcome]:
        """Write the knobs, drive the gate, release everything."""
        with self._writer() as journal:
            writer = KnobWriter(self.sysfs, volume, journal, self.boot_id)
            return [*_tune(writer), *_give_back(writer)]

    def tune(self, *volumes: Volume) -> list[Outcome]:
        """Write the knobs of these volumes and end without a release."""
        with self._writer() as journal:
            writers = [KnobWriter(self.sysfs, volume, journal, self.boot_id) for volume in volumes]
            return [outcome for writer in writers for outcome in _tune(writer)]

    @contextmanager
    def _writer(self) -> Iterator[JournalWriter]:
        with closing(self._last_written()) as last, self._leftovers(last) as leftovers:
            # As the daemon does at its start.
            last.keep_only(leftovers.left())
        last = self._last_written()
        journal = JournalWriter(self._journal, last)
        try:
            yield journal
        finally:
            journal.stop()
            last.close()

    def put_back(self, workers: Workers = one_by_one) -> list[Outcome]:
        """What `ebbgate restore` does."""
        with closing(self._last_written()) as last, self._leftovers(last) as leftovers:
            return restore(leftovers, self.sysfs, self.boot_id, workers=workers)

    def left(self) -> list[str]:
        """Return the knobs whose originals are not restored."""
        with self._leftovers(None) as leftovers:
            return [entry.knob for entry in leftovers.entries()]

    @property
    def _journal(self) -> Path:
        return self.folder / "journal.db"

    def _last_written(self) -> LastWritten:
        return LastWritten(self.folder / "last-written")

    @contextmanager
    def _leftovers(self, last: LastWritten | None) -> Iterator[UnrestoredOriginals]:
        with closing(UnrestoredOriginals.open(self._journal, last, renew=False)) as leftovers:
            yield leftovers

    def values(self, volume: Volume) -> dict[str, str]:
        """Return every knob that a run writes and that this kernel has."""
        found = {knob: self.value(volume, knob) for knob in knobs(volume)}
        return {knob: value for knob, value in found.items() if value is not None}

    def administrator_writes(self, volume: Volume, knob: str) -> None:
        """Write a value of BY_ADMINISTRATOR, as a person does with echo or dmsetup."""
        path, value = knob_path(volume, knob), BY_ADMINISTRATOR[knob]
        assert path is not None
        if str(path).startswith("dm:"):
            Sysfs.write_text(self.sysfs, path, value)
        else:
            self.sysfs.locate(path).write_text(f"{value}\n")

    def value(self, volume: Volume, knob: str) -> str | None:
        """Return the knob's value in the kernel's unit."""
        path = knob_path(volume, knob)
        assert path is not None
        text = self.sysfs.read_text(path)
        return None if text is None else parse_value(BY_NAME[knob].form, text)


def knobs(volume: Volume) -> Sequence[str]:
    """Return every knob that a run writes, in the order of the first writes."""
    if volume.kind is Kind.BCACHE:
        return (
            "writeback_delay",
            "writeback_rate_update_seconds",
            "idle_max_writeback_rate",
            "writeback_rate",
            "writeback_percent",
            "sequential_cutoff",
        )
    return ("migration_threshold", "max_sectors_kb")


def wrong(
    originals: Mapping[str, str], now: Mapping[str, str], by_administrator: str = ""
) -> dict[str, str]:
    """Return the knobs that do not have their final value, each with the difference in words.

    `by_administrator`: the knob that must have the administrator's value, if any.
    """
    due = dict(originals)
    if by_administrator:
        due[by_administrator] = BY_ADMINISTRATOR[by_administrator]
    return {
        knob: f"{now.get(knob)}, not {value}"
        for knob, value in due.items()
        if not same_value(knob, value, now.get(knob, ""))
    }


def _tune(writer: KnobWriter) -> list[Outcome]:
    kind = writer.volume.kind
    outcomes = drive(writer, _CLOSED[kind], _REASON)
    streams = cutoff_steps(CUTOFF_BYTES) if kind is Kind.BCACHE else split_steps(writer.volume)
    outcomes += writer.apply(streams, _REASON)
    if kind is Kind.BCACHE:
        outcomes += drive(writer, _OPEN, _REASON)
    return [*outcomes, *drive(writer, _PACED[kind], _REASON)]


def _give_back(writer: KnobWriter) -> list[Outcome]:
    outcomes = drive(writer, Gate(GateKind.RELEASED), _REASON)
    return [*outcomes, *writer.release(list(writer.owned), _REASON)]

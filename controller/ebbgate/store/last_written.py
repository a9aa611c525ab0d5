# SPDX-License-Identifier: GPL-2.0-only
"""Stores the values that ebbgate wrote last, to tell them from values that others wrote.

I/O: one small file in the runtime folder, which is in memory (tmpfs) and only root may open.

A gate is written many times a second while a request waits: that path must not use a disk, since
even an unsynced write may wait for the file system's journal. This file needs no disk and lives
exactly as long as the values: both survive the death of ebbgated and neither survives a reboot. Its
space is allocated when an original is journalled, so a later write cannot fail for lack of memory.

Before each write of a knob its record gets the new and the previous value in one write. Wherever
ebbgated is killed, the knob then has one of four values: the original (not written yet, or
restored), the previous value (the last write did not happen), the new value, or somebody else's.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from ebbgate.knobs.catalog import TABLE
from ebbgate.model.decision import JournalEntry

IN_JOURNAL_ALONE: Final = frozenset({TABLE})
"""Too long for this file and written only once, so the journal's value is exact."""
_RECORD_BYTES: Final = 512
_ROOT_ONLY: Final = 0o600
_WORDS: Final = 3


class Values(NamedTuple):
    """The value that was about to be written last, and the one before it."""

    new: str
    before: str


class LastWritten:
    """The file, open for reading and writing. Any thread may call it."""

    def __init__(self, path: Path) -> None:
        """Open or make the file. Raises OSError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._handle = os.open(path, flags, _ROOT_ONLY)
        os.fchmod(self._handle, _ROOT_ONLY)
        self._lock = Lock()
        self._slots: dict[str, int] = {}
        self._values: dict[str, Values] = {}
        self._free: list[int] = []
        self._load()

    def _load(self) -> None:
        self._count = os.fstat(self._handle).st_size // _RECORD_BYTES
        for slot in range(self._count):
            found = _parse(os.pread(self._handle, _RECORD_BYTES, slot * _RECORD_BYTES))
            if found is None or found[0] in self._slots:
                self._free.append(slot)
            else:
                self._slots[found[0]], self._values[found[0]] = slot, found[1]

    def values(self, entry: JournalEntry) -> Values | None:
        """Return the last values of an entry; None where they were lost."""
        return self._values.get(_key(entry))

    def begin(self, entry: JournalEntry, values: Values | None = None) -> None:
        """Allocate a record for an entry, before it is in the journal. Raises OSError.

        An entry without a record is one whose values were lost. `values`: None: those of the entry.
        """
        key = _key(entry)
        with self._lock:
            if key not in self._slots:
                self._slots[key] = self._free.pop() if self._free else self._grown()
        self.writing(entry, values or Values(entry.last_written, entry.original))

    def writing(self, entry: JournalEntry, values: Values) -> None:
        """Record that a value is about to be written. Raises OSError; then it must not be."""
        key = _key(entry)
        record = json.dumps([key, *values], separators=(",", ":")).encode()
        if len(record) > _RECORD_BYTES:
            raise OSError(errno.EFBIG, f"a value of {entry.knob} is too long to be kept")
        record = record.ljust(_RECORD_BYTES)
        slot = self._slots.get(key)
        if slot is None:
            raise OSError(f"the last values of {entry.knob} are lost")
        if os.pwrite(self._handle, record, slot * _RECORD_BYTES) != _RECORD_BYTES:
            raise OSError(f"the last value of {entry.knob} could not be kept whole")
        self._values[key] = values

    def end(self, entry: JournalEntry) -> None:
        """Free the record of an entry that is settled."""
        self._end(_key(entry))

    def _end(self, key: str) -> None:
        with self._lock:
            slot = self._slots.pop(key, None)
            self._values.pop(key, None)
            if slot is not None:
                os.pwrite(self._handle, b" " * _RECORD_BYTES, slot * _RECORD_BYTES)
                self._free.append(slot)

    def keep_only(self, entries: Iterable[JournalEntry]) -> None:
        """Free all other records: a process that was then killed had settled them."""
        kept = {_key(entry) for entry in entries}
        for key in self._slots.keys() - kept:
            self._end(key)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def _grown(self) -> int:
        slot = self._count
        os.posix_fallocate(self._handle, slot * _RECORD_BYTES, _RECORD_BYTES)
        self._count += 1
        return slot


def _key(entry: JournalEntry) -> str:
    """Return what identifies an entry, also in a journal that was replaced."""
    return f"{entry.boot_id} {entry.at_unix_ns} {entry.volume} {entry.knob}"


def _parse(record: bytes) -> tuple[str, Values] | None:
    try:
        words = json.loads(record)
    except ValueError:
        return None
    if not isinstance(words, list) or len(words) != _WORDS:
        return None
    if not all(isinstance(word, str) for word in words):
        return None
    return words[0], Values(words[1], words[2])

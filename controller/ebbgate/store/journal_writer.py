# SPDX-License-Identifier: GPL-2.0-only
"""Writes the journal of originals while the daemon runs. I/O: SQLite, on a thread of its own.

Nothing else uses this thread and this file, so a full or damaged history, or a reader of it, never
keeps an original from being stored or a knob from being restored.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock, Thread
from typing import Final

from ebbgate.knobs.catalog import knob_row, same_value
from ebbgate.log_messages.history import (
    JOURNAL_FAILED,
    JOURNAL_HANGS,
    JOURNAL_NOT_RENEWED,
    JOURNAL_RECOVERED,
    JOURNAL_REMOVED,
)
from ebbgate.model.decision import JournalEntry, LastWriteLost
from ebbgate.store import journal_salvage
from ebbgate.store.connection import device_and_inode, is_damage
from ebbgate.store.connection_manager import STORE_ERRORS
from ebbgate.store.journal import Journal
from ebbgate.store.journal_claims import JournalClaims
from ebbgate.store.last_written import IN_JOURNAL_ALONE, LastWritten, Values
from ebbgate.store.unrestored import SettledEntry

_LOG = logging.getLogger(__name__)
_TIMEOUT_S: Final = 10.0
"""A knob whose original is not on the disk by then is not written."""
_RETRY_S: Final = 2.0
_Key = tuple[str, str]


@dataclass(slots=True)
class _Put:
    """An original that a caller waits for. `given_up`: the caller does not wait any more.

    `older`: the entry that it replaces, if any, and the values that the knob may have. `lock`
    guards `given_up` and the completion of `done`.
    """

    entry: JournalEntry
    older: tuple[JournalEntry, Values] | None = None
    done: Future[JournalEntry] = field(default_factory=Future)
    lock: Lock = field(default_factory=Lock)
    given_up: bool = False


@dataclass(frozen=True, slots=True)
class _Flush:
    done: Future[None] = field(default_factory=Future)


class JournalWriter:
    """Stores originals for any thread; an original is on the disk before `put` returns.

    `claims`: which volumes have changed each knob.
    """

    def __init__(
        self,
        path: Path,
        last_written: LastWritten,
        unremoved: Iterable[SettledEntry] = (),
        left: Iterable[JournalEntry] = (),
    ) -> None:
        """Start the thread.

        `unremoved`: settled entries that could not be removed from the file. `left`: entries that
        could not be restored.
        """
        self._path = path
        self._last = last_written
        self._journal: Journal | None = None
        self._file: tuple[int, int] | None = None
        self._left = list(left)
        self._entries: dict[_Key, JournalEntry] = {
            (entry.volume, entry.knob): entry for entry in self._left
        }
        self._settled: dict[_Key, str] = {(volume, knob): how for volume, knob, how in unremoved}
        self.claims = JournalClaims(last_written.values)
        self._queue: queue.Queue[_Put | _Key | _Flush | None] = queue.Queue()
        self._failure = ""
        self._thread = Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    # ---- any thread ----------------------------------------------------------------------------
    def put(self, entry: JournalEntry) -> JournalEntry:
        """Store an original; durable on return. Raises OSError; then the knob must not be written:
        LastWriteLost where an earlier original would be lost.

        `entry.original`: the present value of the knob. Returns the entry that is in force: an
        earlier open one of the same knob where the knob still has a value that ebbgate wrote.
        """
        return self._wait_for(_Put(entry))

    def replace(self, entry: JournalEntry, older: JournalEntry, values: tuple[str, str]) -> None:
        """Store another original in place of `older`; durable on return.

        Raises OSError; then `older` is in force. Writes may be recorded for it until `forget`.
        `values`: what the knob may have from then on.
        """
        self._wait_for(_Put(entry, (older, Values(*values))))

    def forget(self, older: JournalEntry) -> None:
        """Free what was recorded of an entry that was replaced."""
        self._last.end(older)

    def _wait_for(self, request: _Put) -> JournalEntry:
        """Raises OSError."""
        self._queue.put(request)
        try:
            kept = request.done.result(_TIMEOUT_S)
        except FutureTimeoutError as error:
            with request.lock:
                request.given_up = not request.done.done()
            if request.given_up:
                raise OSError("the disk of the journal does not answer") from error
            kept = request.done.result()
        except OSError:
            raise
        except STORE_ERRORS as error:
            raise OSError(f"the journal of knobs cannot be kept: {error}") from error
        self.claims.reclaim(kept)
        return kept

    def writing(self, entry: JournalEntry, new: str, before: str) -> None:
        """Record that a journalled knob is about to be written. Raises OSError; then do not write.

        Takes microseconds and waits for no disk.
        """
        if entry.knob not in IN_JOURNAL_ALONE:
            self._last.writing(entry, Values(new, before))

    def keep_unrestored(self, entries: Iterable[JournalEntry]) -> None:
        """Keep entries of a volume that went away before they were restored; it claims none."""
        for entry in entries:
            self._left.append(entry)
            self.claims.close(entry.volume, entry.knob)

    def take_unrestored(self, volume: str) -> list[tuple[JournalEntry, Values | None]]:
        """Return and drop a volume's entries that were not restored, each with its last values;
        None where they are lost.
        """
        mine = [entry for entry in self._left if entry.volume == volume]
        self._left = [entry for entry in self._left if entry.volume != volume]
        return [(entry, self._values(entry)) for entry in mine]

    def _values(self, entry: JournalEntry) -> Values | None:
        if entry.knob in IN_JOURNAL_ALONE:
            return Values(entry.last_written, entry.last_written)
        return self._last.values(entry)

    def close(self, volume: str, knob: str, how: str) -> None:
        """Remove an entry that is restored, or must not be restored any more. Returns at once."""
        _LOG.debug("%s: %s is removed from the journal: %s", volume, knob, how)
        self.claims.close(volume, knob)
        self._queue.put((volume, knob))

    def flush(self, timeout_s: float = _TIMEOUT_S) -> None:
        """Return once all earlier calls are on the disk. Raises OSError."""
        request = _Flush()
        self._queue.put(request)
        try:
            request.done.result(timeout_s)
        except FutureTimeoutError as error:
            raise OSError("the disk of the journal does not answer") from error
        except STORE_ERRORS as error:
            raise OSError(f"the journal of knobs cannot be kept: {error}") from error

    def stop(self) -> None:
        """Write what is pending and end the thread."""
        self._queue.put(None)
        self._thread.join(_TIMEOUT_S)
        if self._thread.is_alive():
            _LOG.error(JOURNAL_HANGS, self._path)

    # ---- the thread ----------------------------------------------------------------------------
    def _run(self) -> None:
        while True:
            try:
                item = self._queue.get(timeout=_RETRY_S if self._settled else None)
            except queue.Empty:
                self._settle()
                continue
            if item is None:
                break
            if isinstance(item, _Put):
                self._carry_out(item)
            elif isinstance(item, _Flush):
                self._flush(item)
            else:
                self._settled[item] = "settled"
                self._settle()
        self._settle()
        self._close_file()

    def _carry_out(self, request: _Put) -> None:
        try:
            kept = self._put_or_renew(request)
        except Exception as error:
            request.done.set_exception(error)
            return
        with request.lock:
            if not request.given_up:
                request.done.set_result(kept)
                return
        if request.older is not None:
            self._put_back(request.older[0])
        elif kept.at_unix_ns == request.entry.at_unix_ns:
            # The caller will not write the knob, so the original is not needed.
            self._settled[kept.volume, kept.knob] = "given up"
            self._settle()

    def _put_or_renew(self, request: _Put) -> JournalEntry:
        """Store an original, after replacing a damaged file. Raises what `_put` raises."""
        put = self._put if request.older is None else self._replace
        try:
            return put(request)
        except LastWriteLost:
            raise
        except Exception as error:
            self._failed(error)
            if not is_damage(error):
                raise
        return put(request)

    def _put(self, request: _Put) -> JournalEntry:
        """Raises one of TROUBLE."""
        error = self._settle()
        if error is not None:
            raise error
        entry = request.entry
        journal, found = self._open(), entry.original
        older = journal.find(entry.volume, entry.knob)
        if older is not None and self._keeps(older, entry):
            self._begin(older, Values(entry.last_written, found))
            self._entries[older.volume, older.knob] = older
            return older
        entry = self._with_shared_original(entry)
        self._begin(entry, Values(entry.last_written, found))
        journal.put(entry)
        self._entries[entry.volume, entry.knob] = entry
        if older is not None:
            self._last.end(older)
        return entry

    def _replace(self, request: _Put) -> JournalEntry:
        """Raises one of TROUBLE."""
        assert request.older is not None
        error = self._settle()
        if error is not None:
            raise error
        journal, entry = self._open(), request.entry
        self._begin(entry, request.older[1])
        journal.put(entry)
        self._entries[entry.volume, entry.knob] = entry
        return entry

    def _put_back(self, older: JournalEntry) -> None:
        """Undo a replacement that came too late: writes are recorded for the older entry."""
        self._entries[older.volume, older.knob] = older
        try:
            self._open().put(older)
        except STORE_ERRORS as error:
            # A file that is opened again gets all entries.
            self._failed(error)

    def _with_shared_original(self, entry: JournalEntry) -> JournalEntry:
        """Return the entry with the original of another volume that changed the knob before."""
        for other in self._entries.values():
            same = (other.path, other.boot_id) == (entry.path, entry.boot_id)
            if same and other.volume != entry.volume and self._keeps(other, entry):
                return replace(entry, original=other.original)
        return entry

    def _begin(self, entry: JournalEntry, values: Values) -> None:
        """Raises OSError."""
        if entry.knob not in IN_JOURNAL_ALONE:
            # In one write: a daemon that is killed between two would leave older values behind.
            self._last.begin(entry, values)

    def _keeps(self, older: JournalEntry, found: JournalEntry) -> bool:
        """Return whether an older original stays: the knob still has a value that ebbgate wrote, on
        the same device. Raises LastWriteLost where that cannot be told.
        """
        device = (found.boot_id, found.device_uuid, found.instance)
        if (older.boot_id, older.device_uuid, older.instance) != device:
            return False
        values = self._values(older)
        known = (*(values or (older.last_written,)), older.original)
        if any(same_value(older.knob, value, found.original) for value in known):
            return True
        if values is not None:
            return False
        if knob_row(older.knob).kernel_writes:
            # As in a restore: the kernel changes what ebbgate wrote.
            return True
        raise LastWriteLost(
            f"what was written last is unknown: set it to {older.original} by hand, "
            "then ebbgate restore"
        )

    def _settle(self) -> Exception | None:
        """Remove settled entries; those that cannot be removed now are tried again."""
        try:
            journal = self._open()
            for key in list(self._settled):
                journal.remove(*key)
                entry = self._entries.pop(key, None)
                if entry is not None:
                    self._last.end(entry)
                del self._settled[key]
        except STORE_ERRORS as error:
            self._failed(error)
            return error
        if self._failure:
            self._failure = ""
            _LOG.warning(JOURNAL_RECOVERED, self._path)
        return None

    def _flush(self, request: _Flush) -> None:
        error = self._settle()
        if error is None:
            request.done.set_result(None)
        else:
            request.done.set_exception(error)

    def _open(self) -> Journal:
        """Return the journal; open or make its file where necessary. Raises STORE_ERRORS."""
        if self._journal is not None and device_and_inode(self._path) != self._file:
            _LOG.warning(JOURNAL_REMOVED, self._path)
            self._close_file()
        if self._journal is None:
            journal = journal_salvage.open_or_renew(self._path)
            try:
                for key, entry in self._entries.items():
                    if key not in self._settled:
                        journal.put(entry)
            except BaseException:
                journal.close()
                raise
            self._journal, self._file = journal, device_and_inode(self._path)
        return self._journal

    def _failed(self, error: BaseException) -> None:
        why = str(getattr(error, "message", error))
        if why != self._failure:
            self._failure = why
            bug = None if isinstance(error, STORE_ERRORS) else error
            _LOG.error(JOURNAL_FAILED, why, exc_info=bug)
        self._close_file()
        if is_damage(error):
            try:
                journal_salvage.renew(self._path, why, self._entries.values()).close()
            except STORE_ERRORS as second:
                _LOG.error(JOURNAL_NOT_RENEWED, second)

    def _close_file(self) -> None:
        journal, self._journal = self._journal, None
        if journal is not None:
            try:
                journal.close()
            except STORE_ERRORS as error:
                _LOG.debug("closing the journal: %s", error)

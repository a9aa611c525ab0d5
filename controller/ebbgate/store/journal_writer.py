# SPDX-License-Identifier: GPL-2.0-only
"""Writes the journal of originals while the daemon runs. I/O: SQLite, on a thread of its own.

Nothing else uses this thread and this file, so a full disk under the history, a damaged history or
somebody who reads it never keeps an original from being kept, or a knob from being put back.
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

from ebbgate.knobs.catalog import same_value
from ebbgate.model.decision import JournalEntry
from ebbgate.store import journal_salvage
from ebbgate.store.connection import is_damage
from ebbgate.store.connection_manager import STORE_ERRORS
from ebbgate.store.journal import Journal
from ebbgate.store.last_written import IN_JOURNAL_ALONE, LastWritten, Values
from ebbgate.store.unrestored import SettledEntry

_LOG = logging.getLogger(__name__)
_TIMEOUT_S: Final = 10.0
"""An original that is not on the disk by then is not waited for: its knob is not written."""
_RETRY_S: Final = 2.0
_Key = tuple[str, str]


@dataclass(slots=True)
class _Put:
    """Somebody waits for it. `given_up`: no more; guarded by `lock`, as is the end of `done`."""

    entry: JournalEntry
    done: Future[JournalEntry] = field(default_factory=Future)
    lock: Lock = field(default_factory=Lock)
    given_up: bool = False


@dataclass(frozen=True, slots=True)
class _Flush:
    done: Future[None] = field(default_factory=Future)


class JournalWriter:
    """Takes originals from any thread; an original is on the disk before `put` returns."""

    def __init__(
        self,
        path: Path,
        last_written: LastWritten,
        unremoved: Iterable[SettledEntry] = (),
        left: Iterable[JournalEntry] = (),
    ) -> None:
        """`unremoved`: entries of the file that are settled and could not be taken out of it.
        `left`: entries of it that could not be put back.
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
        self._sharing = Lock()
        self._volumes: dict[str, set[str]] = {}
        """Path of a knob -> the volumes that hold it; guarded by `_sharing`."""
        self._queue: queue.Queue[_Put | _Key | _Flush | None] = queue.Queue()
        self._trouble = ""
        self._thread = Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    # ---- any thread ----------------------------------------------------------------------------
    def put(self, entry: JournalEntry) -> JournalEntry:
        """Keep an original; durable on return. Raises OSError; then its knob must not be written.

        `entry.original`: the value that the knob has now. Returns the entry that is in force: where
        an earlier one of the same knob is open still and the knob has a value of ebbgate's, that
        one, whose original is the one to put back.
        """
        request = _Put(entry)
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
        self.reclaim(kept)
        return kept

    def disclaim(self, entry: JournalEntry) -> bool:
        """Give a knob up: has another volume written it, too? Then that one puts it back.

        The knobs of a cache set are those of all its volumes.
        """
        with self._sharing:
            volumes = self._volumes.setdefault(entry.path, set())
            volumes.discard(entry.volume)
            return bool(volumes)

    def reclaim(self, entry: JournalEntry) -> None:
        """After all the knob is not given up."""
        with self._sharing:
            self._volumes.setdefault(entry.path, set()).add(entry.volume)

    def writing(self, entry: JournalEntry, new: str, before: str) -> None:
        """A value is about to be written to a journalled knob. Raises OSError; then it must not be.

        Takes microseconds, and waits for no disk.
        """
        if entry.knob not in IN_JOURNAL_ALONE:
            self._last.writing(entry, Values(new, before))

    def keep_unrestored(self, entries: Iterable[JournalEntry]) -> None:
        """A volume went before these were put back; they stay in the journal until it is there."""
        self._left += entries

    def take_unrestored(self, volume: str) -> list[tuple[JournalEntry, Values]]:
        """What an earlier daemon left of a volume and could not be put back since, each with the
        values that it may have. What it wrote last is not known of the others.
        """
        mine = [entry for entry in self._left if entry.volume == volume]
        self._left = [entry for entry in self._left if entry.volume != volume]
        known = [(entry, self._values(entry)) for entry in mine]
        return [(entry, values) for entry, values in known if values is not None]

    def _values(self, entry: JournalEntry) -> Values | None:
        if entry.knob in IN_JOURNAL_ALONE:
            return Values(entry.last_written, entry.last_written)
        return self._last.values(entry)

    def close(self, volume: str, knob: str, how: str) -> None:
        """The original is back, or must not be put back any more. Returns at once."""
        _LOG.debug("%s: %s is out of the journal: %s", volume, knob, how)
        with self._sharing:
            for volumes in [
                held for path, held in self._volumes.items() if path.endswith(f"/{knob}")
            ]:
                volumes.discard(volume)
        self._queue.put((volume, knob))

    def flush(self, timeout_s: float = _TIMEOUT_S) -> None:
        """All that was told so far is on the disk on return. Raises OSError."""
        request = _Flush()
        self._queue.put(request)
        try:
            request.done.result(timeout_s)
        except FutureTimeoutError as error:
            raise OSError("the disk of the journal does not answer") from error
        except STORE_ERRORS as error:
            raise OSError(f"the journal of knobs cannot be kept: {error}") from error

    def stop(self) -> None:
        """Write what is left and end the thread."""
        self._queue.put(None)
        self._thread.join(_TIMEOUT_S)
        if self._thread.is_alive():
            _LOG.error("the disk of the journal does not answer: %s", self._path)

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
            kept = self._put_healed(request.entry)
        except Exception as error:
            request.done.set_exception(error)
            return
        with request.lock:
            if not request.given_up:
                request.done.set_result(kept)
                return
        if kept.at_unix_ns == request.entry.at_unix_ns:
            # Nobody will write the knob: its value may be changed by anybody from now on.
            self._settled[kept.volume, kept.knob] = "given up"
            self._settle()

    def _put_healed(self, entry: JournalEntry) -> JournalEntry:
        """A damaged file is begun anew, and then it can be kept. Raises what `_put` raises."""
        try:
            return self._put(entry)
        except Exception as error:
            self._failed(error)
            if not is_damage(error):
                raise
        return self._put(entry)

    def _put(self, entry: JournalEntry) -> JournalEntry:
        """Raises one of TROUBLE."""
        error = self._settle()
        if error is not None:
            raise error
        journal, found = self._open(), entry.original
        older = journal.find(entry.volume, entry.knob)
        if older is not None and self._still_ours(older, entry):
            self._begin(older, Values(entry.last_written, found))
            self._entries[older.volume, older.knob] = older
            return older
        entry = self._as_shared(entry)
        self._begin(entry, Values(entry.last_written, found))
        journal.put(entry)
        self._entries[entry.volume, entry.knob] = entry
        if older is not None:
            self._last.end(older)
        return entry

    def _as_shared(self, entry: JournalEntry) -> JournalEntry:
        """With the original of another volume that has written the same knob before."""
        for other in self._entries.values():
            same = (other.path, other.boot_id) == (entry.path, entry.boot_id)
            if same and other.volume != entry.volume and self._still_ours(other, entry):
                return replace(entry, original=other.original)
        return entry

    def _begin(self, entry: JournalEntry, values: Values) -> None:
        """Raises OSError."""
        if entry.knob not in IN_JOURNAL_ALONE:
            self._last.begin(entry)
            self._last.writing(entry, values)

    def _still_ours(self, older: JournalEntry, found: JournalEntry) -> bool:
        """Has the knob of an open entry still a value of ebbgate's, on the same device?"""
        device = (found.boot_id, found.device_uuid, found.instance)
        if (older.boot_id, older.device_uuid, older.instance) != device:
            return False
        values = self._last.values(older) or (older.last_written,)
        known = (*values, older.original)
        return any(same_value(older.knob, value, found.original) for value in known)

    def _settle(self) -> Exception | None:
        """Take out what is settled; what cannot be taken out now is tried again."""
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
        if self._trouble:
            self._trouble = ""
            _LOG.warning("the journal can be written again: %s", self._path)
        return None

    def _flush(self, request: _Flush) -> None:
        error = self._settle()
        if error is None:
            request.done.set_result(None)
        else:
            request.done.set_exception(error)

    def _open(self) -> Journal:
        """The file, opened where it is not, made anew where it was deleted. Raises TROUBLE."""
        if self._journal is not None and _identity(self._path) != self._file:
            _LOG.warning("%s was moved or deleted; a new journal is begun", self._path)
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
            self._journal, self._file = journal, _identity(self._path)
        return self._journal

    def _failed(self, error: BaseException) -> None:
        why = str(getattr(error, "message", error))
        if why != self._trouble:
            self._trouble = why
            bug = None if isinstance(error, STORE_ERRORS) else error
            _LOG.error("the journal of knobs cannot be written: %s", why, exc_info=bug)
        self._close_file()
        if is_damage(error):
            try:
                journal_salvage.renew(self._path, why, self._entries.values()).close()
            except STORE_ERRORS as trouble:
                _LOG.error("no new journal could be begun: %s", trouble)

    def _close_file(self) -> None:
        journal, self._journal = self._journal, None
        if journal is not None:
            try:
                journal.close()
            except STORE_ERRORS as error:
                _LOG.debug("closing the journal: %s", error)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino

# SPDX-License-Identifier: GPL-2.0-only
"""Writes the history in batches on one thread, so that tuning never waits for a disk.

I/O: SQLite through the store. While the history cannot be written, records stay in memory; the
oldest are dropped first.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from threading import Thread

from ebbgate.log_messages.history import (
    HISTORY_FAILED,
    HISTORY_MAINTENANCE_FAILED,
    HISTORY_NOT_FLUSHED,
    HISTORY_RECOVERED,
)
from ebbgate.model.decision import Action, Decision, Outcome, OutcomeKind
from ebbgate.model.frame import Frame
from ebbgate.model.records import Edge
from ebbgate.model.status import DaemonStatus, HistoryStatus, VolumeStatus
from ebbgate.model.status_json import status_to_json
from ebbgate.signals import tick_window
from ebbgate.store.connection_manager import STORE_ERRORS, ConnectionManager
from ebbgate.store.db import Store
from ebbgate.store.intent_rows import IntentRow
from ebbgate.store.limits import DEFAULT_LIMITS, HistoryLimits
from ebbgate.store.log_watch import LogHeld, LogRoom
from ebbgate.store.write_health import WriteHealth
from ebbgate.store.write_queue import Queued, Task, WriteQueue, write_now
from ebbgate.units import NS_PER_S, format_ns

_LOG = logging.getLogger(__name__)
_FLUSH_S = 0.8
"""So a crash loses only what is less than about a second old."""
_ANSWER_TIMEOUT_S = 10.0
_HANGS_NS = 5 * NS_PER_S
"""A batch takes milliseconds, or about a second while another program holds a lock."""
_NO_ANSWER = "the disk of the history does not answer"
_QUEUE_MAX = 4_000
_DECISIONS_KEPT = 32
"""An action may refer to one of the last 32 decisions of its volume."""
_STATUS_NS = 2 * NS_PER_S
"""How often status is written while nothing else can be; readers call it old after 5 s or more."""
_NO_NEWS = (OutcomeKind.UNCHANGED, OutcomeKind.TOO_SOON)
_Live = tuple[int, VolumeStatus | DaemonStatus, int]
"""Sequence number, status, and time (Unix ns)."""


@dataclass(frozen=True, slots=True)
class _Urgent:
    """A caller waits until all earlier records are written. Fails with OSError only."""

    done: Future[None]


class Recorder:
    """Takes records from any thread; writes them about once a second."""

    def __init__(self, path: Path, limits: HistoryLimits = DEFAULT_LIMITS) -> None:
        self._connections = ConnectionManager(path, limits)
        self._queue: queue.Queue[Queued | _Urgent | None] = queue.Queue(_QUEUE_MAX)
        self._write_queue = WriteQueue()
        self._live: dict[str, _Live] = {}
        self._gone: dict[str, int] = {}
        self._drops: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._undropped: set[str] = set()
        """On the thread: volumes whose status is still in the history."""
        self._order = count()
        self._modes: dict[str, str | None] = {}
        self._sampled_ns: dict[str, int] = {}
        """By volume: the end of the window of the last recorded frame."""
        self._decisions: dict[tuple[str, int], tuple[int, int]] = {}
        self._decisions_in: Store | None = None
        self._health = WriteHealth()
        self._status_due_ns = 0
        self._writing_since_ns: int | None = None
        self._thread = Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def health(self) -> HistoryStatus:
        """Return whether the history is written, its last outage, and its log."""
        since_ns = self._writing_since_ns
        if since_ns is not None and time.monotonic_ns() - since_ns > _HANGS_NS:
            self._report_failure(_NO_ANSWER)
        return self._health.status(self._connections.log.status())

    # ---- from the loop -------------------------------------------------------------------------
    def decision(self, decision: Decision, number: int) -> None:
        """Record a decision; actions of its volume refer to it by `number`."""
        now = time.time_ns()

        def task(store: Store) -> None:
            self._decisions[decision.volume, number % _DECISIONS_KEPT] = (
                number,
                store.add_decision(decision, now),
            )

        self._later(task)

    def outcomes(self, outcomes: list[Outcome], latency_ns: int | None) -> None:
        """Record knob writes, refused ones included."""
        kept = [o for o in outcomes if o.kind not in _NO_NEWS]
        if kept:
            now = time.time_ns()
            action = kept[0].action
            self._later(
                lambda store: store.add_outcomes(kept, self._decision_id(action), now, latency_ns)
            )

    def live(self, volume: str, status: VolumeStatus | DaemonStatus) -> None:
        """Set the newest status of a volume (or `DAEMON`); written at the next flush."""
        self._live[volume] = (next(self._order), status, time.time_ns())
        if isinstance(status, VolumeStatus):
            self._modes[volume] = "hold" if status.frozen else status.mode

    def drop_live(self, volume: str) -> None:
        """Drop the status of a volume that is gone, at the next flush that succeeds."""
        self._live.pop(volume, None)
        self._modes.pop(volume, None)
        self._gone[volume] = next(self._order)
        self._drops.put(volume)

    def clear_live(self) -> None:
        """Drop the statuses that an earlier daemon left: its volumes may be gone."""
        self._later(lambda store: store.clear_live())

    def sample(self, frame: Frame) -> None:
        """Record one frame per second of each volume; to be called at each tick.

        Rates and counts of a frame are of its window, which begins where that of the recorded frame
        before it ended: so each request is in one sample.
        """
        end_ns = frame.at_ns if frame.probed_at_ns is None else frame.probed_at_ns
        last_ns = self._sampled_ns.get(frame.volume)
        if last_ns is None or tick_window.follows(end_ns, frame.window_ns, last_ns):
            self._sampled_ns[frame.volume] = end_ns
            now, mode = time.time_ns(), self._modes.get(frame.volume)
            self._later(lambda store: store.add_samples([(frame, now)], mode))

    def edge(self, edge: Edge, late_ns: int) -> None:
        """Record an edge, with how late it was handled."""
        now = time.time_ns()
        self._later(lambda store: store.add_edge(edge, late_ns, now))

    # ---- requests of people --------------------------------------------------------------------
    def intent(self, intent: IntentRow) -> None:
        """Record an accepted request; written at the next flush."""
        self._later(lambda store: store.add_intent(intent), lasting=True)

    def intent_done(self, number: int, ok: bool, outcome: str) -> None:
        """Record the outcome of a request; written at the next flush."""
        now = time.time_ns()
        self._later(lambda store: store.resolve_intent(number, now, ok, outcome), lasting=True)

    def abandon_intents(self, below: int, outcome: str) -> None:
        """Record one outcome for all pending requests with a number below `below`."""
        now = time.time_ns()
        self._later(lambda store: store.abandon_intents(below, now, outcome))

    def flush(self, timeout_s: float = _ANSWER_TIMEOUT_S) -> None:
        """Return once all earlier records are written. Raises OSError."""
        done: Future[None] = Future()
        try:
            self._queue.put(_Urgent(done), timeout=timeout_s)
            done.result(timeout_s)
        except (queue.Full, TimeoutError) as error:
            done.cancel()
            raise OSError(_NO_ANSWER) from error

    def written(self) -> Future[None]:
        """Return at once a future that is done when all earlier records are written.

        It fails with OSError where they cannot be.
        """
        done: Future[None] = Future()
        try:
            self._queue.put_nowait(_Urgent(done))
        except queue.Full:
            done.set_exception(OSError(_NO_ANSWER))
        return done

    def stop(self) -> None:
        """Write what is queued and end the thread."""
        with suppress(queue.Full):
            self._queue.put(None, timeout=_ANSWER_TIMEOUT_S)
        self._thread.join(_ANSWER_TIMEOUT_S)
        if self._thread.is_alive():
            _LOG.error(HISTORY_NOT_FLUSHED, _NO_ANSWER, self._queue.qsize())

    def _later(self, task: Task, *, lasting: bool = False) -> None:
        try:
            self._queue.put_nowait(Queued(task, lasting))
        except queue.Full:
            self._health.dropped += 1

    # ---- the thread ----------------------------------------------------------------------------
    def _run(self) -> None:
        due = time.monotonic()
        while True:
            try:
                item = self._queue.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                pass
            else:
                if item is None:
                    break
                self._take(item)
            if time.monotonic() >= due:
                self._flush_and_maintain()
                due = time.monotonic() + _FLUSH_S
        self._flush()
        self._connections.close()

    def _take(self, item: Queued | _Urgent) -> None:
        if isinstance(item, _Urgent):
            self._flush_for(item)
        else:
            self._write_queue.add(item)

    def _flush_for(self, urgent: _Urgent) -> None:
        """Write all earlier records and complete the future."""
        failure = self._flush()
        if not urgent.done.set_running_or_notify_cancel():
            return
        if failure is None:
            urgent.done.set_result(None)
        elif isinstance(failure, OSError):
            urgent.done.set_exception(failure)
        else:
            # Callers know nothing of SQLite.
            urgent.done.set_exception(OSError(self._connections.reason(failure)))

    def _decision_id(self, action: Action) -> int | None:
        """Return the history's number of the decision behind an action; on the thread."""
        if action.decision is None:
            return None
        slot = (action.volume, action.decision % _DECISIONS_KEPT)
        number, row_id = self._decisions.get(slot, (None, None))
        return row_id if number == action.decision else None

    def _flush(self) -> Exception | None:
        """Write all records; keep what cannot be written now, as far as there is room."""
        self._writing_since_ns = time.monotonic_ns()
        try:
            return self._flush_now()
        finally:
            self._writing_since_ns = None

    def _flush_now(self) -> Exception | None:
        live, self._live = self._live, {}
        try:
            # A copy: a caller may hold the old dict for a moment longer.
            self._write([*self._drop_tasks(), *self._live_tasks(dict(live))])
        except Exception as error:
            held = error if isinstance(error, LogHeld) else None
            if held is not None and held.status_was_written:
                self._undropped.clear()
            else:
                for volume, newest in list(live.items()):
                    self._live.setdefault(volume, newest)
            if held is None:
                # These decisions were rolled back, too: no action may refer to them.
                self._decisions.clear()
            self._on_failure(error)
            self._connections.failed(error)
            return error
        self._undropped.clear()
        self._on_recovery()
        return None

    def _write(self, newest: list[Task]) -> None:
        """Write as much as there is room for. Raises LogHeld if that is not everything."""
        store = self._connections.store()
        if store is not self._decisions_in:
            # It may be another file, whose decisions have the same numbers.
            self._decisions.clear()
            self._decisions_in = store

        def check() -> None:
            log = self._connections.log
            if log.look(store, time.time_ns(), time.monotonic_ns()) is not LogRoom.ALL:
                raise log.trouble()

        try:
            self._write_queue.write(store, newest, check)
        except LogHeld as error:
            now_ns = time.monotonic_ns()
            if self._connections.log.room is LogRoom.STATUS and now_ns >= self._status_due_ns:
                self._status_due_ns = now_ns + _STATUS_NS
                write_now(store, newest)
                error.status_was_written = True
            raise

    def _drop_tasks(self) -> list[Task]:
        """Return tasks that drop the statuses of volumes that are gone, or were for a while."""
        while not self._drops.empty():
            self._undropped.add(self._drops.get())
        return [partial(_drop_live, volume=volume) for volume in self._undropped]

    def _live_tasks(self, live: dict[str, _Live]) -> Iterator[Task]:
        """Yield tasks for the newest statuses, except those of volumes that are gone."""
        for volume, (order, status, wall_ns) in live.items():
            if order > self._gone.get(volume, -1):
                yield partial(_set_live, volume=volume, status=status, wall_ns=wall_ns)

    def _flush_and_maintain(self) -> None:
        try:
            if self._flush() is None:
                self._connections.maintain(lambda: not self._queue.empty())
        except STORE_ERRORS as error:
            self._on_failure(error)
            self._connections.failed(error)
        except Exception:
            # An error in maintenance must cost no record.
            _LOG.exception(HISTORY_MAINTENANCE_FAILED)

    def _on_failure(self, error: Exception) -> None:
        bug = None if isinstance(error, STORE_ERRORS) else error
        self._report_failure(self._connections.reason(error), bug)
        self._health.dropped += self._write_queue.trim()

    def _report_failure(self, why: str, bug: Exception | None = None) -> None:
        """Log the first failure of an outage."""
        if self._health.begin(why, time.time_ns()):
            _LOG.error(HISTORY_FAILED, why, exc_info=bug)

    def _on_recovery(self) -> None:
        over = self._health.end(time.time_ns())
        if over is not None:
            _LOG.warning(HISTORY_RECOVERED, format_ns(over[0]), over[1])


def _drop_live(store: Store, volume: str) -> None:
    store.drop_live(volume)


def _set_live(store: Store, volume: str, status: VolumeStatus | DaemonStatus, wall_ns: int) -> None:
    store.set_live(volume, status_to_json(status), wall_ns)

# SPDX-License-Identifier: GPL-2.0-only
"""The one thread that writes the history: batches, so that tuning never waits for a disk.

I/O: SQLite through the store. Only the journal waits, since an original must be safe before a knob
is touched.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

from ebbgate.model.decision import Action, Decision, JournalEntry, Outcome, OutcomeKind
from ebbgate.model.frame import Frame
from ebbgate.model.records import Edge
from ebbgate.store.db import Store
from ebbgate.units import NS_PER_S

_LOG = logging.getLogger(__name__)
_FLUSH_S = 1.0
_JOURNAL_TIMEOUT_S = 10.0
_QUEUE_MAX = 10_000
_DECISIONS_KEPT = 32
"""So many back an action may lie behind its decision."""
_NO_NEWS = (OutcomeKind.UNCHANGED, OutcomeKind.TOO_SOON)
_Task = Callable[[Store], None]


class Recorder:
    """Takes everything worth keeping, from any thread; writes it once a second."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue: queue.Queue[tuple[_Task, Future[None] | None] | None] = queue.Queue(_QUEUE_MAX)
        self._live: dict[str, tuple[dict[str, Any], int]] = {}
        self._sampled: dict[str, int] = {}
        self._decisions: dict[tuple[str, int], tuple[int, int]] = {}
        self._failing = False
        self.dropped = 0
        self._thread = Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    @property
    def thread_id(self) -> int:
        """The kernel's id of the thread that writes."""
        return self._thread.native_id or 0

    # ---- what the loop tells -------------------------------------------------------------------
    def decision(self, decision: Decision, number: int) -> None:
        """Keep a decision; `number`: by which actions of its volume name it."""
        now = time.time_ns()

        def task(store: Store) -> None:
            self._decisions[decision.volume, number % _DECISIONS_KEPT] = (
                number,
                store.add_decision(decision, now),
            )

        self._later(task)

    def outcomes(self, outcomes: list[Outcome], latency_ns: int | None) -> None:
        """Keep what was written and what was refused."""
        kept = [o for o in outcomes if o.kind not in _NO_NEWS]
        if kept:
            now = time.time_ns()
            action = kept[0].action
            self._later(
                lambda store: store.add_outcomes(kept, self._decision_id(action), now, latency_ns)
            )

    def live(self, volume: str, document: dict[str, Any]) -> None:
        """The newest document of a volume; written at the next flush."""
        self._live[volume] = (document, time.time_ns())

    def drop_live(self, volume: str) -> None:
        """The volume is gone."""
        self._live.pop(volume, None)
        self._later(lambda store: store.drop_live(volume))

    def sample(self, frame: Frame) -> None:
        """Keep a frame a second."""
        if frame.at_ns - self._sampled.get(frame.volume, 0) >= NS_PER_S:
            self._sampled[frame.volume] = frame.at_ns
            now = time.time_ns()
            self._later(lambda store: store.add_samples([(frame, now)]))

    def edge(self, edge: Edge, late_ns: int) -> None:
        """Keep an edge, with how late it was handled."""
        now = time.time_ns()
        self._later(lambda store: store.add_edge(edge, late_ns, now))

    # ---- the journal ---------------------------------------------------------------------------
    def put(self, entry: JournalEntry) -> None:
        """Keep an original; durable on return. Raises OSError."""
        self._now(lambda store: store.journal_put(entry))

    def close(self, volume: str, knob: str, how: str) -> None:
        """The original is back, or somebody else's value is to stay."""
        now = time.time_ns()
        self._later(lambda store: store.journal_close(volume, knob, now, how))

    def flush(self, timeout_s: float = _JOURNAL_TIMEOUT_S) -> None:
        """Everything told so far is on disk on return. Raises OSError."""
        self._now(lambda store: None, timeout_s)

    def stop(self) -> None:
        """Write what is left and end the thread."""
        self._queue.put(None)
        self._thread.join(_JOURNAL_TIMEOUT_S)

    def _later(self, task: _Task) -> None:
        try:
            self._queue.put_nowait((task, None))
        except queue.Full:
            self.dropped += 1

    def _now(self, task: _Task, timeout_s: float = _JOURNAL_TIMEOUT_S) -> None:
        done: Future[None] = Future()
        try:
            self._queue.put((task, done), timeout=timeout_s)
            done.result(timeout_s)
        except (queue.Full, TimeoutError) as error:
            raise OSError("the history's disk does not answer") from error
        except sqlite3.Error as error:
            raise OSError(str(error)) from error

    # ---- the thread ----------------------------------------------------------------------------
    def _run(self) -> None:
        store = Store.open(self._path)
        tasks: list[_Task] = []
        due = time.monotonic() + _FLUSH_S
        try:
            while True:
                try:
                    item = self._queue.get(timeout=max(0.0, due - time.monotonic()))
                except queue.Empty:
                    self._flush(store, tasks)
                    due = time.monotonic() + _FLUSH_S
                    continue
                if item is None:
                    self._flush(store, tasks)
                    return
                task, done = item
                if done is None:
                    tasks.append(task)
                    continue
                self._flush(store, tasks)
                _finish(store, task, done)
        finally:
            store.close()

    def _decision_id(self, action: Action) -> int | None:
        """The history's number of the decision behind an action; on the thread."""
        if action.decision is None:
            return None
        slot = (action.volume, action.decision % _DECISIONS_KEPT)
        number, row_id = self._decisions.get(slot, (None, None))
        return row_id if number == action.decision else None

    def _flush(self, store: Store, tasks: list[_Task]) -> None:
        live, self._live = self._live, {}
        try:
            with store.batch():
                for task in tasks:
                    _carry_out(task, store)
                # A copy: a caller may hold the old dict for a moment longer.
                for volume, (document, wall_ns) in list(live.items()):
                    store.set_live(volume, document, wall_ns)
            if self._failing:
                _LOG.warning("the history is written again")
            self._failing = False
        except (sqlite3.Error, OSError) as error:
            if not self._failing:
                _LOG.error("the history cannot be written (%s); tuning goes on without it", error)
            self._failing = True
            # Rolled back, too: no action may name them.
            self._decisions.clear()
        tasks.clear()


def _carry_out(task: _Task, store: Store) -> None:
    """A bug in one task costs that task, not the thread: the journal is written by it, too."""
    try:
        task(store)
    except (sqlite3.Error, OSError):
        raise
    except Exception:
        _LOG.exception("a record for the history was lost")


def _finish(store: Store, task: _Task, done: Future[None]) -> None:
    try:
        task(store)
    except (sqlite3.Error, OSError) as error:
        done.set_exception(error)
    else:
        done.set_result(None)

# SPDX-License-Identifier: GPL-2.0-only
"""Serializes knob writes for one volume: the newest gate wins.

I/O: threads. Slow work (journalling a knob's original, jobs) runs on a thread of its own. Setting a
gate whose knobs are owned takes a write or two: the caller makes them itself, since a switch to the
thread takes longer and a request waits meanwhile. A write takes bcache's global lock and hangs
while a device is being registered; so does a read of the volume, which runs on another thread.
While a read hangs, every write is left to the thread. While a job waits for the journal's disk, a
caller may close the gate; the job goes on after that. So it is while a job's write waits for a disk
to be idle (a switch of its scheduler), which no gate writes: one more thread makes that write, so
that this one can close the gate where a caller cannot. A caller's write can hang only where the
lock was taken since the last read, 250 ms ago; the watchdog covers that case.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Final

from ebbgate.actuators.bcache_steps import Step
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.actuators.reason import Reason
from ebbgate.background import BackgroundWorker
from ebbgate.knobs.catalog import MAX_SECTORS, QUEUE_DEPTH
from ebbgate.knobs.places import disk_knobs
from ebbgate.knobs.values import clamped
from ebbgate.log_messages.volumes import KNOB_JOB_FAILED
from ebbgate.model.decision import Gate, GateKind, Outcome, OutcomeKind
from ebbgate.units import NS_PER_MS

_LOG = logging.getLogger(__name__)

_READ_NS_MAX: Final = 50 * NS_PER_MS
"""A read of the volume takes less than 1 ms; a longer one may wait for bcache's lock."""
REQUEST_KIB: Final = 512
"""With a shallow queue: of 1280 KiB a disk takes 10 ms for each, and a returning request waits for
several of them; of 128 KiB it drains a sixth less."""
_CLOSED: Final = Gate(GateKind.CLOSED)
_SHUT: Final = (GateKind.CLOSED, GateKind.RESTING)
_LETS_THROUGH: Final = (GateKind.OPEN, GateKind.PACED)
Job = Callable[[KnobWriter], list[Outcome]]
Report = Callable[[str, list[Outcome], int | None], None]
"""Called with the job's name, its outcomes and when they were due (monotonic ns; None: not urgent),
on the thread that did the work."""


@dataclass(frozen=True, slots=True)
class _GateRequest:
    gate: Gate
    reason: Reason
    name: str
    since_ns: int | None


class GateWorker:
    """Sets gates (only the newest counts) and runs other jobs (all, in order) on one writer."""

    def __init__(self, writer: KnobWriter, report: Report) -> None:
        self.writer = writer
        self._report = report
        self._jobs: deque[tuple[str, Job]] = deque()
        self._next_gate: _GateRequest | None = None
        self._claimed_ns = 0
        """When originals of the gate's knobs were journalled last."""
        self._opened = False
        """The gate that was set last lets write-back through."""
        self._busy = False
        self._in_job = False
        self._lent = False
        """A job waits for a disk; `_busy` then tells whether a gate is being set."""
        self._stop = False
        self._changed = Condition()
        writer.lend = self._lend
        writer.write_slowly = self._write_slowly
        self._slow_writes = BackgroundWorker(f"slow-{writer.volume.name}")
        self.generation = 0
        """Grows with each write: a reader of sysfs compares it before and after reading."""
        self._thread = Thread(target=self._run, name=f"gate-{writer.volume.name}", daemon=True)
        self._thread.start()

    def set_gate(
        self, gate: Gate, reason: Reason, name: str = "gate", since_ns: int | None = None
    ) -> None:
        """Set the gate as soon as possible; an older gate that still waits is dropped."""
        with self._changed:
            if self._lent:
                free = not self._busy and self._shuts(gate)
            else:
                free = self.idle and self._quick(gate)
            if not free or self._kernel_hangs():
                self._next_gate = _GateRequest(gate, reason, name, since_ns)
                self._changed.notify_all()
                return
            self._next_gate = None
            self._begin()
        try:
            self._report(name, self._drive(gate, reason), since_ns)
        finally:
            # Also after an exception: the knobs are still restored through this worker.
            self._end()

    def _quick(self, gate: Gate) -> bool:
        """Does this gate take a write or two of knobs that are already owned, and journal none?"""
        writer, plan = self.writer, self.writer.plan
        plain = gate.kind in (GateKind.CLOSED, GateKind.RESTING, GateKind.PACED)
        ours = bool(plan.quick) and all(knob in writer.owned for knob in plan.quick)
        known = writer.owned.keys() | writer.lacking
        journalled = known.issuperset(plan.knobs) and not _begins_queue(writer, gate)
        return plain and ours and journalled and writer.gate_is_ours

    def _shuts(self, gate: Gate) -> bool:
        """May this gate be set while a job waits for a disk?

        The job takes over a knob that is not owned yet, so none of the gate's; it writes a file
        that no gate writes; or it replaces an original, which a close may do (table_threshold).
        """
        return gate.kind in _SHUT and self._quick(gate)

    def _kernel_hangs(self) -> bool:
        """Does a read of the volume wait in the kernel? Then a write would wait, too."""
        since_ns = self.writer.reading_since_ns
        return since_ns is not None and self.writer.now_ns() - since_ns > _READ_NS_MAX

    def submit(self, name: str, job: Job) -> None:
        """Run a job on the thread, after the current gate."""
        with self._changed:
            self._jobs.append((name, job))
            self._changed.notify_all()

    @property
    def idle(self) -> bool:
        """Is nothing being written, and does nothing wait?"""
        with self._changed:
            under_way = self._busy or self._lent
            return not under_way and self._next_gate is None and not self._jobs

    def stop(self, timeout_s: float) -> bool:
        """Finish what waits, then end the thread; return False if it hangs in the kernel."""
        with self._changed:
            self._stop = True
            self._changed.notify_all()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._busy or not (self._next_gate or self._jobs or self._stop):
                    self._changed.wait()
                request, self._next_gate = self._next_gate, None
                job = self._jobs.popleft() if request is None and self._jobs else None
                if request is None and job is None:
                    self._slow_writes.end()
                    return
                self._begin()
            try:
                if request is not None:
                    self._carry_out(request)
                elif job is not None:
                    self._in_job = True
                    self._report(job[0], job[1](self.writer), None)
            except Exception:
                # A bug in one job must not end the thread, which also restores the knobs.
                _LOG.exception(KNOB_JOB_FAILED, self.writer.volume.name)
            finally:
                self._in_job = False
                self._end()

    @contextmanager
    def _lend(self) -> Iterator[None]:
        """Let the gate close while a job waits for the journal's disk. See `KnobWriter`.

        A close may have come while the job was writing.
        """
        if not self._in_job:
            yield
            return
        self._in_job = False
        while request := self._take_close_or_lend():
            self._carry_out(request)
        try:
            yield
        finally:
            self._take_back()

    def _take_back(self) -> None:
        """Go on with the job, after a close that is under way."""
        with self._changed:
            while self._busy:
                self._changed.wait()
            self._busy, self._lent = True, False
        self._in_job = True

    def _write_slowly(self, write: Callable[[], None]) -> None:
        """Let the gate close while a job's write takes long. See `KnobWriter`."""
        if not self._in_job:
            write()
            return
        done = self._slow_writes.submit(write)
        self._in_job = False
        with self._changed:
            self._busy, self._lent = False, True
        done.add_done_callback(lambda _done: self._wake())
        try:
            while request := self._next_close(done):
                try:
                    self._carry_out(request)
                finally:
                    self._end()
        finally:
            # Also after an exception: the job's next write may be of the same file.
            wait_for((done,))
            self._take_back()
        done.result()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _next_close(self, done: Future[None]) -> _GateRequest | None:
        """Wait for a close that no caller could set; None once the slow write is done."""
        with self._changed:
            while not done.done():
                request = self._next_gate
                if not self._busy and request is not None and self._shuts(request.gate):
                    self._next_gate, self._busy = None, True
                    return request
                self._changed.wait()
            return None

    def _take_close_or_lend(self) -> _GateRequest | None:
        """Return a close that waits and can be set now; with none, others may set the gate."""
        with self._changed:
            request = self._next_gate
            if request is not None and self._shuts(request.gate):
                self._next_gate = None
                return request
            self._busy, self._lent = False, True
            return None

    def _carry_out(self, request: _GateRequest) -> None:
        """Set a gate, unless a newer one was asked for while originals were journalled."""
        before = len(self.writer.owned)
        failures = claim(self.writer, request.gate, request.reason)
        if len(self.writer.owned) > before:
            self._claimed_ns = self.writer.now_ns()
        with self._changed:
            superseded = self._next_gate is not None
        since_ns, kind = request.since_ns, request.gate.kind
        waited = since_ns is not None and since_ns <= self._claimed_ns
        if kind is GateKind.CLOSED and waited and not self._opened:
            # No request waited for the close of a gate that was never open.
            since_ns = None
        if superseded or (kind in _LETS_THROUGH and self._keeps_shut(failures)):
            self._report(request.name, failures, since_ns)
            return
        self._report(request.name, self._drive(request.gate, request.reason), since_ns)

    def _keeps_shut(self, failures: list[Outcome]) -> bool:
        """Do these failures of a claim mean that a gate that opened now might not close at once?

        One of a knob without which a gate opens and closes, too, does not.
        """
        quick = self.writer.plan.quick
        return any(
            each.kind is OutcomeKind.REFUSED or each.action.knob in quick for each in failures
        )

    def _drive(self, gate: Gate, reason: Reason) -> list[Outcome]:
        outcomes = drive(self.writer, gate, reason)
        self._opened = gate.kind in _LETS_THROUGH
        return outcomes

    def _begin(self) -> None:
        self._busy = True
        self.generation += 1

    def _end(self) -> None:
        with self._changed:
            self._busy = False
            self.generation += 1
            self._changed.notify_all()


def claim(writer: KnobWriter, gate: Gate, reason: Reason) -> list[Outcome]:
    """Journal the originals of all knobs that this gate and its close take; return the failures.

    An original waits for a disk. After the gate has opened, the close, and the requests with it,
    would wait for that disk.
    """
    if gate.kind is GateKind.RELEASED or not writer.gate_is_ours:
        return []
    queues = _queue_steps(writer, gate) if gate.queue_depth else ()
    steps = (*queues, *writer.plan.base, *writer.plan.steps(gate), *writer.plan.steps(_CLOSED))
    return writer.claim(steps, reason)


def drive(writer: KnobWriter, gate: Gate, reason: Reason) -> list[Outcome]:
    """Set one gate: write the base knobs first, or release all knobs of the gate.

    The knobs make sense only together: where one of them is manual or pinned by a person, all
    others are released. The disks' queues are made shallow before the gate opens, and deep again
    after it has closed.
    """
    plan = writer.plan
    if gate.kind is GateKind.RELEASED or not writer.gate_is_ours:
        # What refused once may be tried again after a release.
        writer.lacking.difference_update(plan.queues)
        knobs = [*reversed(plan.knobs), *plan.queues]
        return writer.release([knob for knob in knobs if knob not in writer.pinned], reason)
    outcomes = writer.apply(_queue_steps(writer, gate), reason) if gate.queue_depth else []
    writer.lacking |= {each.action.knob for each in outcomes if each.kind is OutcomeKind.FAILED}
    for step in plan.base:
        if _is_base_due(writer, step) and step.knob not in writer.lacking:
            outcomes += writer.apply((step,), reason)
    outcomes += writer.apply(plan.steps(gate), reason)
    if not gate.queue_depth:
        outcomes += writer.apply(_queue_steps(writer, gate), reason)
    return outcomes


def _is_base_due(writer: KnobWriter, step: Step) -> bool:
    """Is a base knob not written yet, or has it the value of an override that is over?"""
    owned = writer.owned.get(step.knob)
    if owned is None or owned.unwritten:
        return True
    # The quick ones are written with each gate.
    return owned.written != step.value and step.knob not in writer.plan.quick


def _begins_queue(writer: KnobWriter, gate: Gate) -> bool:
    """Does this gate journal the depth of a disk's queue? See `_queue_steps`."""
    if not gate.queue_depth or gate.kind in _SHUT or writer.disk_users.volumes:
        return False
    known = writer.owned.keys() | writer.manual | writer.pinned | writer.lacking
    return not known.issuperset(writer.plan.queues)


def _queue_steps(writer: KnobWriter, gate: Gate) -> list[Step]:
    """Return the writes that bring the disks' queues to the gate's depth: of all disks or none.

    Disks that another volume uses, too, keep their depth: its users may work in this gap. So do all
    disks where a depth is left alone (policy.strategies.disk_queue says the same); a longest
    request that is left alone changes nothing else. A queue is never made deeper than it is. Only
    an open gate begins it: a close is urgent, and journalling an original takes long. The longest
    request stays short until the knobs are released: that costs users nothing, and later kernels
    halt the queue for each change.
    """
    foreign = writer.manual | writer.pinned | writer.lacking
    depths = disk_knobs(writer.volume, QUEUE_DEPTH)
    alone = foreign.isdisjoint(depths) and not writer.disk_users.volumes
    depth_ios = gate.queue_depth if alone else 0
    closed = gate.kind in (GateKind.CLOSED, GateKind.RESTING)
    steps = []
    for knob in writer.plan.queues:
        owned = writer.owned.get(knob)
        if knob in foreign or (owned is None and (not depth_ios or closed)):
            continue
        before = original_value(writer, knob)
        if before is None:
            continue
        if knob.startswith(MAX_SECTORS):
            value = str(min(REQUEST_KIB, before))
        else:
            value = str(min(clamped(knob, depth_ios)[0], before) if depth_ios else before)
        if owned is None or owned.tried is not None or owned.written != value:
            steps.append(Step(knob, value))
    return steps


def original_value(writer: KnobWriter, knob: str) -> int | None:
    """Return a knob's number without ebbgate's, as it is now; None where it cannot be read."""
    owned = writer.owned.get(knob)
    try:
        text = owned.original if owned else writer.read(knob)
        return None if text is None else int(text)
    except (OSError, ValueError):
        return None

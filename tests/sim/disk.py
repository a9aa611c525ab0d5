# SPDX-License-Identifier: GPL-2.0-only
"""Simulates a hard disk with its own queue and one in the block layer. Pure: simulated time.

By default the worst ordinary case for a request that comes back: the disk serves its queue first
come first served, so the request waits for everything that was sent before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ebbgate.model.power import NOT_ASKED, DiskPower
from ebbgate.units import NS_PER_MS
from tests.lab import hdd_queue
from tests.lab.hdd_model import HddModel
from tests.lab.hdd_queue import PLAIN, HddFeatures, HddQueue, Kind
from tests.sim.clock import Clock

STARVED_NS = 200 * NS_PER_MS
"""bfq serves the idle class at least this often (bfq-wf2q.c, bfq_class_idle_last_service)."""


@dataclass(frozen=True, slots=True)
class Request:
    """One I/O. `destage`: of the cache, not of users. `done`: called on completion."""

    offset_bytes: int
    length_bytes: int
    destage: bool
    done: Callable[[], None]
    write: bool = False


class Disk:
    """`queue_ios`: how many requests the disk takes at a time. `features`: of the disk itself.

    `idle_class`: the I/O scheduler lets users pass destage in its own queue, but not what the disk
    already has, and sends none while the disk has a user's request (mq-deadline.c, dd_queued).
    `anticipate_ns`: after a user's request it also waits this long for the next one, but at most
    `STARVED_NS` (bfq).
    """

    def __init__(
        self,
        clock: Clock,
        model: HddModel,
        features: HddFeatures = PLAIN,
        *,
        queue_ios: int = 32,
        idle_class: bool = False,
        anticipate_ns: int = 0,
    ) -> None:
        self._clock = clock
        self._hdd = HddQueue(model, features)
        self._queue_ios = queue_ios
        self._idle_class = idle_class
        self._anticipate_ns = anticipate_ns
        self._device: dict[hdd_queue.Request, Request] = {}
        self._waiting: deque[Request] = deque()
        self._destage: deque[Request] = deque()
        self._user_ns = -anticipate_ns
        self._destage_ns = 0

    @property
    def power(self) -> DiskPower:
        """Whether it turns; unknown, as of a disk that does not report it."""
        return NOT_ASKED

    @property
    def depth_ios(self) -> int:
        """Requests that were submitted and not completed."""
        return len(self._device) + len(self._waiting) + len(self._destage)

    def set_depth(self, queue_ios: int) -> None:
        """Take this many requests at a time from now on; what the disk has already stays in it."""
        self._queue_ios = queue_ios
        self._dispatch()

    def submit(self, request: Request) -> None:
        """Queue a request."""
        last = self._idle_class and request.destage
        (self._destage if last else self._waiting).append(request)
        self._dispatch()

    def _dispatch(self) -> None:
        while len(self._device) < self._queue_ios:
            if self._waiting:
                self._send(self._waiting.popleft())
            elif self._destage and self._destage_may_go():
                self._destage_ns = self._clock.now_ns
                self._send(self._destage.popleft())
            else:
                break

    def _destage_may_go(self) -> bool:
        now_ns = self._clock.now_ns
        calm = all(each.destage for each in self._device.values())
        if not self._anticipate_ns:
            return calm
        due_ns = self._destage_ns + STARVED_NS
        if calm:
            due_ns = min(due_ns, self._user_ns + self._anticipate_ns)
        if due_ns > now_ns:
            self._clock.at(due_ns, self._dispatch)
        return due_ns <= now_ns

    def _send(self, request: Request) -> None:
        kind = Kind.WRITE if request.write else Kind.READ
        sent = hdd_queue.Request(
            kind, self._clock.now_ns, request.offset_bytes, request.length_bytes
        )
        self._device[sent] = request
        answer_ns = self._hdd.submit(sent)
        if answer_ns is not None:
            self._clock.at(answer_ns, lambda: self._answered([sent]))
        self._move()

    def _move(self) -> None:
        operation = self._hdd.start(self._clock.now_ns)
        if operation is not None:
            self._clock.at(operation.end_ns, lambda: self._answered(self._hdd.finish()))

    def _answered(self, sent: list[hdd_queue.Request]) -> None:
        for each in sent:
            request = self._device.pop(each)
            if not request.destage:
                self._user_ns = self._clock.now_ns
            request.done()
        self._move()
        self._dispatch()

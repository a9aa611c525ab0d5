# SPDX-License-Identifier: GPL-2.0-only
"""Simulates a hard disk with its own queue and one in the block layer. Pure: simulated time.

The worst ordinary case for a request that comes back: the disk serves its queue first come first
served, so the request waits for everything that was sent before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ebbgate.units import NS_PER_MS
from tests.lab.hdd_model import HddModel
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


class Disk:
    """`queue_ios`: how many requests the disk takes at a time.

    `idle_class`: the I/O scheduler lets users pass destage in its own queue, but not what the disk
    already has. `anticipate_ns`: after a user's request it waits this long for the next one before
    it sends destage, but at most `STARVED_NS` (bfq).
    """

    def __init__(
        self,
        clock: Clock,
        model: HddModel,
        *,
        queue_ios: int = 32,
        idle_class: bool = False,
        anticipate_ns: int = 0,
    ) -> None:
        self._clock = clock
        self._model = model
        self._queue_ios = queue_ios
        self._idle_class = idle_class
        self._anticipate_ns = anticipate_ns
        self._device: deque[Request] = deque()
        self._waiting: deque[Request] = deque()
        self._destage: deque[Request] = deque()
        self._serving = False
        self._user_ns = -anticipate_ns
        self._destage_ns = 0

    @property
    def depth_ios(self) -> int:
        """Requests that were submitted and not completed."""
        queued = len(self._device) + len(self._waiting) + len(self._destage)
        return queued + self._serving

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
        while len(self._device) + self._serving < self._queue_ios:
            if self._waiting:
                self._device.append(self._waiting.popleft())
            elif self._destage and self._destage_may_go():
                self._destage_ns = self._clock.now_ns
                self._device.append(self._destage.popleft())
            else:
                break
            self._serve()

    def _destage_may_go(self) -> bool:
        now_ns = self._clock.now_ns
        due_ns = min(self._user_ns + self._anticipate_ns, self._destage_ns + STARVED_NS)
        if due_ns > now_ns:
            self._clock.at(due_ns, self._dispatch)
        return due_ns <= now_ns

    def _serve(self) -> None:
        if self._serving or not self._device:
            return
        self._serving = True
        request = self._device.popleft()
        end_ns = self._model.finish_ns(
            self._clock.now_ns, request.offset_bytes, request.length_bytes
        )
        self._clock.at(end_ns, lambda: self._finish(request))

    def _finish(self, request: Request) -> None:
        self._serving = False
        if not request.destage:
            self._user_ns = self._clock.now_ns
        request.done()
        self._serve()
        self._dispatch()

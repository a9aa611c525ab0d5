# SPDX-License-Identifier: GPL-2.0-only
"""Simulates a hard disk with its own queue and one in the block layer. Pure: simulated time.

The worst ordinary case for a request that comes back: the disk serves its queue first come first
served, so the request waits for everything that was sent before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tests.lab.hdd_model import HddModel
from tests.sim.clock import Clock


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
    already has.
    """

    def __init__(
        self, clock: Clock, model: HddModel, *, queue_ios: int = 32, idle_class: bool = False
    ) -> None:
        self._clock = clock
        self._model = model
        self._queue_ios = queue_ios
        self._idle_class = idle_class
        self._device: deque[Request] = deque()
        self._waiting: deque[Request] = deque()
        self._serving = False

    @property
    def depth_ios(self) -> int:
        """Requests that were submitted and not completed."""
        return len(self._device) + len(self._waiting) + self._serving

    def submit(self, request: Request) -> None:
        """Queue a request."""
        if len(self._device) + self._serving < self._queue_ios:
            self._device.append(request)
        elif self._idle_class and not request.destage:
            self._waiting.appendleft(request)
        else:
            self._waiting.append(request)
        self._serve()

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
        if self._waiting:
            self._device.append(self._waiting.popleft())
        request.done()
        self._serve()

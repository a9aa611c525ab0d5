# SPDX-License-Identifier: GPL-2.0-only
"""Has the heads of hard disks brought back to where users read, after write-back in a gap.

idle_destage says when (`policy.strategies.head_return`), the misses of users say where.
I/O: through the process of a worker, one for all volumes. The event loop calls it; it never blocks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.warm_process import WarmProcess
from ebbgate.errors import EbbgateError
from ebbgate.log_messages.volumes import HEAD_RETURN_FAILED
from ebbgate.model.records import Edge, EdgeKind
from ebbgate.model.volume import Volume
from ebbgate.policy.engine import IDLE_DESTAGE, Outcome
from ebbgate.policy.strategies.head_return import page_offset_bytes
from ebbgate.text import clean_text
from ebbgate.units import NS_PER_S

_LOG = logging.getLogger(__name__)
_SILENCE_S: Final = 10.0
"""A read that takes longer hangs in the kernel: its process is left behind."""
_LINGER_S: Final = 60.0
"""A process without anything to do is ended after this time."""
_RETRY_NS: Final = 600 * NS_PER_S
"""A process whose read hangs cannot be ended, so there must not be many."""


@dataclass(slots=True)
class HeadReturns:
    """The reads of all volumes. `volumes`: the daemon's loops by name. `start`: begins a worker.

    `_seen`: of each volume its loop and how many reads it had asked for. `_wanted`: the next read
    of each volume; a newer one replaces one that was not sent.
    """

    volumes: Mapping[str, VolumeLoop]
    now_ns: Callable[[], int]
    start: Callable[[], Awaitable[WarmProcess]] = WarmProcess.start
    _seen: dict[str, tuple[VolumeLoop, int]] = field(default_factory=dict)
    _wanted: dict[str, dict[str, object]] = field(default_factory=dict)
    _more: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = field(default=None, repr=False)
    _retry_ns: int = 0
    _failing: bool = False

    def follow(self, name: str) -> None:
        """Take in what a volume has decided."""
        loop = self.volumes.get(name)
        if loop is None:
            self._seen.pop(name, None)
            return
        count = loop.state.destage.head.count
        before = self._seen.get(name)
        if before is not None and before == (loop, count):
            return
        self._seen[name] = loop, count
        if before is not None and before[0] is loop and _may_read(loop):
            self._ask(loop, count)

    def on_edge(self, edge: Edge) -> None:
        """Drop what was not read yet when users return."""
        if edge.kind is EdgeKind.BUSY:
            self._wanted.pop(edge.volume, None)

    async def stop(self) -> None:
        """End the worker with the daemon."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _ask(self, loop: VolumeLoop, count: int) -> None:
        chunk, volume = loop.signals.missed_chunk(), loop.volume
        if chunk is None or self.now_ns() < self._retry_ns:
            return
        self._wanted[volume.name] = {
            "device": f"/dev/{volume.kernel_name}",
            "devno": volume.devno,
            "offset": page_offset_bytes(chunk, count, volume.size_bytes),
        }
        self._more.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        """Run a worker until it fails or has nothing to do."""
        try:
            await self._serve()
        except TimeoutError:
            self._fail("a read does not end")
        except EbbgateError as error:
            self._fail(error.message)
        except (KeyError, TypeError, ValueError, AttributeError):
            self._fail("the reading process sent nonsense")

    async def _serve(self) -> None:
        process = await self.start()
        try:
            process.send({"heads": True})
            while await self._is_wanted():
                if not self._wanted:
                    continue
                _, request = self._wanted.popitem()
                process.send(request)
                async with asyncio.timeout(_SILENCE_S):
                    answer = await process.event()
                if answer["event"] == "failed":
                    self._complain(f"{request['device']}: {clean_text(answer['text'])}")
                else:
                    self._failing = False
        finally:
            await process.end()

    async def _is_wanted(self) -> bool:
        """Wait for something to read; return False after a long time without it."""
        self._more.clear()
        if self._wanted:
            return True
        try:
            async with asyncio.timeout(_LINGER_S):
                await self._more.wait()
        except TimeoutError:
            return False
        return True

    def _fail(self, why: str) -> None:
        self._wanted.clear()
        self._retry_ns = self.now_ns() + _RETRY_NS
        self._complain(why)

    def _complain(self, why: str) -> None:
        if not self._failing:
            self._failing = True
            _LOG.warning(HEAD_RETURN_FAILED, why)


def _may_read(loop: VolumeLoop) -> bool:
    """Return whether idle_destage drives the gate of this volume, above a hard disk."""
    if not (loop.acts and loop.writer.gate_is_ours and _rotates(loop.volume)):
        return False
    ruling = Outcome(loop.state, loop.policy, loop.now_ns()).ruling
    return ruling.gate is not None and ruling.by == IDLE_DESTAGE


def _rotates(volume: Volume) -> bool:
    return any(disk.rotational for disk in volume.disks or (volume.backing,))

# SPDX-License-Identifier: GPL-2.0-only
"""Has a process read the chunks that a volume's decision promotes, and reports what was moved.

I/O: through the worker's process (`warm.mover`). The event loop calls it; it never blocks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.cache_facts import CacheFacts
from ebbgate.daemon.warm_process import WarmProcess
from ebbgate.errors import EbbgateError, Unavailable
from ebbgate.log_messages.volumes import (
    PROMOTION_BEGUN,
    PROMOTION_FAILED,
    PROMOTION_WAITS,
    PROMOTION_WORKS,
)
from ebbgate.model.heat import CHUNK_BYTES
from ebbgate.model.promotion import ChunksMoved, MoverState, Promotion
from ebbgate.model.records import Edge, EdgeKind
from ebbgate.model.volume import Mode
from ebbgate.model.warm import JobState, JobStatus
from ebbgate.policy.defaults import Policy
from ebbgate.policy.engine import Phase
from ebbgate.units import NS_PER_S, format_ns
from ebbgate.warm.pace import run_bytes, stands_back
from ebbgate.warm.promotion_watch import BlockReads

_LOG = logging.getLogger(__name__)
_LIST_MAX: Final = 256
_LIST_MIN: Final = 64
"""With fewer chunks the worker gets the next ones."""
_EDGE_PAUSE_S: Final = 0.25
"""After users have returned: their first requests wait for no read but the one under way."""
_LINGER_NS: Final = 60 * NS_PER_S
"""A worker without anything to do is ended after this time."""
_SILENCE_S: Final = 30.0
"""The worker sends something every 5 s, unless a read hangs in the kernel."""
_BACKOFF_NS: Final = 10 * NS_PER_S
_BACKOFF_MAX_NS: Final = 3600 * NS_PER_S
"""A process whose read hangs cannot be ended, so that there must not be many."""
_LATE_NS: Final = 2 * NS_PER_S
"""A report may arrive so much later than what it tells of."""
_LONG_WAIT_NS: Final = 60 * NS_PER_S
"""Shorter waits are not logged."""
_MOVES: Final = "moves"
_NONSENSE: Final = "the reading process sent a report that cannot be right"


@dataclass(slots=True)
class PromotionMover:
    """The mover of one volume. `facts`: reads about its cache, on a thread.

    `sent`: the time share and the run length that the worker has; None while it is to stand back.
    `sent_chunks`: its list. `asked`: chunks that it has not reported yet. `done`: chunks of the
    promotion that it has. `needed_ns`, `waits_since_ns`: when there was something to move, and when
    it last began to stand back.
    """

    loop: VolumeLoop
    facts: Callable[[], Awaitable[CacheFacts]]
    sent: tuple[float, int] | None = None
    sent_chunks: tuple[int, ...] = ()
    asked: set[int] = field(default_factory=set)
    done: set[int] = field(default_factory=set)
    policy: Policy | None = None
    needed_ns: int = 0
    waits_since_ns: int = 0
    retry_ns: int = 0
    backoff_ns: int = _BACKOFF_NS
    reported_ns: int = 0
    _failing: bool = False
    _logged: str = ""
    _process: WarmProcess | None = None
    _task: asyncio.Task[None] | None = field(default=None, repr=False)

    # ---- what comes in -------------------------------------------------------------------------
    def on_tick(self) -> None:
        """Begin, go on, stand back or end. Called at each tick of the volume."""
        loop, now_ns = self.loop, self.loop.now_ns()
        promotion, policy = loop.promotion, loop.policy
        if loop.mode is not Mode.ENFORCE or loop.frozen or self.policy is not policy:
            self.policy = policy
            self.end()
            return
        if promotion is None or not promotion.chunks:
            self._rest()
            if now_ns - self.needed_ns > _LINGER_NS:
                self.end()
            return
        self.needed_ns = now_ns
        if why := self._obstacle():
            self._stand_back(why)
        elif self._process is not None:
            self._go_on(self._process, promotion)
        elif self._task is None and now_ns >= self.retry_ns:
            # It is called again once the worker is there.
            self._task = asyncio.create_task(self._run())

    def on_edge(self, edge: Edge) -> None:
        """Send nothing for a moment when users return."""
        if edge.kind is EdgeKind.BUSY and self._process is not None and self.sent is not None:
            self._process.send({"command": "pause", "seconds": _EDGE_PAUSE_S})

    def end(self) -> None:
        """End the worker, if there is one."""
        if self._task is not None:
            self._task.cancel()
        self._forget()
        self._logged = ""
        self._show(MoverState.IDLE, "")

    async def stop(self) -> None:
        """End the worker and wait for that."""
        task = self._task
        self.end()
        if task is not None:
            await asyncio.gather(task, return_exceptions=True)

    # ---- what goes out -------------------------------------------------------------------------
    def _obstacle(self) -> str:
        """Return why nothing may be read now; empty if it may."""
        loop = self.loop
        frame = loop.state.current_frame
        if frame is None:
            return "nothing was measured yet"
        if job := next(filter(_reads, loop.jobs), None):
            return f"job {job.id} warms {job.target}"
        destages = loop.urgent or loop.state.destage.phase is Phase.PRESSURE
        why = stands_back(loop.volume.kind, frame, destages=destages)
        return why or loop.promoted.why(frame.at_ns)

    def _stand_back(self, why: str) -> None:
        """Have nothing read until the reason is gone."""
        if self._process is not None and self.sent is not None:
            self._process.send({"command": "hold"})
            self.sent = None
        now_ns = self.loop.now_ns()
        if self.loop.mover.state is not MoverState.WAITING:
            self.waits_since_ns = now_ns
        if why != self._logged and now_ns - self.waits_since_ns > _LONG_WAIT_NS:
            self._logged = why
            _LOG.info(PROMOTION_WAITS, self.loop.volume.title, why)
        self._show(MoverState.WAITING, why)

    def _rest(self) -> None:
        """Have no other chunk read. What was read is still looked for, and reported."""
        if self._process is not None and self.sent is not None and self.sent_chunks:
            self._send(self._process, (), *self.sent)
        self._show(MoverState.IDLE, "")

    def _send(self, process: WarmProcess, chunks: tuple[int, ...], share: float, run: int) -> None:
        process.send({"command": "move", "chunks": chunks, "share": share, "run": run})
        self.sent, self.sent_chunks = (share, run), chunks
        self.asked.update(chunks)

    def _go_on(self, process: WarmProcess, promotion: Promotion) -> None:
        """Send the worker what it does not have yet."""
        frame = self.loop.state.current_frame
        assert frame is not None
        self.done.intersection_update(promotion.chunks)
        wanted = tuple(each for each in promotion.chunks if each not in self.done)[:_LIST_MAX]
        left = tuple(each for each in self.sent_chunks if each not in self.done)
        enough = len(left) >= min(len(wanted), _LIST_MIN)
        settings = (promotion.time_share, run_bytes(frame))
        if settings != self.sent or not enough or wanted[: len(left)] != left:
            self._send(process, wanted, *settings)
        if self._logged != _MOVES:
            self._logged = _MOVES
            percent = round(100 * promotion.time_share)
            _LOG.info(PROMOTION_BEGUN, self.loop.volume.title, len(promotion.chunks), percent)
        self._show(MoverState.MOVING, "")

    def _show(self, state: MoverState, why: str) -> None:
        promoted = self.loop.promoted
        self.loop.mover = replace(
            self.loop.mover,
            state=state,
            why=why,
            other_promotions=promoted.others,
            promotion_holds=promoted.holds,
        )

    # ---- the worker ----------------------------------------------------------------------------
    async def _run(self) -> None:
        """Run a worker until it fails or is ended."""
        try:
            await self._serve()
        except TimeoutError:
            self._fail("the reading process does not answer")
        except EbbgateError as error:
            self._fail(error.message)
        except (KeyError, TypeError, ValueError, AttributeError):
            self._fail(_NONSENSE)

    async def _serve(self) -> None:
        volume = self.loop.volume
        facts = await self.facts()
        process = await WarmProcess.start()
        try:
            process.send(
                {
                    "device": f"/dev/{volume.kernel_name}",
                    "devno": volume.devno,
                    "ranges": [(0, volume.size_bytes)],
                }
            )
            event = await _event(process)
            if event["event"] != "opened":
                raise Unavailable(event["text"])
            process.send(facts.command("serve", volume))
            self._process, self.reported_ns = process, self.loop.now_ns()
            self.on_tick()
            while True:
                self._take(await _event(process))
        finally:
            await process.end()

    def _take(self, event: Mapping[str, Any]) -> None:
        """Take a report. Raises Unavailable for one of a failure, or that cannot be right."""
        if event["event"] == "failed":
            raise Unavailable(event["text"])
        now_ns, busy_ns = self.loop.now_ns(), event["busy_ns"]
        longest_ns = now_ns - self.reported_ns + _LATE_NS
        if type(busy_ns) is not int or not 0 <= busy_ns <= longest_ns:
            raise Unavailable(_NONSENSE)
        self.reported_ns = now_ns
        self.loop.promoted.on_reads(now_ns, BlockReads.of(event))
        if event["collect"] is True:
            self.loop.collect_garbage()
        moved, failed = self._known(event["moved"]), self._known(event["failed"])
        self.done.update(moved, failed)
        if moved and self._failing:
            self._failing, self.backoff_ns = False, _BACKOFF_NS
            _LOG.info(PROMOTION_WORKS, self.loop.volume.title)
        if not (moved or failed or busy_ns):
            return
        before = self.loop.mover
        self.loop.mover = replace(
            before,
            moved_chunks=before.moved_chunks + len(moved),
            failed_chunks=before.failed_chunks + len(failed),
            busy_ns=before.busy_ns + busy_ns,
        )
        self.loop.on_chunks_moved(ChunksMoved(now_ns, moved, failed, busy_ns))

    def _known(self, chunks: list[object]) -> tuple[int, ...]:
        """Return the chunks that were asked for, once each. Raises Unavailable."""
        end = -(-self.loop.volume.size_bytes // CHUNK_BYTES)
        found = []
        for chunk in chunks:
            if type(chunk) is not int or not 0 <= chunk < end:
                raise Unavailable(_NONSENSE)
            # One that was reported while it was sent again is reported again.
            if chunk in self.asked:
                self.asked.discard(chunk)
                found.append(chunk)
        return tuple(found)

    def _fail(self, why: str) -> None:
        """Try again later; log once until a worker works."""
        self._forget()
        self.retry_ns = self.loop.now_ns() + self.backoff_ns
        if not self._failing:
            wait = format_ns(self.backoff_ns)
            _LOG.error(PROMOTION_FAILED, self.loop.volume.title, why, wait)
        self._failing = True
        self.backoff_ns = min(2 * self.backoff_ns, _BACKOFF_MAX_NS)
        self._show(MoverState.WAITING, why)

    def _forget(self) -> None:
        if self._process is not None:
            self.loop.promoted.on_ended(self.loop.now_ns())
        self._process = self._task = self.sent = None
        self.sent_chunks = ()
        self.asked, self.done = set(), set()


def _reads(job: JobStatus) -> bool:
    """Return whether a warm-up may read now. One that is paused reads nothing, perhaps for days."""
    return not job.state.over and job.state is not JobState.PAUSED


async def _event(process: WarmProcess) -> Mapping[str, Any]:
    """Return the worker's next event. Raises TimeoutError if it is silent."""
    # `wait_for` of Python 3.11 ignores a cancel that comes together with the event.
    async with asyncio.timeout(_SILENCE_S):
        return await process.event()

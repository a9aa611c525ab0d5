# SPDX-License-Identifier: GPL-2.0-only
"""One warm-up: tells its worker when to read, and keeps what people see of it.

I/O: through the worker's process. The event loop calls it; it never blocks.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.cache_facts import CacheFacts
from ebbgate.daemon.warm_process import WarmProcess, answer
from ebbgate.errors import EbbgateError, Unavailable
from ebbgate.intents.validation import Intent
from ebbgate.log_messages.volumes import WARM_BEGUN, WARM_ENDED
from ebbgate.model.records import Edge, EdgeKind
from ebbgate.model.volume import Kind
from ebbgate.model.warm import JobState, JobStatus
from ebbgate.text import SHOWN_MAX, clean_text
from ebbgate.units import NS_PER_MS, format_bytes, format_rate
from ebbgate.warm.pace import Pace, Speed, disk_requests, pace
from ebbgate.warm.plan import RUN_BYTES_MAX
from ebbgate.warm.promotion_watch import BlockReads, PromotionWatch

_LOG = logging.getLogger(__name__)
_NEAR_NS: Final = 300 * NS_PER_MS
"""The pace changes at ticks, 250 ms apart, and a read that is under way ends."""
SILENT_S: Final = 60.0
"""A worker that sends no event for so long hangs in the kernel: it pauses for at most 5.5 s, and a
read that stands back for users is sent after 10 s (prio_aging_expire of mq-deadline).
"""
_UNREADABLE: Final = (LookupError, TypeError, ValueError)
_OTHER_RELEASE: Final = "the reading process speaks like another release: restart ebbgated"
_PAUSED: Final = "paused by a user"
_GOOD_SHARE: Final = {Kind.BCACHE: 0.99, Kind.DM_CACHE: 0.95}


@dataclass(frozen=True, slots=True)
class Opened:
    """What the worker has found out about its target. `event`: as it has said it."""

    devno: tuple[int, int]
    total_bytes: int
    pieces: int
    left_out: Mapping[str, int]
    event: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class WarmJob:
    """`on_change`: called after each change of the status, and `on_end` once it is over.

    `queued`: waits for another job of the volume, without a process, for the reason `turn`;
    `is_next`: its turn has come.
    `sent`: the last pace that the worker has. `read_ns`: until when it was to read, on
    CLOCK_MONOTONIC. `collects`: it waits for a garbage collection.
    `cache_bytes`: what its target takes of the cache, once it is known.
    `promoted_before`: promotions of users' misses when it began, and stops for them.
    """

    intent: Intent
    process: WarmProcess
    status: JobStatus
    on_change: Callable[[], None]
    on_end: Callable[[], None]
    now_ns: Callable[[], int] = time.monotonic_ns
    loop: VolumeLoop | None = None
    paused: bool = False
    queued: bool = False
    turn: str = ""
    is_next: bool = False
    sent: Pace | None = None
    read_ns: int = 0
    collects: bool = False
    ticks_without_disk: int = 0
    phase: str = "read"
    cache_bytes: int = 0
    promoted_before: tuple[int, int] = (0, 0)
    _task: asyncio.Task[None] | None = field(default=None, repr=False)

    async def open(self, request: Mapping[str, object]) -> Opened:
        """Have the worker open its target. Raises EbbgateError for one that cannot be warmed."""
        self.process.send(request)
        event = await answer(self.process)
        try:
            if event["event"] != "opened":
                raise Unavailable(event["text"], event.get("hint", ""))
            major, minor = event["devno"]
            return Opened((major, minor), event["bytes"], event["pieces"], event["left_out"], event)
        except _UNREADABLE as error:
            raise Unavailable(_OTHER_RELEASE) from error

    def queue(self, loop: VolumeLoop, why: str) -> None:
        """Wait for another job of this volume."""
        self.loop, self.queued, self.is_next, self.turn = loop, True, False, why
        self._show_queued()

    def start(self, loop: VolumeLoop, facts: CacheFacts) -> None:
        """Begin to read for this volume."""
        self.loop, self.queued, self.is_next = loop, False, False
        volume = loop.volume
        self.promoted_before = loop.promoted.others or 0, loop.promoted.holds
        self.process.send(facts.command("start", volume, collects=loop.acts))
        if volume.kind is Kind.BCACHE:
            loop.keep_cutoff(RUN_BYTES_MAX)
        # It reads from the next tick on, which writes the knobs that it needs.
        _LOG.info(WARM_BEGUN, volume.title, self.status.id, self.status.target, self.status.who)
        self._task = asyncio.create_task(self._follow(volume.title))

    # ---- what comes in -------------------------------------------------------------------------
    def on_tick(self) -> None:
        """Decide how to go on. Called at each tick of the volume, and when users leave."""
        frame = self.loop.state.current_frame if self.loop else None
        if self.loop is None or frame is None or self.queued or self.status.state.over:
            return
        self._count_promotions(self.loop.promoted)
        self.ticks_without_disk = 0 if disk_requests(frame) else self.ticks_without_disk + 1
        found = pace(
            self.loop.volume.kind,
            frame,
            destages=self.loop.urgent or self.loop.cleaning is not None,
            ticks_without_disk=self.ticks_without_disk,
            return_is_near=self.loop.return_is_near(_NEAR_NS),
        )
        if why := self.loop.promoted.why(frame.at_ns):
            found = Pace(Speed.HOLD, why)
        self._apply(found)

    def on_edge(self, edge: Edge) -> None:
        """Stop at once when users return."""
        if self.queued:
            return
        if edge.kind is EdgeKind.BUSY:
            self.ticks_without_disk = 0
            if self.sent is not None and self.sent.speed is Speed.GO:
                self._apply(Pace(Speed.HOLD, "users are back"))
        elif edge.kind is EdgeKind.IDLE:
            self.on_tick()

    def pause(self, on: bool) -> None:
        """Pause, or go on."""
        self.paused = on
        if self.queued:
            self._show_queued()
            return
        self._apply(Pace(Speed.HOLD, _PAUSED))
        self.on_tick()

    async def end(self, state: JobState, why: str) -> None:
        """End it; nothing that was cached is undone."""
        self._over(state, why)
        await self.process.end()

    # ---- what goes out -------------------------------------------------------------------------
    def _apply(self, found: Pace) -> None:
        if self.paused:
            found = Pace(Speed.HOLD, _PAUSED)
        now_ns = self.now_ns()
        reads = self.sent is not None and self.sent.speed is Speed.GO
        if reads:
            self.read_ns = now_ns
        if found.speed is Speed.STEP:
            if now_ns - self.read_ns >= found.every_ns:
                self.read_ns = now_ns
                self._send("step", found)
            elif reads:
                self._send("hold", found)
        elif found != self.sent:
            self._send(str(found.speed), found)
        self.sent = found
        self._show(found)

    def _send(self, command: str, found: Pace) -> None:
        rate = self.status.bandwidth_bytes_per_s or 0
        self.process.send({"command": command, "run": found.run_bytes, "rate": rate})

    def _show_queued(self) -> None:
        if self.paused:
            self._change(state=JobState.PAUSED, why=f"{_PAUSED}, {self.turn}")
        else:
            self._change(state=JobState.WAITING, why=self.turn)

    def _show(self, found: Pace) -> None:
        if self.status.state.over:
            return
        state = JobState.CHECKING if self.phase == "check" else JobState.READING
        if self.paused:
            state = JobState.PAUSED
        elif found.speed is not Speed.GO:
            state = JobState.WAITING
        elif self.collects:
            found = Pace(Speed.HOLD, "the cache is prepared for the next part")
            state = JobState.WAITING
        self._change(state=state, why=found.why)

    def _count_promotions(self, watch: PromotionWatch) -> None:
        """Show how many blocks users' misses have brought in since it began."""
        others, holds = self.promoted_before
        found = None if watch.others is None else max(0, watch.others - others)
        self._change(other_promotions=found, promotion_holds=watch.holds - holds)

    def _change(self, **fields: Any) -> None:
        changed = replace(self.status, **fields)
        if changed != self.status:
            self.status = changed
            self.on_change()

    async def _follow(self, title: str) -> None:
        """Take the worker's events until it is done."""
        try:
            while not self.status.state.over:
                self._take(await self._event(), title)
        except EbbgateError as error:
            self._over(JobState.FAILED, error.message)
        except _UNREADABLE:
            self._over(JobState.FAILED, _OTHER_RELEASE)
        finally:
            await self.process.end()

    async def _event(self) -> Mapping[str, Any]:
        """Return the worker's next event. Raises Unavailable if it has ended, or is silent."""
        try:
            async with asyncio.timeout(SILENT_S):
                return await self.process.event()
        except TimeoutError as error:
            raise Unavailable(
                f"the reading process has sent nothing for {SILENT_S:g} s:"
                " a device or a file system may hang: see dmesg"
            ) from error

    def _take(self, event: Mapping[str, Any], title: str) -> None:
        name = event["event"]
        if name == "failed":
            self._over(JobState.FAILED, event["text"])
            return
        if name == "unaligned":
            left_out = {**self.status.left_out, "not aligned to the cache": event["bytes"]}
            self._change(left_out=left_out)
            return
        if self.loop is not None:
            self.loop.promoted.on_reads(self.loop.now_ns(), BlockReads.of(event))
        self.phase, self.collects = event["phase"], event["collects"] is True
        checked = event["checked"]
        ratio = event["hits"] / checked if checked else None
        fields = {"read_bytes": event["read"], "total_bytes": event["total"]}
        self._change(**fields, hit_ratio=ratio)
        if name == "burst" and self.loop is not None:
            self.loop.collect_garbage()
        elif name == "done":
            elsewhere = event["elsewhere"] / (checked or 1)
            self._over(JobState.DONE, self._result(ratio or 0.0, elsewhere))
        if self.sent is not None:
            self._show(self.sent)

    def _result(self, ratio: float, elsewhere: float) -> str:
        text = f"{ratio:.1%} of a sample is in the cache"
        if elsewhere:
            text += f"; {elsewhere:.1%} is on another device: see ebbgate layout show"
        elif self.loop is not None and ratio < _GOOD_SHARE[self.loop.volume.kind]:
            text += "; the rest was not taken or is out again: see ebbgate warm --help"
        return text

    def _over(self, state: JobState, why: str) -> None:
        if self.status.state.over:
            return
        # What is over is kept for people to see, in a document that is published each second.
        self._change(state=state, why=clean_text(why, SHOWN_MAX), ended_unix_ns=time.time_ns())
        self.intent = replace(self.intent, args=replace(self.intent.args, ranges=()))
        self.on_end()
        if self.loop is not None:
            if not self.queued:
                self.loop.promoted.on_ended(self.loop.now_ns())
            _LOG.info(WARM_ENDED, self.loop.volume.title, self.status.id, state, why)


def begun_text(job: WarmJob, opened: Opened, title: str) -> str:
    """Return the answer to the request."""
    text = (
        f"{title}: job {job.status.id} warms {job.status.target},"
        f" {format_bytes(opened.total_bytes)} in {opened.pieces} pieces"
    )
    if job.status.bandwidth_bytes_per_s:
        text += f", at {format_rate(job.status.bandwidth_bytes_per_s)} at most"
    for reason, count in opened.left_out.items():
        text += f"; without {format_bytes(count)} {reason}"
    return text

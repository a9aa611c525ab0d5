# SPDX-License-Identifier: GPL-2.0-only
"""Touches the pinned files of one volume, and has warmed what falls out of the cache.

I/O: through the worker's process; sysfs, on a thread. On the event loop; what takes long is
awaited.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.cache_facts import CacheFacts, block_sizes
from ebbgate.daemon.pin_registry import PinRegistry
from ebbgate.daemon.pinned_file import Layout, PinnedFile
from ebbgate.daemon.warm_process import WarmProcess
from ebbgate.errors import EbbgateError, Unavailable, UsageError
from ebbgate.intents.arguments import parse_path
from ebbgate.log_messages.volumes import PIN_COLD
from ebbgate.model.pin import Pin, PinState, PinStatus
from ebbgate.model.warm import JobState, JobStatus
from ebbgate.text import clean_text
from ebbgate.units import format_ratio
from ebbgate.warm.pace import CACHES_NO_READS
from ebbgate.warm.pinning import (
    READS_MAX,
    READS_PER_S_MAX,
    Need,
    is_cold,
    is_due,
    limit_text,
    step_bytes,
    warm_again_ns,
)

_LOG = logging.getLogger(__name__)
_PHASES: Final = 8
"""Rounds after which the same places are touched again."""
_OPEN_S: Final = 30.0
"""To open a file takes no longer, unless its file system hangs."""
_SLOW: Final = 4
"""Touches may take so many times as long as at the highest rate."""


class Machine(Protocol):
    """What touching needs of the daemon."""

    async def facts(self, loop: VolumeLoop) -> CacheFacts:
        """Return what the worker must know about the cache."""

    async def written_bytes(self, loop: VolumeLoop) -> int | None:
        """Return what was written to the devices of the cache since boot."""

    async def volume_of(self, devno: tuple[int, int]) -> str | None:
        """Return the one volume on which a device lies."""

    async def warm(self, pin: Pin) -> int:
        """Begin a warm-up; return its number. Raises EbbgateError."""

    def job(self, number: int) -> JobStatus | None:
        """Return a warm-up; None if it is forgotten."""


@dataclass(slots=True)
class PinTouches:
    """The touches of one volume. `share`: of the cache, for all its pinned files."""

    loop: VolumeLoop
    registry: PinRegistry
    machine: Machine
    share: float
    start: Callable[[], Awaitable[WarmProcess]]
    _process: WarmProcess | None = None
    _touched: dict[int, PinnedFile] = field(default_factory=dict)
    _round: int = 0
    _began_ns: int | None = None
    _written_bytes: int | None = None
    _ended: bool = False

    def statuses(self) -> tuple[PinStatus, ...]:
        """Return what people see."""
        cache = self._cache_bytes()
        return tuple(self._of(pin).status(pin, cache) for pin in self._pins())

    def used(self) -> tuple[int, int]:
        """Return the bytes of the cache and the touches of all pinned files, as last seen."""
        found = [self._of(pin) for pin in self._pins()]
        return sum(each.cache_bytes for each in found), sum(each.reads for each in found)

    def expect(self, pin: Pin, need: Need) -> None:
        """Take what is known of a new pin."""
        self._of(pin).set_need(need)

    async def warm(self, pin: Pin, why: str) -> str:
        """Begin a warm-up of a pinned file, unless one has just been; return what is done."""
        each, now = self._of(pin), self.registry.now_ns()
        partly = each.elsewhere_ratio > 0
        if each.warmed and now - each.warmed_ns < warm_again_ns(
            each.warmed, partly_elsewhere=partly
        ):
            return "it was warmed just now"
        each.warmed += 1
        each.warmed_ns = now
        try:
            each.job = await self.machine.warm(pin)
        except EbbgateError as error:
            each.state, each.why = PinState.COLD, f"{why}; it cannot be warmed: {error.message}"
            return f"it cannot be warmed yet: {error.message}"
        each.state, each.why = PinState.WARMING, f"{why}; job {each.job}"
        return f"job {each.job} warms it"

    async def look(self) -> None:
        """Follow the warm-ups; touch the files if that is due."""
        if self.loop.volume.kind not in READS_MAX:
            await self._end_process()
            for pin in self._pins():
                self._of(pin).state, self._of(pin).why = PinState.ABSENT, CACHES_NO_READS
            return
        for pin in self._pins():
            self._follow(self._of(pin))
        written = await self.machine.written_bytes(self.loop)
        if self._is_due(written):
            self._began_ns, self._written_bytes = self.registry.now_ns(), written
            self._round += 1
            try:
                await self._touch_all()
            except Exception:
                # It would wait for a command, with a file open.
                await self._end_process()
                raise

    async def end(self) -> None:
        """End the process, and start no other one: a round may be under way."""
        self._ended = True
        await self._end_process()

    async def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.end()

    # ---- one round -----------------------------------------------------------------------------
    def _is_due(self, written: int | None) -> bool:
        if self._began_ns is None:
            return True
        cache = self._cache_bytes()
        known = cache and written is not None and self._written_bytes is not None
        # If that is unknown, the time alone decides.
        since = max(0, (written or 0) - (self._written_bytes or 0)) if known else 0
        age_ns = self.registry.now_ns() - self._began_ns
        return is_due(self.loop.volume.kind, age_ns, since, cache or 0)

    async def _touch_all(self) -> None:
        facts = await self.machine.facts(self.loop)
        used = (0, 0)
        for pin in self._pins():
            if self._ended:
                return
            each = self._of(pin)
            if self._is_left(each) or self.registry.now_ns() < each.retry_ns:
                used = used[0] + each.cache_bytes, used[1] + each.reads
                continue
            try:
                used = await self._touch(pin, facts, used)
                each.failures = 0
            except EbbgateError as error:
                await self._end_process()
                each.fail(error.message, self.registry.now_ns())
        self._touched = {pin.id: self._of(pin) for pin in self._pins()}

    def _is_left(self, each: PinnedFile) -> bool:
        """Return whether a file is left to its warm-up.

        While that waits, for hours perhaps, what is still in the cache would fall out untouched.
        """
        job = self.machine.job(each.job) if each.job else None
        if job is None:
            return False
        return each.touched_unix_ns is None or job.state in (JobState.READING, JobState.CHECKING)

    async def _touch(self, pin: Pin, facts: CacheFacts, used: tuple[int, int]) -> tuple[int, int]:
        """Touch one file; return the bytes and touches so far. Raises EbbgateError."""
        process, each = self._process or await self._started(), self._of(pin)
        process.send({"touch": pin.path, **block_sizes([self.loop.volume])})
        event = await _answer(process, _OPEN_S)
        if why := await self._obstacle(pin, event):
            if event["event"] == "opened":
                process.send({"command": "skip"})
            each.state, each.why = PinState.ABSENT, why
            return used
        layout = event["bytes"], event["pieces"], event["layout"]
        if each.is_elsewhere(layout, self.registry.now_ns()):
            process.send({"command": "skip"})
            each.set_elsewhere(pin.volume, layout, self.registry.now_ns())
            return used
        need, cache = facts.need(event), self._cache_bytes() or facts.cache_bytes
        each.set_need(need)
        if why := limit_text(self.loop.volume.kind, need, used, cache, self.share):
            process.send({"command": "skip"})
            each.state, each.why = PinState.TOO_LARGE, why
            return used
        process.send(self._command(facts, each.first))
        most_s = _OPEN_S + _SLOW * each.reads / READS_PER_S_MAX
        await self._take(pin, layout, await _answer(process, most_s))
        return used[0] + each.cache_bytes, used[1] + each.reads

    async def _started(self) -> WarmProcess:
        """Return a new process. Raises Unavailable, also if nobody needs it any more."""
        process = await self.start()
        if self._ended:
            await process.end()
            raise Unavailable("its volume or its pins have gone")
        self._process = process
        return process

    def _command(self, facts: CacheFacts, first: int) -> Mapping[str, object]:
        step = step_bytes(facts.bucket_bytes, facts.block_bytes)
        return {
            **facts.command("touch", self.loop.volume),
            "step": step,
            "phase": self._round % _PHASES * step // _PHASES,
            "first": first,
            "rate": READS_PER_S_MAX,
        }

    async def _obstacle(self, pin: Pin, event: Mapping[str, Any]) -> str:
        """Return why a file cannot be touched, and end the pin of one that is gone."""
        if event["event"] == "failed":
            return str(event["text"])
        major, minor = event["devno"]
        if await self.machine.volume_of((major, minor)) != pin.volume:
            return f"it is not on {pin.volume} now: its file system may not be mounted"
        mount = kept_mount(event["mount"])
        if event["event"] == "opened" and _is_of(pin, event):
            # It may be mounted in another place by now, and an older release saw no bind mounts.
            self.registry.mounted(pin, mount)
            return ""
        if pin.mount not in (None, mount):
            return f"its file system may not be mounted on {pin.mount}"
        if event["event"] == "missing":
            self.registry.end(pin, "the file was deleted")
            return "deleted"
        self.registry.end(pin, "the file was replaced")
        return "replaced"

    async def _take(self, pin: Pin, layout: Layout, event: Mapping[str, Any]) -> None:
        """Take the result of a touch."""
        each = self._of(pin)
        if event["event"] != "touched":
            each.state, each.why = PinState.ABSENT, str(event["text"])
            return
        reads, hits, elsewhere = event["reads"], event["hits"], event["elsewhere"]
        if not reads:
            # Nothing is known of it.
            return
        each.touched_unix_ns = self.registry.wall_ns()
        each.elsewhere_ratio = elsewhere / reads
        # The number of all places is that of a whole round, to a few.
        each.first = (each.first + reads) % max(1, each.reads)
        if elsewhere == reads:
            each.set_elsewhere(pin.volume, layout, self.registry.now_ns())
            return
        apart = (
            f"{format_ratio(elsewhere / reads)} of it is not on {pin.volume}" if elsewhere else ""
        )
        await self._judge(pin, hits, reads - elsewhere, apart)

    async def _judge(self, pin: Pin, hits: int, found: int, apart: str) -> None:
        """Call a file hot, or warm it again, unless that is on its way.

        `found`: touches that have reached the volume; `apart`: how many have not, in words.
        """
        each = self._of(pin)
        each.hit_ratio, each.elsewhere = hits / found, None
        if each.job:
            return
        if not is_cold(hits, found):
            each.state, each.why = PinState.HOT, apart
            each.warmed = each.warmed if apart else 0
            return
        why = f"{format_ratio(1 - hits / found)} of {found} touches were misses"
        why += f"; {apart}" if apart else ""
        if each.state is PinState.HOT:
            _LOG.info(PIN_COLD, pin.volume, pin.id, pin.path, why)
        each.state, each.why = PinState.COLD, why
        await self.warm(pin, why)

    # ---- details -------------------------------------------------------------------------------
    def _follow(self, each: PinnedFile) -> None:
        """Look whether a warm-up has ended."""
        if not each.job:
            return
        job = self.machine.job(each.job)
        if job is not None and not job.state.over:
            return
        each.job, each.warmed_ns = 0, self.registry.now_ns()
        if job is not None and job.state is JobState.DONE:
            each.why = job.why
            # What was warmed must be touched before others can displace it.
            self._began_ns = None
        else:
            each.state = PinState.COLD
            each.why = f"job {job.id} {job.state}: {job.why}" if job else "its job is forgotten"

    def _cache_bytes(self) -> int | None:
        frame = self.loop.state.current_frame
        return frame.cache_bytes if frame else None

    def _pins(self) -> list[Pin]:
        return self.registry.of(self.loop.volume.name)

    def _of(self, pin: Pin) -> PinnedFile:
        return self._touched.setdefault(pin.id, PinnedFile())


def kept_mount(value: object) -> str | None:
    """Return where a file system is mounted, as a row may have it: it is compared, not opened.

    What cannot be displayed is replaced: with it the row would be invalid after a restart.
    """
    try:
        return parse_path(clean_text(str(value)))
    except UsageError:
        return None


def _is_of(pin: Pin, event: Mapping[str, Any]) -> bool:
    """Return whether the file that was opened is the one that was pinned."""
    known = None not in (pin.generation, event["generation"])
    return event["inode"] == pin.inode and not (known and event["generation"] != pin.generation)


async def _answer(process: WarmProcess, most_s: float) -> Mapping[str, Any]:
    """Return the next event. Raises Unavailable after this time, so that other files go on."""
    try:
        # `wait_for` of Python 3.11 ignores a cancel that comes together with the event.
        async with asyncio.timeout(most_s):
            return await process.event()
    except TimeoutError as error:
        raise Unavailable("it could not be read in time: its file system may hang") from error

# SPDX-License-Identifier: GPL-2.0-only
"""Carries out requests to warm files and ranges, and to pause, resume and cancel such jobs.

I/O: sysfs, on a thread; the jobs' processes. On the event loop; what takes long is awaited.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ebbgate.background import BackgroundWorker
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.cache_facts import block_sizes, read_cache_facts
from ebbgate.daemon.on_loop import refuse_on_loop
from ebbgate.daemon.warm_job import Opened, WarmJob, begun_text
from ebbgate.daemon.warm_process import WarmProcess
from ebbgate.errors import ActuationError, EbbgateError, NotFound, UsageError
from ebbgate.intents.validation import Intent, IntentArgs
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.model.hot_set import HotSet, fitting, part_in_text, ranges_to_text
from ebbgate.model.records import Edge
from ebbgate.model.volume import Volume
from ebbgate.model.warm import JOBS_MAX, JobAction, JobState, JobStatus
from ebbgate.probes.block import cached_volumes_below, volume_uuid
from ebbgate.text import SHOWN_MAX, clean_text
from ebbgate.units import DAY_NS, MINUTE_NS, format_bytes, format_ns
from ebbgate.warm.pace import obstacle, room_bytes

_KEPT: Final = 8
_KEPT_NS: Final = DAY_NS
"""How many jobs of a volume that are over are still shown, and for how long."""
_ALL_KEPT_NS: Final = MINUTE_NS
"""For how long all of them are: a client that waits for many looks once a second."""
WITH_RANGES_MAX: Final = 32
"""Jobs with saved ranges that wait or read: those of each take up to 1.4 MiB of memory."""
_CHANGED: Final = "the volume was changed, such as resized: run it again"
_STAYS: Final = "what is in the cache stays there"


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """What a worker is to open, and what was left out already: bytes by reason."""

    message: Mapping[str, object]
    left_out: Mapping[str, int] = field(default_factory=dict)


class WarmIntents:
    """The jobs of all volumes, one at a time on each. `volumes`: the daemon's loops by name."""

    def __init__(self, sysfs: Sysfs, volumes: Mapping[str, VolumeLoop]) -> None:
        self._sysfs = sysfs
        self._volumes = volumes
        self._jobs: dict[int, WarmJob] = {}
        self._reader = BackgroundWorker("warm-ups")
        self._tasks: set[asyncio.Task[None]] = set()

    # ---- requests ------------------------------------------------------------------------------
    async def begin(self, intent: Intent) -> str:
        """Begin a job; return what it does, in words. Raises EbbgateError."""
        args = intent.args
        status = JobStatus(
            intent.id,
            _target(args),
            JobState.WAITING,
            intent.who,
            bandwidth_bytes_per_s=args.bandwidth_bytes_per_s,
            since_unix_ns=time.time_ns(),
        )
        self._check_room(args)
        job = WarmJob(intent, await WarmProcess.start(), status, self._publish, self._ended)
        try:
            return await self._begun(job)
        except BaseException:
            self._jobs.pop(job.status.id, None)
            await job.process.end()
            raise

    def _check_room(self, args: IntentArgs) -> None:
        """Raises ActuationError if there are too many jobs already."""
        running = self._running()
        if len(running) >= JOBS_MAX:
            raise ActuationError(f"{JOBS_MAX} jobs wait already", "see ebbgate jobs")
        with_ranges = sum(bool(job.intent.args.ranges) for job in running)
        if args.ranges and with_ranges >= WITH_RANGES_MAX:
            text = f"{WITH_RANGES_MAX} jobs with saved ranges wait already"
            raise ActuationError(text, "see ebbgate jobs")

    async def _begun(self, job: WarmJob) -> str:
        """Open the target and begin to read, or wait for another job of the volume."""
        request = await self._request(job.intent)
        opened = await job.open(request.message)
        opened = replace(opened, left_out={**opened.left_out, **request.left_out})
        loop = await self._loop_of(job.intent, opened)
        facts = await self._reader.run(lambda: read_cache_facts(self._sysfs, loop.volume))
        if job.status.state.over:
            raise ActuationError(job.status.why)
        # Nothing is awaited from here on, so that no other job comes between.
        before = self._before(job.status.id, loop)
        # Each saved range has a chunk at least; files may be in pieces smaller than a block.
        is_file = bool(job.intent.args.path)
        job.cache_bytes = facts.taken_bytes(opened.event) if is_file else opened.total_bytes
        _check(loop, opened, job.cache_bytes, _cache_bytes(before))
        text = begun_text(job, opened, loop.volume.title)
        job.status = replace(
            job.status, total_bytes=opened.total_bytes, left_out=dict(opened.left_out)
        )
        self._jobs[job.status.id] = job
        if before:
            job.queue(loop, f"after job {before[-1].status.id}")
            await job.process.end()
            text += f", after job {before[-1].status.id}"
        else:
            job.start(loop, facts)
        self._publish()
        return text

    def _before(self, number: int, loop: VolumeLoop) -> list[WarmJob]:
        """Return the jobs of a volume that are not over and come before this one."""
        running = self._running(loop.volume.name)
        return [each for each in running if not each.queued or each.status.id < number]

    async def _begin_queued(self, job: WarmJob) -> None:
        """Open the target again: it may have changed while the job waited."""
        try:
            job.process = await WarmProcess.start()
            await self._begun(job)
        except EbbgateError as error:
            await job.end(JobState.FAILED, error.message)
        except Exception as error:
            # The next one of the volume must not wait for it.
            await job.end(JobState.FAILED, f"internal error: {type(error).__name__}")
            raise

    def job(self, number: int) -> JobStatus | None:
        """Return a job; None if it is forgotten."""
        job = self._jobs.get(number)
        return None if job is None else job.status

    async def control(self, intent: Intent) -> str:
        """Pause, resume or cancel a job. Raises NotFound."""
        job, action = self._jobs.get(intent.args.job), intent.args.action
        if job is None or job.status.state.over:
            raise NotFound(f"no job {intent.args.job} is under way", "list them: ebbgate jobs")
        if action is JobAction.CANCEL:
            await job.end(JobState.CANCELLED, f"by {intent.who}; {_STAYS}")
            return f"job {job.status.id} is cancelled; {_STAYS}"
        job.pause(action is JobAction.PAUSE)
        return f"job {job.status.id} {'is paused' if job.paused else 'goes on'}"

    async def hot_set(self, intent: Intent) -> tuple[str, Mapping[str, str | int]]:
        """Return how much of a volume is hot, in words, and which parts. Raises EbbgateError."""
        loop = self._named(intent.volume or "")
        volume, found = loop.volume, loop.hot_set()
        watched = f"observed for {format_ns(found.observed_ns)}"
        if not found.ranges:
            raise ActuationError(
                f"{volume.title}: no use of it was sampled yet ({watched})", "try again later"
            )
        data: dict[str, str | int] = {
            "volume": volume.title,
            "uuid": await self._reader.run(lambda: volume_uuid(self._sysfs, volume)),
            "size_bytes": volume.size_bytes,
            "chunk_bytes": found.chunk_bytes,
            "observed_ns": found.observed_ns,
            "ranges": ranges_to_text(found.ranges),
        }
        return f"{volume.title}: {_saved_text(found, str(data['ranges']))}, {watched}", data

    # ---- events of the daemon ------------------------------------------------------------------
    def on_tick(self, name: str) -> None:
        """A volume was looked at."""
        for job in self._running(name):
            job.on_tick()

    def on_edge(self, edge: Edge) -> None:
        """Users of a volume have returned or left."""
        for job in self._running(edge.volume):
            job.on_edge(edge)

    def poll(self) -> None:
        """End the jobs of volumes that are no longer followed; forget what ended long ago."""
        for job in list(self._jobs.values()):
            loop = job.loop
            if loop is None:
                continue
            if not job.status.state.over:
                self._keep_up(job, loop)
            elif loop.volume.name not in self._volumes or _ended_before(job.status, _KEPT_NS):
                del self._jobs[job.status.id]
        for name in self._volumes:
            self._forget(name)
        self._publish()

    def _keep_up(self, job: WarmJob, loop: VolumeLoop) -> None:
        """End a job whose volume has changed. One that waits for another one looks for its target
        when its turn comes.
        """
        now = self._volumes.get(loop.volume.name)
        if now is loop:
            return
        if now is not None and job.queued:
            job.loop = now
            return
        why = "the volume is gone" if now is None else _CHANGED
        self._spawn(job.end(JobState.FAILED, why))

    async def stop(self) -> None:
        """End all jobs with the daemon."""
        for job in self._running():
            await job.end(JobState.CANCELLED, "ebbgated ended")

    # ---- details -------------------------------------------------------------------------------
    async def _request(self, intent: Intent) -> OpenRequest:
        """Return what the worker is to open. Raises EbbgateError."""
        args = intent.args
        if args.path:
            sizes = block_sizes(loop.volume for loop in self._volumes.values())
            return OpenRequest({"path": args.path, **sizes})
        name = intent.volume or ""
        loop = await self._with_uuid(args.uuid) if args.uuid else self._named(name)
        if args.ranges:
            return _hot_request(loop, args, _cache_bytes(self._before(intent.id, loop)))
        if args.to_bytes > loop.volume.size_bytes:
            raise UsageError(
                f"{loop.volume.title} ends at {format_bytes(loop.volume.size_bytes)}",
                "choose a lower end",
            )
        return OpenRequest(_of_device(loop.volume, [(args.from_bytes, args.to_bytes)]))

    async def _with_uuid(self, uuid: str) -> VolumeLoop:
        """Return the volume, whatever it is called by now. Raises NotFound."""
        loops = list(self._volumes.values())
        found = await self._reader.run(
            lambda: [volume_uuid(self._sysfs, loop.volume) for loop in loops]
        )
        for loop, each in zip(loops, found, strict=True):
            if each == uuid:
                return loop
        raise NotFound(
            f"no volume here has the uuid {uuid}, of which the ranges were saved",
            "to warm them on another volume: --volume NAME",
        )

    def _named(self, name: str) -> VolumeLoop:
        for loop in self._volumes.values():
            if loop.volume.is_called(name):
                return loop
        raise NotFound(f"{name} is gone", "see ebbgate status")

    async def _loop_of(self, intent: Intent, opened: Opened) -> VolumeLoop:
        """Return the volume on which the target lies. Raises ActuationError."""
        known = {loop.volume.devno: name for name, loop in self._volumes.items()}
        names = await self._reader.run(
            lambda: cached_volumes_below(self._sysfs, opened.devno, known)
        )
        path = intent.args.path
        if not names:
            await self._reader.run(lambda: refuse_on_loop(self._sysfs, path, opened.devno))
            raise ActuationError(
                f"{path} is not on a cached volume that ebbgated follows",
                "see ebbgate status for the volumes",
            )
        if len(names) > 1:
            raise ActuationError(
                f"{path} is spread over {', '.join(names)}", "warm a range of each of them"
            )
        return self._named(names[0])

    def _of(self, name: str) -> list[WarmJob]:
        return [job for job in self._jobs.values() if job.loop and job.loop.volume.name == name]

    def _running(self, name: str | None = None) -> list[WarmJob]:
        jobs = self._jobs.values() if name is None else self._of(name)
        return [job for job in jobs if not job.status.state.over]

    def _forget(self, name: str) -> None:
        """Forget the oldest jobs of a volume that are over."""
        over = [job for job in self._of(name) if job.status.state.over]
        for later, job in enumerate(reversed(over)):
            old = later >= _KEPT and _ended_before(job.status, _ALL_KEPT_NS)
            if old or later >= JOBS_MAX:
                del self._jobs[job.status.id]

    def _publish(self) -> None:
        for name, loop in self._volumes.items():
            loop.jobs = tuple(job.status for job in self._of(name))

    def _ended(self) -> None:
        """Begin the next job of a volume; forget the oldest that are over."""
        for name, loop in self._volumes.items():
            running = self._running(name)
            if self._of(name) and not running:
                loop.keep_cutoff(None)
            self._forget(name)
            if running and all(job.queued and not job.is_next for job in running):
                # One that took longer to open may have been asked for before.
                first = min(running, key=lambda job: job.status.id)
                first.is_next = True
                self._spawn(self._begin_queued(first))
        self._publish()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _ended_before(status: JobStatus, ago_ns: int) -> bool:
    """Return whether a job that is over ended longer ago than this."""
    return time.time_ns() - (status.ended_unix_ns or 0) > ago_ns


def _target(args: IntentArgs) -> str:
    """Name what is warmed."""
    if args.ranges:
        return f"{len(args.ranges)} saved ranges"
    return clean_text(args.path, SHOWN_MAX) or f"{args.from_bytes}-{args.to_bytes}"


def _of_device(volume: Volume, ranges: Sequence[tuple[int, int]]) -> dict[str, object]:
    return {"device": f"/dev/{volume.kernel_name}", "devno": volume.devno, "ranges": ranges}


def _cache_bytes(jobs: Iterable[WarmJob]) -> int:
    """Return how much of the cache these jobs take up once they are done."""
    return sum(job.cache_bytes for job in jobs)


def _hot_request(loop: VolumeLoop, args: IntentArgs, before_bytes: int) -> OpenRequest:
    """Ask for the hottest ranges that fit into the cache. Raises UsageError.

    `before_bytes`: of the jobs before this one, which need room as well.
    """
    volume, chunk = loop.volume, args.chunk_bytes
    end = max(each.first * chunk + (each.count - 1) * chunk for each in args.ranges)
    if end >= volume.size_bytes:
        raise UsageError(
            f"the ranges reach to {format_bytes(end + chunk)}, but {volume.title} ends at"
            f" {format_bytes(volume.size_bytes)}",
            "they are of another volume, or of a time when it was larger",
        )
    frame = loop.state.current_frame
    room = ((room_bytes(frame) if frame else None) or 0) - before_bytes
    fit = fitting(args.ranges, room // chunk)
    ranges = [(e.first * chunk, min(e.end * chunk, volume.size_bytes)) for e in fit]
    cut = chunk * (sum(e.count for e in args.ranges) - sum(e.count for e in fit))
    left = "that earlier jobs leave in" if before_bytes else "in"
    left_out = {f"beyond the room {left} the cache, the coldest": cut} if cut else {}
    return OpenRequest(_of_device(volume, ranges), left_out)


def _saved_text(found: HotSet, ranges_text: str) -> str:
    """Return how much of what is hot is in the text, and how much did not fit into it."""
    kept = part_in_text(found, ranges_text)
    said = f"{format_bytes(kept.total_bytes)} in {len(kept.ranges)} ranges"
    lost_bytes = found.total_bytes - kept.total_bytes
    return f"{said} (without {format_bytes(lost_bytes)}, the coldest)" if lost_bytes else said


def _check(loop: VolumeLoop, opened: Opened, cache_bytes: int, before_bytes: int) -> None:
    """Raises ActuationError if the volume cannot be warmed now."""
    title, frame = loop.volume.title, loop.state.current_frame
    if frame is None:
        raise ActuationError(f"{title}: nothing was measured yet", "try again in a moment")
    if not opened.total_bytes:
        left = ", ".join(f"{format_bytes(n)} {why}" for why, n in opened.left_out.items())
        raise ActuationError(f"there is nothing to warm: {left or 'it is empty'}")
    total = opened.total_bytes
    if why := obstacle(loop.volume.kind, frame, cache_bytes, before_bytes, total):
        raise ActuationError(f"{title}: {why}", f"see ebbgate status {title}")

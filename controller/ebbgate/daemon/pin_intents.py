# SPDX-License-Identifier: GPL-2.0-only
"""Carries out requests to pin and unpin files, and has pinned files touched.

I/O: sysfs, on a thread; the worker's processes. On the event loop; what takes long is awaited.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ebbgate.background import BackgroundWorker
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.cache_facts import CacheFacts, block_sizes, read_cache_facts
from ebbgate.daemon.chosen_rows import stable_uuid
from ebbgate.daemon.on_loop import refuse_on_loop
from ebbgate.daemon.pin_registry import PinRegistry
from ebbgate.daemon.pin_touches import PinTouches, kept_mount
from ebbgate.daemon.warm_intents import WarmIntents
from ebbgate.daemon.warm_process import WarmProcess, answer
from ebbgate.errors import ActuationError, EbbgateError, NotFound, Unavailable
from ebbgate.intents.pin_rows import PINS_MAX
from ebbgate.intents.validation import Intent, IntentArgs
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.log_messages.volumes import PIN_LOOK_FAILED
from ebbgate.model.override import IntentKind
from ebbgate.model.pin import CACHE_SHARE_MAX, Pin
from ebbgate.model.warm import JobStatus
from ebbgate.probes.block import cached_volumes_below
from ebbgate.probes.volume_state import cache_written_bytes
from ebbgate.text import SHOWN_MAX, clean_text
from ebbgate.units import format_bytes
from ebbgate.warm.pace import obstacle
from ebbgate.warm.pinning import Need, limit_text

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class PinIntents:
    """The pins of all volumes. `volumes`: the daemon's loops by name.

    `share`: of a cache, for all pinned files of a volume. `take_number`: returns a number for a job
    that no request has.
    """

    sysfs: Sysfs
    volumes: Mapping[str, VolumeLoop]
    registry: PinRegistry
    warm_ups: WarmIntents
    take_number: Callable[[], int]
    share: float = CACHE_SHARE_MAX
    _touches: dict[str, PinTouches] = field(default_factory=dict)
    _looking: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _ending: set[asyncio.Task[None]] = field(default_factory=set)
    _reader: BackgroundWorker = field(default_factory=lambda: BackgroundWorker("pins"))
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    # ---- requests ------------------------------------------------------------------------------
    async def pin(self, intent: Intent) -> str:
        """Pin a file and begin to warm it; return what is done. Raises EbbgateError."""
        path = intent.args.path
        await self.registry.load()
        async with self._changing:
            for pin in self.registry.pins.values():
                if pin.path == path:
                    raise ActuationError(f"{path} is pinned already", f"it is pin {pin.id}")
            if len(self.registry.pins) >= PINS_MAX:
                raise ActuationError(f"{PINS_MAX} files are pinned", "unpin one: ebbgate pins")
            found = await self._opened(path)
            loop = await self._loop_of(path, found)
            self._check_new(loop, path, found)
            need = await self._checked(loop, found)
            pin = await self.registry.add(
                Pin(
                    loop.volume.name,
                    path,
                    found["inode"],
                    found["generation"],
                    intent.who,
                    self.registry.wall_ns(),
                    kept_mount(found["mount"]),
                    device_uuid=stable_uuid(loop.volume),
                )
            )
        each = self._touches_of(loop)
        each.expect(pin, need)
        done = await each.warm(pin, "pinned just now")
        self._publish()
        return (
            f"{loop.volume.title}: {path} is pin {pin.id}, {format_bytes(need.size_bytes)}; {done}"
        )

    async def unpin(self, intent: Intent) -> str:
        """End a pin, given by number or path. Raises EbbgateError."""
        await self.registry.load()
        number, path = intent.args.pin, intent.args.path
        for pin in list(self.registry.pins.values()):
            if number in (pin.id, 0) and path in (pin.path, ""):
                self.registry.end(pin, f"{intent.who} unpinned it")
                self._publish()
                await self.registry.saved()
                return f"{pin.volume}: {pin.path} is not pinned any more"
        raise NotFound(f"{path or f'pin {number}'} is not pinned", "list them: ebbgate pins")

    # ---- events of the daemon ------------------------------------------------------------------
    def poll(self) -> None:
        """Begin to look after the pins of each volume; called about once a second."""
        self.registry.place(self.volumes)
        self._begin("", self.registry.keep_up())
        for name, each in list(self._touches.items()):
            if each.loop is not self.volumes.get(name) or not self.registry.of(name):
                del self._touches[name]
                self._end(each)
        for name in {pin.volume for pin in self.registry.pins.values()}:
            loop = self.volumes.get(name)
            if loop is not None and loop.state.current_frame is not None:
                self._begin(name, self._touches_of(loop).look())
        self._publish()

    async def stop(self) -> None:
        """End all processes with the daemon."""
        for task in self._looking.values():
            task.cancel()
        # Those that end are not cancelled: their processes would stay.
        await self.settled()
        for each in self._touches.values():
            await each.end()
        with suppress(EbbgateError):
            await self.registry.saved()

    async def settled(self) -> None:
        """Wait for the looks that are under way, and for the processes that end."""
        await asyncio.gather(*self._looking.values(), *self._ending, return_exceptions=True)

    # ---- for PinTouches ------------------------------------------------------------------------
    async def facts(self, loop: VolumeLoop) -> CacheFacts:
        """Return what the worker must know about the cache."""
        return await self._reader.run(lambda: read_cache_facts(self.sysfs, loop.volume))

    async def written_bytes(self, loop: VolumeLoop) -> int | None:
        """Return what was written to the devices of the cache since boot."""
        return await self._reader.run(lambda: cache_written_bytes(self.sysfs, loop.volume))

    async def volume_of(self, devno: tuple[int, int]) -> str | None:
        """Return the one volume on which a device lies."""
        known = {loop.volume.devno: name for name, loop in self.volumes.items()}
        names = await self._reader.run(lambda: cached_volumes_below(self.sysfs, devno, known))
        return names[0] if len(names) == 1 else None

    async def warm(self, pin: Pin) -> int:
        """Begin a warm-up; return its number. Raises EbbgateError."""
        number = self.take_number()
        args = IntentArgs(path=pin.path)
        await self.warm_ups.begin(Intent(number, IntentKind.WARM, None, f"pin {pin.id}", args))
        return number

    def job(self, number: int) -> JobStatus | None:
        """Return a warm-up; None if it is forgotten."""
        return self.warm_ups.job(number)

    # ---- details -------------------------------------------------------------------------------
    async def _opened(self, path: str) -> Mapping[str, Any]:
        """Have a worker open the file. Raises Unavailable."""
        process = await WarmProcess.start()
        try:
            sizes = block_sizes(loop.volume for loop in self.volumes.values())
            process.send({"touch": path, **sizes})
            event = await answer(process)
            if event["event"] == "missing":
                raise Unavailable(f"{path} cannot be opened: No such file or directory")
            if event["event"] != "opened":
                raise Unavailable(event["text"], event.get("hint", ""))
            return event
        finally:
            await process.end()

    async def _loop_of(self, path: str, found: Mapping[str, Any]) -> VolumeLoop:
        major, minor = found["devno"]
        name = await self.volume_of((major, minor))
        if name is None or name not in self.volumes:
            await self._reader.run(lambda: refuse_on_loop(self.sysfs, path, (major, minor)))
            raise ActuationError(
                f"{path} is not on one cached volume that ebbgated follows",
                "see ebbgate status for the volumes",
            )
        return self.volumes[name]

    def _check_new(self, loop: VolumeLoop, path: str, found: Mapping[str, Any]) -> None:
        """Raises ActuationError for a pinned file under another name: names are without end."""
        file = found["inode"], found["generation"]
        for pin in self.registry.of(loop.volume.name):
            if pin.generation is not None and (pin.inode, pin.generation) == file:
                why = f"{path} is the same file as {clean_text(pin.path, SHOWN_MAX)}"
                raise ActuationError(f"{why}, which is pinned already", f"it is pin {pin.id}")

    async def _checked(self, loop: VolumeLoop, found: Mapping[str, Any]) -> Need:
        """Return what a file takes. Raises ActuationError if it cannot be pinned."""
        title, frame, size = loop.volume.title, loop.state.current_frame, found["bytes"]
        if frame is None:
            raise ActuationError(f"{title}: nothing was measured yet", "try again in a moment")
        if not size:
            raise ActuationError("there is nothing to pin: no part of the file can be cached")
        facts = await self.facts(loop)
        need, kind = facts.need(found), loop.volume.kind
        if why := obstacle(kind, frame, need.cache_bytes, data_bytes=size):
            raise ActuationError(f"{title}: {why}", f"see ebbgate status {title}")
        used, cache = self._touches_of(loop).used(), frame.cache_bytes or facts.cache_bytes
        if why := limit_text(kind, need, used, cache, self.share):
            raise ActuationError(f"{title}: {why}", "unpin another file: ebbgate pins")
        return need

    def _touches_of(self, loop: VolumeLoop) -> PinTouches:
        found = self._touches.get(loop.volume.name)
        if found is None or found.loop is not loop:
            if found is not None:
                self._end(found)
            found = PinTouches(loop, self.registry, self, self.share, WarmProcess.start)
            self._touches[loop.volume.name] = found
        return found

    def _publish(self) -> None:
        for name, loop in self.volumes.items():
            each = self._touches.get(name)
            loop.pins = each.statuses() if each is not None else ()

    def _end(self, each: PinTouches) -> None:
        """End the process of a volume that has gone, or whose pins have."""
        task = asyncio.create_task(each.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _begin(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        """Run it, unless the last one of this key is still under way."""
        if key in self._looking:
            work.close()
            return
        task = asyncio.create_task(work)
        self._looking[key] = task
        task.add_done_callback(lambda done: self._done(key, done))

    def _done(self, key: str, task: asyncio.Task[None]) -> None:
        self._looking.pop(key, None)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, EbbgateError):
            _LOG.error(PIN_LOOK_FAILED, exc_info=error)

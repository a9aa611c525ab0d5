# SPDX-License-Identifier: GPL-2.0-only
"""The volumes of this machine: finds them, looks at each, and restores the knobs of those that go.

I/O: sysfs and device-mapper, on threads; the volumes' loops. On the event loop; it never blocks.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.background import BackgroundWorker, PatientTasks
from ebbgate.config.settings import Config
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.absent_volumes import Presence, presence
from ebbgate.daemon.override_registry import OverrideRegistry
from ebbgate.daemon.policy_follower import PolicyFollower
from ebbgate.daemon.power_watch import PowerWatch
from ebbgate.daemon.unrestored_volumes import UnrestoredVolumes
from ebbgate.intents.override_writer import OverrideWriter
from ebbgate.kernel.sysfs import BLOCK, Sysfs
from ebbgate.knobs.catalog import FLUSH, QUEUE_DEPTH
from ebbgate.knobs.places import disk_knobs
from ebbgate.log_messages.volumes import (
    DEVICE_MAPPER_BLOCKED,
    KNOB_WRITE_HANGS,
    VOLUME_FOLLOWED,
    VOLUME_GONE,
)
from ebbgate.model.status import DAEMON
from ebbgate.model.volume import NO_USERS, DiskUsers, Volume, VolumeState
from ebbgate.policy_files.active import ActivePolicies
from ebbgate.probes.disk_power import DiskPowerReader
from ebbgate.probes.disk_users import PROC, DeviceUsers, devices_in_use, disk_users
from ebbgate.probes.ebpf import track_command
from ebbgate.probes.topology import device_generation, discover
from ebbgate.probes.volume_state import read_state
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.recorder import Recorder
from ebbgate.units import NS_PER_S

_LOG = logging.getLogger("ebbgated")
_DISCOVER_NS: Final = 10 * NS_PER_S
_TRACK_AGAIN_NS: Final = 60 * NS_PER_S
"""How often a volume is tried that the probe refused; at once when another one leaves."""
_FULL_READ_NS: Final = 10 * NS_PER_S
"""How often knobs that ebbgate has not changed are read: they are only shown."""
_DROP_S: Final = 2.0
_STOP_S: Final = 10.0
"""How long all that go at once have to restore their knobs, and all volumes at the end."""
_URGENT_FACTOR: Final = 6
"""Expensive reads run 6x less often while a gate is open: an edge would wait for them."""


class VolumeReader:
    """Reads the state of one volume on a thread of its own.

    Most files of bcache take its global lock, which the kernel holds while a device is registered:
    a read may then take minutes, and must keep neither the event loop nor another volume waiting.
    The writer's `reading_since_ns` is set during a read.
    """

    def __init__(self, writer: KnobWriter) -> None:
        self._writer = writer
        self._worker = BackgroundWorker(f"read-{writer.volume.name}")

    async def read(
        self, now_ns: int, previous: VolumeState | None, fresh: Collection[str]
    ) -> VolumeState:
        """See probes.volume_state.read_state."""
        writer = self._writer

        def work() -> VolumeState:
            writer.reading_since_ns = writer.now_ns()
            try:
                return read_state(writer.sysfs, writer.volume, now_ns, previous, fresh)
            finally:
                writer.reading_since_ns = None

        return await asyncio.wrap_future(self._worker.submit(work))

    def end(self) -> None:
        """End the thread; no more reads follow."""
        self._worker.end()


_Found = tuple[tuple[Volume, ...], Mapping[str, DiskUsers], Mapping[str, VolumeState]]
"""All volumes; by name, what else is on their disks, and the states of those that are new."""


@dataclass(slots=True)
class _Followed:
    """A volume that is followed. `owned`: the knobs that were ebbgate's at the last look.

    `generation`: of its devices; another one is another registration. `full_read_ns`: when all its
    knobs were read.
    """

    loop: VolumeLoop
    reader: VolumeReader
    power: PowerWatch
    generation: tuple[int | None, ...]
    seen: VolumeState | None = None
    owned: frozenset[str] = frozenset()
    full_read_ns: int = 0


class VolumeSet:
    """`loops`: of the volumes that are followed, by name. `command`: sends the probe a line.

    `device_mapper_blocked`: why device-mapper cannot be queried; empty if it can. `presence`: what
    the last look at all devices found; None before it, and from a volume's leaving to the next one.
    `_leaving`: loops that were dropped and whose writes are not over.
    """

    def __init__(
        self,
        config: Config,
        sysfs: Sysfs,
        recorder: Recorder,
        journal: JournalWriter,
        boot_id: str,
        command: Callable[[str], None],
    ) -> None:
        self.loops: dict[str, VolumeLoop] = {}
        self.policies = ActivePolicies(config.policy_dir)
        self.follower = PolicyFollower(self.policies, self.loops)
        self.overrides = OverrideRegistry(OverrideWriter(config.overrides_path), self.loops)
        self.device_mapper_blocked = ""
        self.presence: Presence | None = None
        self.journal = journal
        self._config = config
        self.sysfs = sysfs
        self._recorder = recorder
        self._boot_id = boot_id
        self._command = command
        self._followed: dict[str, _Followed] = {}
        self._leaving: dict[str, VolumeLoop] = {}
        self._unrestored = UnrestoredVolumes()
        self._names: frozenset[str] = frozenset()
        self._discovered_ns = 0
        self._track_again_ns = 0
        self._tasks = PatientTasks()
        self._discoverer = BackgroundWorker("discover")

    @property
    def urgent(self) -> bool:
        """Whether the next request closes the gate of a volume."""
        return any(loop.urgent for loop in self.loops.values())

    # ---- looks ---------------------------------------------------------------------------------
    async def look(self, name: str, slow: bool) -> None:
        """Look at a volume and let it decide; one that hangs in the kernel delays no other one.

        `slow`: read the knobs that are ebbgate's, even while a gate is open.
        """
        await self._tasks.run(name, lambda: self._look(name, slow))

    async def _look(self, name: str, slow: bool) -> None:
        """Read on a thread, decide on the event loop."""
        followed = self._followed.get(name)
        if followed is None:
            return
        loop, now_ns = followed.loop, time.monotonic_ns()
        owned = frozenset(loop.writer.owned)
        full = now_ns - followed.full_read_ns >= self._patient(_FULL_READ_NS)
        # A knob that was restored has another value than the one that was read last.
        full = full or bool(followed.owned - owned)
        followed.owned = owned
        # Detect knob writes by others immediately; in a gap an edge would wait for that.
        ours = slow or full or not loop.urgent
        generation, was_idle, previous = loop.worker.generation, loop.worker.idle, followed.seen
        fresh = (*loop.writer.owned, "cache_mode") if ours else ()
        seen = await followed.reader.read(now_ns, None if full else previous, fresh)
        if self._followed.get(name) is not followed:
            return
        if full:
            followed.full_read_ns = now_ns
        if previous is not None and seen.state != previous.state:
            self.rediscover()
        followed.seen = seen
        loop.signals.power = followed.power.look(now_ns)
        await asyncio.sleep(0)
        if self._followed.get(name) is not followed:
            return
        # Compared last: a knob that ebbgate wrote meanwhile was not written by somebody else.
        unmoved = was_idle and loop.worker.idle and loop.worker.generation == generation
        loop.on_tick(seen, knobs_settled=ours and unmoved)

    def _patient(self, period_ns: int) -> int:
        return period_ns * (_URGENT_FACTOR if self.urgent else 1)

    # ---- discovery -----------------------------------------------------------------------------
    def rediscover(self) -> None:
        """Look at all devices at the next opportunity."""
        self._discovered_ns = 0

    async def discover_when_due(self, now_ns: int) -> None:
        """Look at all devices, which is expensive, when one came or went, and now and then."""
        names = self.sysfs.names(BLOCK) | self.sysfs.names("/sys/fs/bcache")
        due = now_ns - self._discovered_ns >= self._patient(_DISCOVER_NS)
        for name in list(self._leaving):
            self._finish_leaving(name)
        self._unrestored.try_when_due(now_ns)
        reborn = [
            (name, each.loop)
            for name, each in self._followed.items()
            if device_generation(self.sysfs, each.loop.volume) != each.generation
        ]
        # The kernel, not a user, has changed their knobs.
        await self._drop(reborn)
        if reborn or names != self._names or not self._discovered_ns or due:
            self._names, self._discovered_ns = names, now_ns
            await self._tasks.run("", self.discover)

    async def discover(self) -> None:
        """Follow the volumes that have come, and no more those that are gone or changed."""
        submit = self._discoverer.submit
        known = [loop.volume for loop in self.loops.values()]
        volumes, users, states = await asyncio.wrap_future(submit(lambda: self._find(known)))
        found = {volume.name: volume for volume in volumes}
        self._log_device_mapper(await asyncio.wrap_future(submit(self.sysfs.dm.blocked)))
        await self._drop(
            (name, loop)
            for name, loop in list(self.loops.items())
            # During a cleaning ebbgate's own table is loaded.
            if found.get(name) != loop.volume and not (loop.cleaning and name in found)
        )
        self._track_refused(time.monotonic_ns())
        for name, volume in found.items():
            if volume.cached and not self._is_written(name):
                self._add(volume, states.get(name))
        for name, loop in self.loops.items():
            loop.set_disk_users(users.get(name, NO_USERS))
        self.presence = presence(volumes, self.device_mapper_blocked)

    def _is_written(self, name: str) -> bool:
        """Return whether a loop follows a volume of this name, or still restores its knobs."""
        return name in self.loops or name in self._leaving or self._unrestored.may_write(name)

    def _track_refused(self, now_ns: int) -> None:
        """Ask the probe again to follow the volumes that it refused: it may have room by now."""
        if now_ns < self._track_again_ns:
            return
        self._track_again_ns = now_ns + _TRACK_AGAIN_NS
        for loop in self.loops.values():
            if loop.signals.refused:
                self._command(track_command(loop.volume))
                loop.resend_probe_settings()

    def _find(self, known: Collection[Volume]) -> _Found:
        """Look at all devices; on a thread, since a read may wait for bcache's lock."""
        users, now_ns = DeviceUsers(discover(self.sysfs), devices_in_use(PROC)), time.monotonic_ns()
        found, sysfs = users.volumes, self.sysfs
        shared = (each for each in found if disk_knobs(each, QUEUE_DEPTH))
        new = (each for each in found if each.cached and each not in known)
        return (
            found,
            {each.name: disk_users(sysfs, each, users) for each in shared},
            {each.name: read_state(sysfs, each, now_ns) for each in new},
        )

    def _log_device_mapper(self, blocked: str) -> None:
        """Log once that dm volumes cannot be tuned."""
        if blocked and blocked != self.device_mapper_blocked:
            _LOG.error(DEVICE_MAPPER_BLOCKED, blocked)
        self.device_mapper_blocked = blocked

    def _add(self, volume: Volume, seen: VolumeState | None) -> None:
        writer = KnobWriter(self.sysfs, volume, self.journal, self._boot_id, first_seen=seen)
        mode = self.overrides.chosen.of(volume) or self._config.mode_of(*volume.names)
        # Before its policy: of a schedule that begins between the two, the next look takes notice.
        self.follower.added(volume)
        policy = self.policies.policy_of(volume)
        parts = (volume, writer, policy, self._recorder, self._command, mode)
        loop = VolumeLoop(*parts, call_later=_later)
        self.loops[volume.name] = loop
        generation = device_generation(self.sysfs, volume)
        power = PowerWatch(volume.name, DiskPowerReader(self.sysfs, volume.disks))
        self._followed[volume.name] = _Followed(loop, VolumeReader(writer), power, generation)
        self.overrides.adopt(volume.name)
        words = (volume.title, volume.kind, volume.backing.name, loop.mode, policy.name)
        _LOG.info(VOLUME_FOLLOWED, *words)
        self._restore_leftovers(loop)
        self._command(track_command(volume))
        loop.probe_restarted()

    def _restore_leftovers(self, loop: VolumeLoop) -> None:
        """Restore what an earlier daemon changed and could not be restored at the start."""
        self.journal.keep_unrestored(self._unrestored.hand_over(loop.volume.name))
        left = self.journal.take_unrestored(loop.volume.name)
        for entry, values in left:
            loop.writer.adopt(entry, values)
        if left:
            loop.release("left by an earlier ebbgated")

    # ---- the end -------------------------------------------------------------------------------
    async def _drop(self, gone: Iterable[tuple[str, VolumeLoop]]) -> None:
        """Restore what is left of volumes that are gone, detached or put together anew.

        They share the time: the writes of all may hang together, and the watchdog does not wait.
        """
        leaving = [(name, loop) for name, loop in gone if self._leave(name, loop)]
        until_s = time.monotonic() + _DROP_S
        for name, loop in leaving:
            # On a thread: a write that hangs must not silence the event loop.
            left_s = max(0.0, until_s - time.monotonic())
            if not await asyncio.to_thread(loop.worker.stop, left_s):
                _LOG.error(KNOB_WRITE_HANGS, name)
            self._finish_leaving(name)
            if name not in self.loops:
                self._recorder.drop_live(name)

    def _leave(self, name: str, loop: VolumeLoop) -> bool:
        """Begin to restore a volume that is not followed any more; False: another task has."""
        if self.loops.get(name) is not loop:
            return False
        self.presence = None
        self._track_again_ns = 0
        del self.loops[name]
        followed = self._followed.pop(name)
        followed.reader.end()
        followed.power.end()
        _LOG.info(VOLUME_GONE, name)
        self._command(f"untrack {name}")
        loop.overrides.abandon("the volume is gone")
        loop.release("the volume is gone or changed")
        loop.worker.stop(0.0)
        self._leaving[name] = loop
        return True

    def _finish_leaving(self, name: str) -> None:
        """Forget a dropped loop whose writes are over, and look for its volume again.

        Until then no other loop follows a volume of this name: both would write the same.
        """
        loop = self._leaving.get(name)
        if loop is not None and loop.worker.stop(0.0):
            del self._leaving[name]
            self._unrestored.keep(loop)
            self.rediscover()

    async def stop_looks(self) -> None:
        """Cancel the looks that are under way."""
        await self._tasks.stop()

    def release_all(self) -> list[str]:
        """Restore every knob, on the volumes' threads side by side; return the volumes of which
        something is not restored.
        """
        for loop in self.loops.values():
            loop.release("ebbgated stops")
        until_s, left = time.monotonic() + _STOP_S, []
        for name, loop in (self.loops | self._leaving).items():
            left_s = 0.0 if _only_flushes(loop) else max(0.0, until_s - time.monotonic())
            if not loop.worker.stop(left_s) and not _only_flushes(loop):
                _LOG.error(KNOB_WRITE_HANGS, name)
            if loop.writer.unrestored:
                left.append(name)
            self._recorder.drop_live(name)
        self._unrestored.try_at_end(max(1.0, until_s - time.monotonic()))
        self._recorder.drop_live(DAEMON)
        return [*left, *self._unrestored.names]


def _only_flushes(loop: VolumeLoop) -> bool:
    """Return whether the kernel writes dm-writecache back, which takes long, and nothing is left to
    be restored.
    """
    write = loop.writer.current_write
    return write is not None and write[0] == FLUSH and not loop.writer.unrestored


def _later(after_ns: int, call: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(after_ns / NS_PER_S, call)

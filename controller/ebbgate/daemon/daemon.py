# SPDX-License-Identifier: GPL-2.0-only
"""All volumes of a machine: finds them, runs the probe, ticks, puts everything back in the end.

I/O: everything, through its parts. No network socket at all.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import time
from collections.abc import Callable, Collection
from typing import Any

from ebbgate import __version__
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.background import BackgroundWorker
from ebbgate.config.settings import Config
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.control.volume_reader import VolumeReader
from ebbgate.daemon.hang_watch import HangWatch
from ebbgate.daemon.intent_dispatcher import ENDED, IntentDispatcher
from ebbgate.daemon.loop_silence import LoopSilence
from ebbgate.daemon.mapper_watch import MapperWatch
from ebbgate.daemon.override_registry import OverrideRegistry
from ebbgate.daemon.patient_tasks import PatientTasks
from ebbgate.daemon.policy_follower import PolicyFollower
from ebbgate.daemon.priority import Priority
from ebbgate.daemon.sd_notify import Watchdog
from ebbgate.errors import ActuationError
from ebbgate.intents.override_writer import OverrideWriter
from ebbgate.intents.server import ControlServer
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.model.records import Edge, ProbeWarning, Record, Untracked
from ebbgate.model.volume import Mode, Volume, VolumeState
from ebbgate.policy_files.active import PolicyBook
from ebbgate.probes.ebpf import EbpfProbe, track_command
from ebbgate.probes.topology import device_generation, discover
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.queries_intents import last_number
from ebbgate.store.recorder import Recorder
from ebbgate.units import NS_PER_MS, NS_PER_S

_LOG = logging.getLogger("ebbgated")
_DISCOVER_NS = 10 * NS_PER_S
_SLOW_NS = NS_PER_S - 50 * NS_PER_MS
"""What people ask for and the list of devices are looked at once a second."""
_FULL_READ_NS = 10 * NS_PER_S
"""Knobs that are not ours are only shown."""
_DROP_S = 2.0
_STOP_S = 10.0
"""So long the volumes have, all together, to put their knobs back at the end."""
_PATIENCE = 6
"""So many times rarer is all that is dear while a gate is open: an edge would wait for it."""


class Daemon:
    """All volumes of a machine. One event loop owns everything but the gate threads.

    `silence`: of that loop, where it is measured.
    """

    def __init__(
        self,
        config: Config,
        sysfs: Sysfs,
        recorder: Recorder,
        journal: JournalWriter,
        boot_id: str,
        silence: LoopSilence | None = None,
    ) -> None:
        self.config = config
        self.sysfs = sysfs
        self.recorder = recorder
        self.journal = journal
        self.boot_id = boot_id
        self.volumes: dict[str, VolumeLoop] = {}
        self.seen: dict[str, VolumeState] = {}
        self.probe = EbpfProbe(config.probe_path, self.on_record, self.on_probe_restart)
        self.silence = silence or LoopSilence()
        self.policies = PolicyBook(config.policy_dir)
        self._follower = PolicyFollower(self.policies, self.volumes)
        self.overrides = OverrideRegistry(OverrideWriter(config.overrides_path), self.volumes)
        self.overrides.load()
        first = _first_number(last_number(config.history_path))
        recorder.abandon_intents(first, ENDED)
        self.intents = IntentDispatcher(self, self.overrides, recorder, config.history_path, first)
        self.control = ControlServer(config.socket_path, self.intents.submit)
        self.watchdog = Watchdog()
        self.priority = Priority(0, recorder.thread_id)
        self.started_wall_ns = time.time_ns()
        self._stop = asyncio.Event()
        self._discovered_ns = 0
        self._slow_ns = 0
        self._there: frozenset[str] = frozenset()
        self._born: dict[str, tuple[int | None, ...]] = {}
        self._full_ns: dict[str, int] = {}
        self._held: dict[str, frozenset[str]] = {}
        self._leaving: dict[str, VolumeLoop] = {}
        self._looks = PatientTasks()
        self._readers: dict[str, VolumeReader] = {}
        self._discoverer = BackgroundWorker("discover")
        self._mapper = MapperWatch()
        self.hangs = HangWatch(lambda: [loop.writer for loop in [*self.volumes.values()]])

    async def run(self) -> None:
        """Until SIGTERM or SIGINT. Everything is restored on the way out, whatever happened."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        self.control.start()
        probe = asyncio.create_task(self.probe.run())
        ticks = asyncio.create_task(self._tick_forever())
        stop = asyncio.create_task(self._stop.wait())
        # What is loaded by now stays: a collection that walks it all would hold up an edge.
        gc.freeze()
        self.hangs.start()
        try:
            self.watchdog.ready()
            self.silence.begin()
            done, _ = await asyncio.wait({probe, ticks, stop}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self.watchdog.stopping()
            # In this order: who waits for an outcome is told before the connections end.
            await self.intents.stop()
            await self.control.stop()
            ticks.cancel()
            stop.cancel()
            await self.probe.stop()
            probe.cancel()
            await asyncio.gather(probe, ticks, stop, return_exceptions=True)
            await self._looks.stop()
            left = await asyncio.to_thread(self._release_all)
            self.hangs.stop()
        if left:
            raise ActuationError(
                f"not every knob of {', '.join(left)} could be put back",
                "their originals are still kept: run ebbgate restore",
            )

    def _reload(self) -> None:
        """SIGHUP: read the policies again; start a probe that was given up."""
        self._follower.begin(again=True)
        self.probe.retry()

    # ---- records -------------------------------------------------------------------------------
    def on_record(self, record: Record) -> None:
        """A record from the probe."""
        if isinstance(record, ProbeWarning):
            # A random load pushes streams out of the table all the time: shown by status, not news.
            level = logging.DEBUG if record.what == "streams" else logging.WARNING
            _LOG.log(level, "probe: %s: %s (%d so far)", record.what, record.text, record.count)
            self.probe.health.complaints[record.what] = record.text
            return
        volume = self.volumes.get(getattr(record, "volume", ""))
        if volume is None:
            return
        if isinstance(record, Untracked) and record.why == "vanished":
            self._discovered_ns = 0
            return
        volume.on_record(record)
        if isinstance(record, Edge):
            self._set_priority()

    def _set_priority(self) -> None:
        self.priority.set(urgent=any(volume.urgent for volume in self.volumes.values()))

    def on_probe_restart(self) -> None:
        """A new child knows nothing: tell it everything again."""
        self.probe.command(f"tick {self.config.tick_ns}")
        for volume in self.volumes.values():
            self.probe.command(track_command(volume.volume))
            volume.probe_restarted()

    # ---- ticks ---------------------------------------------------------------------------------
    async def _tick_forever(self) -> None:
        period_s = self.config.tick_ns / NS_PER_S
        due = time.monotonic()
        while True:
            await self._tick()
            # A late tick is not made up for: the next one is a period from now.
            due = max(due + period_s, time.monotonic() + period_s / 4)
            await asyncio.sleep(due - time.monotonic())

    async def _tick(self) -> None:
        """In parts: an edge that comes meanwhile waits for one of them only."""
        now_ns = time.monotonic_ns()
        slow = now_ns - self._slow_ns >= _SLOW_NS
        if slow:
            self._slow_ns = now_ns
            await self._discover_when_due(now_ns)
            await _let_others()
            self._follower.begin()
            self._follower.apply()
            await _let_others()
            self.control.look()
            self.intents.poll()
            await _let_others()
        for name in list(self.volumes):
            await self._tick_volume(name, slow)
        self._set_priority()
        if slow:
            await _let_others()
            self._tell_state()
        self.watchdog.alive()

    async def _tick_volume(self, name: str, slow: bool) -> None:
        """A volume that hangs in the kernel keeps no other one waiting."""
        await self._looks.run(name, lambda: self._look_at(name, slow))

    async def _look_at(self, name: str, slow: bool) -> None:
        """Read on a thread, decide on the event loop."""
        volume, now_ns = self.volumes.get(name), time.monotonic_ns()
        if volume is None:
            return
        held = frozenset(volume.writer.owned)
        full = now_ns - self._full_ns.get(name, 0) >= self._patient(_FULL_READ_NS)
        # A knob that was given back has another value than the one that was read last.
        full = full or bool(self._held.get(name, held) - held)
        self._held[name] = held
        # Detect knob writes by others immediately; in a gap an edge would wait for the look.
        ours = slow or full or not volume.urgent
        before = volume.worker.generation
        was_quiet = volume.worker.idle
        previous = self.seen.get(name)
        fresh = (*volume.writer.owned, "cache_mode") if ours else ()
        seen = await self._readers[name].read(now_ns, None if full else previous, fresh)
        if self.volumes.get(name) is not volume:
            return
        if full:
            self._full_ns[name] = now_ns
        if previous is not None and seen.state != previous.state:
            self._discovered_ns = 0
        self.seen[name] = seen
        await _let_others()
        if name not in self.volumes:
            return
        # After all who had their turn: a knob that was written meanwhile is no foreign one.
        unmoved = was_quiet and volume.worker.idle and volume.worker.generation == before
        volume.on_tick(seen, knobs_settled=ours and unmoved)

    async def follow_policies(self) -> None:
        """Take over what has changed in the folder."""
        await self._follower.follow()

    async def _discover_when_due(self, now_ns: int) -> None:
        """A look at all devices is dear: when one came or went, and now and then."""
        there = self.sysfs.names("/sys/block") | self.sysfs.names("/sys/fs/bcache")
        due = now_ns - self._discovered_ns >= self._patient(_DISCOVER_NS)
        reborn = [
            name
            for name, loop in self.volumes.items()
            if device_generation(self.sysfs, loop.volume) != self._born[name]
        ]
        for name in reborn:
            # Registered anew: its knobs are the kernel's again, not by a user.
            await self._drop(name)
        if reborn or there != self._there or not self._discovered_ns or due:
            self._there, self._discovered_ns = there, now_ns
            await self._looks.run("", self._discover)

    def _patient(self, period_ns: int) -> int:
        return period_ns * (_PATIENCE if self.priority.urgent else 1)

    async def _discover(self) -> None:
        reader = self._discoverer
        volumes = await asyncio.wrap_future(reader.submit(lambda: discover(self.sysfs)))
        found = {volume.name: volume for volume in volumes}
        self._mapper.take(await asyncio.wrap_future(reader.submit(self.sysfs.dm.blocked)))
        for name, loop in list(self.volumes.items()):
            # While it is cleaned its table is ours.
            if found.get(name) != loop.volume and not (loop.cleaning and name in found):
                await self._drop(name)
        for name, volume in found.items():
            if name not in self.volumes and volume.cached:
                self._add(volume)

    def _add(self, volume: Volume) -> None:
        writer = KnobWriter(self.sysfs, volume, self.journal, self.boot_id)
        mode = self.overrides.modes.get(volume.name) or self.config.mode_of(volume.name)
        loop = VolumeLoop(
            volume,
            writer,
            self.policies.policy_of(volume),
            self.recorder,
            self.probe.command,
            mode=mode,
            call_later=_later,
        )
        self.volumes[volume.name] = loop
        self._readers[volume.name] = VolumeReader(writer)
        self._born[volume.name] = device_generation(self.sysfs, volume)
        self._follower.added(volume)
        self.overrides.adopt(volume.name)
        over, policy = volume.backing.name, loop.policy.name
        _LOG.info(
            "%s: %s over %s, mode %s, policy %s", volume.title, volume.kind, over, mode, policy
        )
        self._put_back_again(loop)
        self.probe.command(track_command(volume))
        loop.probe_restarted()

    def _put_back_again(self, loop: VolumeLoop) -> None:
        """What an earlier daemon left and could not be put back at the start is tried again."""
        left = self.journal.take_left(loop.volume.name)
        for entry, values in left:
            loop.writer.adopt(entry, values)
        if left:
            loop.release("left by an earlier ebbgated")

    async def _drop(self, name: str) -> None:
        """Gone, detached, or put together anew: what is left of its knobs gets its originals."""
        loop = self.volumes.pop(name)
        self._readers.pop(name).end()
        _LOG.info("%s: gone or changed; no longer followed", name)
        self.probe.command(f"untrack {name}")
        loop.overrides.abandon("the volume is gone")
        loop.release("the volume is gone or changed")
        self._leaving[name] = loop
        # Not on the loop: a write that hangs must not make it silent.
        if await asyncio.to_thread(loop.worker.stop, _DROP_S):
            self.journal.leave_behind([held.entry for held in loop.writer.owned.values()])
        else:
            _LOG.error("%s: a write of a knob hangs in the kernel", name)
        self._leaving.pop(name, None)
        self.recorder.drop_live(name)
        self.seen.pop(name, None)
        self._born.pop(name, None)
        self._held.pop(name, None)

    def _tell_state(self) -> None:
        document: dict[str, Any] = {
            "pid": os.getpid(),
            "version": __version__,
            "boot_id": self.boot_id,
            "started_unix_ns": self.started_wall_ns,
            "tick_ns": self.config.tick_ns,
            "history": self.recorder.health(),
            "intents_error": self.overrides.writer.error or self.control.problem,
            "control": self.control.document(),
            "loop_silence": self.silence.told(),
            "device_mapper": self._mapper.blocked or None,
            "policies": self.policies.told(),
            "probe": self.probe.health.document(),
        }
        self.recorder.live("", document)

    # ---- what people want (called by the dispatcher) -------------------------------------------
    async def publish(self, names: Collection[str]) -> None:
        """Look at these volumes and tell the recorder how they are now."""
        for name in names:
            if name in self.volumes and name in self.seen:
                await self._tick_volume(name, slow=True)
            if name in self.volumes:
                self.volumes[name].publish()
        self._tell_state()

    def restore_volume(self, name: str) -> str:
        """Put a volume's knobs back and stop acting on it: back to advise."""
        self.volumes[name].set_mode(Mode.ADVISE, "asked for by a person")
        self.volumes[name].release("asked for by a person")
        return f"{name}: every knob is back; mode advise"

    def _release_all(self) -> list[str]:
        """Put every knob back, on the threads of the volumes side by side; the volumes of which
        something is not back.
        """
        for loop in self.volumes.values():
            loop.release("ebbgated stops")
        until_s, left = time.monotonic() + _STOP_S, []
        for name, loop in (self.volumes | self._leaving).items():
            if not loop.worker.stop(max(0.0, until_s - time.monotonic())):
                _LOG.error("%s: a write of a knob hangs in the kernel", name)
                left.append(name)
            elif loop.writer.owned:
                left.append(name)
            self.recorder.drop_live(name)
        self.recorder.drop_live("")
        return left


def _first_number(last: int | None) -> int:
    """Of requests: one more than the last; where that is not known, one that is surely greater."""
    return int(time.time()) if last is None else last + 1


async def _let_others() -> None:
    """What has come in meanwhile is handled now."""
    await asyncio.sleep(0)


def _later(after_ns: int, call: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(after_ns / NS_PER_S, call)

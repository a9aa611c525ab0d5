# SPDX-License-Identifier: GPL-2.0-only
"""Runs the probe, the volumes and the control socket on one event loop; restores all at the end.

I/O: everything, through its parts. No network socket.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
import time
from collections.abc import Collection

from ebbgate import __version__
from ebbgate.config.settings import Config
from ebbgate.control.volume_loop import EACH_SECOND_NS, VolumeLoop
from ebbgate.daemon.absent_volumes import Presence
from ebbgate.daemon.cgroup_names import CgroupNames
from ebbgate.daemon.hang_watch import HangWatch
from ebbgate.daemon.head_returns import HeadReturns
from ebbgate.daemon.intent_dispatcher import ENDED, IntentDispatcher
from ebbgate.daemon.layout_reader import LayoutReader
from ebbgate.daemon.loop_silence import LoopSilence
from ebbgate.daemon.priority import Priority
from ebbgate.daemon.probe_warnings import ProbeWarnings
from ebbgate.daemon.promotion_movers import PromotionMovers
from ebbgate.daemon.sd_notify import Watchdog
from ebbgate.daemon.volume_set import VolumeSet
from ebbgate.errors import ActuationError
from ebbgate.intents.server import ControlServer
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.log_messages.service import DAEMON_READY, DAEMON_STOPPED, PROBE_WARNING
from ebbgate.model.records import (
    Edge,
    ProbeWarning,
    QueueSample,
    Record,
    Tracked,
    TrackRefused,
    Untracked,
)
from ebbgate.model.status import ABSENT_SHOWN_MAX, DAEMON, DaemonStatus
from ebbgate.model.volume import Mode
from ebbgate.probes.ebpf import EbpfProbe, track_command
from ebbgate.probes.protocol import NOT_TRACKED, REFUSED
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.queries_intents import last_number
from ebbgate.store.recorder import Recorder
from ebbgate.units import NS_PER_S

_LOG = logging.getLogger("ebbgated")


class Daemon:
    """One event loop owns everything except the knobs' threads; `silence` measures that loop."""

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
        self.boot_id = boot_id
        self.probe = EbpfProbe(
            config.probe_path, self.on_record, self.on_probe_restart, self.on_probe_end
        )
        self._warnings = ProbeWarnings()
        self.silence = silence or LoopSilence()
        self.volume_set = VolumeSet(config, sysfs, recorder, journal, boot_id, self.probe.command)
        self.policies = self.volume_set.policies
        self.overrides = self.volume_set.overrides
        self.volumes = self.volume_set.loops
        # A daemon that was killed has dropped none.
        recorder.clear_live()
        first = _first_number(last_number(config.history_path))
        recorder.abandon_intents(first, ENDED)
        self.intents = IntentDispatcher(
            *(self, self.overrides, recorder, config.history_path, first), config.pin_limit
        )
        self.layouts = LayoutReader(sysfs, self.volumes)
        self.cgroups = CgroupNames(self.volumes)
        self.movers = PromotionMovers(sysfs, self.volumes)
        self.heads = HeadReturns(self.volumes, time.monotonic_ns)
        self.control = ControlServer(config.socket_path, self.intents.submit)
        self.watchdog = Watchdog(tick_ns=config.tick_ns)
        self.priority = Priority(threading.get_native_id())
        self.started_wall_ns = time.time_ns()
        self._stop = asyncio.Event()
        self._slow_ns = 0
        self.hangs = HangWatch(lambda: [loop.writer for loop in [*self.volumes.values()]])

    async def run(self) -> None:
        """Run until `stop`; every knob is restored at the end, whatever happened."""
        await self.overrides.load()
        self.control.start()
        probe = asyncio.create_task(self.probe.run())
        ticks = asyncio.create_task(self._tick_forever())
        pings = asyncio.create_task(self.watchdog.run())
        stop = asyncio.create_task(self._stop.wait())
        tasks = {probe, ticks, pings, stop}
        # Exclude what is loaded by now from garbage collection, which would delay an edge.
        gc.freeze()
        self.hangs.start()
        try:
            self.watchdog.ready()
            _LOG.info(DAEMON_READY, __version__)
            self.silence.begin()
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self.watchdog.stopping()
            pings.cancel()
            # In this order: requests are answered before the connections end.
            await self.intents.stop()
            await self.movers.stop()
            await self.heads.stop()
            await self.control.stop()
            await self.layouts.stop()
            ticks.cancel()
            stop.cancel()
            await self.probe.stop()
            probe.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.volume_set.stop_looks()
            left = await asyncio.to_thread(self.volume_set.release_all)
            self.hangs.stop()
        if left:
            raise ActuationError(
                f"some knobs of {', '.join(left)} could not be restored",
                "their original values stay saved: run ebbgate restore",
            )
        _LOG.info(DAEMON_STOPPED)

    def stop(self) -> None:
        """End `run`."""
        self._stop.set()

    def reload(self) -> None:
        """Read the policies again and start a probe that was given up."""
        self.volume_set.follower.begin(again=True)
        self.probe.retry()

    # ---- records -------------------------------------------------------------------------------
    def on_record(self, record: Record) -> None:
        """Take a record from the probe."""
        if isinstance(record, ProbeWarning):
            self._on_warning(record)
            return
        volume = self.volumes.get(getattr(record, "volume", ""))
        if volume is None:
            return
        if isinstance(record, Untracked) and record.why == "vanished":
            self.volume_set.rediscover()
            return
        if isinstance(record, TrackRefused | Tracked):
            self._on_tracked(volume, record)
        volume.on_record(record)
        if isinstance(record, Edge):
            self._set_priority()
            self.intents.warm.on_edge(record)
            self.movers.on_edge(record)
            self.heads.on_edge(record)
        elif isinstance(record, QueueSample):
            self.heads.follow(record.volume)

    def _on_tracked(self, loop: VolumeLoop, record: TrackRefused | Tracked) -> None:
        """Report a refusal once, however often it is repeated, and until the probe follows."""
        if isinstance(record, Tracked):
            complaints, prefix = self.probe.health.complaints, f"{loop.volume.title}: "
            if complaints.get(REFUSED, "").startswith(prefix):
                del complaints[REFUSED]
        elif record.why != loop.signals.refused:
            text = f"{loop.volume.title}: {record.why}"
            self._on_warning(ProbeWarning(record.at_ns, REFUSED, 1, text))

    def _on_warning(self, record: ProbeWarning) -> None:
        if record.what == NOT_TRACKED:
            # The reason came before.
            return
        # A random load pushes streams out of the table all the time: `status --json` has it.
        level = logging.DEBUG if record.what == "streams" else logging.WARNING
        if self._warnings.is_news(record):
            _LOG.log(level, PROBE_WARNING, record.what, record.text, record.count)
        self.probe.health.complaints[record.what] = record.text

    def _set_priority(self) -> None:
        self.priority.set(urgent=self.volume_set.urgent)

    def on_probe_restart(self) -> None:
        """Send a new probe all settings, since it has none."""
        self.probe.command(f"tick {self.config.tick_ns}")
        for volume in self.volumes.values():
            self.probe.command(track_command(volume.volume))
            volume.probe_restarted()

    def on_probe_end(self) -> None:
        """Forget what the probe saw: nobody tells any more when users return."""
        for volume in self.volumes.values():
            volume.signals.on_probe_restart()

    # ---- ticks ---------------------------------------------------------------------------------
    async def _tick_forever(self) -> None:
        period_s = self.config.tick_ns / NS_PER_S
        due = time.monotonic()
        while True:
            await self._tick()
            # A late tick is not made up for: the next one follows a period from now.
            due = max(due + period_s, time.monotonic() + period_s / 4)
            await asyncio.sleep(due - time.monotonic())

    async def _tick(self) -> None:
        """Work in parts: an edge that comes meanwhile waits for one of them only."""
        now_ns = time.monotonic_ns()
        # Requests, policies and the list of devices are checked once a second.
        slow = now_ns - self._slow_ns >= EACH_SECOND_NS
        if slow:
            self._slow_ns = now_ns
            await self.volume_set.discover_when_due(now_ns)
            await _let_others()
            self.volume_set.follower.begin()
            self.volume_set.follower.apply()
            await _let_others()
            self.control.look()
            self.overrides.poll()
            self.intents.warm.poll()
            self.intents.pins.poll()
            self.layouts.poll()
            self.cgroups.poll()
            self.movers.poll()
            await _let_others()
        for name in list(self.volumes):
            await self.volume_set.look(name, slow)
            self.intents.warm.on_tick(name)
            self.movers.on_tick(name)
            self.heads.follow(name)
        self._set_priority()
        if slow:
            await _let_others()
            self.send_status()
        self.watchdog.ticked()

    async def follow_policies(self) -> None:
        """Apply what has changed in the folder of policies."""
        await self.volume_set.follower.follow()

    def send_status(self) -> None:
        """Send the daemon's own status to the recorder."""
        absent = self.intents.absent.volumes()
        status = DaemonStatus(
            pid=os.getpid(),
            version=__version__,
            boot_id=self.boot_id,
            started_unix_ns=self.started_wall_ns,
            tick_ns=self.config.tick_ns,
            history=self.recorder.health(),
            intents_error=self.overrides.writer.error or self.control.problem,
            control=self.control.status(),
            loop_silence=self.silence.report(),
            device_mapper=self.volume_set.device_mapper_blocked or None,
            policies=self.policies.status(),
            probe=self.probe.health.status(),
            absent=None if absent is None else absent[:ABSENT_SHOWN_MAX],
            absent_count=None if absent is None else len(absent),
        )
        self.recorder.live(DAEMON, status)

    # ---- called by the dispatcher --------------------------------------------------------------
    async def publish(self, names: Collection[str]) -> None:
        """Read these volumes and send their status to the recorder."""
        for name in names:
            if name in self.volumes and self.volumes[name].last_seen is not None:
                await self.volume_set.look(name, slow=True)
            if name in self.volumes:
                self.volumes[name].publish()
        self.send_status()

    def presence(self) -> Presence | None:
        """Return what the last look at all devices found; None while that is not known."""
        return self.volume_set.presence

    def restore_volume(self, name: str) -> str:
        """Restore a volume's knobs and set its mode to advise; return what was done."""
        self.volumes[name].set_mode(Mode.ADVISE, "requested by a user")
        self.volumes[name].release("requested by a user")
        return f"{name}: all knobs restored; mode advise"


def _first_number(last: int | None) -> int:
    """Return the next request number; if the last is unknown, one that is surely greater."""
    return int(time.time()) if last is None else last + 1


async def _let_others() -> None:
    """Handle what has come in meanwhile."""
    await asyncio.sleep(0)

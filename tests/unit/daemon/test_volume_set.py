# SPDX-License-Identifier: GPL-2.0-only
"""Volumes that go and come back with the kernel's defaults get what is still wanted, no more."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event

import pytest

from ebbgate.actuators.gate_worker import GateWorker
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.actuators.ownership import identify
from ebbgate.config.settings import Config
from ebbgate.daemon import volume_set
from ebbgate.daemon.daemon import Daemon
from ebbgate.model.decision import JournalEntry, Outcome
from ebbgate.model.override import Override, OverrideKind
from ebbgate.model.volume import Mode
from ebbgate.probes.volume_state import read_knobs
from ebbgate.store import journal
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten
from ebbgate.store.recorder import Recorder
from ebbgate.units import MIB, NS_PER_S
from tests.builders import journal_entry, tick, volume
from tests.fake_sysfs import NO_DM, SET_UUID, FakeSysfs, WatchedSysfs, fake_bcache
from tests.volume_loop_fixture import DEADLINE_S
from tests.waiting import until

FOLDERS = (
    "/sys/devices/virtual/block/bcache0",
    "/sys/devices/pci0/vda/block/vda/bcache",
    "/sys/devices/pci0/vdb/block/vdb/bcache",
    f"/sys/fs/bcache/{SET_UUID}",
)
LINKS = ("/sys/block/bcache0", "/sys/class/block/bcache0", "/sys/dev/block/252:0")


class VolumeSetHarness:
    """A daemon on a fake machine whose volume comes and goes; no probe is started."""

    def __init__(self, folder: Path, mode: Mode) -> None:
        self.folder = folder
        self.fake: FakeSysfs = fake_bcache(folder / "sys")
        self.sysfs = WatchedSysfs(folder / "sys", NO_DM)
        (folder / "state").mkdir(parents=True)
        self.recorder = Recorder(folder / "state/history.db")
        self.last_written = LastWritten(folder / "last-written")
        self.journal = JournalWriter(folder / "state/journal.db", self.last_written)
        config = Config(
            folder / "state",
            folder / "no-probe",
            mode=mode,
            runtime_dir=folder / "run",
            policy_dir=folder / "policies.d",
        )
        self.daemon = Daemon(config, self.sysfs, self.recorder, self.journal, "this boot")
        self.before = self.knobs()
        self.gone = 0

    def knobs(self) -> dict[str, str]:
        return dict(read_knobs(self.sysfs, volume()))

    def vanish(self) -> None:
        """As at a stop. What was is kept aside, so that no node gets its number again."""
        self.gone += 1
        for link in LINKS:
            self.fake.sysfs.locate(link).unlink()
        for number, folder in enumerate(FOLDERS):
            aside = self.folder / f"gone-{self.gone}-{number}"
            self.fake.sysfs.locate(folder).rename(aside)

    def appear(self) -> None:
        """As at a registration: the kernel's defaults."""
        self.fake.bcache()

    def leave_original(self, path: str) -> JournalEntry:
        """Have the journal that an earlier daemon left: `writeback_delay` was 30, then 0."""
        device = identify(self.sysfs, path)
        entry = journal_entry(
            "writeback_delay",
            original="30",
            last_written="0",
            device_uuid=device.uuid,
            instance=device.instance,
        )
        self.journal.put(entry)
        self.journal.stop()
        state = self.folder / "state/journal.db"
        self.journal = JournalWriter(state, self.last_written, (), [entry])
        self.daemon.volume_set.journal = self.journal
        return entry

    def override(self, knob: str, value: str, *, for_ns: int | None = None) -> Override:
        now = time.time_ns()
        until = None if for_ns is None else now + for_ns
        override = Override(OverrideKind.SET, "bcache0", "jo", now, until, knob, value)
        registry = self.daemon.overrides
        kept = registry.writer.submit(lambda database: database.add((override,))).result(DEADLINE_S)
        registry.enforce(kept)
        return kept[0]

    async def looks(self, count: int = 3) -> None:
        """So many seconds, each with a look at the devices, a record of the probe, and a tick."""
        for _ in range(count):
            await self.daemon.volume_set.discover_when_due(time.monotonic_ns())
            for name, loop in list(self.daemon.volumes.items()):
                now_ns = time.monotonic_ns()
                self.daemon.on_record(tick(ns=now_ns, state="busy", last_ns=now_ns))
                await self.daemon.volume_set.look(name, slow=True)
                deadline = time.monotonic() + DEADLINE_S
                while not loop.worker.idle:
                    assert time.monotonic() < deadline
                    await asyncio.sleep(0.001)

    def stop(self) -> None:
        self.daemon.volume_set.release_all()
        self.recorder.stop()
        self.journal.stop()
        self.last_written.close()


@pytest.fixture
def make_harness(tmp_path: Path) -> Iterator[Callable[[Mode], VolumeSetHarness]]:
    made: list[VolumeSetHarness] = []

    def build(mode: Mode) -> VolumeSetHarness:
        made.append(VolumeSetHarness(tmp_path, mode))
        return made[-1]

    yield build
    for harness in made:
        harness.stop()


@pytest.fixture
def harness(make_harness: Callable[[Mode], VolumeSetHarness]) -> VolumeSetHarness:
    return make_harness(Mode.ENFORCE)


def shown(harness: VolumeSetHarness) -> Mapping[str, str]:
    seen = harness.daemon.volumes["bcache0"].last_seen
    assert seen is not None
    return seen.knobs


def tuned(harness: VolumeSetHarness) -> bool:
    return harness.knobs()["writeback_percent"] == "40"


def open_entries(harness: VolumeSetHarness) -> set[str]:
    harness.journal.flush()
    return {entry.knob for entry in journal.read(harness.folder / "state/journal.db")}


async def test_a_volume_that_comes_back_is_tuned_again(harness: VolumeSetHarness) -> None:
    await harness.looks()
    assert tuned(harness)
    harness.vanish()
    await harness.looks()
    assert harness.daemon.volumes == {}
    assert open_entries(harness) == set()
    harness.appear()
    assert not tuned(harness)
    await harness.looks()
    assert tuned(harness)
    assert harness.daemon.volumes["bcache0"].writer.manual == set()


async def test_a_volume_registered_again_between_two_reads_is_tuned_again(
    harness: VolumeSetHarness,
) -> None:
    await harness.looks()
    old = harness.daemon.volumes["bcache0"]
    harness.vanish()
    harness.appear()
    await harness.looks()
    assert harness.daemon.volumes["bcache0"] is not old
    assert tuned(harness)
    assert harness.daemon.volumes["bcache0"].writer.manual == set()
    assert harness.daemon.volumes["bcache0"].writer.owned["writeback_percent"].original == "10"


async def test_an_override_comes_back_with_its_volume(
    make_harness: Callable[[Mode], VolumeSetHarness],
) -> None:
    harness = make_harness(Mode.ADVISE)
    await harness.looks()
    harness.override("sequential_cutoff", str(MIB))
    await harness.looks()
    assert harness.knobs() == {**harness.before, "sequential_cutoff": str(MIB)}
    harness.vanish()
    await harness.looks()
    harness.appear()
    await harness.looks()
    assert harness.knobs() == {**harness.before, "sequential_cutoff": str(MIB)}


@pytest.mark.parametrize("how", ["released", "timed out"])
async def test_an_override_that_is_over_meanwhile_does_not_come_back(
    make_harness: Callable[[Mode], VolumeSetHarness], how: str
) -> None:
    harness = make_harness(Mode.ADVISE)
    await harness.looks()
    override = harness.override("sequential_cutoff", str(MIB), for_ns=60 * NS_PER_S)
    await harness.looks()
    harness.vanish()
    await harness.looks()
    registry = harness.daemon.overrides
    if how == "released":
        registry.end(override, "jo released it")
    else:
        registry.now_ns = lambda: time.monotonic_ns() + 61 * NS_PER_S
    harness.appear()
    await harness.looks()
    assert harness.knobs() == harness.before
    assert harness.sysfs.log == [("sequential_cutoff", str(MIB))]


async def test_an_override_ends_in_time_where_its_volume_is_recognized_late(
    make_harness: Callable[[Mode], VolumeSetHarness],
) -> None:
    harness = make_harness(Mode.ADVISE)
    await harness.looks()
    override = harness.override("sequential_cutoff", str(MIB), for_ns=60 * NS_PER_S)
    assert override.device_uuid == ""
    registry = harness.daemon.overrides
    # The wall clock was set back meanwhile.
    registry.now_ns = lambda: time.monotonic_ns() + 61 * NS_PER_S
    registry.adopt("bcache0")
    await harness.looks()
    assert harness.knobs() == harness.before


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.ADVISE])
async def test_without_a_policy_that_acts_nothing_comes_back(
    make_harness: Callable[[Mode], VolumeSetHarness], mode: Mode
) -> None:
    harness = make_harness(mode)
    await harness.looks()
    harness.vanish()
    await harness.looks()
    harness.appear()
    await harness.looks()
    assert harness.sysfs.log == []


async def test_a_volume_that_comes_back_without_its_cache_is_left_alone(
    harness: VolumeSetHarness,
) -> None:
    await harness.looks()
    harness.vanish()
    await harness.looks()
    harness.sysfs.log.clear()
    harness.fake.bcache(cache=None)
    await harness.looks()
    assert harness.sysfs.log == []
    assert harness.daemon.volumes == {}


async def test_an_inconsistent_volume_gets_neither_policy_nor_override(
    harness: VolumeSetHarness,
) -> None:
    harness.fake.write("/sys/block/bcache0/bcache/state", "inconsistent")
    await harness.looks(1)
    harness.override("sequential_cutoff", str(MIB))
    await harness.looks()
    assert harness.knobs() == harness.before
    assert harness.sysfs.log == []


# ---- two volumes on one disk ---------------------------------------------------------------------
async def test_volumes_on_one_disk_are_told_of_each_other_and_of_their_end(
    harness: VolumeSetHarness,
) -> None:
    harness.fake.partition("vda", "vda9", "254:9")
    harness.fake.disk("vdc", "254:32", rotational=False)
    uuid = SET_UUID.replace("5", "6")
    harness.fake.bcache("bcache1", backing="vda9", cache="vdc", devno="252:1", set_uuid=uuid)
    await harness.daemon.volume_set.discover()
    loops = harness.daemon.volumes
    users = [loops[name].writer.disk_users.volumes for name in ("bcache0", "bcache1")]
    assert users == [("bcache1",), ("bcache0",)]
    harness.fake.sysfs.locate("/sys/block/bcache1").unlink()
    await harness.daemon.volume_set.discover()
    assert list(loops) == ["bcache0"]
    assert loops["bcache0"].writer.disk_users.volumes == ()


# ---- what an earlier daemon left -----------------------------------------------------------------
async def test_the_daemon_restores_what_failed_at_its_start(
    make_harness: Callable[[Mode], VolumeSetHarness], tmp_path: Path
) -> None:
    """In whatever mode the volume is: nothing of ebbgate's is left without a reason."""
    harness = make_harness(Mode.ADVISE)
    path = "/sys/block/bcache0/bcache/writeback_delay"
    harness.leave_original(path)
    harness.fake.write(path, "0")
    await harness.looks()
    until(lambda: harness.fake.read(path) == "30")
    assert open_entries(harness) == set()


def hang_writer(worker: GateWorker, let_go: Event) -> None:
    """Hang, as a write to bcache does while it registers a device.

    It has begun when this returns: what is asked for earlier, such as a release, may go first.
    """
    begun = Event()

    def job(_: KnobWriter) -> list[Outcome]:
        begun.set()
        let_go.wait(20)
        return []

    worker.submit("hangs", job)
    assert begun.wait(DEADLINE_S)


async def test_a_volume_that_hangs_and_goes_keeps_the_loop_answering(
    harness: VolumeSetHarness,
) -> None:
    let_go = Event()
    try:
        await harness.looks()
        hang_writer(harness.daemon.volumes["bcache0"].worker, let_go)
        harness.vanish()
        silent_s, last_s = 0.0, time.monotonic()
        harness.daemon.volume_set.rediscover()
        gone = asyncio.ensure_future(
            harness.daemon.volume_set.discover_when_due(time.monotonic_ns())
        )
        while not gone.done():
            await asyncio.sleep(0.01)
            silent_s = max(silent_s, time.monotonic() - last_s)
            last_s = time.monotonic()
        assert silent_s < 1, "2 s were waited for on the loop itself"
        assert harness.daemon.volumes == {}
    finally:
        let_go.set()


async def test_a_stop_waits_for_all_volumes_at_once_and_names_those_that_are_not_back(
    harness: VolumeSetHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volume_set, "_STOP_S", 0.5)
    let_go = Event()
    try:
        await harness.looks()
        hang_writer(harness.daemon.volumes["bcache0"].worker, let_go)
        begun_s = time.monotonic()
        assert await asyncio.to_thread(harness.daemon.volume_set.release_all) == ["bcache0"]
        assert time.monotonic() - begun_s < 5
    finally:
        let_go.set()


async def test_a_hanging_read_is_awaited_once_and_repeated_later(
    harness: VolumeSetHarness,
) -> None:
    file = harness.fake.sysfs.locate("/sys/block/bcache0/bcache/dirty_data").resolve()
    aside = file.with_name("aside")
    await harness.looks()
    looked = harness.daemon.volumes["bcache0"].last_seen
    file.rename(aside)
    # Whoever opens it to read waits in the kernel until somebody opens it to write.
    os.mkfifo(file)
    begun_s = time.monotonic()
    await harness.daemon.volume_set.look("bcache0", slow=True)
    await harness.daemon.volume_set.look("bcache0", slow=True)
    assert time.monotonic() - begun_s < 2, "a late look was waited for twice"
    loop = harness.daemon.volumes["bcache0"]
    assert loop.last_seen is looked
    with file.open("w") as writing:
        writing.write("0\n")
    aside.replace(file)
    deadline = time.monotonic() + DEADLINE_S
    while loop.last_seen is looked:
        assert time.monotonic() < deadline
        await harness.looks(1)


async def test_a_released_knob_has_its_present_value_at_the_next_read(
    harness: VolumeSetHarness,
) -> None:
    await harness.looks()
    assert shown(harness)["writeback_percent"] == "40"
    harness.daemon.volumes["bcache0"].set_mode(Mode.ADVISE, "a test")
    await harness.looks(1)
    await harness.looks(1)
    assert shown(harness)["writeback_percent"] == "10"

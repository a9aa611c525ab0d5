# SPDX-License-Identifier: GPL-2.0-only
"""A volume that is registered again, or dropped, is never written by the loop of the old one."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

from ebbgate.daemon import volume_set
from ebbgate.model.records import Edge
from ebbgate.model.volume import Mode
from ebbgate.units import MIB, NS_PER_MS
from tests.builders import busy_edge, idle_edge, tick
from tests.fake_sysfs import SET_UUID
from tests.unit.daemon.test_volume_set import VolumeSetHarness, hang_writer, open_entries, tuned
from tests.volume_loop_fixture import DEADLINE_S
from tests.waiting import until


class InstancesHarness(VolumeSetHarness):
    """Two volumes on one disk may be there. `let_go`: ends what hangs, with the test."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, Mode.ENFORCE)
        self.let_go: list[Event] = []

    def add_second(self) -> None:
        self.fake.partition("vda", "vda9", "254:9")
        self.fake.disk("vdc", "254:32", rotational=False)
        uuid = SET_UUID.replace("5", "6")
        self.fake.bcache("bcache1", backing="vda9", cache="vdc", devno="252:1", set_uuid=uuid)

    def renew_second(self) -> None:
        """Register the second volume again: the kernel makes another folder."""
        real = self.sysfs.real("/sys/block/bcache1/bcache")
        assert real is not None
        folder = self.sysfs.locate(real)
        shutil.copytree(folder.rename(folder.with_name("old")), folder, symlinks=True)

    def stop(self) -> None:
        for each in self.let_go:
            each.set()
        super().stop()


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InstancesHarness]:
    monkeypatch.setattr(volume_set, "_DROP_S", 0.3)
    made = InstancesHarness(tmp_path)
    yield made
    made.stop()


async def turns(done: Callable[[], bool]) -> None:
    """Let other tasks go on until it is done."""
    deadline = time.monotonic() + DEADLINE_S
    while not done():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


async def take(harness: VolumeSetHarness, edge: Edge) -> None:
    """Take an edge, and wait for the writes that follow from it."""
    harness.daemon.on_record(edge)
    await turns(lambda: harness.daemon.volumes["bcache0"].worker.idle)


def now_ms() -> int:
    return time.monotonic_ns() // NS_PER_MS


async def test_the_gate_of_the_old_registration_does_not_close_on_the_new_one(
    harness: InstancesHarness,
) -> None:
    await harness.looks()
    await take(harness, idle_edge(now_ms()))
    assert harness.knobs()["writeback_percent"] == "0"
    harness.vanish()
    harness.appear()
    await take(harness, busy_edge(now_ms()))
    assert harness.knobs() == harness.before
    await harness.looks()
    owned = harness.daemon.volumes["bcache0"].writer.owned
    assert owned["writeback_percent"].original == "10"
    assert harness.knobs()["writeback_percent"] == "40"


def hang(harness: InstancesHarness, name: str = "bcache0") -> Event:
    """Keep the writer of a volume busy until the event."""
    let_go = Event()
    harness.let_go.append(let_go)
    hang_writer(harness.daemon.volumes[name].worker, let_go)
    return let_go


async def test_a_volume_whose_old_writer_hangs_is_followed_once_that_has_ended(
    harness: InstancesHarness,
) -> None:
    await harness.looks()
    let_go = hang(harness)
    harness.vanish()
    harness.appear()
    await harness.looks()
    assert harness.daemon.volumes == {}
    assert harness.knobs() == harness.before
    let_go.set()
    deadline = time.monotonic() + DEADLINE_S
    while not harness.daemon.volumes:
        assert time.monotonic() < deadline
        await harness.looks(1)
    await harness.looks()
    assert tuned(harness)
    assert "writeback_percent" in open_entries(harness)
    harness.daemon.volumes["bcache0"].release("a test")
    await harness.looks(0)
    until(lambda: harness.knobs() == harness.before)


async def test_a_stop_names_a_volume_whose_old_writer_still_hangs(
    harness: InstancesHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volume_set, "_STOP_S", 0.2)
    await harness.looks()
    hang(harness)
    harness.vanish()
    await harness.looks(1)
    assert await asyncio.to_thread(harness.daemon.volume_set.release_all) == ["bcache0"]


async def test_volumes_that_hang_and_go_together_share_the_time_to_wait_for_them(
    harness: InstancesHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volume_set, "_DROP_S", 1.0)
    harness.add_second()
    volumes = harness.daemon.volume_set
    await volumes.discover()
    hang(harness)
    hang(harness, "bcache1")
    harness.vanish()
    harness.appear()
    harness.renew_second()
    begun_s = time.monotonic()
    await volumes.discover_when_due(time.monotonic_ns())
    assert time.monotonic() - begun_s < 1.8, "the watchdog waits for no more than ten seconds"
    assert harness.daemon.volumes == {}


async def test_a_volume_may_be_dropped_while_another_is(harness: InstancesHarness) -> None:
    """A look at all devices waits for the first one, and the tick drops the second meanwhile."""
    harness.add_second()
    volumes = harness.daemon.volume_set
    await volumes.discover()
    first, second = harness.daemon.volumes.values()
    let_go = hang(harness)
    for name in ("bcache0", "bcache1"):
        harness.fake.sysfs.locate(f"/sys/block/{name}").unlink()
    discovery = asyncio.ensure_future(volumes.discover())
    await turns(lambda: first.volume.name not in harness.daemon.volumes)
    tick = asyncio.ensure_future(volumes.discover_when_due(time.monotonic_ns()))
    await turns(lambda: second.volume.name not in harness.daemon.volumes)
    let_go.set()
    await asyncio.gather(discovery, tick)
    assert harness.daemon.volumes == {}


async def test_only_the_loop_that_was_looked_at_is_dropped(harness: InstancesHarness) -> None:
    """Both tasks find the same volume registered again; the faster one follows it anew."""
    harness.add_second()
    volumes = harness.daemon.volume_set
    await volumes.discover()
    old = harness.daemon.volumes["bcache1"]
    let_go = hang(harness)
    harness.vanish()
    harness.appear()
    harness.renew_second()
    ticks = [
        asyncio.ensure_future(volumes.discover_when_due(time.monotonic_ns())) for _ in range(2)
    ]
    await turns(lambda: harness.daemon.volumes.get("bcache1", old) is not old)
    new = harness.daemon.volumes["bcache1"]
    let_go.set()
    await asyncio.gather(*ticks)
    assert harness.daemon.volumes["bcache1"] is new


async def test_an_override_survives_a_look_before_a_new_registration_is_noticed(
    harness: InstancesHarness,
) -> None:
    await harness.looks()
    override = harness.override("sequential_cutoff", str(MIB))
    await harness.looks()
    harness.vanish()
    harness.appear()
    now_ns = time.monotonic_ns()
    harness.daemon.on_record(tick(ns=now_ns, state="busy", last_ns=now_ns))
    await harness.daemon.volume_set.look("bcache0", slow=False)
    await harness.looks(4)
    assert harness.knobs()["sequential_cutoff"] == str(MIB)
    assert list(harness.daemon.overrides.active) == [override.id]
    assert harness.daemon.volumes["bcache0"].writer.manual == set()

# SPDX-License-Identifier: GPL-2.0-only
"""Mapped volumes: what is found, what is read, what is written, on a fake machine."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.actuators.bcache_steps import write
from ebbgate.actuators.gate_plan import plan_for, split_steps
from ebbgate.actuators.ownership import identify
from ebbgate.actuators.restore import restore
from ebbgate.errors import NotFound
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.knobs.catalog import MAX_SECTORS, THRESHOLD, knob_path
from ebbgate.model.decision import Gate, GateKind, JournalEntry, OutcomeKind
from ebbgate.model.volume import Kind, Volume
from ebbgate.probes.ebpf import track_command
from ebbgate.probes.recording import SysfsSnapshot, read_recording, sysfs_line
from ebbgate.probes.topology import discover, find
from ebbgate.probes.volume_state import read_state
from ebbgate.units import KIB
from tests.fake_dm import FakeCache, FakeDm, fake_lvm
from tests.fake_journal import FakeJournal
from tests.fake_sysfs import NO_DM, FakeSysfs, fake_bcache

WRITECACHE = FakeCache(kind="writecache", table="s 253:4 253:2 4096 0", line="0 1000 400 16")


@pytest.fixture
def fake(tmp_path: Path) -> FakeSysfs:
    made = FakeSysfs(tmp_path)
    made.disk("vda", "254:0")
    made.disk("vdb", "254:16", rotational=False)
    return made


def machine(fake: FakeSysfs, *devices: FakeCache) -> tuple[Sysfs, FakeDm]:
    dm = fake_lvm(fake, *devices)
    return Sysfs(fake.root, dm), dm


def test_a_volume_is_found_with_all_of_its_devices(fake: FakeSysfs) -> None:
    sysfs, _ = machine(fake)
    (volume,) = discover(sysfs)
    assert (volume.name, volume.title, volume.kernel_name) == ("vg-data", "vg/data", "dm-0")
    assert (volume.kind, volume.cached) == (Kind.DM_CACHE, True)
    assert [device.name for device in (volume.backing, *volume.caches)] == ["dm-4", "dm-2"]
    assert volume.metadata is not None
    assert volume.metadata.name == "dm-3"
    assert volume.mapping is not None
    assert volume.mapping.block_sectors == 128


@pytest.mark.parametrize("name", ["vg-data", "vg/data", "dm-0"])
def test_it_goes_by_each_of_its_names(fake: FakeSysfs, name: str) -> None:
    sysfs, _ = machine(fake)
    found = find(sysfs, name)
    assert found.name == "vg-data"
    assert found.is_called(name)


@pytest.mark.parametrize("name", ["", "vg", "data", "dm-", "dm-2", "/dev/vg/data", "VG/data"])
def test_it_goes_by_no_other_name(fake: FakeSysfs, name: str) -> None:
    sysfs, _ = machine(fake)
    assert not find(sysfs, "vg/data").is_called(name)


def test_a_part_of_it_is_not_the_volume(fake: FakeSysfs) -> None:
    sysfs, _ = machine(fake)
    with pytest.raises(NotFound, match="dm-2 is a cache device of vg/data") as caught:
        find(sysfs, "dm-2")
    assert "vg/data" in (caught.value.hint or "")


def test_bcache_and_device_mapper_stand_side_by_side(tmp_path: Path) -> None:
    fake = fake_bcache(tmp_path)
    sysfs, _ = machine(fake)
    assert [volume.name for volume in discover(sysfs)] == ["bcache0", "vg-data"]


def test_a_bare_name_that_the_probe_cannot_take_goes_by_its_kernel_name(fake: FakeSysfs) -> None:
    sysfs, _ = machine(fake, FakeCache(name="my cache", uuid=""))
    (volume,) = discover(sysfs)
    assert (volume.name, volume.title) == ("dm-0", "dm-0")


def test_who_may_not_ask_finds_nothing(fake: FakeSysfs) -> None:
    _, dm = machine(fake)
    dm.allowed = False
    assert discover(Sysfs(fake.root, dm)) == ()


def test_a_device_that_vanishes_between_two_looks_is_left_out(fake: FakeSysfs) -> None:
    class Fleeting(FakeDm):
        def table(self, ref: str) -> tuple[()]:
            raise OSError(errno.ENXIO, "No such device or address", ref)

    fake_lvm(fake)
    assert discover(Sysfs(fake.root, Fleeting(FakeCache()))) == ()


def test_the_state_is_that_of_the_status_line(fake: FakeSysfs) -> None:
    sysfs, _ = machine(fake, FakeCache(dirty=16, used=7264))
    state = read_state(sysfs, find(sysfs, "vg/data"), 5)
    assert (state.state, state.cache_mode) == ("dirty", "writeback")
    assert (state.dirty_bytes, state.cache_bytes) == (16 * 64 * KIB, 14528 * 64 * KIB)
    assert state.in_use_ratio == 0.5
    assert state.knobs == {THRESHOLD: "2048", MAX_SECTORS: "1280"}


@pytest.mark.parametrize(
    ("device", "word"),
    [
        (FakeCache(dirty=0), "clean"),
        (FakeCache(end="rw needs_check"), "needs_check"),
        (FakeCache(end="ro -"), "read-only"),
        (FakeCache(line="Fail"), "failed"),
        (FakeCache(suspended=True), "suspended"),
        (FakeCache(line="something else"), None),
        (WRITECACHE, "dirty"),
    ],
)
def test_what_ails_it_is_its_state(fake: FakeSysfs, device: FakeCache, word: str | None) -> None:
    sysfs, dm = machine(fake, FakeCache(kind=device.kind, table=device.table))
    volume = find(sysfs, "vg/data")
    dm.devices = [device]
    state = read_state(sysfs, volume, 5)
    assert state.state == word
    if word in (None, "failed", "suspended"):
        assert (state.dirty_bytes, dict(state.knobs)) == (None, {})


@pytest.mark.parametrize("device", [FakeCache(), WRITECACHE])
def test_a_recording_keeps_the_whole_state(fake: FakeSysfs, device: FakeCache) -> None:
    sysfs, _ = machine(fake, device)
    state = read_state(sysfs, find(sysfs, "vg/data"), 5)
    (seen,) = read_recording([sysfs_line("vg-data", state)])
    assert isinstance(seen, SysfsSnapshot)
    assert seen.state == state


def test_a_writecache_has_no_knob(fake: FakeSysfs) -> None:
    sysfs, _ = machine(fake, WRITECACHE)
    volume = find(sysfs, "vg/data")
    assert volume.kind is Kind.DM_WRITECACHE
    assert read_state(sysfs, volume, 5).dirty_bytes == 600 * 4096
    assert knob_path(volume, THRESHOLD) is None
    assert plan_for(volume).steps(Gate(GateKind.CLOSED)) == ()


def test_the_gate_is_the_number_of_blocks_under_way(fake: FakeSysfs) -> None:
    sysfs, _ = machine(fake)
    plan = plan_for(find(sysfs, "vg/data"))
    assert plan.steps(Gate(GateKind.CLOSED, 512)) == (write(THRESHOLD, 0),)
    assert plan.steps(Gate(GateKind.PACED, depth_ios=4)) == (write(THRESHOLD, 512),)
    assert plan.steps(Gate(GateKind.PACED)) == (write(THRESHOLD, 128),)
    with pytest.raises(ValueError, match="pulsed"):
        plan.steps(Gate(GateKind.PULSED))


def test_streams_are_split_below_a_block(fake: FakeSysfs) -> None:
    sysfs, _ = machine(fake)
    assert split_steps(find(sysfs, "vg/data")) == (write(MAX_SECTORS, 32),)


def entry_of(volume: Volume) -> JournalEntry:
    path = str(knob_path(volume, THRESHOLD))
    return JournalEntry(volume.name, THRESHOLD, path, "2048", "0", "this boot", 1, "idle_destage")


def identified(sysfs: Sysfs, entry: JournalEntry, instance: int | None = None) -> JournalEntry:
    """As a daemon journals it; `instance`: of another life of the device."""
    device = identify(sysfs, entry.path)
    known = device.instance if instance is None else instance
    return replace(entry, device_uuid=device.uuid, instance=known)


def test_a_renamed_volume_gets_its_threshold_back(fake: FakeSysfs) -> None:
    sysfs, dm = machine(fake, FakeCache(threshold=0))
    journal = FakeJournal([entry_of(find(sysfs, "vg/data"))])
    dm.devices[0].name = "vg-other"
    (outcome,) = restore(journal, sysfs, "this boot")
    assert (outcome.kind, dm.devices[0].threshold) == (OutcomeKind.CHANGED, 2048)
    assert journal.open == {}


def test_a_volume_that_is_gone_took_its_threshold_along(fake: FakeSysfs) -> None:
    sysfs, dm = machine(fake)
    journal = FakeJournal([entry_of(find(sysfs, "vg/data"))])
    dm.devices.clear()
    (outcome,) = restore(journal, sysfs, "this boot")
    assert (outcome.kind, outcome.error) == (
        OutcomeKind.UNCHANGED,
        "the device is gone",
    )


def test_a_refused_message_keeps_the_original_for_the_next_try(fake: FakeSysfs) -> None:
    sysfs, _ = machine(fake, FakeCache(threshold=0, refuses=errno.EBUSY))
    journal = FakeJournal([entry_of(find(sysfs, "vg/data"))])
    (outcome,) = restore(journal, sysfs, "this boot")
    assert outcome.kind is OutcomeKind.FAILED
    assert list(journal.open) == [THRESHOLD]


@pytest.mark.parametrize(
    "number", [errno.EACCES, errno.ENOMEM, errno.EIO, errno.EINTR, errno.EBUSY, errno.ENOSPC]
)
@pytest.mark.parametrize("call", ["status", "device", "message"])
def test_a_call_that_fails_keeps_the_original(fake: FakeSysfs, call: str, number: int) -> None:
    sysfs, dm = machine(fake, FakeCache(threshold=0))
    journal = FakeJournal([identified(sysfs, entry_of(find(sysfs, "vg/data")))])
    dm.fails[call] = number
    (outcome,) = restore(journal, sysfs, "this boot")
    assert (outcome.kind, os.strerror(number) in outcome.error) == (OutcomeKind.FAILED, True)
    assert list(journal.open) == [THRESHOLD]
    dm.fails.clear()
    (outcome,) = restore(journal, sysfs, "this boot")
    assert (outcome.kind, dm.devices[0].threshold) == (OutcomeKind.CHANGED, 2048)


def test_without_a_control_device_nothing_is_known_to_be_gone(fake: FakeSysfs) -> None:
    sysfs, _ = machine(fake, FakeCache(threshold=0))
    journal = FakeJournal([identified(sysfs, entry_of(find(sysfs, "vg/data")))])
    (outcome,) = restore(journal, Sysfs(fake.root, NO_DM), "this boot")
    assert outcome.kind is OutcomeKind.FAILED
    assert "device-mapper cannot be asked" in outcome.error
    assert list(journal.open) == [THRESHOLD]


def test_an_administrators_threshold_stays(fake: FakeSysfs) -> None:
    sysfs, dm = machine(fake, FakeCache(threshold=7777))
    journal = FakeJournal([identified(sysfs, entry_of(find(sysfs, "vg/data")))])
    (outcome,) = restore(journal, sysfs, "this boot")
    assert (outcome.kind, outcome.read_back) == (OutcomeKind.MANUAL, "7777")
    assert (dm.devices[0].threshold, dm.devices[0].messages, journal.open) == (7777, [], {})


def test_a_snapshot_s_origin_under_the_old_name_gets_no_message(fake: FakeSysfs) -> None:
    """The cache goes on under another uuid, with the threshold of its new table."""
    sysfs, dm = machine(fake, FakeCache(threshold=0))
    journal = FakeJournal([identified(sysfs, entry_of(find(sysfs, "vg/data")))])
    dm.devices[0].kind = "snapshot-origin"
    (outcome,) = restore(journal, sysfs, "this boot")
    assert (outcome.kind, journal.open) == (OutcomeKind.UNCHANGED, {})
    assert dm.devices[0].messages == []


def test_a_device_of_the_same_uuid_that_was_activated_again_is_another_one(
    fake: FakeSysfs,
) -> None:
    sysfs, dm = machine(fake, FakeCache(threshold=0))
    journal = FakeJournal([identified(sysfs, entry_of(find(sysfs, "vg/data")), instance=1)])
    (outcome,) = restore(journal, sysfs, "this boot")
    assert "created again" in outcome.error
    assert (dm.devices[0].messages, journal.open) == ([], {})


def test_a_device_without_a_uuid_is_found_under_its_new_name_only(fake: FakeSysfs) -> None:
    old = FakeCache(uuid="", threshold=0)
    sysfs, dm = machine(fake, old)
    entry = identified(sysfs, entry_of(find(sysfs, "vg-data")))
    assert entry.path == f"dm:vg-data/{THRESHOLD}"
    old.name = "moved"
    dm.devices.append(FakeCache(uuid="", devno=(253, 4), threshold=0))
    journal = FakeJournal([entry])
    (outcome,) = restore(journal, sysfs, "this boot")
    assert outcome.kind is OutcomeKind.CHANGED
    assert (old.threshold, dm.devices[1].threshold) == (2048, 0)


def test_the_probe_is_told_kind_devices_and_mode(fake: FakeSysfs) -> None:
    sysfs, _ = machine(fake)
    assert track_command(find(sysfs, "vg/data")) == (
        "track vg-data kind=dm-cache volume=253:0 cache=253:2 backing=253:4 mode=writeback"
    )


def test_a_writecache_has_one_mode(fake: FakeSysfs) -> None:
    sysfs, _ = machine(fake, WRITECACHE)
    assert track_command(find(sysfs, "vg/data")) == (
        "track vg-data kind=dm-writecache volume=253:0 cache=253:2 backing=253:4"
    )

# SPDX-License-Identifier: GPL-2.0-only
"""The state of a dm volume comes from its status line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.knobs.catalog import MAX_SECTORS, THRESHOLD
from ebbgate.probes.recording import SysfsSnapshot, read_recording, sysfs_line
from ebbgate.probes.topology import find
from ebbgate.probes.volume_state import read_state
from ebbgate.units import KIB
from tests.fake_dm import WRITECACHE, FakeCache, lvm_disks, lvm_machine
from tests.fake_sysfs import FakeSysfs


@pytest.fixture
def fake(tmp_path: Path) -> FakeSysfs:
    return lvm_disks(tmp_path)


def test_the_state_of_a_dm_cache_comes_from_its_status_line(fake: FakeSysfs) -> None:
    sysfs, _ = lvm_machine(fake, FakeCache(dirty=16, used=7264))
    state = read_state(sysfs, find(sysfs, "vg/data"), 5)
    assert (state.state, state.cache_mode) == ("dirty", "writeback")
    assert (state.dirty_bytes, state.cache_bytes) == (16 * 64 * KIB, 14528 * 64 * KIB)
    assert state.in_use_ratio == 0.5
    of_the_disk = {
        "queue_depth:vda": "32",
        "scheduler:vda": "mq-deadline",
        "max_sectors_kb:vda": "1280",
        "nr_requests:vda": "64",
        "wbt_lat_usec:vda": "75000",
    }
    assert state.knobs == {THRESHOLD: "2048", MAX_SECTORS: "1280", **of_the_disk}


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
def test_a_fault_is_the_state(fake: FakeSysfs, device: FakeCache, word: str | None) -> None:
    sysfs, dm = lvm_machine(fake, FakeCache(kind=device.kind, table=device.table))
    volume = find(sysfs, "vg/data")
    dm.devices = [device]
    state = read_state(sysfs, volume, 5)
    assert state.state == word
    if word in (None, "failed", "suspended"):
        assert (state.dirty_bytes, dict(state.knobs)) == (None, {})


@pytest.mark.parametrize("device", [FakeCache(), WRITECACHE])
def test_a_recording_keeps_all_that_is_decided_on(fake: FakeSysfs, device: FakeCache) -> None:
    sysfs, _ = lvm_machine(fake, device)
    state = read_state(sysfs, find(sysfs, "vg/data"), 5)
    (seen,) = read_recording([sysfs_line("vg-data", state)])
    assert isinstance(seen, SysfsSnapshot)
    assert seen.state == state


@pytest.mark.parametrize("device", [FakeCache(dirty=16), FakeCache(dirty=0), WRITECACHE])
def test_a_volume_without_a_disk_says_so_and_what_is_dirty(
    fake: FakeSysfs, device: FakeCache
) -> None:
    sysfs, _ = lvm_machine(fake, device)
    volume = replace(find(sysfs, "vg/data"), diskless=True)
    state = read_state(sysfs, volume, 5)
    assert state.state == "diskless"
    assert state.dirty_bytes is not None

# SPDX-License-Identifier: GPL-2.0-only
"""The state of a bcache volume comes from sysfs; a missing file leaves its field unknown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.knobs.places import knobs_of
from ebbgate.probes.volume_state import read_state
from ebbgate.units import GIB, MIB
from tests.builders import device, volume
from tests.fake_sysfs import SET_UUID, FakeSysfs, fake_bcache

OWN = "/sys/block/bcache0/bcache"
SET = f"/sys/fs/bcache/{SET_UUID}"


@pytest.fixture
def fake(tmp_path: Path) -> FakeSysfs:
    return fake_bcache(tmp_path / "sys")


def test_levels_are_bytes_and_ratios(fake: FakeSysfs) -> None:
    state = read_state(fake.sysfs, volume(), now_ns=7)
    assert (state.at_ns, state.state, state.cache_mode) == (7, "dirty", "writeback")
    assert (state.dirty_bytes, state.cache_bytes) == (420 * MIB, GIB)
    assert state.in_use_ratio == pytest.approx(0.42)


def test_every_knob_is_read_in_the_kernels_unit(fake: FakeSysfs) -> None:
    knobs = read_state(fake.sysfs, volume(), now_ns=0).knobs
    assert set(knobs) == {knob.name for knob in knobs_of(volume()) if knob.readable}
    assert knobs["queue_depth:vda"] == "32"
    assert knobs["sequential_cutoff"] == "4194304"
    assert knobs["writeback_rate"] == "8"
    assert knobs["writeback_rate_minimum"] == "8"
    assert knobs["readahead_cache_policy"] == "all"
    assert knobs["idle_max_writeback_rate"] == "1"


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (f"{OWN}/state", "state"),
        (f"{OWN}/cache_mode", "cache_mode"),
        (f"{OWN}/dirty_data", "dirty_bytes"),
        (f"{SET}/cache_available_percent", "in_use_ratio"),
        (f"{SET}/bucket_size", "cache_bytes"),
        (f"{SET}/cache0/nbuckets", "cache_bytes"),
    ],
)
def test_a_missing_file_makes_its_field_unknown(fake: FakeSysfs, path: str, field: str) -> None:
    fake.remove(path)
    assert getattr(read_state(fake.sysfs, volume(), now_ns=0), field) is None


def test_a_missing_knob_is_left_out(fake: FakeSysfs) -> None:
    fake.remove(f"{OWN}/writeback_consider_fragment")
    assert "writeback_consider_fragment" not in read_state(fake.sysfs, volume(), 0).knobs


def test_an_odd_size_is_unknown(fake: FakeSysfs) -> None:
    fake.write(f"{OWN}/dirty_data", "lots")
    assert read_state(fake.sysfs, volume(), 0).dirty_bytes is None


def test_a_volume_without_cache_has_its_own_knobs_only(tmp_path: Path) -> None:
    fake = FakeSysfs(tmp_path)
    fake.disk("vda", "254:0")
    fake.bcache(cache=None, files={"state": "no cache"})
    state = read_state(fake.sysfs, volume(set_uuid=""), now_ns=0)
    assert (state.state, state.cache_bytes, state.in_use_ratio) == ("no cache", None, None)
    assert "sequential_cutoff" in state.knobs
    assert "idle_max_writeback_rate" not in state.knobs


def test_a_vanished_volume_reads_as_unknown_throughout(tmp_path: Path) -> None:
    state = read_state(FakeSysfs(tmp_path).sysfs, volume(), now_ns=0)
    assert (state.state, state.dirty_bytes, dict(state.knobs)) == (None, None, {})


def test_a_quick_read_reads_only_what_the_load_moves(fake: FakeSysfs) -> None:
    first = read_state(fake.sysfs, volume(), now_ns=0)
    fake.write(f"{OWN}/dirty_data", "100.0M")
    fake.write(f"{OWN}/writeback_rate", "1.0M")
    fake.write(f"{OWN}/writeback_percent", "40")
    quick = read_state(fake.sysfs, volume(), now_ns=1, previous=first)
    assert (quick.dirty_bytes, quick.knobs["writeback_rate"]) == (100 * MIB, "2048")
    assert quick.knobs["writeback_percent"] == "10"
    assert read_state(fake.sysfs, volume(), now_ns=2).knobs["writeback_percent"] == "40"


# ---- a disk's own write cache --------------------------------------------------------------------
@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (("write back",), True),
        (("write through",), False),
        (("write through", "write back"), True),
        ((), False),
        (("sideways",), False),
    ],
)
def test_one_disk_with_a_write_cache_is_enough(
    fake: FakeSysfs, texts: tuple[str, ...], found: bool
) -> None:
    of = replace(volume(), disks=tuple(device(f"sd{letter}") for letter in "xyz"))
    for disk, text in zip(of.disks, texts, strict=False):
        fake.write(f"/sys/block/{disk.name}/queue/write_cache", text)
    first = read_state(fake.sysfs, of, now_ns=0)
    fake.write(f"/sys/block/{of.disks[0].name}/queue/write_cache", "write through")
    assert (first.disk_write_cache, read_state(fake.sysfs, of, 1, first).disk_write_cache) == (
        found,
        found,
    )
    now = read_state(fake.sysfs, of, now_ns=2)
    assert now.disk_write_cache is (texts[1:] == ("write back",))


@pytest.mark.parametrize(("rotational", "found"), [(True, True), (None, True), (False, False)])
def test_the_write_cache_of_an_ssd_does_not_count(
    fake: FakeSysfs, rotational: bool | None, found: bool
) -> None:
    of = replace(volume(), disks=(replace(device("sdx"), rotational=rotational),))
    fake.write("/sys/block/sdx/queue/write_cache", "write back")
    assert read_state(fake.sysfs, of, now_ns=0).disk_write_cache is found


# ---- written to the cache -----------------------------------------------------------------------
def test_writes_to_the_cache_are_summed_over_its_devices(fake: FakeSysfs) -> None:
    (cache,) = volume().caches
    fake.write(f"/sys/class/block/{cache.name}/stat", "1 2 3 4 5 6 2048 8 9 10 11")
    assert read_state(fake.sysfs, volume(), 0).cache_written_bytes == MIB
    fake.write("/sys/class/block/md0/stat", "1 2 3 4 5 6 2048 8 9 10 11")
    both = replace(volume(), metadata=device("md0"))
    assert read_state(fake.sysfs, both, 0).cache_written_bytes == 2 * MIB


@pytest.mark.parametrize("text", ["", "1 2 3", "1 2 3 4 5 6 many"])
def test_odd_statistics_of_the_cache_device_are_unknown(fake: FakeSysfs, text: str) -> None:
    (cache,) = volume().caches
    fake.write(f"/sys/class/block/{cache.name}/stat", text)
    assert read_state(fake.sysfs, volume(), 0).cache_written_bytes is None


@pytest.mark.parametrize("where", ["queue/iostats", "../queue/iostats"])
@pytest.mark.parametrize(("setting", "found"), [("0", None), ("1", MIB)])
def test_writes_that_the_kernel_does_not_count_are_unknown(
    fake: FakeSysfs, where: str, setting: str, found: int | None
) -> None:
    (cache,) = volume().caches
    fake.write(f"/sys/class/block/{cache.name}/stat", "1 2 3 4 5 6 2048 8 9 10 11")
    own = fake.sysfs.real(f"/sys/class/block/{cache.name}")
    assert own is not None
    fake.write(
        str(own.parent / "queue/iostats" if where.startswith("..") else own / where), setting
    )
    assert read_state(fake.sysfs, volume(), 0).cache_written_bytes == found


def test_device_mapper_counts_whatever_the_setting_says(fake: FakeSysfs) -> None:
    fake.write("/sys/class/block/dm-7/stat", "1 2 3 4 5 6 2048 8 9 10 11")
    fake.write("/sys/class/block/dm-7/queue/iostats", "0")
    on_dm = replace(volume(), caches=(device("dm-7"),))
    assert read_state(fake.sysfs, on_dm, 0).cache_written_bytes == MIB

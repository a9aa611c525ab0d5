# SPDX-License-Identifier: GPL-2.0-only
"""The emulated disk's arithmetic, and whether its server keeps to it; no guest needed."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import hdd_model, host
from tests.lab.conftest import without_lab
from tests.lab.devices import GIB, MIB, Hdd, control_path
from tests.lab.errors import NoLab
from tests.lab.hdd_control import HddControl, HddCounters
from tests.lab.hdd_model import SKIP_BYTES_MAX, HddModel, seek_ns, transfer_ns
from tests.lab.hdd_queue import HddFeatures

SIZE = 2 * GIB


def disk(*, head_bytes: int = 0, seed: int = 1) -> HddModel:
    return HddModel(SIZE, random.Random(seed), head_bytes=head_bytes)


@pytest.mark.parametrize(
    ("distance_bytes", "expected_ms"),
    [(0, 0.5), (SIZE // 100, 1.35), (SIZE // 4, 4.75), (SIZE, 9.0)],
)
def test_a_seek_grows_with_the_root_of_its_distance(
    distance_bytes: int, expected_ms: float
) -> None:
    assert seek_ns(distance_bytes, SIZE) == pytest.approx(expected_ms * 1e6, rel=1e-4)


def test_the_next_sector_costs_its_transfer_only() -> None:
    assert disk(head_bytes=MIB).service_ns(MIB, 130_000) == 1_000_000


@pytest.mark.parametrize("skip_bytes", [512, 4096, SKIP_BYTES_MAX])
def test_a_short_skip_ahead_costs_the_time_in_which_it_passes_under_the_head(
    skip_bytes: int,
) -> None:
    cost_ns = disk(head_bytes=MIB).service_ns(MIB + skip_bytes, 4096)
    assert cost_ns == transfer_ns(skip_bytes + 4096)


@pytest.mark.parametrize("offset_bytes", [MIB + SKIP_BYTES_MAX + 512, MIB - 512])
def test_a_longer_skip_or_any_way_back_is_a_seek(offset_bytes: int) -> None:
    assert disk(head_bytes=MIB).service_ns(offset_bytes, 512) >= hdd_model.SEEK_BASE_NS


def test_rotation_is_uniform_over_one_turn() -> None:
    model = disk()
    fixed_ns = seek_ns(GIB, SIZE) + transfer_ns(4096)
    waits_ns = [model.service_ns(GIB, 4096) - fixed_ns for _ in range(2000)]
    assert 0 <= min(waits_ns) < max(waits_ns) <= hdd_model.ROTATION_NS
    assert statistics.fmean(waits_ns) == pytest.approx(hdd_model.ROTATION_NS / 2, rel=0.05)


def test_requests_that_arrive_together_are_served_one_after_the_other() -> None:
    model = disk()
    done_ns = [model.finish_ns(1000, index * 65536, 65536) for index in range(8)]
    assert done_ns == [1000 + (index + 1) * transfer_ns(65536) for index in range(8)]


def test_idle_time_is_not_saved_for_later_requests() -> None:
    model = disk()
    model.finish_ns(0, 0, 65536)
    assert model.finish_ns(10**9, 65536, 65536) == 10**9 + transfer_ns(65536)


def test_busy_time_is_the_sum_of_the_service_times() -> None:
    model, twin = disk(seed=7), disk(seed=7)
    offsets = [index * 7919 * 4096 % SIZE for index in range(50)]
    expected_ns = 0
    for offset in offsets:
        expected_ns += twin.service_ns(offset, 4096)
        twin.head_bytes = offset + 4096
        model.finish_ns(0, offset, 4096)
    assert model.busy_ns == expected_ns


def test_the_same_seed_gives_the_same_disk_and_another_seed_another() -> None:
    def times(seed: int) -> list[int]:
        model = disk(seed=seed)
        return [model.finish_ns(0, index * 50 * MIB, 4096) for index in range(20)]

    assert times(3) == times(3)
    assert times(3) != times(4)


def test_scale_makes_the_disk_faster() -> None:
    model = disk()
    model.scale = 0.1
    assert model.finish_ns(0, 0, 130_000) == 100_000


def test_random_reads_at_depth_one_come_to_about_77_a_second() -> None:
    model, chance = disk(), random.Random(5)
    for _ in range(3000):
        model.finish_ns(model.free_at_ns, chance.randrange(SIZE // 4096) * 4096, 4096)
    # 8.9 ms on average; the guest's own path adds about 4 ms under emulation (test_harness.py).
    assert 3000 / (model.busy_ns / 1e9) == pytest.approx(112, rel=0.05)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, HddControl]]:
    try:
        host.need("nbdkit", "qemu-img")
    except NoLab as reason:
        without_lab(reason)
    attached = Hdd("hdd").attach(tmp_path)
    control = HddControl(control_path(tmp_path, "hdd"))
    yield tmp_path / "hdd.nbd", control
    control.close()
    attached.stop()


def bench(
    served: tuple[Path, HddControl], *, count: int, size: int, step: int, depth: int, write: bool
) -> tuple[HddCounters, float]:
    """Have qemu-img do requests: what the disk counted, and seconds as qemu-img has them."""
    socket, control = served
    before = control.counters
    options = ["-c", str(count), "-s", str(size), "-S", str(step), "-d", str(depth)]
    words = ["qemu-img", "bench", "-f", "raw", "-t", "none", *options, *(["-w"] if write else [])]
    report = host.run([*words, f"nbd+unix:///?socket={socket}"])
    seconds = float(report.rsplit("Run completed in ", 1)[1].split()[0])
    return control.counters - before, seconds


PRINTED_S = 0.001
"""The benchmark prints no fractions of a millisecond."""


@pytest.mark.parametrize("depth", [1, 16])
@pytest.mark.parametrize("write", [False, True])
def test_the_server_is_as_slow_as_the_model(
    served: tuple[Path, HddControl], depth: int, write: bool
) -> None:
    counted, seconds = bench(served, count=80, size=4096, step=77 * MIB, depth=depth, write=write)
    # How much later the answers come depends on what else the host does.
    assert counted.busy_ns / 1e9 <= seconds + PRINTED_S
    done = (counted.writes, counted.reads) if write else (counted.reads, counted.writes)
    assert done == (80, 0)


def test_the_server_streams_close_to_the_transfer_rate(served: tuple[Path, HddControl]) -> None:
    counted, seconds = bench(served, count=100, size=MIB, step=MIB, depth=2, write=False)
    assert counted.read_bytes == 100 * MIB
    assert counted.read_bytes / seconds < 131e6
    assert counted.read_bytes / counted.busy_ns * 1e9 > 80e6


def test_speed_can_be_set_while_the_disk_runs(served: tuple[Path, HddControl]) -> None:
    served[1].scale = 0.0
    counted, seconds = bench(served, count=200, size=4096, step=7 * MIB, depth=1, write=False)
    assert counted.busy_ns == 0
    assert seconds < 1.0


def test_features_can_be_switched_while_the_disk_runs(served: tuple[Path, HddControl]) -> None:
    control = served[1]
    slow, _ = bench(served, count=60, size=4096, step=77 * MIB, depth=16, write=False)
    control.features = HddFeatures(ncq=True)
    fast, _ = bench(served, count=60, size=4096, step=77 * MIB, depth=16, write=False)
    assert fast.busy_ns < 0.8 * slow.busy_ns


def test_the_write_cache_takes_more_than_two_thousand_writes_a_second(
    served: tuple[Path, HddControl],
) -> None:
    # qemu-img flushes at its end, which no bench needs to wait for.
    served[1].features = HddFeatures(write_cache_bytes=32 * MIB)
    counted, seconds = bench(served, count=2000, size=4096, step=8192, depth=1, write=True)
    assert counted.writes == 2000
    # Without the cache it is 18 s; here 0.4 s on an idle machine.
    assert seconds < 5
    assert (counted.flushes, served[1].cached_bytes) == (1, 0)


def test_the_track_buffer_is_read_without_moving_the_head(
    served: tuple[Path, HddControl],
) -> None:
    served[1].features = HddFeatures(track_buffer_bytes=MIB)
    bench(served, count=1, size=4096, step=4096, depth=1, write=False)
    # A megabyte passes under the head in 8 ms, in which the next qemu-img is not there yet.
    counted, _ = bench(served, count=200, size=4096, step=4096, depth=1, write=False)
    assert (counted.reads, counted.busy_ns) == (200, 0)

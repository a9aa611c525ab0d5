# SPDX-License-Identifier: GPL-2.0-only
"""Order and times of the lab's hard disk: its queue, its write cache, its track buffer."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lab.hdd_model import ROTATION_NS, HddModel, rotation_ns, transfer_ns
from tests.lab.hdd_queue import (
    AGE_NS_MAX,
    AS_SOLD,
    MIB,
    HddFeatures,
    HddQueue,
    Kind,
    Request,
    interface_ns,
)
from tests.lab.hdd_write_cache import RUN_BYTES_MAX, Extent, WriteCache

SIZE = 2048 * MIB
BLOCK = 4096
NCQ = HddFeatures(ncq=True)
CACHE = HddFeatures(write_cache_bytes=32 * MIB)
BUFFER = HddFeatures(track_buffer_bytes=MIB)


class Simulated:
    """A disk and its clock; `answers` is when each request was answered."""

    def __init__(self, features: HddFeatures, *, seed: int = 1) -> None:
        self.queue = HddQueue(HddModel(SIZE, random.Random(seed)), features)
        self.now_ns = 0
        self.answers: dict[Request, int] = {}
        self.order: list[int] = []

    def read(self, offset: int, length: int = BLOCK) -> Request:
        return self.submit(Request(Kind.READ, self.now_ns, offset, length))

    def write(self, offset: int, length: int = BLOCK, *, fua: bool = False) -> Request:
        return self.submit(Request(Kind.WRITE, self.now_ns, offset, length, fua))

    def flush(self) -> Request:
        return self.submit(Request(Kind.FLUSH, self.now_ns))

    def submit(self, request: Request) -> Request:
        answer_ns = self.queue.submit(request)
        if answer_ns is not None:
            self.answers[request] = answer_ns
        return request

    def step(self) -> bool:
        """One movement of the head; False if there is nothing to do."""
        operation = self.queue.start(self.now_ns)
        if operation is None:
            return False
        moved = operation.request or operation.extents[0]
        self.order.append(moved.offset_bytes)
        self.now_ns = operation.end_ns
        for request in self.queue.finish():
            self.answers[request] = self.now_ns
        return True

    def run(self) -> None:
        while self.step():
            pass

    def wait(self, request: Request) -> int:
        """Run until a request is answered; its latency."""
        while request not in self.answers:
            assert self.step(), "the disk stands still"
        self.now_ns = max(self.now_ns, self.answers[request])
        return self.answers[request] - request.arrival_ns


def offsets(count: int, seed: int = 5) -> list[int]:
    chance = random.Random(seed)
    return [chance.randrange(SIZE // BLOCK) * BLOCK for _ in range(count)]


def random_reads_per_s(features: HddFeatures, depth: int, count: int = 1500) -> float:
    disk = Simulated(features)
    left = offsets(count)
    for _ in range(depth):
        disk.read(left.pop())
    while left:
        disk.step()
        disk.read(left.pop())
    return len(disk.answers) / (disk.now_ns / 1e9)


def test_without_features_the_queue_keeps_the_times_of_the_model() -> None:
    disk, model = Simulated(HddFeatures(), seed=9), HddModel(SIZE, random.Random(9))
    for round_offsets in (offsets(7, seed) for seed in range(5)):
        requests = [disk.read(o) if o % 3 else disk.write(o) for o in round_offsets]
        expected = [model.finish_ns(disk.now_ns, offset, BLOCK) for offset in round_offsets]
        disk.run()
        assert [disk.answers[request] for request in requests] == expected
        disk.now_ns += 10**9
    assert disk.queue.model.busy_ns == model.busy_ns


def test_a_flush_costs_nothing_without_a_write_cache() -> None:
    disk = Simulated(HddFeatures())
    assert disk.wait(disk.flush()) == 0


def test_the_rotation_brings_each_sector_by_once_a_turn() -> None:
    assert rotation_ns(0, 0) == 0
    assert rotation_ns(1, 0) == ROTATION_NS - 1
    assert rotation_ns(1000, 77 * BLOCK) == rotation_ns(1000 + 3 * ROTATION_NS, 77 * BLOCK)


def test_reordering_serves_the_request_that_ends_first() -> None:
    disk = Simulated(NCQ)
    far, next_sector = disk.read(SIZE // 2), disk.read(0)
    disk.run()
    assert disk.order == [0, SIZE // 2]
    assert disk.answers[next_sector] == transfer_ns(BLOCK) < disk.answers[far]


@pytest.mark.parametrize(
    ("depth", "gain_min", "gain_max"), [(1, 0.9, 1.1), (16, 1.9, 2.5), (32, 2.1, 2.8)]
)
def test_reordering_gains_with_the_depth_as_disks_do(
    depth: int, gain_min: float, gain_max: float
) -> None:
    gain = random_reads_per_s(NCQ, depth) / random_reads_per_s(HddFeatures(), 1)
    assert gain_min < gain < gain_max


def test_an_old_request_is_not_passed_over_for_nearer_ones() -> None:
    disk = Simulated(NCQ)
    far = disk.read(SIZE - BLOCK)
    near = iter(offsets(10_000))
    for _ in range(31):
        disk.read(next(near) % (16 * MIB))
    while far not in disk.answers:
        disk.step()
        disk.read(next(near) % (16 * MIB))
    waited_ns = disk.answers[far] - far.arrival_ns
    assert AGE_NS_MAX < waited_ns < AGE_NS_MAX + 60e6


def test_a_cached_write_is_answered_at_interface_speed_and_written_out_later() -> None:
    disk = Simulated(CACHE)
    written = disk.write(SIZE // 2, 64 * 1024)
    assert disk.answers[written] == interface_ns(64 * 1024)
    assert disk.queue.cache.used_bytes == 64 * 1024
    disk.run()
    assert disk.queue.cache.used_bytes == 0
    assert disk.queue.model.busy_ns > transfer_ns(64 * 1024)


def test_cached_writes_go_out_upward_from_the_head() -> None:
    disk = Simulated(CACHE)
    disk.wait(disk.read(600 * MIB))
    for at_mib in (900, 100, 700, 1500, 300):
        disk.write(at_mib * MIB)
    disk.run()
    assert disk.order[1:] == [at_mib * MIB for at_mib in (700, 900, 1500, 100, 300)]


def test_adjacent_writes_go_out_together_up_to_a_limit() -> None:
    disk = Simulated(CACHE)
    for offset in range(0, 2 * RUN_BYTES_MAX, BLOCK):
        disk.write(offset)
    disk.run()
    assert disk.order == [0, RUN_BYTES_MAX]


def test_a_read_passes_cached_writes() -> None:
    disk = Simulated(CACHE)
    for offset in offsets(50):
        disk.write(offset)
    disk.step()
    read = disk.read(SIZE // 3)
    assert disk.wait(read) < 20e6
    assert len(disk.queue.cache) == 49


def test_a_write_waits_while_the_cache_is_full() -> None:
    disk = Simulated(HddFeatures(write_cache_bytes=4 * BLOCK))
    full = [disk.write(offset) for offset in offsets(4)]
    late = disk.write(SIZE // 2)
    assert all(request in disk.answers for request in full)
    assert disk.wait(late) > 0
    assert disk.queue.cache.used_bytes == 4 * BLOCK


def test_a_write_to_a_full_cache_is_not_starved_by_reads() -> None:
    disk = Simulated(HddFeatures(write_cache_bytes=BLOCK))
    disk.write(0)
    late, reads = disk.write(SIZE // 2), iter(offsets(200))
    disk.read(next(reads))
    while late not in disk.answers:
        disk.read(next(reads))
        disk.step()
    assert AGE_NS_MAX < disk.answers[late] < AGE_NS_MAX + 60e6


def test_a_flush_is_answered_when_all_before_it_is_on_the_platter() -> None:
    disk = Simulated(CACHE)
    for offset in offsets(20):
        disk.write(offset)
    flush = disk.flush()
    later = disk.write(0)
    latency_ns = disk.wait(flush)
    assert latency_ns > 20 * 1e6
    assert disk.answers[later] < disk.answers[flush]
    assert all(extent.number > flush.number for extent in disk.queue.cache)


def test_a_write_with_fua_is_answered_from_the_platter_and_passes_cached_ones() -> None:
    disk = Simulated(CACHE)
    for offset in offsets(50):
        disk.write(offset)
    forced = disk.write(SIZE // 2, fua=True)
    assert 0 < disk.wait(forced) < 30e6
    assert len(disk.queue.cache) >= 48


def test_reads_of_cached_data_do_not_move_the_head() -> None:
    disk = Simulated(CACHE)
    disk.write(SIZE // 2, BLOCK)
    disk.write(SIZE // 2 + BLOCK, BLOCK)
    read = disk.read(SIZE // 2, 2 * BLOCK)
    assert disk.answers[read] == interface_ns(2 * BLOCK)
    assert disk.read(SIZE // 2, 3 * BLOCK) not in disk.answers


def test_a_cache_that_is_switched_off_is_emptied_and_caches_nothing_more() -> None:
    disk = Simulated(CACHE)
    old = offsets(3)
    for offset in old:
        disk.write(offset)
    disk.queue.features = HddFeatures()
    over = disk.write(old[0])
    assert over not in disk.answers
    disk.run()
    assert over in disk.answers
    assert disk.write(0) not in disk.answers


def test_a_power_cut_loses_what_was_not_flushed_and_fails_what_waits() -> None:
    disk = Simulated(CACHE)
    disk.write(MIB)
    disk.wait(disk.flush())
    disk.write(2 * MIB)
    disk.write(3 * MIB)
    flush = disk.flush()
    cut = disk.queue.cut_power()
    assert [extent.offset_bytes for extent in cut.extents] == [2 * MIB, 3 * MIB]
    assert cut.requests == [flush]
    assert not disk.step()
    assert disk.wait(disk.read(MIB)) > 0


def test_what_the_head_writes_during_a_power_cut_is_lost() -> None:
    disk = Simulated(CACHE)
    disk.write(MIB)
    assert disk.queue.start(disk.now_ns) is not None
    assert [extent.offset_bytes for extent in disk.queue.cut_power().extents] == [MIB]


def test_an_extent_that_is_overwritten_while_it_goes_out_stays_cached() -> None:
    disk = Simulated(CACHE)
    disk.write(MIB, 2 * BLOCK)
    operation = disk.queue.start(disk.now_ns)
    disk.write(MIB + BLOCK, 2 * BLOCK)
    assert operation is not None
    disk.queue.finish()
    assert [extent.length_bytes for extent in disk.queue.cache] == [3 * BLOCK]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=25),
    st.integers(0, 24),
)
def test_a_power_cut_brings_back_what_is_on_the_platter(
    writes: list[tuple[int, int]], moves: int
) -> None:
    """`platter` is kept by copying what the head writes; `seen` is what readers see."""
    disk = Simulated(CACHE)
    seen, platter = bytearray(52), bytearray(52)
    for number, (offset, length) in enumerate(writes):
        before = bytes(seen[offset : offset + length])
        disk.submit(Request(Kind.WRITE, disk.now_ns, offset, length, before=before))
        seen[offset : offset + length] = bytes([number + 1]) * length
        if moves > number:
            operation = disk.queue.start(disk.now_ns)
            assert operation is not None
            for extent in operation.extents:
                platter[extent.offset_bytes : extent.end_bytes] = seen[
                    extent.offset_bytes : extent.end_bytes
                ]
            disk.now_ns = operation.end_ns
            disk.queue.finish()
    extents = disk.queue.cut_power().extents
    assert all(low.end_bytes <= high.offset_bytes for low, high in pairwise(extents))
    for extent in extents:
        seen[extent.offset_bytes : extent.end_bytes] = extent.before
    assert seen == platter


def test_extents_that_follow_each_other_cover_a_range_without_a_hole() -> None:
    cache = WriteCache()
    cache.add(Extent(0, bytes(10), 1, 0))
    cache.add(Extent(10, bytes(10), 2, 0))
    cache.add(Extent(30, bytes(10), 3, 0))
    assert cache.covers(5, 15)
    assert not cache.covers(15, 20)
    assert cache.used_bytes == 30
    assert cache.oldest_number() == 1
    assert [extent.number for extent in cache.clear()] == [1, 2, 3]
    assert (cache.used_bytes, cache.oldest_number()) == (0, None)


def test_the_rest_of_the_track_is_read_at_interface_speed() -> None:
    disk = Simulated(BUFFER)
    disk.wait(disk.read(SIZE // 2))
    disk.now_ns += transfer_ns(MIB)
    assert disk.wait(disk.read(SIZE // 2 + BLOCK, MIB)) == interface_ns(MIB)
    assert disk.read(SIZE // 2 + MIB, 2 * BLOCK) not in disk.answers


def test_the_head_waits_for_a_sector_that_has_not_passed() -> None:
    disk = Simulated(BUFFER)
    disk.wait(disk.read(SIZE // 2))
    disk.now_ns += transfer_ns(64 * 1024)
    latency_ns = disk.wait(disk.read(SIZE // 2 + BLOCK, 128 * 1024))
    assert latency_ns == pytest.approx(transfer_ns(64 * 1024), abs=1e4)


def test_a_stream_is_never_faster_than_the_platter() -> None:
    disk = Simulated(AS_SOLD)
    for offset in range(0, 64 * MIB, 128 * 1024):
        disk.wait(disk.read(offset, 128 * 1024))
    rate = 64 * MIB / (disk.now_ns / 1e9)
    assert 110e6 < rate <= 130e6 * 1.02


def test_reading_ahead_ends_when_the_head_is_needed_elsewhere() -> None:
    disk = Simulated(BUFFER)
    disk.wait(disk.read(SIZE // 2))
    disk.now_ns += transfer_ns(64 * 1024)
    disk.wait(disk.write(0))
    assert disk.read(SIZE // 2 + BLOCK, 32 * 1024) in disk.answers
    assert disk.read(SIZE // 2 + 96 * 1024) not in disk.answers


def test_a_read_that_arrived_before_the_head_moved_on_finds_what_had_passed() -> None:
    disk = Simulated(BUFFER)
    disk.read(SIZE // 2)
    disk.read(0)
    disk.step()
    disk.queue.start(disk.now_ns)
    late = Request(Kind.READ, disk.now_ns - 1, SIZE // 2 + BLOCK, BLOCK)
    assert disk.submit(late) not in disk.answers


def test_a_write_to_the_track_empties_its_buffer() -> None:
    disk = Simulated(HddFeatures(write_cache_bytes=MIB, track_buffer_bytes=MIB))
    disk.wait(disk.read(SIZE // 2))
    disk.now_ns += transfer_ns(MIB)
    disk.write(SIZE // 2 + 64 * 1024)
    assert disk.read(SIZE // 2 + BLOCK) not in disk.answers


def test_scale_makes_all_of_it_faster() -> None:
    disk = Simulated(AS_SOLD)
    disk.queue.model.scale = 0.0
    for offset in offsets(100):
        disk.write(offset)
    assert disk.wait(disk.flush()) == 0
    assert disk.wait(disk.read(0)) == 0

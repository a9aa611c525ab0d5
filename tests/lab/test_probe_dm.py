# SPDX-License-Identifier: GPL-2.0-only
"""The probe on real volumes of device-mapper: what it counts is what was done, and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.lab import disk_layers, dm_parts, fio
from tests.lab.devices import MIB
from tests.lab.dm_stack import DmCacheStack, DmStack, DmWritecacheStack, Options
from tests.lab.fio_compare import (
    Counted,
    assert_earlier_requests_are_not_lost,
    assert_equal_to_fio,
    assert_misses_are_attributed,
    assert_nothing_lost,
    assert_users_alone_are_sampled,
    counted,
    exact,
    gained,
    job,
    missed,
)
from tests.lab.kernel_matrix import needs, on_kernels
from tests.lab.probe import GuestProbe
from tests.lab.session import Session
from tests.lab.wait import wait_until
from tests.probe_records import Difference, of_type

SUITE = "dm-cache and dm-writecache: every count is exact"
pytestmark = on_kernels(SUITE, "trixie")
IN_FULL_ON_OTHERS = on_kernels(SUITE)
"""What the default kernel proves in each run, the others only in the full tier."""

BLOCK = 65536
WAIT_NS = 100_000_000
# No destage but by request: what a test sees, it has caused.
SETTINGS = {"migration_threshold": 0}


@pytest.fixture(scope="module", autouse=True)
def _needs(guest: Session) -> None:
    needs(guest, "volume", "dm_path", "dm_class")


@pytest.fixture(scope="module")
def stack(guest: Session) -> Iterator[DmCacheStack]:
    with DmCacheStack(guest, settings=SETTINGS) as made:
        yield made


@pytest.fixture(scope="module")
def probe(guest: Session, stack: DmCacheStack) -> Iterator[GuestProbe]:
    with GuestProbe(guest, "--tick-ms", "100") as running:
        running.track_dm(stack)
        yield running
        assert_nothing_lost(guest, running.tick(stack.name)["lost"])


def settled(stack: DmCacheStack) -> None:
    """Wait until the cache has stopped promoting."""
    seen = [stack.status().promotions]

    def same_again() -> bool:
        seen.append(stack.status().promotions)
        return len(seen) > 4 and len(set(seen[-4:])) == 1

    wait_until(same_again, 20, "promotions to end")


def mixed(stack: DmStack) -> list[fio.Job]:
    """Reads and writes of sizes that cross the borders of cache blocks, and plain ones."""
    sizes = "4k-256k"
    return [
        job(stack, "randrw", size="64m", io_size="8m", bsrange=sizes, ioengine="libaio", iodepth=8),
        job(stack, "randwrite", "16k", size="64m", offset="512m", io_size="1m"),
        # Whole blocks, which dm-cache takes in at once.
        job(stack, "write", "64k", size="4m", offset="700m"),
    ]


def test_requests_and_bytes_equal_those_of_fio_exactly(
    probe: GuestProbe, stack: DmCacheStack
) -> None:
    gain, result = gained(probe, stack, *mixed(stack), seed=21)
    assert_equal_to_fio(gain, result)
    assert gain("path", "read", "miss", "ios") > 0
    assert gain("path", "write", "writeback", "ios") > 0
    assert probe.tick(stack.name)["inflight"] == {"read": 0, "write": 0}


BARE = Options(lvm=False, hdd="hdd1", ssd="ssd1", vg="other", settings=SETTINGS)
WRITECACHE = Options(hdd="hdd1", ssd="ssd1", vg="other", cache_bytes=64 * MIB)
STACKS = [
    # What is above and below it is in test_layers_above_and_below_change_no_count.
    pytest.param(DmCacheStack, BARE, id="cache-bare", marks=pytest.mark.full),
    pytest.param(
        DmCacheStack,
        BARE | Options(scheduler="none"),
        id="cache-bare-unscheduled",
        marks=pytest.mark.full,
    ),
    pytest.param(DmWritecacheStack, WRITECACHE, id="writecache-lvm"),
    pytest.param(
        DmWritecacheStack,
        WRITECACHE | Options(lvm=False),
        id="writecache-bare",
        marks=pytest.mark.full,
    ),
]


def drained(probe: GuestProbe, stack: DmStack) -> tuple[Difference, int]:
    """Have all dirty data written back; return the growth of the counters, and how much it was."""
    if isinstance(stack, DmCacheStack):
        settled(stack)
    before, dirty_bytes = probe.tick(stack.name), stack.dirty_bytes()
    stack.drain()
    return Difference(before, probe.tick(stack.name)), dirty_bytes


@IN_FULL_ON_OTHERS
@pytest.mark.parametrize(("kind", "options"), STACKS)
def test_every_kind_of_stack_is_counted_exactly_and_its_destage_too(
    guest: Session, kind: type[DmStack], options: Options
) -> None:
    made = kind(guest, **options)
    with made as other, GuestProbe(guest, "--tick-ms", "100") as probe:
        probe.track_dm(other)

        def measure() -> tuple[Counted, tuple[Difference, int]]:
            return counted(probe, other, *mixed(other), seed=31), drained(probe, other)

        used, (gain, dirty_bytes) = exact(probe, other, measure)
        assert_equal_to_fio(*used)
        assert gain("fg", "read", "ios") == gain("fg", "write", "ios") == 0
        assert dirty_bytes > 0
        assert gain("destage", "done_bytes") == gain("destage", "queued_bytes") == dirty_bytes
        assert gain("dev", "cache", "read", "bg", "bytes") == dirty_bytes
        assert_nothing_lost(guest, probe.tick(other.name)["lost"])


@IN_FULL_ON_OTHERS
def test_references_to_sampled_blocks_are_those_of_users(
    probe: GuestProbe, stack: DmCacheStack
) -> None:
    assert_users_alone_are_sampled(probe, stack)


def test_pure_destage_is_no_foreground(probe: GuestProbe, stack: DmCacheStack) -> None:
    fio.run(stack.session, job(stack, "write", "64k", size="8m", offset="200m"), seed=22)
    fio.run(stack.session, job(stack, "randwrite", size="8m", offset="200m", io_size="1m"), seed=22)
    settled(stack)
    before, dirty = probe.tick(stack.name), stack.status().dirty
    assert dirty >= 128
    stack.drain()
    gain = Difference(before, probe.tick(stack.name))
    for way, what in itertools.product(("read", "write"), ("ios", "bytes")):
        assert gain("fg", way, what) == 0
        for device in ("cache", "backing"):
            assert gain("dev", device, way, "fg", what) == 0
    assert gain("destage", "done_bytes") == gain("destage", "queued_bytes") == dirty * BLOCK
    assert gain("destage", "done_ios") == gain("destage", "queued_ios") == dirty
    assert gain("dev", "cache", "read", "bg", "bytes") == dirty * BLOCK
    assert gain("dev", "backing", "write", "bg", "bytes") == dirty * BLOCK
    assert gain("promote", "done_bytes") == 0


def test_hits_and_misses_are_those_of_the_kernels_own_counters(
    probe: GuestProbe, stack: DmCacheStack
) -> None:
    fio.run(stack.session, job(stack, "write", "64k", size="4m", offset="300m"), seed=23)
    settled(stack)
    warm = job(stack, "randread", size="4m", offset="300m", io_size="512k")
    cold = job(stack, "randread", size="1g", offset="600m", io_size="256k")

    def measure() -> tuple[Difference, int, int]:
        before = stack.status()
        gain, _ = counted(probe, stack, warm, cold, seed=24)
        after = stack.status()
        return gain, after.read_hits - before.read_hits, after.read_misses - before.read_misses

    gain, hits, misses = exact(probe, stack, measure)
    assert gain("path", "read", "hit", "ios") == hits >= 128
    assert gain("path", "read", "miss", "ios") == misses > 0
    assert gain("dev", "backing", "read", "fg", "ios") == gain("path", "read", "miss", "ios")
    assert gain("dev", "cache", "read", "fg", "ios") == gain("path", "read", "hit", "ios")


@IN_FULL_ON_OTHERS
def test_misses_are_counted_in_their_chunks(probe: GuestProbe, stack: DmCacheStack) -> None:
    kernel_before = stack.status()
    jobs = [
        job(stack, "read", "64k", offset="940m", size="2m"),
        # dm splits it: each part counts.
        job(stack, "read", "1m", offset="944m", size="1m"),
        job(stack, "write", offset="950m", size="4k"),
        # Whole blocks go to the cache.
        job(stack, "write", "64k", offset="960m", size="1m"),
        job(stack, "randread", offset="960m", size="1m", io_size="64k"),
    ]
    found, kernel = missed(probe, stack, *jobs), stack.status()
    reads, others, writes = (sum(counts) for counts in zip(*found.values(), strict=True))
    assert reads == kernel.read_misses - kernel_before.read_misses
    assert writes == kernel.write_misses - kernel_before.write_misses
    assert others == 0
    assert {chunk: found[chunk] for chunk in (940, 941, 944, 950)} == {
        **dict.fromkeys((940, 941, 944), (16, 0, 0)),
        950: (0, 0, 1),
    }


def test_misses_are_attributed_to_cgroups_and_files(probe: GuestProbe, stack: DmCacheStack) -> None:
    def read_misses() -> int:
        return stack.status().read_misses

    # How soon smq takes a block in is partly by chance.
    assert_misses_are_attributed(
        probe,
        stack,
        read_misses,
        writes_min=0,
        cached_writes=lambda: stack.status().write_hits,
        takes_nothing_in=stack.without_promotions(),
    )


def test_promotion_is_background(probe: GuestProbe, stack: DmCacheStack) -> None:
    kernel_before, before = stack.status(), probe.tick(stack.name)
    scan = job(stack, "read", "64k", size="8m", offset="1500m")
    reads = promotions = 0
    # How soon smq takes a block in is partly by chance: five of these 128 were all, once.
    while promotions <= 10 and reads < 8 * 128:
        reads += fio.run(stack.session, scan, seed=25).only.read.ios
        settled(stack)
        promotions = stack.status().promotions - kernel_before.promotions
    gain, kernel = Difference(before, probe.tick(stack.name)), stack.status()
    assert kernel.promotions - kernel_before.promotions == promotions > 10
    assert kernel.demotions == kernel_before.demotions
    assert gain("fg", "read", "ios") == reads
    assert gain("promote", "done_bytes") == promotions * BLOCK
    assert gain("dev", "backing", "read", "bg", "bytes") == promotions * BLOCK
    assert gain("dev", "cache", "write", "bg", "bytes") == promotions * BLOCK
    assert gain("dev", "cache", "write", "fg", "ios") == 0
    assert gain("destage", "done_bytes") == gain("destage", "queued_bytes") == 0


@IN_FULL_ON_OTHERS
def test_edges_alternate_and_idle_comes_in_time(probe: GuestProbe, stack: DmCacheStack) -> None:
    probe.send(f"wait {stack.name} {WAIT_NS}")
    start = len(probe.edges(stack.name))
    for round_ in range(3):
        probe.wait(
            lambda _: [e["edge"] for e in probe.edges(stack.name)][-1:] == ["idle"], "idle edge"
        )
        seen = len(probe.edges(stack.name))
        fio.run(stack.session, job(stack, "randread", size="1g", io_size="40k"), seed=30 + round_)
        probe.wait(lambda _, n=seen: len(probe.edges(stack.name)) > n, "busy edge")  # type: ignore[misc]
    edges = probe.edges(stack.name)
    assert all(a["edge"] != b["edge"] for a, b in itertools.pairwise(edges))
    assert min(e["idle_ns"] for e in edges[start:] if e["edge"] == "idle") >= WAIT_NS


@IN_FULL_ON_OTHERS
def test_the_destage_queue_is_reported_while_paced(probe: GuestProbe, stack: DmCacheStack) -> None:
    fio.run(stack.session, job(stack, "write", "64k", size="16m", offset="1200m"), seed=40)
    settled(stack)
    before = len(of_type(probe.records(), "queue"))
    probe.send(f"pace {stack.name} 10000000")
    stack.drain()
    last = probe.wait(
        lambda records: next(
            (r for r in reversed(of_type(records, "queue")) if r["done_ios"] and not r["inflight"]),
            None,
        ),
        "an empty queue",
    )
    probe.send(f"pace {stack.name} 0")
    queue = of_type(probe.records(), "queue")[before:]
    assert max(record["inflight"] for record in queue) > 1
    assert all(a["done_bytes"] <= b["done_bytes"] for a, b in itertools.pairwise(queue))
    assert last["bytes"] == last["reads"] == last["fg"] == 0
    assert max(r["bytes"] for r in queue) == max(r["inflight"] for r in queue) * BLOCK


@pytest.mark.full
@pytest.mark.parametrize(("mode", "path"), [("writethrough", "writethrough")])
def test_a_write_takes_the_path_of_the_mode(guest: Session, mode: str, path: str) -> None:
    with (
        DmCacheStack(guest, hdd="hdd1", ssd="ssd1", vg="a+b", cache_mode=mode) as other,
        GuestProbe(guest, "--tick-ms", "100") as probe,
    ):
        probe.track_dm(other)
        # Blocks are in the cache once they were read often enough.
        reads = job(other, "read", "64k", size="8m", loops=2)
        fio.run(guest, reads, seed=50)
        settled(other)
        gain, result = gained(probe, other, job(other, "write", "16k", size="8m"), seed=51)
        assert gain("path", "write", path, "ios") > 100
        assert gain("path", "write", path, "ios") + gain("path", "write", "bypass", "ios") == (
            result.only.write.ios
        )
        assert gain("dev", "backing", "write", "fg", "bytes") == result.only.write.bytes


class LayeredStack(DmCacheStack):
    """A bare dm-cache on a striped origin, below a linear device."""

    def _join(self) -> None:
        half = int(self.session.read(f"/sys/block/{self.hdd}/size")) // 64 * 32
        below, self.top = f"{self.vg}-origin", f"{self.vg}-top"
        disk = f"/dev/{self.hdd}"
        # Two stripes of 16 KiB: each copy of a cache block is split, and so is many a miss.
        self._create(below, f"0 {2 * half} striped 2 32 {disk} 0 {disk} {half}")
        meta, data = dm_parts.cut(self.session, self.vg, self.ssd, 8 * MIB, 64 * MIB)
        origin = f"/dev/mapper/{below}"
        cache = f"cache {meta} {data} {origin} 128 2 metadata2 writeback smq 0"
        self._create(self.name, f"0 {2 * half} {cache}")
        self._create(self.top, f"0 {2 * half} linear {self.device} 0")

    def _create(self, name: str, table: str) -> None:
        options = ["--noudevsync", "--noudevrules"]
        self.session.check(["dmsetup", "create", *options, name, "--table", table])
        self.session.check(["dmsetup", "mknodes", name])


@IN_FULL_ON_OTHERS
def test_layers_above_and_below_change_no_count(guest: Session) -> None:
    with (
        LayeredStack(guest, **BARE) as layered,
        GuestProbe(guest, "--tick-ms", "100") as probe,
    ):
        probe.track_dm(layered)

        def measure() -> tuple[Counted, tuple[Difference, int]]:
            volume, layered.device = layered.device, f"/dev/mapper/{layered.top}"
            used = counted(probe, layered, *mixed(layered), seed=60)
            layered.device = volume
            return used, drained(probe, layered)

        used, (gain, dirty_bytes) = exact(probe, layered, measure)
        assert_equal_to_fio(*used)
        assert dirty_bytes > 0
        assert gain("destage", "done_bytes") == gain("destage", "queued_bytes") == dirty_bytes
        assert gain("dev", "cache", "read", "bg", "bytes") == dirty_bytes
        assert gain("dev", "backing", "write", "bg", "bytes") == dirty_bytes


class PartedStack(LayeredStack):
    """A bare dm-cache on the first partition of the disk."""

    def _join(self) -> None:
        origin = f"{self.hdd}1"
        sectors = self.session.read(f"/sys/class/block/{origin}/size")
        meta, data = dm_parts.cut(self.session, self.vg, self.ssd, 8 * MIB, 64 * MIB)
        cache = f"cache {meta} {data} /dev/{origin} 128 2 metadata2 writeback smq 0"
        self._create(self.name, f"0 {sectors} {cache}")


@IN_FULL_ON_OTHERS
def test_chunks_begin_where_a_partition_does(guest: Session) -> None:
    """The kernel moves a bio from a partition to its disk before the programs see it."""
    with (
        disk_layers.partition(guest, guest.device(BARE["hdd"]), 256 * MIB),
        PartedStack(guest, **BARE) as parted,
        GuestProbe(guest, "--tick-ms", "100") as probe,
    ):
        probe.track_dm(parted)
        found = missed(probe, parted, job(parted, "read", "64k", offset="100m", size="2m"))
        assert found == dict.fromkeys((100, 101), (16, 0, 0))


@IN_FULL_ON_OTHERS
def test_what_was_sent_before_tracking_is_not_lost(probe: GuestProbe, stack: DmCacheStack) -> None:
    assert_earlier_requests_are_not_lost(probe, stack)

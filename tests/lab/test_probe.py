# SPDX-License-Identifier: GPL-2.0-only
"""The probe on a real bcache: what it counts is what was done, and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.fio_compare import (
    assert_earlier_requests_are_not_lost,
    assert_equal_to_fio,
    assert_misses_are_attributed,
    assert_nothing_lost,
    assert_users_alone_are_sampled,
    gained,
    job,
    missed,
)
from tests.lab.kernel_matrix import needs, on_kernels
from tests.lab.probe import GuestProbe
from tests.lab.session import Session
from tests.probe_records import Difference, of_type, percentile_us

SUITE = "bcache: every count is exact"
pytestmark = on_kernels(SUITE, "trixie")
IN_FULL_ON_OTHERS = on_kernels(SUITE)
"""What the default kernel proves in each run, the others only in the full tier."""

MIB = 1 << 20
WAIT_NS = 100_000_000
# No destage but by request, no bypass but by request: what a test sees, it has caused.
SETTINGS = {
    "writeback_delay": 0,
    "writeback_percent": 40,
    "writeback_running": 0,
    "sequential_cutoff": 0,
    "cache/congested_read_threshold_us": 0,
    "cache/congested_write_threshold_us": 0,
}


@pytest.fixture(scope="module")
def stack(guest: Session) -> Iterator[BcacheStack]:
    needs(guest, "volume", "path", "class")
    with BcacheStack(guest, settings=SETTINGS) as made:
        yield made


@pytest.fixture(scope="module")
def shared_probe(guest: Session, stack: BcacheStack) -> Iterator[GuestProbe]:
    with GuestProbe(guest, "--tick-ms", "100") as running:
        running.track(stack)
        yield running


@pytest.fixture
def probe(guest: Session, stack: BcacheStack, shared_probe: GuestProbe) -> Iterator[GuestProbe]:
    yield shared_probe
    assert_nothing_lost(guest, shared_probe.tick(stack.volume)["lost"])


@pytest.fixture(autouse=True)
def _knobs_back(stack: BcacheStack) -> Iterator[None]:
    yield
    for name, (original, _) in stack.changed_knobs().items():
        # Sizes are printed in a form that the kernel does not take back.
        stack.set_knob(name, SETTINGS.get(name, original))


def test_requests_and_bytes_equal_those_of_fio_exactly(
    probe: GuestProbe, stack: BcacheStack
) -> None:
    mixed = job(
        stack, "randrw", size="256m", io_size="2m", ioengine="libaio", iodepth=8, bsrange="4k-32k"
    )
    two = [mixed, job(stack, "randwrite", "16k", size="64m", offset="512m", io_size="4m")]
    gain, result = gained(probe, stack, *two, seed=21)
    assert_equal_to_fio(gain, result)


@IN_FULL_ON_OTHERS
def test_references_to_sampled_blocks_are_those_of_users(
    probe: GuestProbe, stack: BcacheStack
) -> None:
    assert_users_alone_are_sampled(probe, stack)


@IN_FULL_ON_OTHERS
def test_misses_are_counted_in_their_chunks(probe: GuestProbe, stack: BcacheStack) -> None:
    stack.drain()
    stack.set_knob("cache_mode", "writethrough")
    jobs = [
        job(stack, "read", "64k", offset="940m", size="2m"),
        # The volume begins behind bcache's superblock, and its chunks with it.
        job(stack, "read", offset=943 * MIB - 4096, size=8192),
        job(stack, "write", "64k", offset="950m", size="1m"),
        # Hits.
        job(stack, "read", "64k", offset="950m", size="1m"),
        # The page cache: no readahead, and much of it.
        job(stack, "randread", offset="960m", size="256k", direct=0),
        job(stack, "read", offset="970m", size="1m", direct=0),
    ]
    found = missed(probe, stack, *jobs)
    # It goes on behind what was asked for.
    ahead = [found.pop(chunk, (0, 0, 0)) for chunk in (970, 971)]
    waited = {940: 16, 941: 16, 942: 1, 943: 1, 960: 64}
    reads = {chunk: (count, 0, 0) for chunk, count in waited.items()}
    assert found == {**reads, 950: (0, 0, 16)}
    waited_for, others, written = (sum(counts) for counts in zip(*ahead, strict=True))
    assert others > waited_for
    assert written == 0

    stack.set_knob("sequential_cutoff", 128 * 1024)
    stream = job(stack, "read", "64k", offset="980m", size="2m")
    assert missed(probe, stack, stream) == {980: (1, 0, 0)}


def test_misses_are_attributed_to_cgroups_and_files(probe: GuestProbe, stack: BcacheStack) -> None:
    stack.drain()
    # Nothing is in the cache before it is read.
    stack.set_knob("cache_mode", "writearound")

    def read_misses() -> int:
        missed: int = probe.tick(stack.volume)["path"]["read"]["miss"]["ios"]
        return missed

    assert_misses_are_attributed(probe, stack, read_misses, writes_min=20, since_tracked=True)


def test_pure_destage_is_no_foreground(probe: GuestProbe, stack: BcacheStack) -> None:
    stack.drain()
    fio.run(stack.session, job(stack, "randwrite", size="128m", io_size="1m"), seed=22)
    fio.run(stack.session, job(stack, "write", "256k", size="4m", offset="600m"), seed=22)
    before, dirty_bytes = probe.tick(stack.volume), stack.dirty_bytes_exact()
    assert dirty_bytes == 5 * MIB
    stack.drain()
    gain = Difference(before, probe.tick(stack.volume))
    assert [gain("fg", way, what) for way in ("read", "write") for what in ("ios", "bytes")] == [
        0,
        0,
        0,
        0,
    ]
    assert gain("destage", "done_bytes") == gain("destage", "queued_bytes") == dirty_bytes
    assert gain("destage", "done_ios") == gain("destage", "queued_ios") > 0
    assert gain("dev", "cache", "read", "bg", "bytes") == dirty_bytes
    # And the superblock, when the volume becomes clean.
    assert 0 <= gain("dev", "backing", "write", "bg", "bytes") - dirty_bytes <= 8192
    for device, way in itertools.product(("cache", "backing"), ("read", "write")):
        assert gain("dev", device, way, "fg", "ios") == 0


def test_hits_and_misses_differ_and_fills_are_background(
    probe: GuestProbe, stack: BcacheStack
) -> None:
    needs(stack.session, "class", limits=False)
    cold = job(stack, "randread", size="64m", offset="1g", io_size="512k", allrandrepeat=1)
    miss, _ = gained(probe, stack, cold, seed=23)
    assert miss("path", "read", "miss", "ios") == 128
    assert miss("dev", "backing", "read", "fg", "bytes") == 128 * 4096
    hit, _ = gained(probe, stack, cold, seed=23)
    assert hit("path", "read", "hit", "ios") + hit("path", "read", "miss", "ios") == 128
    assert hit("path", "read", "hit", "ios") >= 100
    assert hit("dev", "cache", "read", "fg", "ios") >= hit("path", "read", "hit", "ios")
    # Without BTF of bcache (5.10) nothing tells a fill from a write.
    known = probe.wait_for("hello")["signals"]["class"] == "ok"
    assert miss("dev", "cache", "write", "bg" if known else "fg", "bytes") >= 100 * 4096
    if known:
        assert miss("dev", "cache", "write", "fg", "ios") == 0


@IN_FULL_ON_OTHERS
def test_parts_of_a_fill_and_of_a_write_keep_their_class(
    probe: GuestProbe, stack: BcacheStack
) -> None:
    needs(stack.session, "class", limits=False)
    stack.drain()
    # The block layer splits each of 64 KiB, so that the front parts end elsewhere.
    stack.set_knob("ssd:queue/max_sectors_kb", 4)
    area: dict[str, str | int] = {"size": "64m", "offset": "1600m", "io_size": "1m"}
    miss, _ = gained(probe, stack, job(stack, "randread", "64k", **area), seed=28)
    assert miss("path", "read", "miss", "bytes") == MIB
    assert miss("dev", "cache", "write", "fg", "ios") == 0
    # With bcache's journal and btree.
    assert miss("dev", "cache", "write", "bg", "bytes") >= MIB
    gain, _ = gained(probe, stack, job(stack, "randwrite", "64k", **area), seed=29)
    assert gain("path", "write", "writeback", "bytes") == MIB
    assert gain("dev", "cache", "write", "fg", "bytes") == MIB


@pytest.mark.parametrize(
    ("mode", "path"),
    [("writeback", "writeback"), ("writethrough", "writethrough"), ("writearound", "bypass")],
)
def test_a_write_takes_the_path_of_the_mode(
    probe: GuestProbe, stack: BcacheStack, mode: str, path: str
) -> None:
    stack.drain()
    stack.set_knob("cache_mode", mode)
    writes = job(
        stack, "randwrite", size="64m", offset="256m", io_size="256k", ioengine="libaio", iodepth=4
    )
    gain, result = gained(probe, stack, writes, seed=24)
    assert gain("path", "write", path, "ios") == result.ios == 64
    assert gain("path", "write", path, "bytes") == result.bytes
    assert sum(gain.histogram("path", "write", path, "lat")) == 64
    on_disk = gain("dev", "backing", "write", "fg", "bytes")
    assert on_disk == (0 if mode == "writeback" else result.bytes)


@IN_FULL_ON_OTHERS
def test_parts_of_one_write_are_told_apart(probe: GuestProbe, stack: BcacheStack) -> None:
    # A layer above splits each write in two, which share their data and are in flight together.
    half, part, name = 512 * MIB, 32 * 1024, "two-halves"
    table = "".join(
        f"{start} {half // 512} linear {stack.device} {start}\n" for start in (0, half // 512)
    )
    options = ["--noudevsync", "--noudevrules"]
    stack.session.check(["modprobe", "dm-mod"])
    for mode, path in (("writeback", "writeback"), ("writethrough", "writethrough")):
        stack.drain()
        stack.set_knob("cache_mode", mode)
        stack.session.check(["dmsetup", "create", *options, name, "--table", table])
        try:
            stack.session.check(["dmsetup", "mknodes", name])
            place = {"offset": half - part, "size": 2 * part}
            writes = fio.Job(f"/dev/mapper/{name}", "write", "64k", options={**place, "loops": 16})
            gain, result = gained(probe, stack, writes, seed=27)
        finally:
            stack.session.check(["dmsetup", "remove", *options, name])
        assert gain("path", "write", path, "ios") == 2 * result.ios == 32
        assert gain("path", "write", path, "bytes") == result.bytes
        assert sum(gain.histogram("path", "write", path, "lat")) == 32
        assert gain("lost", "unmatched") == 0


@IN_FULL_ON_OTHERS
def test_the_reason_of_a_bypass_is_reported(probe: GuestProbe, stack: BcacheStack) -> None:
    stack.set_knob("sequential_cutoff", 128 * 1024)
    stream = job(stack, "read", "64k", size="2m", offset="1200m")
    sequential, _ = gained(probe, stack, stream, seed=25)
    assert sequential("bypass", "sequential", "ios") == 31
    assert sequential("path", "read", "bypass", "bytes") == 31 * 65536
    assert sequential("bypass", "other", "ios") == 0

    stack.set_knob("sequential_cutoff", 0)
    stack.drain()
    stack.set_knob("cache_mode", "writearound")
    around, _ = gained(
        probe, stack, job(stack, "randwrite", size="64m", offset="256m", io_size="64k"), seed=26
    )
    assert around("bypass", "other", "ios") == 16
    assert around("bypass", "other", "bytes") == 65536
    assert around("bypass", "sequential", "ios") == around("bypass", "congested", "ios") == 0


@IN_FULL_ON_OTHERS
def test_congestion_is_reported(guest: Session, probe: GuestProbe) -> None:
    # Only what takes over a millisecond counts as slow (bch_bbio_count_io_errors): a cache on a
    # disk that turns is slow at any speed of this machine.
    settings = {
        **SETTINGS,
        "cache/congested_write_threshold_us": 1,
        "sequential_cutoff": 1 << 30,
    }
    with BcacheStack(guest, hdd="ssd1", ssd="hdd1", settings=settings) as slow:
        probe.track(slow)
        deep: dict[str, str | int] = {"ioengine": "libaio", "iodepth": 32}
        writes = job(slow, "randwrite", "512k", size="256m", io_size="64m", **deep)
        gain, _ = gained(probe, slow, writes, seed=27)
        probe.send(f"untrack {slow.volume}")
    assert gain("bypass", "congested", "ios") > 0
    assert gain("bypass", "congested", "ios") >= gain("path", "write", "bypass", "ios")


@IN_FULL_ON_OTHERS
def test_latency_medians_are_those_of_fio(probe: GuestProbe, stack: BcacheStack) -> None:
    reads = job(stack, "randread", size="1g", offset="1000m", io_size="600k")
    miss, slow = gained(probe, stack, reads, seed=28)
    writes = job(stack, "randwrite", size="64m", io_size="2m")
    back, fast = gained(probe, stack, writes, seed=29)
    for gain, way, path, fio_ns in (
        (miss, "read", "miss", slow.only.read.p50_ns),
        (back, "write", "writeback", fast.only.write.p50_ns),
    ):
        low_us, high_us = percentile_us(gain.histogram("path", way, path, "lat"), 0.5)
        # fio's clock starts and stops in user space: never earlier than ours, and later by what
        # an emulated CPU that has to share the host needs to get there.
        assert low_us <= fio_ns / 1000 <= high_us * 1.15 + 1500


@IN_FULL_ON_OTHERS
def test_edges_alternate_and_idle_comes_in_time(probe: GuestProbe, stack: BcacheStack) -> None:
    probe.send(f"wait {stack.volume} {WAIT_NS}")
    start = len(probe.edges(stack.volume))
    for round_ in range(5):
        probe.wait(
            lambda _: [e["edge"] for e in probe.edges(stack.volume)][-1:] == ["idle"], "idle edge"
        )
        seen = len(probe.edges(stack.volume))
        fio.run(stack.session, job(stack, "randread", size="1g", io_size="40k"), seed=30 + round_)
        probe.wait(lambda _, n=seen: len(probe.edges(stack.volume)) > n, "busy edge")  # type: ignore[misc]
    probe.send(f"wait {stack.volume} 300000000")
    edges = probe.edges(stack.volume)
    assert all(a["edge"] != b["edge"] for a, b in itertools.pairwise(edges))
    idle_ns = sorted(e["idle_ns"] for e in edges[start:] if e["edge"] == "idle")
    assert idle_ns[0] >= WAIT_NS
    assert idle_ns[len(idle_ns) // 2] <= WAIT_NS + 30_000_000
    busy = [e for e in edges[start:] if e["edge"] == "busy"]
    gaps_ns = probe.tick(stack.volume)["gaps_ns"]
    assert sum(gaps_ns) >= sum(e["gap_ns"] for e in busy)


@IN_FULL_ON_OTHERS
def test_the_destage_queue_is_reported_while_paced(probe: GuestProbe, stack: BcacheStack) -> None:
    fio.run(stack.session, job(stack, "randwrite", size="1g", io_size="4m"), seed=40)
    before = len(of_type(probe.records(), "queue"))
    probe.send(f"pace {stack.volume} 10000000")
    stack.drain()
    last = probe.wait(
        lambda records: next(
            (r for r in reversed(of_type(records, "queue")) if r["done_ios"] and not r["inflight"]),
            None,
        ),
        "an empty queue",
    )
    probe.send(f"pace {stack.volume} 0")
    queue = of_type(probe.records(), "queue")[before:]
    assert max(record["inflight"] for record in queue) > 1
    assert all(
        later["done_bytes"] >= earlier["done_bytes"] for earlier, later in itertools.pairwise(queue)
    )
    assert last["bytes"] == last["reads"] == last["awaiting_write"] == last["fg"] == 0
    under_way = [r["inflight"] + r["reads"] + r["awaiting_write"] for r in queue]
    # bcache begins no more than 64 pieces (IN_FLIGHT in writeback.c); the counters of a sample are
    # not read at one instant, and an end that the kernel skipped is missing until all have ended.
    assert max(r["awaiting_write"] for r in queue) > 0
    missed = probe.tick(stack.volume)["lost"]["missed"]
    assert 32 <= max(under_way) <= 68 + missed
    probe.tick(stack.volume)
    count = len(of_type(probe.records(), "queue"))
    probe.tick(stack.volume)
    assert len(of_type(probe.records(), "queue")) == count


@IN_FULL_ON_OTHERS
def test_what_was_sent_before_tracking_is_not_lost(probe: GuestProbe, stack: BcacheStack) -> None:
    stack.drain()
    stack.set_knob("cache_mode", "writethrough")
    assert_earlier_requests_are_not_lost(probe, stack)

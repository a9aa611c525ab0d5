# SPDX-License-Identifier: GPL-2.0-only
"""The bcc probe on a kernel that hides its BTF: it counts what the libbpf probe counts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from tests.lab import fio, kernel, kernel_headers
from tests.lab.bcache_stack import BcacheStack
from tests.lab.conftest import without_lab
from tests.lab.dm_stack import DmCacheStack
from tests.lab.errors import NoLab
from tests.lab.fio_compare import job, misses_in, references
from tests.lab.guest import Guest
from tests.lab.probe import PROBE, GuestProbe
from tests.lab.session import Session
from tests.lab.wait import wait_until
from tests.probe_records import Difference, Record, of_type, percentile_us

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

# A kernel without type information: the probe becomes the bcc probe.
WITHOUT_BTF = ("unshare", "--mount", "sh", "-c")
HIDDEN = f'mount -t tmpfs none /sys/kernel/btf && exec {PROBE} "$@"'
SETTINGS = {
    "writeback_delay": 0,
    "writeback_percent": 40,
    "writeback_running": 0,
    "sequential_cutoff": 128 << 10,
    "cache/congested_read_threshold_us": 0,
    "cache/congested_write_threshold_us": 0,
}
# The two programs run one after the other, on an emulated CPU that has to share the host.
APART_NS = 20_000_000
# The bcc probe cannot read data_insert_op, which tells fills: they count as writes of users.
FILLS = {("dev", "cache", "write", way, what) for way in ("fg", "bg") for what in ("ios", "bytes")}


@pytest.fixture(scope="module")
def guest() -> Iterator[Session]:
    try:
        kernel_headers.fetch(kernel.chosen())
        with Guest() as session:
            session.check("modprobe bcache")
            yield session
    except NoLab as reason:
        without_lab(reason)


class Both(NamedTuple):
    libbpf: GuestProbe
    bcc: GuestProbe


@contextmanager
def both_probes(guest: Session) -> Iterator[Both]:
    tick = ("--tick-ms", "100")
    with (
        GuestProbe(guest, *tick) as libbpf,
        GuestProbe(guest, *tick, argv=(*WITHOUT_BTF, HIDDEN, "probe")) as bcc,
    ):
        yield Both(libbpf, bcc)


@pytest.fixture(scope="module")
def both(guest: Session) -> Iterator[Both]:
    with both_probes(guest) as running:
        yield running


def numbers(record: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The places of all counters of a tick but histograms."""
    if isinstance(record, dict):
        for key, value in record.items():
            yield from numbers(value, (*path, key))
    elif isinstance(record, int) and path[0] not in ("ns", "last_ns", "inflight"):
        yield path


def histograms(record: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The places of all histograms of a tick."""
    if isinstance(record, dict):
        for key, value in record.items():
            yield from histograms(value, (*path, key))
    elif isinstance(record, list):
        yield path


def assert_same_counts(libbpf: Difference, bcc: Difference, tick: Record) -> None:
    different = {
        path: (libbpf(*path), bcc(*path))
        for path in numbers(tick)
        if path not in FILLS and libbpf(*path) != bcc(*path)
    }
    assert different == {}
    for what in ("ios", "bytes"):
        fills = [("dev", "cache", "write", way, what) for way in ("fg", "bg")]
        assert sum(libbpf(*path) for path in fills) == sum(bcc(*path) for path in fills)


def assert_same_latency(libbpf: Difference, bcc: Difference, tick: Record) -> None:
    """Clocks are read at most half a millisecond apart, which an emulated CPU needs."""
    for path in histograms(tick):
        if path[-1] != "lat" or path[:3] == ("dev", "cache", "write"):
            continue
        one, other = libbpf.histogram(*path), bcc.histogram(*path)
        assert sum(one) == sum(other), path
        if sum(one) >= 20:
            low_us, high_us = percentile_us(one, 0.5)
            bcc_low_us, bcc_high_us = percentile_us(other, 0.5)
            assert bcc_low_us <= high_us * 1.25 + 500, path
            assert low_us <= bcc_high_us * 1.25 + 500, path


def test_bcache_is_measured_alike_field_by_field(guest: Session, both: Both) -> None:
    hello = both.bcc.wait_for("hello")
    assert hello["probe"] == "bcc"
    assert hello["signals"]["class"] == "ok, but fills count as foreground writes"
    with BcacheStack(guest, settings=SETTINGS) as stack:
        for probe in both:
            probe.track(stack)
        before = [probe.tick(stack.volume) for probe in both]
        sampled_before = [len(references(probe, stack.volume)) for probe in both]
        mixed = job(
            stack,
            "randrw",
            size="256m",
            io_size="2m",
            ioengine="libaio",
            iodepth=8,
            bsrange="4k-32k",
        )
        stream = job(stack, "read", "64k", size="8m", offset="1200m")
        fio.run(guest, mixed, seed=51)
        fio.run(guest, stream, seed=52)
        fio.run(guest, job(stack, "randread", size="64m", io_size="256k"), seed=53)
        stack.drain()
        after = [probe.tick(stack.volume) for probe in both]
        sampled = [
            sorted(references(probe, stack.volume)[start:])
            for probe, start in zip(both, sampled_before, strict=True)
        ]
        assert sampled[0] == sampled[1]
        assert sampled[0]
        libbpf, bcc = (Difference(*pair) for pair in zip(before, after, strict=True))
        assert libbpf("destage", "done_bytes") > 0
        assert libbpf("bypass", "sequential", "ios") > 0
        assert_same_counts(libbpf, bcc, after[0])
        assert_same_latency(libbpf, bcc, after[0])
        for way in ("read", "write"):
            assert libbpf.histogram("runs", way) == bcc.histogram("runs", way)
        for probe in both:
            probe.send(f"untrack {stack.volume}")
            probe.wait_for("untrack", vol=stack.volume)
        found = [misses_in(of_type(probe.records(), "heat", vol=stack.volume)) for probe in both]
        assert found[0] == found[1]
        assert found[0]


def returns(probe: GuestProbe) -> list[Record]:
    """The ends of gaps that are clearly longer than the wait.

    The first gap began when the volume was tracked, which is not the same time for both probes.
    """
    busy = [edge for edge in probe.edges("edges") if edge["edge"] == "busy"]
    return [edge for edge in busy[1:] if edge["gap_ns"] >= 500_000_000]


def gaps(probe: GuestProbe, volume: str) -> tuple[int, int]:
    """Count and sum in nanoseconds of the gaps from 2^19 us, about half a second, on."""
    tick = probe.tick(volume)
    return sum(tick["gaps"][19:]), sum(tick["gaps_ns"][19:])


def test_edges_come_at_the_same_times(guest: Session, both: Both) -> None:
    with BcacheStack(guest, settings=SETTINGS) as stack:
        for probe in both:
            probe.track(stack, "edges")
            probe.send("wait edges 100000000")
        for round_ in range(4):
            for probe in both:
                probe.wait(
                    lambda _, p=probe: [e["edge"] for e in p.edges("edges")][-1:] == ["idle"],  # type: ignore[misc]
                    "idle edge",
                )
            fio.run(guest, job(stack, "randread", size="1g", io_size="40k"), seed=60 + round_)
        libbpf, bcc = (returns(probe) for probe in both)
        assert len(libbpf) == len(bcc) >= 3
        for one, other in zip(libbpf, bcc, strict=True):
            assert abs(one["ns"] - other["ns"]) < APART_NS
            assert abs(one["gap_ns"] - other["gap_ns"]) < APART_NS
        (count, total_ns), (bcc_count, bcc_total_ns) = (gaps(probe, "edges") for probe in both)
        assert bcc_count == count >= 3
        assert abs(bcc_total_ns - total_ns) < count * APART_NS
        for probe in both:
            kinds = [e["edge"] for e in probe.edges("edges")]
            assert all(a != b for a, b in itertools.pairwise(kinds))
            probe.send("untrack edges")
            probe.wait_for("untrack", vol="edges")


def test_a_plain_disk_is_measured_alike(guest: Session, both: Both) -> None:
    disk = guest.device("hdd1")
    number = guest.read(f"/sys/block/{disk}/dev").strip()
    for probe in both:
        probe.send(f"track plain kind=disk volume={number} backing={number}")
        probe.wait_for("track", vol="plain")
    before = [probe.tick("plain") for probe in both]
    work = fio.Job(f"/dev/{disk}", "randread", "4k", options={"io_size": "400k"})
    fio.run(guest, work, seed=70)
    after = [probe.tick("plain") for probe in both]
    libbpf, bcc = (Difference(*pair) for pair in zip(before, after, strict=True))
    assert libbpf("fg", "read", "ios") == 100
    assert_same_counts(libbpf, bcc, after[0])
    assert_same_latency(libbpf, bcc, after[0])
    for probe in both:
        probe.send("untrack plain")


def test_dm_cache_is_measured_alike_but_for_its_paths(guest: Session, both: Both) -> None:
    with DmCacheStack(guest) as stack:
        for probe in both:
            probe.track_dm(stack)
        before = [probe.tick(stack.name) for probe in both]
        mixed = job(stack, "randrw", size="64m", io_size="1m", ioengine="libaio", iodepth=8)
        fio.run(guest, mixed, seed=71)
        after = [probe.tick(stack.name) for probe in both]
        libbpf, bcc = (Difference(*pair) for pair in zip(before, after, strict=True))
        assert "path" not in after[1] and "bypass" not in after[1]
        assert libbpf("fg", "read", "ios") > 0
        assert_same_counts(libbpf, bcc, after[1])
        assert_same_latency(libbpf, bcc, after[1])
        for probe in both:
            probe.send(f"untrack {stack.name}")
            probe.wait_for("untrack", vol=stack.name)


def test_the_module_is_let_go_with_its_last_volume(guest: Session, both: Both) -> None:
    def users() -> int:
        return int(guest.read("/sys/module/bcache/refcnt"))

    with BcacheStack(guest, settings=SETTINGS) as stack:
        alone = users()
        both.bcc.track(stack, "again")
        assert users() > alone
        both.bcc.send("untrack again")
        wait_until(lambda: users() == alone, 10, "the module to be released")


def test_missing_headers_are_named_with_their_package(guest: Session) -> None:
    release = guest.check("uname -r").strip()
    hidden = "mount -t tmpfs none /lib/modules && " + HIDDEN
    done = guest.run([*WITHOUT_BTF, hidden, "probe", "--check"])
    assert done.rc == 69
    assert f"install linux-headers-{release}" in done.stderr.splitlines()[-1]

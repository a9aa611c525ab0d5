# SPDX-License-Identifier: GPL-2.0-only
"""The simulation itself: its thread follows the kernel's rules, its probe the state."""

from __future__ import annotations

import json
import random

import pytest

from ebbgate.model.records import Direction, Edge, EdgeKind, QueueSample, Tick
from ebbgate.probes.protocol import parse_line
from ebbgate.signals.histogram import latency_bucket_us
from ebbgate.units import GIB, KIB, MIB, NS_PER_MS, NS_PER_S
from tests.lab.hdd_model import HddModel
from tests.lab.hdd_queue import AS_SOLD
from tests.sim.clock import Clock
from tests.sim.disk import Disk, Request
from tests.sim.probe import Probe, latency_bucket, log2_bucket
from tests.sim.scenarios import cold_reads
from tests.sim.simulation import DISK_BYTES, VOLUME, Pause, Script, Setup, Simulation, scattered
from tests.sim.writeback import AHEAD_NS_MAX, IN_FLIGHT_MAX, Writeback


def thread(percent: int, rate: int = 8, pieces: int = 1000) -> tuple[Clock, Writeback]:
    """A writeback thread on an ordinary disk."""
    clock = Clock()
    disk = Disk(clock, HddModel(DISK_BYTES, random.Random(1)))
    writeback = Writeback(clock, disk, scattered(64 * KIB, pieces * 64 * KIB))
    writeback.percent, writeback.rate_sectors_per_s = percent, rate
    return clock, writeback


def test_equal_times_run_in_the_order_in_which_they_were_asked_for() -> None:
    clock, ran = Clock(), list[int]()
    for number in range(5):
        clock.at(10, lambda number=number: ran.append(number))  # type: ignore[misc]
    clock.run_until(10)
    assert ran == [0, 1, 2, 3, 4]


def test_a_rate_is_kept() -> None:
    clock, writeback = thread(40, MIB // 512)
    clock.run_until(20 * NS_PER_S)
    assert writeback.done_bytes == pytest.approx(20 * MIB, rel=0.05)


def test_at_the_lowest_rate_a_pass_comes_each_two_and_a_half_seconds() -> None:
    clock, writeback = thread(40, 1)
    clock.run_until(20 * NS_PER_S)
    assert writeback.done_ios == 20 * NS_PER_S // AHEAD_NS_MAX


def test_a_rate_that_is_written_later_does_not_take_a_sleep_back() -> None:
    clock, writeback = thread(40, 1)
    clock.run_until(NS_PER_S)
    writeback.rate_sectors_per_s = 1 << 20
    writeback.wake()
    clock.run_until(2 * NS_PER_S)
    assert writeback.done_ios == 1


def test_percent_zero_and_a_wake_take_a_sleep_back() -> None:
    clock, writeback = thread(40, 1)
    clock.run_until(NS_PER_S)
    writeback.percent = 0
    clock.run_until(NS_PER_S + 100 * NS_PER_MS)
    assert writeback.done_ios == 1
    writeback.wake()
    clock.run_until(NS_PER_S + 200 * NS_PER_MS)
    assert writeback.done_ios > 5


def test_never_more_than_64_pieces_are_under_way() -> None:
    clock, writeback = thread(0)
    most = []
    clock.every(NS_PER_MS, lambda: most.append(writeback.in_flight_ios))
    clock.run_until(5 * NS_PER_S)
    assert max(most) == IN_FLIGHT_MAX


def test_dirty_data_that_comes_to_a_clean_cache_is_destaged() -> None:
    clock, writeback = thread(0, pieces=0)
    clock.run_until(NS_PER_S)
    writeback.add((0, 4096))
    assert writeback.dirty_bytes == 4096
    clock.run_until(2 * NS_PER_S)
    assert (writeback.dirty_bytes, writeback.done_bytes) == (0, 4096)


@pytest.mark.parametrize(("idle_class", "ahead"), [(False, 0), (True, 30)])
def test_the_idle_class_lets_users_pass_only_what_the_disk_has_not_got(
    idle_class: bool, ahead: int
) -> None:
    clock, order = Clock(), list[str]()
    disk = Disk(clock, HddModel(DISK_BYTES, random.Random(1)), queue_ios=2, idle_class=idle_class)
    for number in range(32):
        disk.submit(Request(number << 20, 4096, True, lambda: order.append("destage")))
    disk.submit(Request(0, 4096, False, lambda: order.append("user")))
    assert disk.depth_ios == 33
    clock.run_until(10 * NS_PER_S)
    assert order.index("user") == 32 - ahead


def test_no_destage_follows_while_the_disk_has_a_users_request() -> None:
    clock, order = Clock(), list[str]()
    disk = Disk(clock, HddModel(DISK_BYTES, random.Random(1)), AS_SOLD, idle_class=True)
    disk.submit(Request(GIB, 4096, False, lambda: order.append("user")))
    for number in range(4):
        disk.submit(Request(number << 20, 4096, True, lambda: order.append("destage"), write=True))
    clock.run_until(NS_PER_S)
    assert order == ["user", *["destage"] * 4]


@pytest.mark.parametrize("latency_us", [0, 1, 3, 4, 5, 7, 8, 15, 16, 1000, 123_456])
def test_a_latency_falls_into_the_bucket_that_the_controller_reads(latency_us: int) -> None:
    low, high = latency_bucket_us(latency_bucket(latency_us))
    assert low <= latency_us < high


def test_log2_buckets() -> None:
    assert [log2_bucket(v) for v in (0, 1, 2, 3, 4, 1023, 1024)] == [0, 0, 1, 1, 2, 9, 10]


def simulation_after(script: Script) -> Simulation:
    """A simulation with some dirty data, after the script."""
    simulation = Simulation(Setup(scattered(64 * KIB, 64 * MIB)))
    simulation.play(script, limit_ns=60 * NS_PER_S)
    return simulation


def test_the_probe_counts_what_users_did_and_nothing_of_destage() -> None:
    def load() -> Script:
        yield from cold_reads(random.Random(1), 50)
        yield Pause(2 * NS_PER_S)

    simulation = simulation_after(load())
    tick = [r for r in map(parse_line, simulation.lines) if isinstance(r, Tick)][-1]
    assert tick.arrivals[Direction.READ].ios == 50
    assert tick.paths[Direction.READ, "miss"].ios == 50
    assert sum(tick.backing_latency[Direction.READ]) == 50
    assert tick.arrivals[Direction.WRITE].ios == 0
    assert tick.destage_done.bytes > 0
    assert sum(tick.run_bytes[Direction.READ]) == 50 * 4096


def test_edges_alternate_and_queue_samples_come_only_while_the_gate_is_open() -> None:
    def load() -> Script:
        for _ in range(3):
            yield from cold_reads(random.Random(1), 20)
            yield Pause(2 * NS_PER_S)

    simulation = simulation_after(load())
    records = [r for r in map(parse_line, simulation.lines) if r is not None]
    kinds = [r.kind for r in records if isinstance(r, Edge)]
    assert kinds == [EdgeKind.IDLE, EdgeKind.BUSY] * 2 + [EdgeKind.IDLE]
    idle = False
    for record in records:
        if isinstance(record, Edge):
            idle, since_ns = record.kind is EdgeKind.IDLE, record.at_ns
        elif isinstance(record, QueueSample) and not idle:
            assert record.at_ns - since_ns < 20 * NS_PER_MS


def test_a_shorter_wait_gives_the_idle_edge_at_once() -> None:
    (clock, writeback), said = thread(10, pieces=0), list[str]()
    probe = Probe(clock, VOLUME, writeback, said.append)
    probe.start(NS_PER_S)
    probe.wait_ns = NS_PER_S
    clock.run_until(400 * NS_PER_MS)
    probe.command(f"wait {VOLUME} {100 * NS_PER_MS}")
    clock.run_until(400 * NS_PER_MS)
    edges = [json.loads(line) for line in said if '"edge"' in line]
    assert [edge["idle_ns"] for edge in edges] == [400 * NS_PER_MS]

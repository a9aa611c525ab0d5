# SPDX-License-Identifier: GPL-2.0-only
"""A shallow queue below bfq comes with the gap and goes with its residue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.frame import Frame
from ebbgate.model.records import Edge, QueueSample
from ebbgate.model.volume import DiskUsers, Kind
from ebbgate.policy.defaults import Policy, default_policy
from ebbgate.policy.engine import step
from ebbgate.policy.state import State
from ebbgate.policy.strategies.destage_state import DestageParams
from ebbgate.policy.strategies.disk_queue import described, holds_back
from ebbgate.policy.strategies.explanation import of_destage
from ebbgate.policy.strategies.gap_use import GapUse, Rest
from ebbgate.policy.strategies.idle_destage import gate_of, on_edge, on_queue
from ebbgate.policy.strategies.pace import DEPTH_WIDE_IOS
from ebbgate.signals.gap_ends import EndWindow
from ebbgate.units import KIB, MIB, NS_PER_MS
from tests.builders import busy_edge, busy_frame, idle_edge, idle_frame, queue_sample
from tests.sim.scenarios import GapDrain, gap_drain
from tests.sim.simulation import Setup, scattered, unpaced

BFQ = {"queue_depth:sda": "31", "scheduler:sda": "bfq"}
TWO = BFQ | {"queue_depth:sdb": "31", "scheduler:sdb": "bfq"}
PATHS = {"queue_depth:sda": "31", "queue_depth:sdb": "31"}
"""Of a multipath device."""
WIDE = Policy(destage=DestageParams(queue_depth=8))
OPEN = Gate(GateKind.OPEN, queue_depth=8)


@pytest.mark.parametrize(
    ("knobs", "foreign", "held"),
    [
        ({}, (), False),
        (BFQ, (), True),
        (TWO, (), True),
        (BFQ | {"scheduler:sda": "mq-deadline"}, (), False),
        (BFQ | {"scheduler:sda": "none"}, (), False),
        (TWO | {"scheduler:sdb": "mq-deadline"}, (), False),
        ({"scheduler:vda": "bfq"}, (), False),
        ({"queue_depth:sda": "31"}, (), False),
        (PATHS | {"scheduler:dm-0": "bfq"}, (), True),
        (PATHS | {"scheduler:dm-0": "mq-deadline"}, (), False),
        (BFQ, ("queue_depth:sda",), False),
        (TWO, ("queue_depth:sdb",), False),
        (BFQ, ("writeback_delay",), True),
        # As actuators.gate_worker has it.
        (BFQ, ("max_sectors_kb:sda",), True),
    ],
)
def test_all_disks_must_have_bfq_and_a_depth_to_set(
    knobs: dict[str, str], foreign: tuple[str, ...], held: bool
) -> None:
    frame = idle_frame(1000, knobs=knobs, foreign_knobs=frozenset(foreign))
    assert holds_back(frame) is held


@pytest.mark.parametrize(
    ("knobs", "text"),
    [
        (BFQ, "bfq, depth 31"),
        (TWO | {"scheduler:sdb": "none", "queue_depth:sdb": "4"}, "bfq and none, depth 31 and 4"),
        ({"scheduler:vda": "mq-deadline"}, "mq-deadline, no depth to set"),
        ({}, ""),
    ],
)
def test_the_queues_are_described_for_people(knobs: dict[str, str], text: str) -> None:
    assert described(idle_frame(1000, knobs=knobs)) == text


@pytest.mark.parametrize(
    ("users", "held", "text"),
    [
        (DiskUsers(("bcache1",)), False, "bfq, depth 31, shared with bcache1"),
        (DiskUsers((), ("sda2 (ext4 on /)",)), True, "bfq, depth 31, shared with sda2 (ext4 on /)"),
    ],
)
def test_a_disk_of_two_volumes_keeps_a_deep_queue_and_other_users_are_named(
    users: DiskUsers, held: bool, text: str
) -> None:
    frame = idle_frame(1000, knobs=BFQ, disk_users=users)
    assert (holds_back(frame), described(frame)) == (held, text)
    state, gate = run(busy_frame(500, knobs=BFQ), frame)
    assert (gate.kind, bool(gate.queue_depth)) == (GateKind.OPEN, held)
    assert WIDE.destage is not None
    condition = of_destage(state.destage, frame, WIDE.destage)[0]
    assert (condition.measured, condition.holds) == (text, held)
    assert condition.threshold.endswith("no other volume") is not held


def run(*events: Frame | Edge | QueueSample, policy: Policy | None = None) -> tuple[State, Gate]:
    """The state after these events, and its gate."""
    state, policy = State(), policy or WIDE
    assert policy.destage is not None
    for event in events:
        state, _ = step(state, event, policy, event.at_ns)
    return state, gate_of(state.destage, policy.destage)


def frames(**signals: Any) -> tuple[Frame | Edge, ...]:
    return (busy_frame(1000, knobs=BFQ, **signals), idle_edge(1500))


def test_the_gate_opens_wide_on_shallow_queues() -> None:
    assert run(*frames())[1] == OPEN


def test_under_pressure_the_gate_stays_paced() -> None:
    full = {"dirty_room_bytes": 0, "dirty_in_bytes_per_s": 1.0}
    _, gate = run(busy_frame(1000, knobs=BFQ), busy_frame(10_000, knobs=BFQ, **full))
    assert (gate.kind, gate.queue_depth) == (GateKind.PACED, 0)


def told(at_ms: int, probed_at_ms: int) -> Frame:
    """A tick that says that no write-back is in flight."""
    probed_at_ns = probed_at_ms * NS_PER_MS
    return busy_frame(at_ms, knobs=BFQ, destage_in_flight_ios=0, probed_at_ns=probed_at_ns)


@pytest.mark.parametrize(
    ("events", "depth"),
    [
        ((), 8),
        ((queue_sample(2020, 5),), 8),
        ((queue_sample(2020, 5), queue_sample(2040, 0)), 0),
        # In a bounded time they become deep again.
        ((queue_sample(3990, 5),), 8),
        ((queue_sample(4010, 5),), 0),
        # A tick from before the request says nothing of the residue.
        ((told(2010, 1990),), 8),
        ((told(2010, 2005),), 0),
    ],
)
def test_the_queues_stay_shallow_until_what_a_gap_left_is_written(
    events: tuple[Frame | QueueSample, ...], depth: int
) -> None:
    state, gate = run(*frames(), busy_edge(2000), *events)
    assert (gate.kind, gate.queue_depth) == (GateKind.CLOSED, depth)
    assert state.destage.sampled is bool(depth)


@pytest.mark.parametrize(("under_way", "depth"), [(3, 8), (0, 0)])
def test_the_queues_are_deep_before_users_return_once_nothing_is_under_way(
    under_way: int, depth: int
) -> None:
    state = run(*frames())[0].destage
    last = queue_sample(3980, under_way)
    state = replace(state, gap=replace(state.gap, rest=Rest.END, last=last))
    params = WIDE.destage or DestageParams()
    returned = on_edge(state, busy_edge(4000, 2500), params)
    assert [gate_of(each, params).queue_depth for each in (state, returned)] == [depth, depth]


def test_a_queue_that_somebody_else_sets_stays_while_the_gate_is_open() -> None:
    foreign = frozenset({"queue_depth:sda"})
    _, gate = run(*frames(), idle_frame(1600, knobs=BFQ, foreign_knobs=foreign))
    assert gate == Gate(GateKind.OPEN)


def test_without_a_depth_in_the_policy_the_queues_stay_deep() -> None:
    _, gate = run(*frames(), policy=Policy(destage=DestageParams(queue_depth=0)))
    assert gate == Gate(GateKind.OPEN)


def test_dm_cache_is_paced_on_shallow_queues() -> None:
    policy = default_policy(Kind.DM_CACHE)
    assert policy.destage is not None
    depth = policy.destage.queue_depth
    state, gate = run(*frames(), policy=policy)
    assert (gate.kind, gate.queue_depth) == (GateKind.PACED, depth)
    assert state.destage.sampled
    _, gate = run(*frames(), busy_edge(2000), policy=policy)
    assert (gate.kind, gate.queue_depth) == (GateKind.CLOSED, depth)


def test_dm_cache_cleans_many_blocks_on_deep_queues_where_the_end_is_foreseen() -> None:
    policy = default_policy(Kind.DM_CACHE)
    state, _ = run(*frames(), policy=policy)
    foreseen = GapUse(window=EndWindow(2_300 * NS_PER_MS, 2_450 * NS_PER_MS, 2_550 * NS_PER_MS))
    params = policy.destage
    assert params is not None
    destage = replace(state.destage, gap=foreseen)
    gate = gate_of(on_queue(destage, queue_sample(1520, 4), params), params)
    assert (gate.depth_ios, gate.queue_depth) == (DEPTH_WIDE_IOS, 0)


def simulated(**setup: Any) -> GapDrain:
    pieces = scattered(64 * KIB, 640 * MIB)
    return gap_drain(Setup(pieces, WIDE, scheduler="bfq", **setup), gaps=5)


def test_on_a_simulated_disk_nobody_waits_and_as_much_is_drained_as_without_rests() -> None:
    own = simulated(depth_settable=True)
    off = simulated(gate=lambda _: Gate(GateKind.CLOSED, 512))
    deep = simulated(gate=unpaced)
    # Until the ends are foreseen, the shallow queue alone keeps the first request short.
    assert own.drained_total_bytes >= 0.95 * deep.drained_total_bytes
    assert own.first_median_ns <= off.first_median_ns + 15 * NS_PER_MS
    assert max(own.first_ns) <= 2 * max(off.first_ns)

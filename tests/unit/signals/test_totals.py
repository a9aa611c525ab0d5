# SPDX-License-Identifier: GPL-2.0-only
"""What is counted of a volume only grows, whatever becomes of the probe."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.model.records import Tick
from ebbgate.model.status import FlowTotals, KnobChanges, VolumeTotals
from ebbgate.signals.frame import FrameState, on_tick, reset_counters, totals
from ebbgate.signals.histogram import (
    COARSE_BUCKETS,
    add,
    coarse_edge_us,
    coarse_latency,
    latency_bucket_us,
    latency_sum_ns,
)
from ebbgate.signals.totals import (
    OTHERS,
    Totals,
    add_changes,
    add_counts,
    add_pairs,
    tick_counts,
    volume_totals,
)
from tests.builders import action, tick
from tests.volume_loop_fixture import LoopHarness

COUNTS = st.lists(st.integers(min_value=0, max_value=1 << 40), max_size=108)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["grows", "is reset", "restarts"]),
        st.integers(min_value=0, max_value=1000),
        st.lists(st.integers(min_value=0, max_value=9), max_size=12),
    ),
    max_size=12,
)


def ticked(at_ns: int, ios: int, counts: list[int]) -> Tick:
    """A probe that has counted this many reads, and the same of everything else."""
    flow = {"ios": ios, "bytes": ios * 512}
    return tick(
        ns=at_ns,
        fg={"read": flow, "write": flow, "flush": 0, "discard": 0},
        path={"read": {"hit": {**flow, "lat": counts}}},
        runs={"read": counts, "write": []},
        gaps=counts,
        gaps_ns=counts,
        bypass={"sequential": flow},
        destage={"done_ios": ios, "done_bytes": ios * 512},
        lost={"ring": ios},
    )


def pairs(before: Any, after: Any) -> list[tuple[int, int]]:
    """All numbers of counts beside those of later ones."""
    if is_dataclass(before):
        names = [each.name for each in fields(before)]
        return [each for n in names for each in pairs(getattr(before, n), getattr(after, n))]
    if isinstance(before, dict):
        assert before.keys() <= after.keys()
        return [pair for key in before for pair in pairs(before[key], after[key])]
    if isinstance(before, tuple):
        assert len(before) <= len(after)
        return [
            pair for one, other in zip(before, after, strict=False) for pair in pairs(one, other)
        ]
    return [(before, after)]


@given(STEPS)
def test_no_total_ever_falls(steps: list[tuple[str, int, list[int]]]) -> None:
    state, ios, counts = FrameState(), 0, list[int]()
    before: Any = totals(on_tick(state, ticked(1, 0, [])))
    for number, (what, more, drawn) in enumerate(steps):
        grown = drawn if more else []
        if what == "grows":
            ios, counts = ios + more, add(counts, grown)
        elif what == "restarts":
            # A restart that is not announced shows in counters that fell.
            ios, counts = 0, []
        else:
            state, ios, counts = reset_counters(state), more, grown
        state = on_tick(state, ticked(1000 + number, ios, counts))
        after = totals(state)
        assert all(one <= other for one, other in pairs(before, after))
        before = after


def test_counts_of_earlier_probes_are_added() -> None:
    state = on_tick(FrameState(), ticked(1, 10, [1, 2]))
    state = on_tick(reset_counters(state), ticked(2, 30, [0, 0, 5]))
    found = totals(state)
    assert found is not None
    assert found.paths["read hit"].ios == 40
    assert found.paths["read hit"].latency_counts == (1, 2, 5)
    assert (found.gap_counts, found.gap_sum_ns) == ((1, 2, 5), 8)
    assert found.destage == FlowTotals(40, 40 * 512)
    assert found.lost["ring"] == 40


def test_a_probe_that_has_ended_keeps_its_totals_until_the_next_one_counts() -> None:
    state = on_tick(FrameState(), ticked(1, 10, []))
    assert totals(reset_counters(state)) == totals(state)
    assert totals(reset_counters(reset_counters(state))) == totals(state)


def test_without_probe_records_its_totals_are_unknown_and_not_zero() -> None:
    assert totals(reset_counters(FrameState())) is None
    found = volume_totals(Totals(7, None, {("writeback_rate", "idle_destage"): 2}, 3, {"gate": 1}))
    assert found == VolumeTotals(
        since_unix_ns=7,
        decisions=3,
        knob_changes=(KnobChanges("writeback_rate", "idle_destage", 2),),
        rollbacks={"gate": 1},
    )


@given(COUNTS, COUNTS)
def test_plus_adds_what_is_in_both_and_keeps_the_rest(one: list[int], other: list[int]) -> None:
    first, second = tick_counts(ticked(1, 3, one)), tick_counts(ticked(2, 4, other))
    first = replace(first, lost={"ring": 1}, bypass={})
    found = add_counts(first, replace(second, lost={"ring": 2, "streams": 5}))
    assert found.lost == {"ring": 3, "streams": 5}
    assert found.bypass == second.bypass
    assert list(found.gap_counts) == add(one, other)
    assert found.paths["read hit"].ios == 7
    assert sum(found.paths["read hit"].latency_counts) == sum(one) + sum(other)


# ---- buckets ------------------------------------------------------------------------------------
def test_the_coarse_buckets_are_two_an_octave_from_1_us_to_67_s() -> None:
    edges = [coarse_edge_us(bucket) for bucket in range(COARSE_BUCKETS)]
    assert edges[:9] == [1, 2, 3, 4, 6, 8, 12, 16, 24]
    assert edges[-2] == 1 << 26
    assert edges == sorted(set(edges))


@given(COUNTS)
def test_no_request_is_lost_or_moved_across_an_edge_of_the_coarse_buckets(
    counts: list[int],
) -> None:
    coarse = coarse_latency(counts)
    assert sum(coarse) == sum(counts)
    assert len(coarse) <= COARSE_BUCKETS
    for bucket in range(min(len(coarse), COARSE_BUCKETS - 1)):
        edge = coarse_edge_us(bucket)
        below = sum(c for fine, c in enumerate(counts) if latency_bucket_us(fine)[1] <= edge)
        assert sum(coarse[: bucket + 1]) == below


@given(COUNTS)
def test_the_sum_of_latencies_lies_between_those_of_all_lower_and_all_upper_edges(
    counts: list[int],
) -> None:
    edges = [latency_bucket_us(bucket) for bucket in range(len(counts))]
    low, high = (
        sum(count * edge[side] * 1000 for count, edge in zip(counts, edges, strict=True))
        for side in (0, 1)
    )
    assert low <= latency_sum_ns(counts) <= high


# ---- knobs --------------------------------------------------------------------------------------
def test_only_writes_that_changed_a_knob_are_counted() -> None:
    found = add_changes({}, [Outcome(action(), kind, 1) for kind in OutcomeKind])
    assert found == {("writeback_percent", "idle_destage"): 1}


def test_actors_without_number_become_one() -> None:
    found = add_pairs({}, [("writeback_rate", f"rule {number}") for number in range(1000)])
    assert len(found) == 257
    assert sum(found.values()) == 1000
    assert found["writeback_rate", OTHERS] == 744


def test_the_status_counts_writes_of_strategies_and_manual_ones(enforced: LoopHarness) -> None:
    enforced.gap_and_back()
    enforced.someone_writes("writeback_percent", "17")
    enforced.tick()
    for _ in range(5):
        enforced.tick()
    found = enforced.kept.document["totals"]
    counts = {(each["knob"], each["actor"]): each["count"] for each in found["knob_changes"]}
    assert counts["writeback_percent", "manual"] == 1
    # The value of before; closed, opened, closed.
    assert counts["writeback_rate", "idle_destage"] >= 3
    assert found["decisions"] == len(enforced.kept.decisions)
    assert found["rollbacks"] == {"gate": 0, "streams": 0}
    assert found["paths"] == {
        f"{op} {path}": {"ios": 0, "bytes": 0, "latency_counts": [], "latency_sum_ns": 0}
        for op, path in (("read", "hit"), ("write", "writeback"))
    }

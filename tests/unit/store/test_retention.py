# SPDX-License-Identifier: GPL-2.0-only
"""What is promised is kept, unless the size demands it; then the cheapest goes first."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.store import retention
from ebbgate.store.limits import SIZE_BYTES_MIN, HistoryLimits
from ebbgate.store.retention import TIERS, Tier
from ebbgate.store.rollup import SECOND_NS
from ebbgate.units import DAY_NS, HOUR_NS, MIB, MINUTE_NS
from tests.builders import action, busy_edge, decision, frame, proposal
from tests.unit.store.store_fixture import T0_NS, StoreHarness

SMALL = HistoryLimits(SIZE_BYTES_MIN, 30 * DAY_NS)
PROMISED = {
    "edges": 6 * HOUR_NS,
    "idle decisions": DAY_NS,
    "acted decisions": 7 * DAY_NS,
    "seconds": 6 * HOUR_NS,
    "actions": 30 * DAY_NS,
    "minutes": 30 * DAY_NS,
    "hours": 360 * DAY_NS,
    "tallies": 360 * DAY_NS,
}
"""As the documentation says, not as the code does."""
QUERIES = {
    "edges": "SELECT at_unix_ns FROM edges",
    "idle decisions": "SELECT at_unix_ns FROM decisions WHERE acted = 0",
    "acted decisions": "SELECT at_unix_ns FROM decisions WHERE acted = 1",
    "seconds": f"SELECT at_unix_ns FROM samples WHERE span_ns = {SECOND_NS}",
    "actions": "SELECT at_unix_ns FROM actions",
    "minutes": f"SELECT at_unix_ns FROM samples WHERE span_ns = {MINUTE_NS}",
    "hours": f"SELECT at_unix_ns FROM samples WHERE span_ns = {HOUR_NS}",
    "tallies": "SELECT at_unix_ns FROM tallies",
}


def something_of_all(harness: StoreHarness, at_ns: int, padding: int = 0) -> None:
    """One of everything that is kept, at this time."""
    store, text = harness.store, "x" * padding
    with store.batch():
        store.add_edge(busy_edge(1), 1, at_ns)
        store.add_decision(decision(proposal(reason=text)), at_ns)
        acted = store.add_decision(decision(proposal(reason=text)), at_ns)
        store.add_outcomes([Outcome(action(), OutcomeKind.CHANGED, 1, error=text)], acted, at_ns)
        harness.sample(frame(missing={"all": text}), at_ns=at_ns)


def times(harness: StoreHarness, what: str) -> list[int]:
    return sorted(row[0] for row in harness.query(QUERIES[what]))


def settle(harness: StoreHarness) -> None:
    """The first look, and then long enough for the clock to be believed."""
    harness.maintain()
    harness.go_on(HOUR_NS + MINUTE_NS)
    harness.maintain()


AGES = st.lists(
    st.integers(min_value=0, max_value=400 * 24).map(lambda hours: hours * HOUR_NS),
    min_size=1,
    max_size=8,
    unique=True,
)


@settings(max_examples=25)
@given(AGES)
def test_rows_are_deleted_exactly_by_age(ages: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        harness = StoreHarness(Path(folder))
        for age_ns in sorted(ages, reverse=True):
            something_of_all(harness, T0_NS - age_ns)
        settle(harness)
        for what, promised_ns in PROMISED.items():
            kept = times(harness, what)
            for age_ns in ages:
                # A minute or hour begins up to that long before its sample; time went on by 61 min.
                age_now_ns = age_ns + 61 * MINUTE_NS
                at_ns = T0_NS - age_ns
                found = any(at_ns - HOUR_NS < each <= at_ns for each in kept)
                if age_now_ns + HOUR_NS < promised_ns and what != "hours":
                    assert found, (what, age_ns)
                if age_now_ns > promised_ns + HOUR_NS:
                    assert at_ns not in kept, (what, age_ns)
        harness.store.close()


def test_a_shorter_age_applies_only_to_longer_tiers(harness: StoreHarness) -> None:
    short = HistoryLimits(256 * MIB, 2 * DAY_NS)
    kept = {f"{tier.table} {tier.where[:40]}": tier.kept_ns(short) for tier in TIERS}
    assert max(kept.values()) == 24 * DAY_NS
    assert sorted(kept.values())[:2] == [6 * HOUR_NS, 6 * HOUR_NS]


def fill(harness: StoreHarness, hours: int, padding: int) -> None:
    """Something of each kind every minute, for this time."""
    for minute in range(hours * 60):
        at_ns = harness.wall_ns
        store = harness.store
        with store.batch():
            for _ in range(4):
                store.add_edge(busy_edge(1), 1, at_ns)
                store.add_decision(decision(proposal(reason="x" * padding)), at_ns)
            number = store.add_decision(decision(proposal(reason="y" * padding)), at_ns)
            store.add_outcomes([Outcome(action(), OutcomeKind.CHANGED, 1)], number, at_ns)
            harness.sample(frame(missing={"all": "z" * padding}), at_ns=at_ns)
        harness.go_on(MINUTE_NS)
        if minute % 20 == 0:
            harness.maintain()


def test_the_size_is_kept_by_deleting_the_oldest_of_the_cheapest(tmp_path: Path) -> None:
    harness = StoreHarness(tmp_path, SMALL)
    fill(harness, 6, padding=9000)
    harness.maintain()
    used = retention.used_bytes(harness.connection)
    assert SMALL.pages_bytes * 0.7 < used <= SMALL.pages_bytes
    assert harness.size_bytes() <= SMALL.size_bytes
    idle, acted = times(harness, "idle decisions"), times(harness, "acted decisions")
    assert idle[0] > acted[0], "what led to nothing goes before what led to something"
    assert idle[-1] == acted[-1] == harness.wall_ns - MINUTE_NS, "the newest is kept"
    assert len(times(harness, "actions")) == 6 * 60, "what is worth more is not touched"
    harness.store.close()


def test_below_the_size_nothing_is_deleted_by_size(harness: StoreHarness) -> None:
    fill(harness, 3, padding=100)
    assert harness.count("decisions") == 3 * 60 * 5


def test_rows_dated_in_the_future_are_deleted_by_size(tmp_path: Path) -> None:
    harness = StoreHarness(tmp_path, SMALL)
    harness.wall_ns += 3000 * DAY_NS
    fill(harness, 4, padding=9000)
    harness.wall_ns = T0_NS
    fill(harness, 4, padding=9000)
    harness.maintain()
    assert harness.size_bytes() <= SMALL.size_bytes
    newest = times(harness, "idle decisions")
    assert harness.wall_ns - MINUTE_NS in newest
    harness.store.close()


def test_with_a_smaller_limit_the_file_shrinks(tmp_path: Path) -> None:
    harness = StoreHarness(tmp_path)
    fill(harness, 6, padding=9000)
    assert harness.size_bytes() > SMALL.size_bytes
    harness.restart(SMALL)
    harness.maintain()
    harness.restart(SMALL)
    assert harness.size_bytes() <= SMALL.size_bytes
    harness.store.close()


@pytest.mark.parametrize("tier", TIERS, ids=lambda tier: f"{tier.table}-{tier.where[:12]}")
def test_each_tier_is_found_by_an_index(harness: StoreHarness, tier: Tier) -> None:
    statements: list[str] = []
    harness.seconds(1)
    harness.connection.set_trace_callback(statements.append)
    retention.delete_rows(harness.connection, tier, ["bcache0"], T0_NS, older=True)
    harness.connection.set_trace_callback(None)
    (delete,) = [each for each in statements if each.lstrip().startswith("DELETE")]
    plan = [row[3] for row in harness.connection.execute(f"EXPLAIN QUERY PLAN {delete}")]
    assert not [step for step in plan if step.startswith("SCAN")], plan
    assert not [step for step in plan if "TEMP B-TREE" in step], plan


def test_a_step_touches_a_few_rows_only(tmp_path: Path) -> None:
    harness = StoreHarness(tmp_path)
    fill(harness, 5, padding=9000)
    harness.restart(SMALL)
    connection, steps = harness.connection, 0
    before = connection.total_changes
    while harness.store.maintain(harness.maintenance, harness.wall_ns, harness.mono_ns):
        steps += 1
        # A decision that goes takes its number out of its action, too.
        assert connection.total_changes - before <= 2 * 128
        before = connection.total_changes
    assert steps > 5
    harness.store.close()

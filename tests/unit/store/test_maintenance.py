# SPDX-License-Identifier: GPL-2.0-only
"""The history is rolled up as time passes, whatever the clock does, and stays small."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from ebbgate.store.limits import SIZE_BYTES_MIN, HistoryLimits
from ebbgate.store.rollup import SECOND_NS
from ebbgate.units import DAY_NS, HOUR_NS, MIB, MINUTE_NS, NS_PER_S
from tests.builders import decision, frame, proposal
from tests.unit.store.store_fixture import T0_NS, StoreHarness

GRACE_NS = 10 * NS_PER_S


def test_a_minute_is_rolled_up_when_it_is_over_and_not_before(harness: StoreHarness) -> None:
    harness.seconds(60, dirty_bytes=4096)
    harness.maintain()
    assert harness.rows(MINUTE_NS) == []
    harness.go_on(GRACE_NS)
    harness.maintain()
    (row,) = harness.rows(MINUTE_NS)
    assert (row["at_unix_ns"], row["samples"], row["dirty_bytes"]) == (T0_NS, 60, 4096)
    assert row["covered_ns"] == MINUTE_NS
    assert len(harness.rows(SECOND_NS)) == 60


def test_an_hour_is_made_of_its_minutes(harness: StoreHarness) -> None:
    for number in range(60):
        harness.seconds(2, dirty_bytes=number * MIB)
        harness.go_on(58 * NS_PER_S)
        harness.maintain()
    harness.go_on(GRACE_NS)
    harness.maintain()
    (row,) = harness.rows(HOUR_NS)
    assert (row["samples"], row["dirty_bytes_max"]) == (120, 59 * MIB)
    assert row["dirty_bytes"] == 59 * MIB // 2


def test_due_minutes_are_rolled_up_after_a_restart(harness: StoreHarness) -> None:
    harness.seconds(30)
    harness.restart()
    harness.seconds(30)
    harness.restart()
    harness.go_on(GRACE_NS)
    harness.maintain()
    assert [row["samples"] for row in harness.rows(MINUTE_NS)] == [60]


def test_samples_that_come_late_are_part_of_their_minute(harness: StoreHarness) -> None:
    harness.seconds(30)
    harness.go_on(MINUTE_NS)
    harness.maintain()
    harness.sample(frame(dirty_bytes=7), at_ns=T0_NS + 40 * NS_PER_S)
    harness.maintain()
    (row,) = harness.rows(MINUTE_NS)
    assert (row["samples"], row["dirty_bytes"]) == (31, 7)


def test_volumes_are_rolled_up_apart(harness: StoreHarness) -> None:
    for second in range(10):
        at_ns = T0_NS + second * NS_PER_S
        harness.sample(
            frame("bcache0", dirty_bytes=1), frame("vg-data", dirty_bytes=3), at_ns=at_ns
        )
    harness.go_on(2 * MINUTE_NS)
    harness.maintain()
    assert [row["dirty_bytes"] for row in harness.rows(MINUTE_NS, "vg-data")] == [3]
    assert [row["dirty_bytes"] for row in harness.rows(MINUTE_NS)] == [1]


# ---- the clock -----------------------------------------------------------------------------------
def test_a_clock_set_back_a_little_leaves_one_row_per_minute(harness: StoreHarness) -> None:
    harness.seconds(60, dirty_bytes=0)
    harness.go_on(GRACE_NS)
    harness.maintain()
    harness.wall_ns = T0_NS + NS_PER_S // 2
    harness.seconds(60, dirty_bytes=4096)
    harness.go_on(GRACE_NS)
    harness.maintain()
    (row,) = harness.rows(MINUTE_NS)
    assert (row["samples"], row["dirty_bytes"]) == (120, 2048)


def test_a_clock_set_back_beyond_the_seconds_keeps_the_fuller_minute(harness: StoreHarness) -> None:
    harness.seconds(60, dirty_bytes=1)
    harness.maintain()
    harness.go_on(DAY_NS)
    harness.maintain()
    assert harness.rows(SECOND_NS) == [], "a day later only the minute is left"
    harness.wall_ns = T0_NS
    harness.seconds(20, dirty_bytes=2)
    harness.go_on(MINUTE_NS)
    harness.maintain()
    (row,) = harness.rows(MINUTE_NS)
    assert (row["samples"], row["dirty_bytes"]) == (60, 1)


def test_rows_from_a_clock_that_was_ahead_are_rolled_up(harness: StoreHarness) -> None:
    harness.wall_ns = T0_NS + 100 * DAY_NS
    harness.seconds(60)
    harness.wall_ns = T0_NS
    harness.maintain()
    assert [row["samples"] for row in harness.rows(MINUTE_NS)] == [60]


@pytest.mark.parametrize("jump_ns", [3650 * DAY_NS, -3650 * DAY_NS])
def test_nothing_is_deleted_right_after_the_clock_was_set(
    harness: StoreHarness, jump_ns: int
) -> None:
    harness.seconds(60)
    harness.store.add_decision(decision(proposal()), harness.wall_ns)
    harness.maintain()
    harness.wall_ns += jump_ns
    for _ in range(50):
        harness.go_on(MINUTE_NS)
        harness.maintain()
    harness.wall_ns -= jump_ns
    harness.go_on(MINUTE_NS)
    harness.maintain()
    assert (harness.count("decisions"), len(harness.rows(SECOND_NS))) == (1, 60)


def test_nothing_is_deleted_on_a_machine_that_starts_in_1970(harness: StoreHarness) -> None:
    harness.seconds(60)
    harness.go_on(GRACE_NS)
    harness.maintain()
    harness.restart()
    harness.wall_ns = 60 * NS_PER_S
    for _ in range(3):
        harness.seconds(60)
        harness.maintain()
    harness.wall_ns = T0_NS + 10 * MINUTE_NS
    harness.maintain()
    assert [row["at_unix_ns"] for row in harness.rows(MINUTE_NS)][-1] == T0_NS
    assert len(harness.rows(SECOND_NS)) == 4 * 60


def test_a_clock_that_was_set_is_trusted_after_an_hour(
    harness: StoreHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.seconds(60)
    harness.maintain()
    harness.wall_ns += 2 * DAY_NS
    harness.maintain()
    assert len(harness.rows(SECOND_NS)) == 60
    harness.go_on(HOUR_NS + MINUTE_NS)
    harness.maintain()
    assert harness.rows(SECOND_NS) == []
    assert [r.getMessage() for r in caplog.records].count(
        "the clock was set or the machine slept: nothing is deleted by age for an hour"
    ) == 1


def test_after_a_long_pause_nothing_is_deleted_for_an_hour(harness: StoreHarness) -> None:
    harness.seconds(60)
    harness.restart()
    harness.go_on(2 * DAY_NS)
    harness.maintain()
    assert len(harness.rows(SECOND_NS)) == 60
    harness.go_on(HOUR_NS + MINUTE_NS)
    harness.maintain()
    assert harness.rows(SECOND_NS) == []


# ---- bounds of a step, and space -----------------------------------------------------------------
@pytest.mark.parametrize(
    "damage",
    [
        "paths = 'nonsense'",
        "paths = CAST(x'ff7b7d' AS TEXT)",
        "dirty_bytes = 9e999",
        "bypass_bytes = 9223372036854775807",
    ],
)
def test_invalid_rows_cost_only_their_minute(
    harness: StoreHarness, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    harness.seconds(120)
    with closing(sqlite3.connect(harness.path)) as other:
        other.execute(f"UPDATE samples SET {damage} WHERE at_unix_ns <= ?", (T0_NS + NS_PER_S,))
        other.commit()
    harness.go_on(GRACE_NS)
    harness.maintain()
    assert [
        row["at_unix_ns"]
        for row in harness.query("SELECT at_unix_ns FROM samples WHERE span_ns = ?", (MINUTE_NS,))
    ] == [T0_NS + MINUTE_NS]
    assert "skipped invalid rows" in caplog.text


def test_space_is_freed_when_much_is_deleted(harness: StoreHarness) -> None:
    big = decision(proposal(reason="x" * 12_000))
    for _ in range(10):
        with harness.store.batch():
            for _ in range(80):
                harness.store.add_decision(big, harness.wall_ns)
    harness.maintain()
    full = harness.size_bytes()
    harness.go_on(MINUTE_NS)
    harness.sample(frame())
    harness.go_on(2 * DAY_NS)
    harness.maintain()
    harness.restart()
    assert harness.count("decisions") == 0
    assert harness.size_bytes() < full / 2


def test_no_unused_page_is_kept_in_a_file_that_is_too_large(harness: StoreHarness) -> None:
    big = decision(proposal(reason="x" * 12_000))
    for _ in range(30):
        with harness.store.batch():
            for _ in range(40):
                harness.store.add_decision(big, harness.wall_ns)
    harness.maintain()
    small = HistoryLimits(SIZE_BYTES_MIN)
    assert harness.store.file_bytes() > 1.5 * small.file_bytes
    # The administrator has lowered history_size.
    harness.restart(small)
    for _ in range(4):
        harness.go_on(MINUTE_NS)
        harness.maintain()
    assert harness.store.file_bytes() <= small.file_bytes
    assert harness.count("decisions") > 100


def test_maintenance_without_work_runs_at_most_two_statements(harness: StoreHarness) -> None:
    harness.seconds(30)
    harness.maintain()
    statements: list[str] = []
    harness.connection.set_trace_callback(statements.append)
    assert not harness.store.maintain(
        harness.maintenance, harness.wall_ns, harness.mono_ns + NS_PER_S
    )
    assert len(statements) <= 2

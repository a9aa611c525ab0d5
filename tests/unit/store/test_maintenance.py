# SPDX-License-Identifier: GPL-2.0-only
"""The history is rolled up as time passes, whatever the clock does, and stays small."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ebbgate.store.limits import DAY_NS, SIZE_BYTES_MIN, HistoryLimits
from ebbgate.store.rollup import HOUR_NS, MINUTE_NS, SECOND_NS
from ebbgate.units import MIB, NS_PER_S
from tests.builders import decision, frame, proposal
from tests.unit.store.store_fixture import T0_NS, StoreBench

GRACE_NS = 10 * NS_PER_S


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[StoreBench]:
    made = StoreBench(tmp_path)
    yield made
    made.store.close()


def test_a_minute_is_rolled_up_when_it_is_over_and_not_before(bench: StoreBench) -> None:
    bench.seconds(60, dirty_bytes=4096)
    bench.maintain()
    assert bench.rows(MINUTE_NS) == []
    bench.go_on(GRACE_NS)
    bench.maintain()
    (row,) = bench.rows(MINUTE_NS)
    assert (row["at_unix_ns"], row["samples"], row["dirty_bytes"]) == (T0_NS, 60, 4096)
    assert row["covered_ns"] == MINUTE_NS
    assert len(bench.rows(SECOND_NS)) == 60


def test_an_hour_is_made_of_its_minutes(bench: StoreBench) -> None:
    for number in range(60):
        bench.seconds(2, dirty_bytes=number * MIB)
        bench.go_on(58 * NS_PER_S)
        bench.maintain()
    bench.go_on(GRACE_NS)
    bench.maintain()
    (row,) = bench.rows(HOUR_NS)
    assert (row["samples"], row["dirty_bytes_max"]) == (120, 59 * MIB)
    assert row["dirty_bytes"] == 59 * MIB // 2


def test_what_was_due_is_rolled_up_after_a_restart(bench: StoreBench) -> None:
    bench.seconds(30)
    bench.restart()
    bench.seconds(30)
    bench.restart()
    bench.go_on(GRACE_NS)
    bench.maintain()
    assert [row["samples"] for row in bench.rows(MINUTE_NS)] == [60]


def test_samples_that_come_late_are_part_of_their_minute(bench: StoreBench) -> None:
    bench.seconds(30)
    bench.go_on(MINUTE_NS)
    bench.maintain()
    bench.sample(frame(dirty_bytes=7), at_ns=T0_NS + 40 * NS_PER_S)
    bench.maintain()
    (row,) = bench.rows(MINUTE_NS)
    assert (row["samples"], row["dirty_bytes"]) == (31, 7)


def test_volumes_are_rolled_up_apart(bench: StoreBench) -> None:
    for second in range(10):
        at_ns = T0_NS + second * NS_PER_S
        bench.sample(frame("bcache0", dirty_bytes=1), frame("vg-data", dirty_bytes=3), at_ns=at_ns)
    bench.go_on(2 * MINUTE_NS)
    bench.maintain()
    assert [row["dirty_bytes"] for row in bench.rows(MINUTE_NS, "vg-data")] == [3]
    assert [row["dirty_bytes"] for row in bench.rows(MINUTE_NS)] == [1]


# ---- the clock -----------------------------------------------------------------------------------
def test_a_clock_set_back_a_little_leaves_one_account_of_a_minute(bench: StoreBench) -> None:
    bench.seconds(60, dirty_bytes=0)
    bench.go_on(GRACE_NS)
    bench.maintain()
    bench.wall_ns = T0_NS + NS_PER_S // 2
    bench.seconds(60, dirty_bytes=4096)
    bench.go_on(GRACE_NS)
    bench.maintain()
    (row,) = bench.rows(MINUTE_NS)
    assert (row["samples"], row["dirty_bytes"]) == (120, 2048)


def test_a_clock_set_back_beyond_the_seconds_keeps_the_fuller_minute(bench: StoreBench) -> None:
    bench.seconds(60, dirty_bytes=1)
    bench.maintain()
    bench.go_on(DAY_NS)
    bench.maintain()
    assert bench.rows(SECOND_NS) == [], "a day later only the minute is left"
    bench.wall_ns = T0_NS
    bench.seconds(20, dirty_bytes=2)
    bench.go_on(MINUTE_NS)
    bench.maintain()
    (row,) = bench.rows(MINUTE_NS)
    assert (row["samples"], row["dirty_bytes"]) == (60, 1)


def test_what_a_clock_that_was_ahead_has_written_is_rolled_up_too(bench: StoreBench) -> None:
    bench.wall_ns = T0_NS + 100 * DAY_NS
    bench.seconds(60)
    bench.wall_ns = T0_NS
    bench.maintain()
    assert [row["samples"] for row in bench.rows(MINUTE_NS)] == [60]


@pytest.mark.parametrize("jump_ns", [3650 * DAY_NS, -3650 * DAY_NS])
def test_a_clock_that_was_set_takes_nothing_from_the_history(
    bench: StoreBench, jump_ns: int
) -> None:
    bench.seconds(60)
    bench.store.add_decision(decision(proposal()), bench.wall_ns)
    bench.maintain()
    bench.wall_ns += jump_ns
    for _ in range(50):
        bench.go_on(MINUTE_NS)
        bench.maintain()
    bench.wall_ns -= jump_ns
    bench.go_on(MINUTE_NS)
    bench.maintain()
    assert (bench.count("decisions"), len(bench.rows(SECOND_NS))) == (1, 60)


def test_a_machine_that_starts_in_1970_takes_nothing_from_the_history(bench: StoreBench) -> None:
    bench.seconds(60)
    bench.go_on(GRACE_NS)
    bench.maintain()
    bench.restart()
    bench.wall_ns = 60 * NS_PER_S
    for _ in range(3):
        bench.seconds(60)
        bench.maintain()
    bench.wall_ns = T0_NS + 10 * MINUTE_NS
    bench.maintain()
    assert [row["at_unix_ns"] for row in bench.rows(MINUTE_NS)][-1] == T0_NS
    assert len(bench.rows(SECOND_NS)) == 4 * 60


def test_a_clock_that_was_set_is_believed_after_an_hour(
    bench: StoreBench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    bench.seconds(60)
    bench.maintain()
    bench.wall_ns += 2 * DAY_NS
    bench.maintain()
    assert len(bench.rows(SECOND_NS)) == 60
    bench.go_on(HOUR_NS + MINUTE_NS)
    bench.maintain()
    assert bench.rows(SECOND_NS) == []
    assert [r.getMessage() for r in caplog.records].count(
        "the clock was set or the machine slept: nothing is deleted by age for an hour"
    ) == 1


def test_after_a_long_rest_nothing_is_forgotten_for_an_hour(bench: StoreBench) -> None:
    bench.seconds(60)
    bench.restart()
    bench.go_on(2 * DAY_NS)
    bench.maintain()
    assert len(bench.rows(SECOND_NS)) == 60
    bench.go_on(HOUR_NS + MINUTE_NS)
    bench.maintain()
    assert bench.rows(SECOND_NS) == []


# ---- bounds of a step, and space -----------------------------------------------------------------
def test_rows_that_make_no_sense_cost_their_minute_only(
    bench: StoreBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.seconds(120)
    with closing(sqlite3.connect(bench.path)) as other:
        other.execute("UPDATE samples SET paths = 'nonsense' WHERE at_unix_ns = ?", (T0_NS,))
        other.commit()
    bench.go_on(GRACE_NS)
    bench.maintain()
    assert [
        row["at_unix_ns"]
        for row in bench.query("SELECT at_unix_ns FROM samples WHERE span_ns = ?", (MINUTE_NS,))
    ] == [T0_NS + MINUTE_NS]
    assert "skipped invalid rows" in caplog.text


def test_space_is_given_back_when_much_is_forgotten(bench: StoreBench) -> None:
    big = decision(proposal(reason="x" * 12_000))
    for _ in range(10):
        with bench.store.batch():
            for _ in range(80):
                bench.store.add_decision(big, bench.wall_ns)
    bench.maintain()
    full = bench.size_bytes()
    bench.go_on(MINUTE_NS)
    bench.sample(frame())
    bench.go_on(2 * DAY_NS)
    bench.maintain()
    bench.restart()
    assert bench.count("decisions") == 0
    assert bench.size_bytes() < full / 2


def test_no_unused_page_is_kept_in_a_file_that_is_too_large(bench: StoreBench) -> None:
    big = decision(proposal(reason="x" * 12_000))
    for _ in range(30):
        with bench.store.batch():
            for _ in range(40):
                bench.store.add_decision(big, bench.wall_ns)
    bench.maintain()
    small = HistoryLimits(SIZE_BYTES_MIN)
    assert bench.store.file_bytes() > 1.5 * small.file_bytes
    # The administrator has lowered history_size.
    bench.restart(small)
    for _ in range(4):
        bench.go_on(MINUTE_NS)
        bench.maintain()
    assert bench.store.file_bytes() <= small.file_bytes
    assert bench.count("decisions") > 100


def test_while_all_is_in_order_a_look_costs_next_to_nothing(bench: StoreBench) -> None:
    bench.seconds(30)
    bench.maintain()
    statements: list[str] = []
    bench.store._connection.set_trace_callback(statements.append)
    assert not bench.store.maintain(bench.upkeep, bench.wall_ns, bench.mono_ns + NS_PER_S)
    assert len(statements) <= 2

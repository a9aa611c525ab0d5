# SPDX-License-Identifier: GPL-2.0-only
"""`report` summarizes changes and their gain from the history, and exports rows."""

from __future__ import annotations

import csv
import io
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from ebbgate.cli.report import since_unix_ns, spark
from ebbgate.errors import UsageError
from ebbgate.model.decision import Action, Gate, GateKind, Outcome, OutcomeKind
from ebbgate.model.frame import PathLatency, Rates
from ebbgate.model.records import Direction
from ebbgate.store.report_queries import ReportHistory
from ebbgate.units import DAY_NS, HOUR_NS, MIB, MINUTE_NS, NS_PER_MS, NS_PER_S
from tests.builders import action, busy_edge, decision, frame, proposal
from tests.unit.conftest import NOW_NS, Cli
from tests.unit.store.store_fixture import StoreHarness
from tests.unit.store.test_migrations import unreleased_history

NOW_HOUR_NS = NOW_NS - NOW_NS % HOUR_NS
OPEN = Gate(GateKind.PACED, 10 << 20)


@pytest.fixture
def harness(cli: Cli) -> Iterator[StoreHarness]:
    """The history of the command line's machine; its clock is five hours back."""
    made = StoreHarness(cli.state_dir)
    made.wall_ns = NOW_HOUR_NS - 5 * HOUR_NS
    yield made
    made.store.close()


def load(read_ms: int, ios: int = 100, **signals: Any) -> dict[str, Any]:
    """The signals of a second under load."""
    taken = PathLatency(ios, ios * 4096, read_ms * NS_PER_MS // 2, read_ms * NS_PER_MS)
    known: dict[str, Any] = {
        "paths": {(Direction.READ, "hit"): taken, (Direction.READ, "miss"): taken},
        "foreground": {d: Rates(100, 4e5) for d in Direction},
        "dirty_bytes": 64 * MIB,
        "destage_bytes_per_s": 0.0,
        "idle": False,
        "bypass_bytes": {"sequential": 0},
    }
    return {**known, **signals}


def hours(harness: StoreHarness, count: int, mode: str, **signals: Any) -> None:
    """A sample every 20 s for this time, rolled up as time passes."""
    for _ in range(count * 60):
        with harness.store.batch():
            for _ in range(3):
                harness.sample(frame(**signals), mode=mode)
                harness.go_on(20 * NS_PER_S)
        harness.maintain()


def document(cli: Cli, *words: str) -> dict[str, Any]:
    found = cli("report", "--json", *words)
    assert found.code == 0, found.err
    (volume,) = found.document["volumes"]
    return dict(volume)


# ---- what was done -------------------------------------------------------------------------------
def test_knob_writes_are_counted_by_strategy_knob_and_outcome(
    cli: Cli, harness: StoreHarness
) -> None:
    kinds = [OutcomeKind.CHANGED, OutcomeKind.CHANGED, OutcomeKind.REFUSED]
    for kind in kinds:
        harness.store.add_outcomes([Outcome(action(), kind, 1)], None, harness.wall_ns)
    assert document(cli)["done"]["writes"] == [
        {
            "strategy": "idle_destage",
            "knob": "writeback_percent",
            "outcomes": {"changed": 2, "refused": 1},
        }
    ]
    assert "2 changed, 1 refused" in cli("report").out


def test_a_gap_is_used_when_a_knob_was_written_for_it_and_counts_once(
    cli: Cli, harness: StoreHarness
) -> None:
    store, at_ns = harness.store, harness.wall_ns
    for stand, writes in (("destage", 2), ("destage", 0), ("wait", 1), ("pressure", 1)):
        store.add_edge(busy_edge(1, gap_ms=2000), 1, at_ns)
        decided = decision(
            proposal("idle_destage", gate=OPEN, reason=f"{stand}: idle 410 ms"),
            gate=OPEN,
            gate_strategy="idle_destage",
        )
        number = store.add_decision(decided, at_ns)
        for _ in range(writes):
            store.add_outcomes([Outcome(action(), OutcomeKind.CHANGED, 1)], number, at_ns)
    gaps = document(cli)["done"]["gaps"]
    assert gaps == {"seen": 4, "length_ns": 8 * NS_PER_S, "used": 1, "pressure": 1}
    assert "4 seen, 8 s in total; 1 used, 1 times under pressure" in cli("report").out


def test_counts_remain_after_events_are_deleted(cli: Cli, harness: StoreHarness) -> None:
    harness.maintain()
    harness.wall_ns -= 20 * DAY_NS
    for _ in range(7):
        harness.store.add_edge(busy_edge(1), 1, harness.wall_ns)
    harness.go_on(20 * DAY_NS)
    harness.maintain()
    harness.go_on(2 * HOUR_NS)
    harness.maintain()
    assert harness.count("edges") == 0
    assert document(cli, "--since", "30d")["done"]["gaps"]["seen"] == 7


def test_write_back_in_gaps_and_under_load_are_separate(cli: Cli, harness: StoreHarness) -> None:
    hours(harness, 1, "enforce", **load(1, destage_bytes_per_s=2.0 * MIB, idle=True))
    hours(harness, 1, "enforce", **load(1, destage_bytes_per_s=1.0 * MIB))
    destaged = document(cli)["done"]["destaged"]
    assert destaged["in_gaps_bytes"] == pytest.approx(7200 * MIB, rel=0.01)
    assert destaged["under_load_bytes"] == pytest.approx(3600 * MIB, rel=0.01)


def by_somebody(harness: StoreHarness, knob: str, value: str) -> None:
    """The daemon has found a value of somebody else."""
    found = Outcome(action(knob), OutcomeKind.MANUAL, 1, read_back=value)
    harness.store.add_outcomes([found], None, harness.wall_ns)


def test_a_manual_change_has_time_and_value(cli: Cli, harness: StoreHarness) -> None:
    by_somebody(harness, "sequential_cutoff", "0")
    refused = Outcome(action("writeback_delay"), OutcomeKind.MANUAL, 1)
    harness.store.add_outcomes([refused], None, harness.wall_ns)
    harness.seconds(1)
    (override,) = document(cli)["done"]["overrides"]
    assert (override["knob"], override["found"]) == ("sequential_cutoff", "found 0")
    assert "found 0; left alone since then" in " ".join(cli("report").out.split())


def test_streams_that_were_kept_out_are_counted_with_the_bytes(
    cli: Cli, harness: StoreHarness
) -> None:
    decided = decision(proposal("stream_bypass", reason="bypass: the room runs out"))
    number = harness.store.add_decision(decided, harness.wall_ns)
    narrower = Action("bcache0", "sequential_cutoff", None, "1048576", "stream_bypass", "")
    outcome = Outcome(narrower, OutcomeKind.CHANGED, 1)
    harness.store.add_outcomes([outcome], number, harness.wall_ns)
    hours(harness, 1, "enforce", **load(1, bypass_bytes={"sequential": MIB}))
    streams = document(cli)["done"]["streams"]
    assert streams["kept_out"] == 1
    # As requests, bytes are counted by sample: 180 of them, 20 s apart.
    assert streams["bypassed_bytes"] == 180 * MIB


# ---- what it brought -----------------------------------------------------------------------------
def test_latency_is_shown_with_and_without_tuning(cli: Cli, harness: StoreHarness) -> None:
    hours(harness, 2, "advise", **load(40))
    hours(harness, 2, "enforce", **load(10))
    (hit, miss) = document(cli)["brought"]["latency"]
    assert hit == {
        "path": "read hit",
        "untouched": {"ios": 36_000, "p99_ns": 40 * NS_PER_MS},
        "tuned": {"ios": 36_000, "p99_ns": 10 * NS_PER_MS},
    }
    assert miss["path"] == "read miss"
    line = next(line for line in cli("report").out.splitlines() if "read hit" in line)
    assert " ".join(line.split()) == "read hit 40 ms 10 ms 36000 / 36000"


def test_too_little_load_gives_no_comparison(cli: Cli, harness: StoreHarness) -> None:
    hours(harness, 1, "advise", **load(40, ios=5))
    hours(harness, 1, "enforce", **load(10))
    (hit, _) = document(cli)["brought"]["latency"]
    assert (hit["untouched"], hit["tuned"]["ios"]) == (None, 18_000)
    assert "unknown" in next(x for x in cli("report").out.splitlines() if "read hit" in x)


def test_an_hour_with_a_mode_change_is_not_compared(cli: Cli, harness: StoreHarness) -> None:
    for mode in ("advise", "enforce") * 30:
        with harness.store.batch():
            for _ in range(3):
                harness.sample(frame(**load(10)), mode=mode)
                harness.go_on(20 * NS_PER_S)
        harness.maintain()
    harness.go_on(2 * MINUTE_NS)
    harness.maintain()
    found = document(cli)
    assert found["brought"]["latency"] == []
    assert found["mode_s"] == {"unknown": 3600.0}


def test_the_dirty_level_is_drawn_over_the_time_with_its_holes(
    cli: Cli, harness: StoreHarness
) -> None:
    hours(harness, 1, "enforce", **load(1, dirty_bytes=0))
    harness.go_on(HOUR_NS)
    hours(harness, 1, "enforce", **load(1, dirty_bytes=80 * MIB))
    dirty = document(cli, "--since", "6h")["brought"]["dirty"]
    assert (dirty["mean_bytes"], dirty["most_bytes"]) == (40 * MIB, 80 * MIB)
    assert dirty["clean_ratio"] == 0.5
    assert {0, None, 80 * MIB} <= set(dirty["series_bytes"])
    # Two of six hours, and what is left of the points at their ends.
    assert 10 <= sum(level is not None for level in dirty["series_bytes"]) <= 13
    line = next(x for x in cli("report", "--since", "6h").out.splitlines() if "dirty" in x)
    assert "▁" in line
    assert "█" in line
    assert "?" in line


def test_a_spark_line_is_relative_to_its_highest_point() -> None:
    assert spark([0.0, None, 35.0, 70.0]) == "▁?▅█"
    assert spark([0.0, 0.0]) == "▁▁"
    assert spark([None]) == "?"


def test_unmeasured_figures_are_unknown_not_zero(cli: Cli, harness: StoreHarness) -> None:
    harness.seconds(30)
    found = document(cli)
    assert found["done"]["destaged"] == {"in_gaps_bytes": None, "under_load_bytes": None}
    assert found["done"]["streams"]["bypassed_bytes"] is None
    assert found["brought"]["hit_ratio"] is None
    assert found["brought"]["dirty"]["mean_bytes"] is None
    out = cli("report").out
    assert "unknown in gaps, unknown under load" in out
    assert "latency: unknown" in out


# ---- the time ------------------------------------------------------------------------------------
def test_overlapping_rollups_count_once(cli: Cli, harness: StoreHarness) -> None:
    hours(harness, 2, "enforce", **load(1))
    harness.wall_ns = NOW_NS - 90 * NS_PER_S
    harness.seconds(90, **load(1))
    with closing(ReportHistory.open(harness.path)) as review:
        rows = review.rows("bcache0", 0, NOW_NS)
        spans = [row["span_ns"] for row in rows]
        assert sum(row["samples"] for row in rows) == 2 * 180 + 90
    assert {HOUR_NS, MINUTE_NS} == set(spans)
    assert document(cli)["recorded_s"] == pytest.approx(2 * 3600 + 90, rel=0.01)


def test_a_report_without_records_states_it(cli: Cli, harness: StoreHarness) -> None:
    harness.seconds(60)
    harness.wall_ns = NOW_NS
    out = cli("report", "--since", "2h").out
    assert "nothing was recorded in this time" in out


def test_a_month_of_four_volumes_is_reported_in_a_moment(cli: Cli, harness: StoreHarness) -> None:
    rows = [
        (name, HOUR_NS, NOW_HOUR_NS - number * HOUR_NS, 3600, HOUR_NS, '{"read hit":[9,9,9,9,9]}')
        for name in ("a", "b", "c", "d")
        for number in range(1, 720)
    ]
    with closing(sqlite3.connect(harness.path)) as connection:
        connection.executemany(
            """INSERT INTO samples (volume, span_ns, at_unix_ns, samples, covered_ns, paths,
               regime, missing) VALUES (?, ?, ?, ?, ?, ?, 'gap', '{}')""",
            rows,
        )
        connection.commit()
    began = time.process_time()
    assert len(cli("report", "--since", "30d", "--json").document["volumes"]) == 4
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    ("text", "at_ns"),
    [
        ("7d", NOW_NS - 7 * DAY_NS),
        ("90min", NOW_NS - 90 * MINUTE_NS),
        ("2023-11-01", 1_698_796_800 * NS_PER_S),
        ("2023-11-01T08:30", (1_698_796_800 + 8 * 3600 + 1800) * NS_PER_S),
    ],
)
def test_since_is_a_time_back_or_a_date(text: str, at_ns: int) -> None:
    assert since_unix_ns(text, NOW_NS) == at_ns


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("yesterday", "not a time or a date: 'yesterday'"),
        ("7", "not a time or a date"),
        ("-7d", "not a time or a date"),
        ("0s", "is not in the past"),
        ("2023-13-01", "not a valid date"),
        ("2099-01-01", "is not in the past"),
        ("", "not a time or a date"),
    ],
)
def test_a_wrong_since_names_what_can_be_written(cli: Cli, text: str, what: str) -> None:
    with pytest.raises(UsageError, match="7d, 12h"):
        since_unix_ns(text, NOW_NS)
    found = cli("report", f"--since={text}")
    assert (found.code, what in found.err) == (64, True)


# ---- which volumes, which form -------------------------------------------------------------------
def test_a_report_on_a_removed_volume_works(cli: Cli, harness: StoreHarness) -> None:
    harness.sample(frame("bcache7"), frame("bcache0"))
    assert document(cli, "--volume", "bcache7")["volume"] == "bcache7"
    assert document(cli, "--volume", "/dev/bcache0")["volume"] == "bcache0"


def test_an_unrecorded_volume_is_refused(cli: Cli, harness: StoreHarness) -> None:
    harness.sample(frame("bcache0"))
    found = cli("report", "--volume", "nonsense")
    assert found.code == 66
    assert "the history has no records of nonsense\n  recorded volumes: bcache0" in found.err


def test_without_a_history_the_daemon_is_to_be_started(cli: Cli) -> None:
    found = cli("report")
    assert found.code == 69
    assert "start the daemon" in found.err


def test_a_history_of_an_unreleased_version_is_refused(cli: Cli) -> None:
    unreleased_history(cli.state_dir)
    found = cli("report")
    assert found.code == 69
    assert "has schema 3, of an ebbgate that was never released" in found.err


@pytest.mark.parametrize("name", ["vg-data", "vg/data", "/dev/vg/data", "/dev/mapper/vg-data"])
def test_a_volume_that_is_gone_has_all_its_names(
    cli: Cli, harness: StoreHarness, name: str
) -> None:
    harness.seconds(30, "vg-data")
    (found,) = cli("report", "--volume", name, "--json").document["volumes"]
    assert found["volume"] == "vg-data"


def test_csv_has_one_figure_per_line(cli: Cli, harness: StoreHarness) -> None:
    harness.store.add_outcomes([Outcome(action(), OutcomeKind.CHANGED, 1)], None, harness.wall_ns)
    harness.seconds(30, dirty_bytes=0)
    by_somebody(harness, "sequential_cutoff", "0")
    rows = list(csv.reader(io.StringIO(cli("report", "--format", "csv").out)))
    assert rows[0] == ["volume", "figure", "value"]
    figures = {row[1]: row[2] for row in rows[1:]}
    assert figures["done.writes.idle_destage.writeback_percent.outcomes.changed"] == "1"
    assert figures["done.overrides.0.found"] == "found 0"
    assert len(figures) == len(rows) - 1, "no figure has two lines"
    assert (figures["brought.dirty.mean_bytes"], figures["brought.hit_ratio"]) == ("0", "unknown")


def test_a_report_neither_blocks_the_daemon_nor_writes(cli: Cli, harness: StoreHarness) -> None:
    harness.seconds(30)
    with (
        closing(ReportHistory.open(harness.path)) as review,
        closing(sqlite3.connect(harness.path)) as other,
    ):
        with review.one_snapshot():
            review.rows("bcache0", 0, NOW_NS)
            harness.seconds(30)
            version = other.execute("PRAGMA data_version").fetchone()
            assert len(list(review.samples("bcache0", 0, NOW_NS))) == 30, "one look, as it was"
        assert len(list(review.samples("bcache0", 0, NOW_NS))) == 60
        assert other.execute("PRAGMA data_version").fetchone() == version, "nobody wrote"

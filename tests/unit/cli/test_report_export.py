# SPDX-License-Identifier: GPL-2.0-only
"""`report --export` has the same rows as CSV and JSON; unknown differs from zero."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest

from ebbgate.model.decision import Decision, Outcome, OutcomeKind
from ebbgate.model.promotion import Promotion
from ebbgate.store.report_queries import ReportHistory
from ebbgate.units import NS_PER_S
from tests.builders import action, decision, proposal
from tests.unit.cli.test_report import load
from tests.unit.conftest import NOW_NS, Cli
from tests.unit.store.recorder_fixture import overwrite
from tests.unit.store.store_fixture import StoreHarness


@pytest.fixture
def harness(cli: Cli) -> Iterator[StoreHarness]:
    made = StoreHarness(cli.state_dir)
    made.wall_ns = NOW_NS - 90 * NS_PER_S
    yield made
    made.store.close()


@pytest.fixture
def exported(cli: Cli, harness: StoreHarness) -> Path:
    """A minute and a half, a decision and what became of it."""
    number = harness.store.add_decision(
        decision(proposal(reason='wait: "quoted", with a comma')), harness.wall_ns
    )
    harness.store.add_outcomes([Outcome(action(), OutcomeKind.FAILED, 1, error="EIO")], number,
                             harness.wall_ns)  # fmt: skip
    harness.seconds(90, **load(3))
    return harness.path


@pytest.mark.parametrize("export", [[], ["--export", "samples"]])
@pytest.mark.parametrize("form", ["csv", "text"])
def test_json_and_another_format_are_a_wrong_command_line(
    cli: Cli, exported: Path, form: str, export: list[str]
) -> None:
    assert exported.exists()
    result = cli("report", "--format", form, "--json", *export)
    assert (result.code, result.out) == (64, "")
    message = f"--json and --format {form} do not go together"
    error = {"code": 64, "message": message, "hint": "leave one of them out"}
    assert json.loads(result.err) == {"error": error}


@pytest.mark.parametrize(
    "words", [["--json"], ["--format", "json"], ["--json", "--format", "json"]]
)
def test_json_is_asked_for_in_two_ways(cli: Cli, exported: Path, words: list[str]) -> None:
    assert exported.exists()
    assert len(cli("report", *words).document["volumes"]) == 1
    assert len(cli("report", "--export", "samples", *words).document) == 90


@pytest.mark.parametrize(("kind", "count"), [("samples", 90), ("decisions", 1), ("actions", 1)])
def test_rows_are_exported_alike_as_csv_and_json(
    cli: Cli, exported: Path, kind: str, count: int
) -> None:
    table = list(csv.DictReader(io.StringIO(cli("report", "--export", kind).out)))
    documents = json.loads(cli("report", "--export", kind, "--json").out)
    assert exported.exists()
    assert len(table) == len(documents) == count
    for row, found in zip(table, documents, strict=True):
        for column, cell in row.items():
            value = found[column]
            nested = isinstance(value, list | dict)
            assert cell == ("" if value is None else json.dumps(value) if nested else str(value))


def test_json_is_complete_in_any_encoding(
    cli: Cli, harness: StoreHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.store.add_decision(decision(proposal(reason="n\u00e4chtlich")), harness.wall_ns)
    harness.seconds(90, **load(3))
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="replace")
    monkeypatch.setattr("sys.stdout", file)
    cli("report", "--export", "decisions", "--json")
    (row,) = json.loads(file.buffer.getvalue())
    assert row["proposals"][0]["reason"] == "n\u00e4chtlich"


def test_an_export_keeps_unknown_apart_from_zero(cli: Cli, harness: StoreHarness) -> None:
    harness.wall_ns = NOW_NS - NS_PER_S
    harness.seconds(1, dirty_bytes=0)
    (row,) = csv.DictReader(io.StringIO(cli("report", "--export", "samples").out))
    assert (row["dirty_bytes"], row["in_use_ratio"]) == ("0", "")


def test_an_empty_export_is_a_header_or_an_empty_list(cli: Cli, harness: StoreHarness) -> None:
    assert cli("report", "--export", "actions").out.count("\n") == 1
    assert cli("report", "--export", "actions", "--json").document == []


def test_an_export_as_text_is_refused(cli: Cli, harness: StoreHarness) -> None:
    found = cli("report", "--export", "samples", "--format", "text")
    assert found.code == 64
    assert "use --format csv or json" in found.err


def test_an_export_comes_in_parts_and_keeps_no_log_from_being_folded(
    cli: Cli, harness: StoreHarness
) -> None:
    with harness.store.batch():
        for number in range(2500):
            harness.store.add_decision(decision(proposal(reason=f"{number}")), harness.wall_ns)
    with closing(ReportHistory.open(harness.path)) as review:
        events = review.events("decisions", "bcache0", 0, NOW_NS)
        reasons = [next(events)["proposals"][0]["reason"]]
        with closing(sqlite3.connect(harness.path)) as other:
            folded = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert folded[0] == 0, "no reader prevents it"
        reasons += [event["proposals"][0]["reason"] for event in events]
    assert reasons == [str(number) for number in range(2500)]


@pytest.mark.parametrize(
    "words",
    [("report",), ("report", "--export", "samples", "--format", "json"), ("--json", "report")],
)
@pytest.mark.parametrize("damage", ["a page", "a text", "a document"])
def test_a_history_that_is_damaged_inside_is_69_with_the_next_step(
    cli: Cli, harness: StoreHarness, words: tuple[str, ...], damage: str
) -> None:
    harness.wall_ns = NOW_NS - 400 * NS_PER_S
    harness.seconds(400)
    harness.store.close()
    if damage == "a page":
        # The first pages are those of the schema, which is read when the file is opened.
        quarter = cli.history.stat().st_size // 4
        overwrite(cli.history, 3 * quarter, quarter)
    else:
        value = "CAST(x'ff7b7d' AS TEXT)" if damage == "a text" else "'{\"read hit\":'"
        with closing(sqlite3.connect(cli.history)) as connection, connection:
            connection.execute(f"UPDATE samples SET paths = {value}")
    result = cli(*words)
    assert result.code == 69, result.err
    assert "the history cannot be read: " in result.err
    assert "move history.db away" in result.err


def test_a_decision_on_hot_data_is_in_the_csv_file(cli: Cli, harness: StoreHarness) -> None:
    hot = Promotion((5, 9, 4), 0.25)
    chosen = decision(proposal(), promotion=hot, promotion_strategy="promote_hot")
    harness.store.add_decision(chosen, NOW_NS - 1)
    harness.seconds(1, **load(3))
    (row,) = csv.DictReader(cli("report", "--export", "decisions").out.splitlines())
    assert json.loads(row["promotion"])["ranges"] == [[4, 6], [9, 10]]
    assert row["promotion_strategy"] == "promote_hot"


def test_the_csv_file_of_decisions_has_all_that_a_decision_has(cli: Cli) -> None:
    with cli.daemon():
        header = cli("report", "--export", "decisions").out.splitlines()[0].split(",")
    # The time is that of the wall clock.
    assert {each.name for each in fields(Decision)} - {"at_ns"} <= set(header)

# SPDX-License-Identifier: GPL-2.0-only
"""Rows that version 0.1 wrote are read with today's names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.model.decision import Gate, GateKind, Outcome, OutcomeKind
from ebbgate.store.db import Store
from ebbgate.store.queries import read_knob_write
from ebbgate.store.queries_web import DecisionFilter, WebHistory
from ebbgate.store.report_queries import ReportHistory
from tests.builders import action, decision, proposal

GATE = Gate(GateKind.CLOSED)
NAMES = [("wish", "override"), ("no_regret", "rollback_guard")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with closing(Store.open(path)) as opened:
        yield opened


def record(store: Store, strategy: str) -> int:
    """Add a decision of the strategy with one knob write, as 0.1 did."""
    decided = decision(proposal(strategy, gate=GATE), gate=GATE, gate_strategy=strategy)
    number = store.add_decision(decided, 5)
    outcome = Outcome(replace(action(), strategy=strategy), OutcomeKind.CHANGED, at_ns=7)
    store.add_outcomes([outcome], number, 6, latency_ns=1)
    return number


@pytest.mark.parametrize(("old", "new"), NAMES)
def test_decisions_and_knob_writes_have_the_new_name(
    store: Store, path: Path, old: str, new: str
) -> None:
    number = record(store, old)
    with closing(WebHistory.open(path)) as history:
        (listed,) = history.decisions(None, 10)
        found = history.decision(number)
        (written,) = history.actions_after(0, 10)
        assert history.actions_of([number]) == {number: [written]}
    assert found is not None
    assert (listed["gate_strategy"], found["gate_strategy"]) == (new, new)
    assert [each["strategy"] for each in found["proposals"]] == [new]
    assert written["strategy"] == new
    undone = read_knob_write(path, written["id"])
    assert undone is not None
    assert undone.strategy == new


@pytest.mark.parametrize(("old", "new"), NAMES)
def test_filter_by_the_new_name_finds_old_rows(
    store: Store, path: Path, old: str, new: str
) -> None:
    numbers = [record(store, new), record(store, old)]
    record(store, "idle_destage")
    with closing(WebHistory.open(path)) as history:
        found = history.filtered_decisions(DecisionFilter(strategy=new))
    assert [row["id"] for row in reversed(found)] == numbers


def test_reports_and_exports_have_the_new_name(store: Store, path: Path) -> None:
    record(store, "wish")
    with closing(ReportHistory.open(path)) as history:
        counted = history.tallies("bcache0", 0, 10)
        exported = [
            *history.events("decisions", "bcache0", 0, 10),
            *history.events("actions", "bcache0", 0, 10),
        ]
    assert "override" in {each.strategy for each in counted}
    assert "wish" not in {each.strategy for each in counted}
    assert "wish" not in str(exported)


def test_a_status_has_the_new_keys(store: Store, path: Path) -> None:
    old = {"wishes": [{"kind": "hold"}], "held": True, "totals": {"guard_trips": {"gate": 1}}}
    store.set_live("bcache0", old, 1)
    with closing(WebHistory.open(path)) as history:
        found = history.statuses().volumes["bcache0"].status
    assert [each.kind for each in found.overrides] == ["hold"]
    assert (found.frozen, found.totals.rollbacks) == (True, {"gate": 1})

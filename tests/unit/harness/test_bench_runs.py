# SPDX-License-Identifier: GPL-2.0-only
"""Runs are added to those of a kept result, with other seeds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.__main__ import earlier
from tests.bench.context import Context, Scenario
from tests.bench.report import Report, ratio

GOALS = {"ours_vs_theirs": "<= 1"}


def run(context: Context) -> Report:
    """Each arm says with which repetition it was measured."""
    runs = context.interleaved(("ours", "theirs"), lambda arm, n: {"ms": n + 1.0 + (arm == "ours")})
    return Report("s", runs, {"ours_vs_theirs": ratio(runs, "ours", "theirs", "ms")}, GOALS)


SCENARIO = Scenario("s", "a claim", 1, run, adds=True)


def kept(path: Path, repetitions: int) -> Path:
    report = run(Context(repetitions, 1))
    path.write_text(json.dumps(report.document({"commit": "abc"})))
    return path


def test_runs_are_added_with_other_seeds(tmp_path: Path) -> None:
    before, commits = earlier(SCENARIO, kept(tmp_path / "s.json", 2))
    assert commits == ["abc"]
    report = run(Context(1, 1, earlier=before))
    assert report.runs["theirs"] == [{"ms": 1}, {"ms": 2}, {"ms": 3}]
    assert report.document({})["arms"]["ours"] == {"ms": 3}
    assert report.ratios["ours_vs_theirs"] == 1.5, "the median of all pairs"


def test_no_arm_is_always_the_first() -> None:
    order: list[str] = []

    def measure(arm: str, repetition: int) -> dict[str, float]:
        order.append(f"{arm}{repetition}")
        return {}

    Context(2, 1, earlier={"a": [{}], "b": [{}], "c": [{}]}).interleaved("abc", measure)
    assert order == ["b1", "c1", "a1", "c2", "a2", "b2"]


def test_a_result_of_one_run_is_that_run(tmp_path: Path) -> None:
    path = kept(tmp_path / "s.json", 1)
    document = json.loads(path.read_text())
    del document["runs"]
    path.write_text(json.dumps(document))
    assert earlier(SCENARIO, path)[0] == {"ours": [{"ms": 2}], "theirs": [{"ms": 1}]}


def test_medians_without_their_runs_take_no_more(tmp_path: Path) -> None:
    path = kept(tmp_path / "s.json", 2)
    document = json.loads(path.read_text())
    del document["runs"]
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="medians of several runs"):
        earlier(SCENARIO, path)


def test_nothing_is_kept_at_first(tmp_path: Path) -> None:
    assert earlier(SCENARIO, tmp_path / "s.json") == ({}, [])


def test_a_scenario_that_computes_its_own_takes_no_more(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be added"):
        earlier(Scenario("s", "a claim", 1, run), tmp_path / "s.json")

# SPDX-License-Identifier: GPL-2.0-only
"""The rules and the dashboard by themselves: sound, whole, and about metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from ebbgate.web.metrics.families import FAMILIES, Type
from tests.prometheus import program
from tests.prometheus.dashboard import Query, panels, queries
from tests.prometheus.stack import DASHBOARD, PACKAGING, RULES

RULE_TESTS = PACKAGING / "prometheus/ebbgate.rules.test.yml"
_SUFFIXES = {
    Type.COUNTER: ("_total",),
    Type.INFO: ("_info",),
    Type.HISTOGRAM: ("_bucket", "_count", "_sum"),
    Type.GAUGE: ("",),
    Type.STATESET: ("",),
}
NAMES = {family.name + suffix for family in FAMILIES for suffix in _SUFFIXES[family.type]}


def promtool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Its answer, whatever its exit code."""
    return subprocess.run(
        [program.find("promtool"), *words], capture_output=True, text=True, timeout=60, check=False
    )


def rules() -> list[dict[str, str | dict[str, str]]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def metrics_in(expression: str) -> set[str]:
    return set(re.findall(r"\bebbgate_\w+(?=[{\[ )]|$)", expression))


def test_promtool_accepts_the_rules() -> None:
    found = promtool("check", "rules", RULES)
    assert found.returncode == 0, found.stderr
    assert f"SUCCESS: {len(rules())} rules found" in found.stdout


def test_each_alert_fires_when_it_should_and_not_before() -> None:
    found = promtool("test", "rules", RULE_TESTS)
    assert found.returncode == 0, found.stdout + found.stderr


def test_every_alert_is_tested_to_fire() -> None:
    tests = yaml.safe_load(RULE_TESTS.read_text())["tests"]
    fired = {
        each["alertname"]
        for test in tests
        for each in test.get("alert_rule_test", ())
        if each["exp_alerts"]
    }
    assert fired == {rule["alert"] for rule in rules()}


def test_a_rule_that_is_changed_fails_its_test(tmp_path: Path) -> None:
    """The tests of the rules are tests: one that can not fail says nothing."""
    shutil.copy(RULE_TESTS, tmp_path)
    text = RULES.read_text()
    assert "ebbgate_up == 0" in text
    (tmp_path / RULES.name).write_text(text.replace("ebbgate_up == 0", "ebbgate_up == 1"))
    assert promtool("test", "rules", tmp_path / RULE_TESTS.name).returncode == 1


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_has_a_summary_and_a_remedy(rule: dict[str, dict[str, str]]) -> None:
    assert set(rule["annotations"]) == {"summary", "description", "action"}
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert "$labels.instance" in rule["annotations"]["summary"]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_is_about_metrics_that_there_are(rule: dict[str, str]) -> None:
    assert metrics_in(rule["expr"]) <= NAMES
    assert metrics_in(rule["expr"]) or "up{" in rule["expr"]


@pytest.mark.parametrize("query", queries(), ids=lambda query: f"{query.panel} {query.ref}")
def test_a_panel_is_about_metrics_that_there_are(query: Query) -> None:
    found = metrics_in(query.expression)
    assert found
    assert found <= NAMES


def test_every_metric_is_used_by_a_panel_or_an_alert() -> None:
    used = {
        name
        for text in (*(str(rule["expr"]) for rule in rules()), *(q.expression for q in queries()))
        for name in metrics_in(text)
    }
    whole = {"ebbgate_build_info", "ebbgate_volume_info"}
    for family in FAMILIES:
        names = {family.name + suffix for suffix in _SUFFIXES[family.type]}
        assert names & (used | whole | KEPT_FOR_PEOPLE), family.name


KEPT_FOR_PEOPLE = {
    "ebbgate_start_time_seconds",
    "ebbgate_counting_since_timestamp_seconds",
    "ebbgate_in_use_ratio",
    "ebbgate_disturbance_seconds",
    "ebbgate_probe_restarts_total",
    "ebbgate_history_dropped_total",
}
"""No panel and no alert: for those who ask."""


def test_every_panel_has_a_title_of_its_own_a_unit_and_a_place_of_its_own() -> None:
    found = panels()
    assert len({panel["title"] for panel in found}) == len(found)
    assert len({panel["id"] for panel in found}) == len(found)
    places = set()
    for panel in found:
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert x < 24
                assert (x, y) not in places, panel["title"]
                places.add((x, y))


def test_the_dashboard_asks_for_machines_and_volumes_and_no_certain_data_source() -> None:
    document = json.loads(DASHBOARD.read_text())
    names = [variable["name"] for variable in document["templating"]["list"]]
    assert names == ["datasource", "job", "instance", "volume"]
    for panel in panels():
        for each in (panel, *panel["targets"]):
            assert each["datasource"]["uid"] == "${datasource}"

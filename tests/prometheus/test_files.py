# SPDX-License-Identifier: GPL-2.0-only
"""The rules and the dashboards by themselves: sound, whole, and about metrics that there are."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from ebbgate.model.volume import Mode
from ebbgate.web.metrics.families import FAMILIES, Type
from tests.house_rules import REPO
from tests.prometheus import program
from tests.prometheus.dashboard import Query, document, panels, queries
from tests.prometheus.stack import DASHBOARDS, FLEET_RULES, RULES

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


def rules(file: Path) -> list[dict[str, str | dict[str, str]]]:
    groups = yaml.safe_load(file.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


ALERTS = rules(RULES)
RECORDS = rules(FLEET_RULES)
RECORDED = {str(rule["record"]) for rule in RECORDS}


def promtool_tests(file: Path) -> Path:
    """The file of promtool's tests for a file of rules."""
    return file.with_name(file.name.replace(".yml", ".test.yml"))


def metrics_in(expression: str) -> set[str]:
    """Names of metrics and of recorded series."""
    return set(re.findall(r"\b(?:\w+:)?ebbgate_\w+(?::\w+)?(?=[{\[ )]|$)", expression))


@pytest.mark.parametrize("file", [RULES, FLEET_RULES], ids=lambda file: file.name)
def test_promtool_accepts_the_rules(file: Path) -> None:
    found = promtool("check", "rules", file)
    assert found.returncode == 0, found.stderr
    assert f"SUCCESS: {len(rules(file))} rules found" in found.stdout


@pytest.mark.parametrize("file", [RULES, FLEET_RULES], ids=lambda file: file.name)
def test_each_rule_gives_what_its_test_expects(file: Path) -> None:
    found = promtool("test", "rules", promtool_tests(file))
    assert found.returncode == 0, found.stdout + found.stderr


def test_every_alert_is_tested_to_fire() -> None:
    tests = yaml.safe_load(promtool_tests(RULES).read_text())["tests"]
    fired = {
        each["alertname"]
        for test in tests
        for each in test.get("alert_rule_test", ())
        if each["exp_alerts"]
    }
    assert fired == {rule["alert"] for rule in ALERTS}


def test_every_recorded_series_is_tested() -> None:
    tests = yaml.safe_load(promtool_tests(FLEET_RULES).read_text())["tests"]
    seen = [each["expr"] for test in tests for each in test.get("promql_expr_test", ())]
    assert sorted(seen) == sorted(RECORDED)


@pytest.mark.parametrize(
    ("file", "text", "other"),
    [
        (RULES, "ebbgate_up == 0", "ebbgate_up == 1"),
        (FLEET_RULES, "max without (volume) (rate", "sum without (volume) (rate"),
    ],
)
def test_a_rule_that_is_changed_fails_its_test(
    tmp_path: Path, file: Path, text: str, other: str
) -> None:
    """The tests of the rules are tests: one that can not fail says nothing."""
    for each in (RULES, FLEET_RULES, promtool_tests(file)):
        shutil.copy(each, tmp_path)
    assert text in file.read_text()
    (tmp_path / file.name).write_text(file.read_text().replace(text, other))
    assert promtool("test", "rules", tmp_path / promtool_tests(file).name).returncode == 1


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_has_a_summary_and_a_remedy(rule: dict[str, dict[str, str]]) -> None:
    assert set(rule["annotations"]) == {"summary", "description", "action"}
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert "{{ or $labels.host $labels.instance }}" in rule["annotations"]["summary"]


@pytest.mark.parametrize(
    "rule", [*ALERTS, *RECORDS], ids=lambda rule: str(next(iter(rule.values())))
)
def test_a_rule_is_about_metrics_that_there_are(rule: dict[str, str]) -> None:
    assert metrics_in(rule["expr"]) <= NAMES | RECORDED
    assert metrics_in(rule["expr"]) or "up{" in rule["expr"]


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_keeps_the_labels_of_its_target(rule: dict[str, str]) -> None:
    assert not re.search(r"\b(sum|min|max|count) by", rule["expr"])


@pytest.mark.parametrize("rule", RECORDS, ids=lambda rule: rule["record"])
def test_no_recorded_series_reads_a_histogram_or_has_a_volume(rule: dict[str, str]) -> None:
    assert "_bucket" not in rule["expr"]
    assert re.match(r"\w+ without \((volume|device)", rule["expr"])


def test_the_documentation_has_the_number_of_recorded_series() -> None:
    modes = len(Mode) + 1
    of_a_host = sum(
        modes if rule["record"] == "instance:ebbgate_mode:sum" else 1 for rule in RECORDS
    )
    assert f"at most {of_a_host} series for each one" in FLEET_RULES.read_text()
    assert f"{of_a_host} recorded series" in (REPO / "packaging" / "README.md").read_text()


@pytest.mark.parametrize("query", queries(), ids=str)
def test_a_panel_is_about_metrics_that_there_are(query: Query) -> None:
    found = metrics_in(query.expression)
    assert found or re.search(r"\b(up|ALERTS)\{", query.expression)
    assert found <= NAMES | RECORDED


def test_every_metric_is_used_by_a_panel_or_an_alert() -> None:
    expressions = [*(str(rule["expr"]) for rule in (*ALERTS, *RECORDS))]
    expressions += [query.expression for query in queries()]
    used = {name for text in expressions for name in metrics_in(text)}
    assert used >= RECORDED
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
    "ebbgate_promotion_pending_bytes",
    "ebbgate_promotion_other_blocks_total",
    "ebbgate_promotion_holds_total",
}
"""No panel and no alert: for those who ask."""


@pytest.mark.parametrize("board", DASHBOARDS)
def test_every_panel_has_a_title_of_its_own_a_unit_and_a_place_of_its_own(board: str) -> None:
    found = panels(board)
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


@pytest.mark.parametrize(
    ("board", "asked"),
    [("machine", ["job", "instance", "volume"]), ("fleet", ["job", "instance"])],
)
def test_a_dashboard_asks_for_machines_and_no_certain_data_source(
    board: str, asked: list[str]
) -> None:
    names = [variable["name"] for variable in document(board)["templating"]["list"]]
    assert names == ["datasource", *asked]
    for panel in panels(board):
        for each in (panel, *panel["targets"]):
            assert each["datasource"]["uid"] == "${datasource}"


def test_the_dashboards_link_to_each_other() -> None:
    uids = {board: document(board)["uid"] for board in DASHBOARDS}
    assert uids == {"machine": "ebbgate", "fleet": "ebbgate-fleet"}
    assert document("machine")["links"][0]["url"] == "/d/ebbgate-fleet/ebbgate-fleet"
    texts = [str(panel) for panel in panels("fleet") if panel["type"] in ("table", "timeseries")]
    linked = [text for text in texts if "/d/ebbgate/ebbgate?" in text and "var-instance=$" in text]
    # All but the number of alerts.
    assert len(linked) == len(texts) - 1

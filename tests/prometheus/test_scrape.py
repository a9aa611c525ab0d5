# SPDX-License-Identifier: GPL-2.0-only
"""A real Prometheus scrapes ebbgate-web, which shows what a real daemon measured and did."""

from __future__ import annotations

import math
import signal
import subprocess
from typing import Final

import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from ebbgate.web.metrics.families import FAMILIES
from tests.programs import until
from tests.prometheus import program
from tests.prometheus.dashboard import Query, document, put_in, queries
from tests.prometheus.stack import DASHBOARDS, FLEET_RULES, RULES, Stack

MAY_BE_EMPTY: Final = {
    ("Time to full", "A"),
    ("Machines", "F"),
    ("Volumes", "B"),
    # Nothing fires within this time.
    ("Firing alerts", "A"),
    ("Alerts now", "A"),
    # Only while the dirty data grows, or shrinks.
    ("Time to full and to clean", "A"),
    ("Time to full and to clean", "B"),
    # Only once something was moved and measured.
    ("Disk time that moves saved and took", "A"),
    ("Disk time that moves saved and took", "B"),
}
SOMETIMES: Final = {
    *("ebbgate_time_to_full_seconds", "ebbgate_time_to_clean_seconds"),
    *("ebbgate_promotion_saved_seconds", "ebbgate_promotion_saved_error_seconds"),
    # Only under a policy with the limit ssd_writes.
    "ebbgate_promotion_write_budget_bytes",
    # Only of dm-cache.
    "ebbgate_promotion_other_blocks",
}
_RANGE_S = 20
# The first test waits for the load to have been played.
pytestmark = pytest.mark.timeout(180)


def parsed(openmetrics: str) -> list[Metric]:
    """All families. Raises ValueError for a page that is not OpenMetrics to the letter."""
    return list(text_string_to_metric_families(openmetrics))  # type: ignore[no-untyped-call]


def test_promtool_finds_nothing_wrong_with_the_page(seen: Stack) -> None:
    found = subprocess.run(
        [program.find("promtool"), "check", "metrics"],
        input=seen.metrics(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (found.returncode, found.stderr) == (0, "")


def test_a_strict_parser_of_openmetrics_takes_the_page_and_finds_every_metric(seen: Stack) -> None:
    families = {family.name: family for family in parsed(seen.metrics(openmetrics=True))}
    assert {family.name for family in FAMILIES} - SOMETIMES <= families.keys()
    for family in FAMILIES:
        if family.name in families:
            assert families[family.name].type == str(family.type)
            assert families[family.name].unit == family.unit


def test_the_target_is_up_and_every_scrape_was_taken_whole(seen: Stack) -> None:
    (target,) = seen.ask("targets", state="active")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    assert [value for _, value in seen.query("ebbgate_up")] == [1]
    (_, scraped), (_, kept) = (
        *seen.query("scrape_samples_scraped"),
        *seen.query("scrape_samples_post_metric_relabeling"),
    )
    assert scraped == kept > 200


def test_prometheus_has_type_and_help_of_each_metric(seen: Stack) -> None:
    known = seen.ask("metadata")
    for family in FAMILIES:
        found = [known[n] for n in known if n.removesuffix("_total") == family.name]
        found += [known[n] for n in known if n.removesuffix("_info") == family.name]
        if family.name not in SOMETIMES:
            assert found, family.name
            assert found[0][0]["help"]


def test_every_rule_is_loaded_and_can_be_evaluated(seen: Stack) -> None:
    wanted = {
        rule.get("alert") or rule["record"]
        for file in (RULES, FLEET_RULES)
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
    }

    def judged() -> bool:
        loaded = [r for group in seen.ask("rules")["groups"] for r in group["rules"]]
        assert {rule["name"] for rule in loaded} == wanted
        assert not [rule for rule in loaded if rule.get("lastError")]
        return all(rule["health"] == "ok" for rule in loaded)

    until("the judgement", judged)


def test_no_alert_on_ebbgate_itself_fires_on_a_healthy_machine(seen: Stack) -> None:
    firing = {labels["alertname"] for labels, _ in seen.query('ALERTS{alertstate="firing"}')}
    assert not firing & {"EbbgateDown", "EbbgateVolumeSilent", "EbbgateProbeNotRunning"}


@pytest.mark.parametrize("query", queries(), ids=str)
def test_every_query_of_the_dashboards_has_data(seen: Stack, query: Query) -> None:
    if query.instant:
        series = [[value] for _, value in seen.query(query.expression)]
    else:
        series = seen.query_range(query.expression, _RANGE_S)
    known = [value for values in series for value in values if math.isfinite(value)]
    assert known or (query.panel, query.ref) in MAY_BE_EMPTY


@pytest.mark.parametrize("board", DASHBOARDS)
def test_the_dashboards_variables_and_notes_are_answered(seen: Stack, board: str) -> None:
    found = document(board)
    for variable in found["templating"]["list"][1:]:
        text = put_in(variable["definition"]).removeprefix("label_values(").removesuffix(")")
        metric, _, label = text.rpartition(", ")
        values = seen.ask(f"label/{label}/values", **{"match[]": metric})
        assert len(values) == 1, variable["name"]
    (note,) = found["annotations"]["list"]
    seen.query(put_in(note["expr"]))


# ---- the figures are those of the load ----------------------------------------------------------
def test_counters_only_grow_as_long_as_the_daemon_runs(seen: Stack) -> None:
    for family in FAMILIES:
        if str(family.type) == "counter":
            assert all(value == 0 for _, value in seen.query(f"resets({family.name}_total[10m])"))
    assert all(value == 0 for _, value in seen.query("resets(ebbgate_io_seconds_bucket[10m])"))


def test_bytes_of_all_runs_are_the_bytes_of_all_requests(seen: Stack) -> None:
    page = seen.metrics(openmetrics=True)
    found = {
        (sample.name, sample.labels.get("op"), sample.labels.get("path"), sample.labels.get("le")):
            sample.value
        for family in parsed(page)
        for sample in family.samples
    }  # fmt: skip
    for op in ("read", "write"):
        runs = found["ebbgate_seq_run_bytes_bucket", op, None, "+Inf"]
        answered = sum(
            value
            for (name, way, _, _), value in found.items()
            if name == "ebbgate_io_bytes_total" and way == op
        )
        # What is under way has arrived and was not answered.
        assert answered <= runs <= answered + (16 << 20)
        assert runs > 0


def test_bypassed_bytes_are_in_both_counts(seen: Stack) -> None:
    ((_, by_reason),) = seen.query("sum(ebbgate_bypass_bytes_total)")
    ((_, by_path),) = seen.query('sum(ebbgate_io_bytes_total{path="bypass"})')
    assert by_reason == pytest.approx(by_path, rel=0.2)
    assert by_path > 100 << 20


def test_knob_writes_are_counted_by_who_did_them(seen: Stack) -> None:
    actors = {labels["actor"] for labels, _ in seen.query("ebbgate_knob_changes_total > 0")}
    assert "idle_destage" in actors


# ---- last, since it ends the daemon -----------------------------------------------------
def test_after_a_killed_daemon_only_its_age_and_file_sizes_remain(seen: Stack) -> None:
    seen.daemon.end(signal.SIGKILL)
    until("ebbgate_up 0", lambda: seen.query("ebbgate_up == 0"))
    names = {labels["__name__"] for labels, _ in seen.query('{job="ebbgate"}')}
    assert {name for name in names if name.startswith("ebbgate_")} == {
        "ebbgate_up",
        "ebbgate_build_info",
        "ebbgate_sample_age_seconds",
        "ebbgate_history_file_bytes",
        "ebbgate_history_log_bytes",
        "ebbgate_history_limit_bytes",
    }
    pending = 'ALERTS{alertname="EbbgateDown", alertstate="pending"}'
    until("the alert", lambda: seen.query(pending))

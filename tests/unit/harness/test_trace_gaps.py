# SPDX-License-Identifier: GPL-2.0-only
"""The arithmetic of `trace-gaps`, on traces that are short enough to reckon by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.units import NS_PER_MS, NS_PER_S
from tests.bench.context import Context
from tests.bench.gap_rules import (
    RULES,
    RUN_OFF_NS,
    Gain,
    Gap,
    fixed,
    foreseen,
    gain,
    gaps_of,
    learned,
    oracle,
)
from tests.bench.trace_gaps import SCENARIO, figures, volumes_of
from tests.lab.errors import LabError

HEADER = "t_us,op,offset,size,dev"


def gaps(*lengths_ms: int) -> list[Gap]:
    """Gaps one after the other."""
    found, at_ns = [], 0
    for length_ms in lengths_ms:
        found.append(Gap(at_ns, length_ms * NS_PER_MS))
        at_ns += length_ms * NS_PER_MS
    return found


def trace(*arrivals: tuple[int, int]) -> list[str]:
    """A trace from (milliseconds, device)."""
    return [HEADER, *(f"{at_ms * 1000},R,0,512,{device}" for at_ms, device in arrivals)]


def test_gaps_are_between_arrivals_and_at_least_a_millisecond() -> None:
    assert gaps_of([0, 999_999, 5_000_000, 4_500_000]) == (Gap(999_999, 3_500_001),)


def test_a_fixed_wait_drains_the_rest_and_disturbs_one_request_per_opened_gap() -> None:
    found = gain(gaps(200, 300, 1000, 2300), fixed(300 * NS_PER_MS))
    assert found == Gain(drained_ns=2700 * NS_PER_MS, disturbed=2)
    assert found.utility_ns == 2200 * NS_PER_MS


def test_the_oracle_opens_at_once_in_gaps_worth_a_disturbed_request() -> None:
    found = gain(gaps(100, 250, 1000, 2000), oracle)
    assert found == Gain(drained_ns=3 * NS_PER_S, disturbed=2)


@pytest.mark.parametrize(("rule", "disturbed"), [("dm_cache", 1), ("bcache", 0)])
def test_the_kernels_rules_open_after_a_second_and_half_a_minute(rule: str, disturbed: int) -> None:
    assert gain(gaps(900, 5000), RULES[rule]).disturbed == disturbed


def test_the_learned_wait_uses_only_gaps_that_have_ended() -> None:
    waits = waits_of(1500, 20)
    assert waits[:3] == [300 * NS_PER_MS] * 3
    assert waits[-1] == 30 * NS_PER_MS
    # A long gap at the end changes no wait before it.
    assert waits_of(1500, 20, 100_000)[:20] == waits


def waits_of(length_ms: int, count: int, *more_ms: int) -> list[int]:
    """The learned wait of each gap."""
    found = learned(gaps(*[length_ms] * count, *more_ms))
    return [begin for ((begin, _),) in found]


def test_gaps_of_one_length_are_foreseen_after_three_and_no_longer_disturbed() -> None:
    alike = gaps(*[2000] * 20)
    own, waited = gain(alike, foreseen), gain(alike, learned)
    assert (own.disturbed, waited.disturbed) == (3, 20)
    lost_ns = 17 * (RUN_OFF_NS + 40 * NS_PER_MS)
    assert own.drained_ns == waited.drained_ns - lost_ns
    assert own.utility_ns > gain(alike, oracle).utility_ns


def test_a_gap_that_outlives_its_likely_end_is_drained_again() -> None:
    opened = list(foreseen(gaps(*[2000] * 5, 9000)))[-1]
    wait_ns = opened[0][0]
    assert opened == ((wait_ns, 1860 * NS_PER_MS), (2040 * NS_PER_MS, opened[1][1]))


@pytest.mark.parametrize(("later_ms", "disturbed"), [(0, 1), (99, 1), (100, 0), (500, 0)])
def test_a_return_within_the_run_off_of_a_close_is_disturbed(later_ms: int, disturbed: int) -> None:
    closed_ms = 1000
    found = gain(gaps(closed_ms + later_ms), lambda _: [((0, closed_ms * NS_PER_MS),)])
    assert found == Gain(closed_ms * NS_PER_MS, disturbed)


def test_the_learned_wait_of_a_trace_without_gaps_is_empty() -> None:
    assert list(learned([])) == []


def test_each_device_of_a_trace_is_a_volume() -> None:
    volumes = volumes_of(trace((0, 0), (500, 1), (1000, 0), (1500, 1)))
    assert {device: [g.length_ns for g in found] for device, found in volumes.items()} == {
        "0": [NS_PER_S],
        "1": [NS_PER_S],
    }


@pytest.mark.parametrize("lines", [[], ["a,b"], [HEADER, "x,R,0,512,0"], [HEADER, "1,R"]])
def test_what_is_not_a_trace_is_refused(lines: list[str]) -> None:
    with pytest.raises(LabError):
        volumes_of(lines)


def test_the_figures_are_shares_of_what_the_oracle_gets() -> None:
    totals = {"oracle": Gain(4 * NS_PER_S, 0), "ebbgate": Gain(4 * NS_PER_S, 4)}
    assert figures("t", totals) == ({"t_ebbgate": 0.75}, {"t_ebbgate": ">= 0.87"})


def test_without_a_gap_worth_opening_the_figure_is_what_is_lost() -> None:
    totals = {"oracle": Gain(), "ebbgate": Gain(NS_PER_S, 8)}
    assert figures("t", totals) == ({"t_lost_s": 1.0}, {"t_lost_s": "<= 1"})


def test_the_scenario_reports_each_trace_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "night.csv"
    path.write_text("\n".join(trace(*((n * 5000, 0) for n in range(50)))))
    report = SCENARIO.run(Context(1, 1, traces=(path,)))
    assert report.met
    assert report.ratios["night_fixed_300ms"] == pytest.approx(4.45 / 4.75)
    assert report.ratios["night_ebbgate"] > report.ratios["night_learned_wait"]
    assert report.runs["night_bcache"] == [{"utility_s": 0, "drained_s": 0, "disturbed": 0}]


def test_without_a_trace_the_scenario_names_the_next_step() -> None:
    with pytest.raises(LabError, match="TRACE=FILE"):
        SCENARIO.run(Context(1, 1))


def test_a_missing_trace_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"none\.csv"):
        SCENARIO.run(Context(1, 1, traces=(tmp_path / "none.csv",)))

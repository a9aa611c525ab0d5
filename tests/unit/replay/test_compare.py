# SPDX-License-Identifier: GPL-2.0-only
"""A policy on the history of a volume: what differs, for how long, and what cannot be known."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.cli.replay import time_by_gate
from ebbgate.errors import NotFound
from ebbgate.model.decision import GateKind
from ebbgate.model.frame import Frame
from ebbgate.model.records import Direction, Edge, EdgeKind
from ebbgate.model.volume import Kind
from ebbgate.policy.language.choose import LocalTime
from ebbgate.policy.language.compile import compile_policy
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy.rule_signals import SIGNALS
from ebbgate.policy_files.validation import check_unsaved, named
from ebbgate.replay import history
from ebbgate.replay.compare import (
    DIFFERENCES_MAX,
    KERNELS,
    Difference,
    DryRun,
    ReplaySetting,
    dry_run,
    dry_run_to_json,
)
from ebbgate.replay.history import Subject, policy_at
from ebbgate.replay.history_events import UNKEPT, HistorySample, HistoryWindow, events, gaps_of
from ebbgate.replay.recording import replay
from ebbgate.store.documents import decision_document
from ebbgate.store.rollup import COLUMNS
from ebbgate.units import GIB, MIB, MINUTE_NS, NS_PER_MS, NS_PER_S
from tests.history_fixture import START_NS, keep, recorded

NOWHERE = Path("/nonexistent")
SUBJECT = Subject("bcache0", "bcache0", Kind.BCACHE)


def policy(more: str = "", name: str = "mine") -> PolicyDocument:
    text = f"version: 1\nname: {name}\nwhy: A test.\n{more}"
    found = check_unsaved(text, "the policy", NOWHERE).document
    assert found is not None
    return found


def rule(when: str, settings: str, more: str = "") -> PolicyDocument:
    lines = ["rules:", "  - name: r", "    why: A test.", f"    when: {{{when}}}"]
    return policy("\n".join([*lines, f"    set: {{{settings}}}", more, ""]))


def row(at_s: float, *, span_s: int = 1, **columns: Any) -> dict[str, Any]:
    """A busy second with 420 MiB dirty of 1 GiB, or other values."""
    given: dict[str, Any] = dict.fromkeys(COLUMNS)
    given |= {
        "volume": "bcache0",
        "span_ns": span_s * NS_PER_S,
        "at_unix_ns": START_NS + round(at_s * NS_PER_S),
        "regime": "burst",
        "idle": 0,
        "read_iops": 100.0,
        "read_bytes_per_s": 409600.0,
        "write_iops": 50.0,
        "write_bytes_per_s": 204800.0,
        "destage_bytes_per_s": 0.0,
        "dirty_in_bytes_per_s": 204800.0,
        "dirty_bytes": 420 * MIB,
        "cache_bytes": GIB,
        "in_use_ratio": 0.42,
        "backing_depth_ios": 1,
        "paths": {"read hit": [100, 409600, 200_000, 900_000]},
        "missing": {},
        "samples": span_s,
        "covered_ns": span_s * NS_PER_S,
    }
    return given | columns


def gap(since_s: float, until_s: float, wait_s: float = 0.3) -> list[Edge]:
    since, until = (START_NS + round(at * NS_PER_S) for at in (since_s, until_s))
    wait = round(wait_s * NS_PER_S)
    return [
        Edge("bcache0", since + wait, EdgeKind.IDLE, wait),
        Edge("bcache0", until, EdgeKind.BUSY, until - since),
    ]


def test_every_column_that_is_read_is_one_of_the_table() -> None:
    assert set(get_type_hints(HistorySample)) <= set(COLUMNS)


def past(
    rows: list[dict[str, Any]], edges: list[Edge] | None = None, **parts: Any
) -> HistoryWindow:
    until = rows[-1]["at_unix_ns"] + rows[-1]["span_ns"] if rows else START_NS + NS_PER_S
    given = {"volume": "bcache0", "kind": Kind.BCACHE, "since_unix_ns": START_NS}
    return HistoryWindow(
        **{**given, "until_unix_ns": until, "samples": rows, "edges": edges or [], **parts}
    )


def run(
    what: HistoryWindow, after: PolicyDocument, before: PolicyDocument | None = None, **parts: Any
) -> DryRun:
    both = (after, before or named("adaptive"))
    return dry_run(what, *(policy_at(each, what.kind, **parts) for each in both))


def of(found: DryRun, setting: ReplaySetting) -> list[Difference]:
    return [each for each in found.differences if each.setting is setting]


def times(difference: Difference) -> tuple[float, float]:
    since, until = difference.at_unix_ns - START_NS, difference.until_unix_ns - START_NS
    return since / NS_PER_S, until / NS_PER_S


def seconds(count: int, **columns: Any) -> list[dict[str, Any]]:
    return [row(at, **columns) for at in range(count)]


# ---- against recordings, through the real store -------------------------------------------------
@pytest.mark.parametrize("name", ["sim-gap-drain", "lab-gap-drain", "lab-dm-gap-drain"])
def test_the_gate_is_open_as_long_as_in_a_replay_of_the_recording(
    tmp_path: Path, name: str
) -> None:
    kind = Kind.DM_CACHE if "dm" in name else Kind.BCACHE
    events = recorded(name)
    since, until = keep(tmp_path / "history.db", events, kind)
    volume = next(event.volume for event in events if hasattr(event, "volume"))
    subject = Subject(volume, volume, kind)
    both = (named("adaptive"), named("observe-only"))
    found = history.run(tmp_path / "history.db", subject, both, since, until)
    start = min(event.at_ns for event in events if hasattr(event, "at_ns"))
    rows = [
        {**decision_document(each), "after_ns": each.at_ns - start}
        for each in replay(events, compile_policy(named("adaptive"), kind))
    ]
    exact = time_by_gate(rows, until - since)
    after = found.destage_ns[1]
    # A second at each end is lost to the grid of samples.
    opened = GateKind.PACED if kind is Kind.DM_CACHE else GateKind.OPEN
    assert after[opened] == pytest.approx(exact[opened], abs=1.5 * NS_PER_S)
    assert after["closed"] == pytest.approx(exact[GateKind.CLOSED], abs=1.5 * NS_PER_S)
    assert {each.before for each in of(found, ReplaySetting.DESTAGE)} == {KERNELS}


@pytest.mark.parametrize("name", ["sim-mixed-stream", "lab-mixed-stream", "sim-trickle"])
def test_a_policy_differs_in_nothing_from_itself(tmp_path: Path, name: str) -> None:
    since, until = keep(tmp_path / "history.db", recorded(name), Kind.BCACHE, times=3)
    both = (named("nas-sleep"), named("nas-sleep"))
    found = history.run(tmp_path / "history.db", SUBJECT, both, since, until)
    assert found.differences == ()
    assert found.coverage_ratio > 0.9
    assert found.frames > 10


def test_a_history_without_the_volume_is_reported(tmp_path: Path) -> None:
    keep(tmp_path / "history.db", recorded("sim-trickle"), Kind.BCACHE)
    both = (named("adaptive"), named("nas-sleep"))
    subject = Subject("bcache7", "bcache7", Kind.BCACHE)
    with pytest.raises(NotFound, match="the history has nothing on bcache7"):
        history.run(tmp_path / "history.db", subject, both, 0, 2 * START_NS)


# ---- what differs -------------------------------------------------------------------------------
def test_equal_decisions_are_one_interval(tmp_path: Path) -> None:
    found = run(past(seconds(60)), rule("all: [{write_iops: '> 10/s'}]", "sequential_cutoff: 1MiB"))
    (one,) = of(found, ReplaySetting.CUTOFF)
    assert (one.before, one.after) == ("decided by stream_bypass", "1 MiB")
    assert one.why_after == "rule r: on: A test"
    assert times(one) == (0.0, 60.0)


def test_the_state_is_carried_along_so_a_dwell_counts() -> None:
    document_ = rule(
        "all: [{write_iops: '> 10/s'}]", "destage_rate: 0", "    for: 10s\nstrategies: []"
    )
    found = run(past(seconds(30)), document_, policy("strategies: []\n"))
    (one,) = of(found, ReplaySetting.DESTAGE)
    assert (times(one), one.before, one.after) == ((10.0, 30.0), KERNELS, "closed")


def test_a_rule_shows_its_rate_and_a_limit_bounds_what_a_gap_drains() -> None:
    rate = rule("all: [{dirty_data: '> 1MiB'}]", "destage_rate: 20MiB/s")
    assert of(run(past(seconds(9)), rate), ReplaySetting.DESTAGE)[0].after == "20 MiB/s"
    idle = past(seconds(9, idle=1))
    limited = policy("limits: {destage_rate: {max: 10MiB/s}}\n")
    (one,) = of(run(idle, limited), ReplaySetting.DESTAGE)
    assert (one.before, one.after) == ("open", "paced, at most 10 MiB/s")


def test_edges_open_and_close_the_gate_between_the_samples() -> None:
    what = past(seconds(10), gap(2.25, 4.75))
    found = run(what, policy("strategies: []\n"))
    assert [(times(d), d.before) for d in of(found, ReplaySetting.DESTAGE)] == [
        ((0.0, 2.55), "closed"),
        ((2.55, 4.75), "open"),
        ((4.75, 10.0), "closed"),
    ]
    assert found.destage_ns[0] == {"closed": round(7.8 * NS_PER_S), "open": round(2.2 * NS_PER_S)}


def test_another_wait_finds_other_gaps() -> None:
    what = past(seconds(20), [*gap(2.25, 4.75), *gap(10.25, 11.25)])
    patient = policy("strategies: [{idle_destage: {wait: 2s}}, stream_bypass]\n")
    assert run(what, patient).destage_ns[1]["open"] == round(0.5 * NS_PER_S)
    hasty = policy("strategies: [{idle_destage: {wait: 100ms}}, stream_bypass]\n")
    found = run(what, hasty)
    assert found.destage_ns[1]["open"] == round((2.4 + 0.9) * NS_PER_S)
    assert any("a wait of 100 ms would have found more" in note for note in found.notes)


def test_the_reason_names_the_recorded_wait() -> None:
    what = past(seconds(10), gap(2.25, 4.75, wait_s=0.119))
    found = run(what, policy("strategies: []\n"))
    whys = [each.why_before for each in of(found, ReplaySetting.DESTAGE)]
    assert whys[1] == "idle_destage: destage: idle for 119 ms (needs 119)"


def test_a_schedule_counts_by_the_hour() -> None:
    night = policy('schedule:\n  - {name: night, at: "22:14-05:00", use: observe-only}\n')
    what = past(seconds(120))

    def local(at_unix_ns: int) -> LocalTime:
        return LocalTime(at_unix_ns // MINUTE_NS % (24 * 60), 1)

    (one,) = of(
        run(what, night, policy("strategies: [idle_destage]\n"), local=local), ReplaySetting.DESTAGE
    )
    assert (one.before, one.after, times(one)[1]) == ("closed", KERNELS, 120.0)
    assert times(one)[0] == 40.0


def test_on_dm_cache_its_own_settings_differ() -> None:
    what = past(seconds(20), kind=Kind.DM_CACHE)
    depth = rule("all: [{room: '> 1MiB'}]", "destage_depth: 4")
    found = run(what, depth, policy("strategies: [idle_destage]\n"))
    assert [(d.before, d.after) for d in of(found, ReplaySetting.DESTAGE)] == [
        ("closed", "4 at once")
    ]
    assert of(found, ReplaySetting.CUTOFF) == []


def test_differences_are_bounded_and_the_shortest_are_left_out() -> None:
    edges = [edge for at in range(DIFFERENCES_MAX) for edge in gap(at, at + 0.5)]
    what = past(seconds(DIFFERENCES_MAX), edges)
    found = run(what, policy("strategies: []\n"))
    assert len(found.differences) == DIFFERENCES_MAX
    assert found.left_out > 0
    starts = [each.at_unix_ns for each in found.differences]
    assert starts == sorted(starts)


# ---- what cannot be known -----------------------------------------------------------------------
@pytest.mark.parametrize(
    "signal", ["in_flight: '< 1000'", "backing_busy: '< 100%'", "state: dirty"]
)
def test_a_rule_on_what_is_not_kept_never_fires_and_is_named(signal: str) -> None:
    found = run(past(seconds(30)), rule(f"all: [{{{signal}}}]", "destage_rate: max"))
    assert of(found, ReplaySetting.DESTAGE) == []
    name = signal.split(":", maxsplit=1)[0]
    assert found.notes[0] == (
        f"rule r uses {name}, which the history does not keep: here its condition is never met"
    )


@pytest.mark.parametrize("state", ["standby", "'!= standby'"])
def test_a_rule_on_the_state_of_the_disk_is_named_whether_it_fires_or_not(state: str) -> None:
    found = run(past(seconds(30)), rule(f"backing_state: {state}", "destage_rate: max"))
    assert bool(of(found, ReplaySetting.DESTAGE)) is state.startswith("'")
    assert found.notes[0] == (
        "rule r uses backing_state, which the history does not keep: here it is always `unknown`"
    )


def test_every_signal_is_kept_or_named_as_not_kept() -> None:
    full = {"paths": {f"{way} hit": [9, 9, 9, 9] for way in Direction}}
    rows = seconds(2, time_to_full_s=600.0, time_to_clean_s=9.0, **full)
    rows[1]["paths"] = {**rows[1]["paths"], "read miss": [9, 9, 9, 9]}
    gaps = gaps_of(gap(0.2, 1.8))
    frames = [each.payload for each in events(past(rows), gaps, lambda _: None)]
    known = {
        name
        for name, signal in SIGNALS.items()
        if any(isinstance(each, Frame) and signal.of(each) is not None for each in frames)
    }
    assert known.isdisjoint(UNKEPT)
    assert known | set(UNKEPT) == set(SIGNALS)


def test_room_is_known_once_a_forecast_has_shown_the_kernels_level() -> None:
    full = rule("all: [{room: '< 300MiB'}]", "destage_rate: max")
    without = run(past(seconds(20)), full)
    assert of(without, ReplaySetting.DESTAGE) == []
    rows = seconds(20)
    # At 42 % in use with 70 % as the level: 28 % of 1 GiB.
    rows[5] |= {"time_to_full_s": 0.28 * GIB / 204800.0}
    (one,) = of(run(past(rows), full), ReplaySetting.DESTAGE)
    assert (times(one)[0], one.after) == (5.0, "open")


def test_in_a_hole_nothing_differs_and_coverage_is_lower() -> None:
    rows = [row(at) for at in (*range(10), *range(50, 60))]
    found = run(past(rows, gap(20, 30)), policy("strategies: []\n"))
    assert [times(each) for each in of(found, ReplaySetting.DESTAGE)] == [(0.0, 10.0), (50.0, 60.0)]
    assert found.coverage_ratio == pytest.approx(20 / 60)


def test_a_hole_counts_towards_no_dwell() -> None:
    document_ = rule(
        "all: [{write_iops: '> 10/s'}]", "destage_rate: 0", "    for: 30s\nstrategies: []"
    )
    rows = [row(at) for at in (*range(20), *range(50, 75))]
    assert of(run(past(rows), document_, policy("strategies: []\n")), ReplaySetting.DESTAGE) == []


def test_a_minute_in_which_the_load_changed_is_left_open() -> None:
    rows = [
        row(0, span_s=60, idle=0.0),
        row(60, span_s=60, idle=0.4),
        row(120, span_s=60, idle=1.0),
    ]
    found = run(past(rows), policy("strategies: []\n"))
    assert [(times(d)[0], d.before) for d in of(found, ReplaySetting.DESTAGE)] == [
        (0.0, "closed"),
        (60.0, "decided by idle_destage"),
        (120.0, "open"),
    ]
    assert any("for 3 minutes the history keeps only means" in note for note in found.notes)
    assert any("in 1 of them the load changed" in note for note in found.notes)


def test_values_unknown_then_are_unknown_in_the_replay() -> None:
    unknown = dict.fromkeys(("idle", "read_iops", "write_iops", "dirty_bytes"))
    found = run(
        past(seconds(20, **unknown)), rule("all: [{write_iops: '>= 0/s'}]", "destage_rate: 0")
    )
    assert of(found, ReplaySetting.DESTAGE) == []


def test_without_a_sample_there_is_nothing_to_say() -> None:
    found = run(past([]), policy("strategies: []\n"))
    assert (found.differences, found.coverage_ratio) == ((), 0.0)
    assert found.notes == ("the history has nothing for this time",)


BOTH = (policy("strategies: []\n"), named("adaptive"))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 400),
            st.sampled_from([None, 0, 1]),
            st.sampled_from([None, 0, 7 * MIB, GIB]),
            st.sampled_from([None, 0.0, 1e9]),
        ),
        max_size=30,
    ),
    st.lists(st.tuples(st.integers(0, 400_000), st.sampled_from(list(EdgeKind))), max_size=30),
)
def test_whatever_was_kept_intervals_are_in_order_and_do_not_overlap(
    kept: list[tuple[int, Any, Any, Any]], edges: list[tuple[int, EdgeKind]]
) -> None:
    by_time = {at: rest for at, *rest in kept}
    rows = [
        row(at, idle=idle, dirty_bytes=dirty, read_iops=rate, dirty_in_bytes_per_s=rate)
        for at, (idle, dirty, rate) in sorted(by_time.items())
    ]
    made = [Edge("bcache0", START_NS + at * NS_PER_MS, k, 10**8) for at, k in sorted(edges)]
    found = run(past(rows, made), *BOTH)
    for setting in ReplaySetting:
        mine = of(found, setting)
        assert all(each.at_unix_ns < each.until_unix_ns for each in mine)
        assert all(a.until_unix_ns <= b.at_unix_ns for a, b in pairwise(mine))
    assert 0 <= found.coverage_ratio <= 1
    assert dry_run_to_json(found)["frames"] == len(rows)

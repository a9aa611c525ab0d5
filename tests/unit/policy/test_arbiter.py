# SPDX-License-Identifier: GPL-2.0-only
"""Overrides beat all strategies; the guard beats strategies unless dirty data must go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ebbgate.model.decision import Decision, Gate, GateKind, Proposal
from ebbgate.model.frame import Frame, PathLatency, Rates
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.records import Direction
from ebbgate.policy import arbiter, overrides
from ebbgate.policy.arbiter import decision_key
from ebbgate.policy.defaults import IDLE_DESTAGE, Policy
from ebbgate.policy.evaluate import Ruling
from ebbgate.policy.limits import Bounds, Limits
from ebbgate.policy.other_knobs import other_knobs
from ebbgate.policy.rollback_guard import WatchedSetting
from ebbgate.policy.rules import Rule, RulesState
from ebbgate.policy.state import ArbiterState, State
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.policy.strategies.pressure import must_destage
from ebbgate.policy.strategies.stream_bypass import StreamMode, StreamState
from ebbgate.units import GIB, KIB, MIB, NS_PER_MS, NS_PER_S
from tests.builders import frame, volume_state

POLICY = Policy()
GATE_KNOBS = frozenset({"writeback_percent", "writeback_rate"})
SECOND = NS_PER_S


def seen(at_s: float, p99_ms: float = 12, **signals: Any) -> Frame:
    """200 reads a second of this p99, with room for dirty data."""
    read = PathLatency(200, 200 * 4 * KIB, NS_PER_MS, round(p99_ms * NS_PER_MS))
    known: dict[str, Any] = {
        "at_ns": round(at_s * SECOND),
        "paths": {(Direction.READ, "miss"): read},
        "foreground": {way: Rates(200.0, 200 * 4096.0) for way in Direction},
        "cache_bytes": GIB,
        "dirty_bytes": 400 * MIB,
        "dirty_in_bytes_per_s": 0.0,
        "destage_bytes_per_s": 0.0,
        "dirty_room_bytes": 300 * MIB,
        "idle": False,
    }
    return frame(**{**known, **signals})


def state(phase: Phase = Phase.WAIT, mode: StreamMode = StreamMode.REST, **signals: Any) -> State:
    streams = StreamState(mode, cutoff_bytes=None if mode is StreamMode.REST else MIB)
    return State(DestageState(phase=phase), streams, frame=seen(1, **signals))


def decide(over: ArbiterState, now: State, now_ns: int = SECOND) -> Decision:
    return arbiter.decide(replace(now, arbiter=over), POLICY, now_ns)


def ruling(over: ArbiterState, now: State, now_ns: int = SECOND, policy: Policy = POLICY) -> Ruling:
    return arbiter.ruling(replace(now, arbiter=over), policy, now_ns)


def ticked(over: ArbiterState, at: Frame, now: State, *, applied: bool = True) -> ArbiterState:
    return arbiter.on_frame(replace(now, arbiter=over), at, POLICY, applied=applied).arbiter


def after_a_rise(
    over: ArbiterState, acting: State, calm: State | None = None, *, applied: bool = True
) -> tuple[ArbiterState, int]:
    """Return the state after the p99 of users has risen under `acting`, and the time."""
    calm = calm or state()
    for number in range(200):
        bad = number >= 100
        now = seen(100 + number / 4, 60 if bad else 12)
        over = ticked(over, now, acting if bad else calm, applied=applied)
    return over, now.at_ns


def rolled_back(
    phase: Phase = Phase.WAIT, mode: StreamMode = StreamMode.REST
) -> tuple[ArbiterState, int]:
    """Return the state after users have waited longer, and the time."""
    return after_a_rise(ArbiterState(), state(phase, mode))


def active(
    kind: OverrideKind, knob: str = "", value: str = "", ends_s: float | None = None
) -> ActiveOverride:
    until = None if ends_s is None else round(ends_s * SECOND)
    return ActiveOverride(Override(kind, "bcache0", "jo", 0, until, knob, value), until)


def overridden(knob: str, value: str, words: str = "") -> ArbiterState:
    each = active(OverrideKind.SET, knob, value)
    return ArbiterState(sets=((each, words or value),), gate_knobs=GATE_KNOBS)


# ---- without any --------------------------------------------------------------------------------
def test_strategies_decide_without_overrides_and_rollbacks() -> None:
    over, now = ArbiterState(), state(Phase.PRESSURE, StreamMode.BYPASS)
    decision = decide(over, now)
    assert [p.strategy for p in decision.proposals] == ["idle_destage", "stream_bypass"]
    assert ruling(over, now).gate == decision.gate
    assert ruling(over, now).by == "idle_destage"


# ---- overrides ----------------------------------------------------------------------------------
def test_override_of_a_gate_knob_releases_the_gate() -> None:
    over = overridden("writeback_percent", "20", "20%")
    decision = decide(over, state(Phase.PRESSURE))
    assert (decision.gate, decision.gate_strategy) == (Gate(GateKind.RELEASED), "override")
    assert decision.proposals[0].knobs == (("writeback_percent", "20"),)
    assert decision.proposals[1].gate is not None, "the loser is no longer visible"
    assert ruling(over, state(Phase.PRESSURE)).by == "override"


def test_override_of_the_cutoff_beats_stream_bypass() -> None:
    over = overridden("sequential_cutoff", str(8 * MIB))
    decision = decide(over, state(mode=StreamMode.BYPASS))
    assert (decision.sequential_cutoff_bytes, decision.cutoff_strategy) == (8 * MIB, "override")
    assert decision.gate_strategy == "idle_destage"


def test_override_of_the_request_length_stops_splitting() -> None:
    over = overridden("max_sectors_kb", "512")
    decision = decide(over, state(mode=StreamMode.BYPASS))
    assert not decision.split_requests
    assert decision.cutoff_strategy == "override"


def test_override_of_a_congestion_threshold_leaves_both_alone() -> None:
    over = overridden("congested_read_threshold_us", "5000")
    now = replace(state(), congested=True)
    assert decide(ArbiterState(), now).congestion_bypass is False
    assert decide(over, now).congestion_bypass is None


def test_override_changes_the_decision_key() -> None:
    now, over = state(), overridden("congested_read_threshold_us", "5000")
    keys = {
        decision_key(now, POLICY, decide(each, now))
        for each in (ArbiterState(), over, overridden("congested_read_threshold_us", "6000"))
    }
    assert len(keys) == 3


# ---- drains -------------------------------------------------------------------------------------
def test_drain_opens_a_closed_gate() -> None:
    over = ArbiterState(drain=active(OverrideKind.DRAIN, ends_s=100))
    over = ticked(over, seen(1), state())
    decision = decide(over, state())
    assert decision.gate is not None
    assert (decision.gate.kind, decision.gate_strategy) == (GateKind.PACED, "drain")
    found = ruling(over, state())
    assert (found.gate, found.by) == (decision.gate, "drain")
    assert found.why.startswith("400 MiB dirty, needs ")


def test_drain_keeps_the_limits_of_the_policy() -> None:
    policy = replace(POLICY, limits=Limits(destage_rate=Bounds(high=2 * MIB)))
    over = ticked(ArbiterState(drain=active(OverrideKind.DRAIN, ends_s=100)), seen(1), state())
    found = ruling(over, state(), policy=policy)
    assert found.gate == Gate(GateKind.PACED, 2 * MIB)
    assert "needs 5.8 MiB/s (the policy allows 2 MiB/s)" in found.why
    decision = arbiter.decide(replace(state(), arbiter=over), policy, SECOND)
    assert decision.gate == found.gate
    assert "(the policy allows 2 MiB/s)" in decision.proposals[0].reason


def test_drain_leaves_a_gate_that_is_as_wide_as_the_limits_allow() -> None:
    policy = replace(POLICY, limits=Limits(destage_rate=Bounds(high=MIB)))
    over = ticked(ArbiterState(drain=active(OverrideKind.DRAIN, ends_s=100)), seen(1), state())
    now = state(Phase.PRESSURE)
    wide = replace(now.destage.pace, gate=Gate(GateKind.PACED, 3 * MIB))
    now = replace(now, destage=replace(now.destage, pace=wide))
    found = ruling(over, now, policy=policy)
    assert (found.gate, found.by) == (Gate(GateKind.PACED, MIB), "idle_destage")


@pytest.mark.parametrize("phase", [Phase.WAIT, Phase.DESTAGE])
def test_drain_goes_before_a_rule_that_holds(phase: Phase) -> None:
    over = ArbiterState(drain=active(OverrideKind.DRAIN, ends_s=100))
    over = ticked(over, seen(1), state())
    rule = Rule("sleep", ((),), Proposal("rule sleep", "on", gate=Gate(GateKind.HELD)), ("gate",))
    policy = Policy(rules=(rule,))
    now = replace(state(phase), rules=RulesState(in_force=(rule.proposal,), evaluated=policy.rules))
    assert ruling(ArbiterState(), now, policy=policy).gate == Gate(GateKind.HELD)
    found = ruling(over, now, policy=policy)
    assert found.gate is not None
    assert (found.gate.kind, found.by) == (GateKind.PACED, "drain")


def test_drain_leaves_a_released_gate_to_the_kernel() -> None:
    over = ArbiterState(drain=active(OverrideKind.DRAIN, ends_s=100))
    over = ticked(over, seen(1), state())
    found = ruling(over, state(Phase.UNKNOWN))
    assert (found.gate, found.by) == (Gate(GateKind.RELEASED), "idle_destage")


def test_drain_and_guard_change_nothing_where_nothing_can_be_tuned() -> None:
    over, now_ns = rolled_back(Phase.PRESSURE)
    over = replace(over, drain=active(OverrideKind.DRAIN, ends_s=1000))
    assert ruling(over, state(), now_ns, Policy(destage=None)).gate is None


# ---- the guard ----------------------------------------------------------------------------------
def test_pressure_that_slows_users_is_rolled_back() -> None:
    over, now_ns = rolled_back(Phase.PRESSURE)
    pressed = state(Phase.PRESSURE)
    decision = decide(over, pressed, now_ns)
    assert decision.gate is not None
    assert (decision.gate.kind, decision.gate_strategy) == (GateKind.CLOSED, "rollback_guard")
    first = decision.proposals[0]
    assert first.strategy == "rollback_guard"
    assert "write-back under load is suspended for" in first.reason
    (condition,) = first.conditions
    assert (condition.measured, condition.threshold) == ("60 ms", "24.0 ms (before: 12.0 ms)")
    assert condition.holds
    assert ruling(over, pressed, now_ns).gate == decision.gate


@pytest.mark.parametrize(
    "signals",
    [
        {"time_to_full_s": 30.0},
        {"dirty_in_bytes_per_s": 10.0 * MIB, "destage_bytes_per_s": 20.0 * MIB},
        {"dirty_room_bytes": 60 * MIB},
        {"dirty_room_bytes": None},
        {"cache_bytes": None},
    ],
)
def test_data_that_must_go_beats_the_guard(signals: dict[str, Any]) -> None:
    over, now_ns = rolled_back(Phase.PRESSURE)
    decision = decide(over, state(Phase.PRESSURE, **signals), now_ns)
    assert decision.gate_strategy == "idle_destage"
    assert decision.proposals[0].reason.endswith("; ignored, since dirty data must be written back")


def test_gap_is_drained_after_a_rollback() -> None:
    over, now_ns = rolled_back(Phase.PRESSURE)
    found = ruling(over, state(Phase.DESTAGE), now_ns)
    assert found.by == "idle_destage"


def test_stream_mode_that_slows_users_is_rolled_back() -> None:
    over, now_ns = rolled_back(mode=StreamMode.ABSORB)
    decision = decide(over, state(mode=StreamMode.ABSORB), now_ns)
    assert (decision.sequential_cutoff_bytes, decision.cutoff_strategy) == (None, "rollback_guard")
    assert decision.proposals[0].suppresses == (str(WatchedSetting.STREAMS),)
    assert decision.gate_strategy == "idle_destage"


def test_a_cutoff_goes_back_for_the_reason_of_streams_where_the_gate_is_suspended_too() -> None:
    over, now_ns = rolled_back(Phase.PRESSURE, StreamMode.BYPASS)
    decision = decide(over, state(Phase.PRESSURE, StreamMode.BYPASS), now_ns)
    assert [each.suppresses for each in decision.proposals[:2]] == [("gate",), ("streams",)]
    source = other_knobs(decision, POLICY).streams
    assert (source.actor, source.reason) == ("rollback_guard", decision.proposals[1].reason)


def test_the_guard_says_nothing_of_a_strategy_that_the_policy_lacks() -> None:
    over, now_ns = rolled_back(mode=StreamMode.ABSORB)
    policy = replace(POLICY, streams=None, order=(IDLE_DESTAGE,))
    decision = arbiter.decide(replace(state(), arbiter=over), policy, now_ns)
    assert [each.strategy for each in decision.proposals] == [IDLE_DESTAGE]


def test_strategy_decides_again_after_the_suspension() -> None:
    over, now_ns = rolled_back(mode=StreamMode.ABSORB)
    decision = decide(over, state(mode=StreamMode.ABSORB), now_ns + 60 * SECOND)
    assert decision.cutoff_strategy == "stream_bypass"


def test_decision_that_is_not_applied_is_not_rolled_back() -> None:
    acting = state(Phase.PRESSURE)
    over, now_ns = after_a_rise(ArbiterState(), acting, applied=False)
    assert decide(over, acting, now_ns).gate_strategy == "idle_destage"


def test_override_is_not_rolled_back() -> None:
    over = overridden("sequential_cutoff", str(MIB))
    over = replace(over, drain=active(OverrideKind.DRAIN, ends_s=1000))
    acting = state(Phase.PRESSURE, StreamMode.ABSORB)
    over, now_ns = after_a_rise(over, acting)
    decision = decide(over, acting, now_ns)
    assert "rollback_guard" not in [p.strategy for p in decision.proposals]


RULE = Proposal("rule:open", "wide open", gate=Gate(GateKind.OPEN))
CUTOFF = Proposal("rule:cutoff", "small", sequential_cutoff_bytes=256 * KIB)


def ruled(now: State, *proposals: Proposal) -> State:
    """The same state with these rules in force."""
    return replace(now, rules=RulesState(in_force=proposals))


def test_strategy_is_not_rolled_back_for_a_rule() -> None:
    acting = state(Phase.PRESSURE, StreamMode.ABSORB)
    both = (ruled(each, RULE, CUTOFF) for each in (acting, state()))
    over, now_ns = after_a_rise(ArbiterState(), *both)
    decision = decide(over, acting, now_ns)
    assert "rollback_guard" not in [p.strategy for p in decision.proposals]


def test_the_guard_leaves_the_gate_of_a_rule_open() -> None:
    over, now_ns = rolled_back(Phase.PRESSURE)
    assert ruling(over, state(Phase.PRESSURE), now_ns).by == "rollback_guard"
    now = ruled(state(Phase.PRESSURE), RULE)
    found = ruling(over, now, now_ns)
    assert (found.gate, found.by) == (RULE.gate, "rule:open")


def test_the_guard_leaves_the_cutoff_of_a_rule() -> None:
    over, now_ns = rolled_back(mode=StreamMode.ABSORB)
    policy = replace(POLICY, rules=(Rule("cutoff", (), CUTOFF, ("sequential_cutoff",)),))
    rules = RulesState(in_force=(CUTOFF,), evaluated=policy.rules)
    acting = replace(state(mode=StreamMode.ABSORB), rules=rules)
    decision = arbiter.decide(replace(acting, arbiter=over), policy, now_ns, explained=False)
    assert (decision.sequential_cutoff_bytes, decision.cutoff_strategy) == (
        256 * KIB,
        "rule:cutoff",
    )


def test_a_gate_that_the_guard_shuts_stays_within_the_limits() -> None:
    over, now_ns = rolled_back(Phase.PRESSURE)
    policy = replace(POLICY, limits=Limits(destage_rate=Bounds(low=2 * MIB)))
    found = ruling(over, state(Phase.PRESSURE), now_ns, policy)
    assert (found.gate, found.by) == (Gate(GateKind.PACED, 2 * MIB), "rollback_guard")


def test_must_destage_has_the_thresholds_of_idle_destage() -> None:
    params = DestageParams()
    assert must_destage(None, params)
    assert not must_destage(seen(1), params)
    assert must_destage(seen(1, time_to_full_s=39.0), params)
    assert not must_destage(seen(1, time_to_full_s=41.0), params)


# ---- when overrides end -------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("wall_s", "ends_s"), [(0, 110), (60, 50), (100, 10), (1000, 10), (-1000, 110)]
)
def test_override_lasts_for_what_is_left_of_it(wall_s: int, ends_s: int) -> None:
    override = Override(OverrideKind.SET, "bcache0", "jo", 0, 100 * SECOND)
    assert overrides.ends_ns(override, wall_s * SECOND, 10 * SECOND) == ends_s * SECOND


def test_override_without_an_end_has_none() -> None:
    each = active(OverrideKind.HOLD)
    assert overrides.ends_ns(each.override, 0, 0) is None
    assert not overrides.is_over(each, 1 << 62, 1 << 62)
    assert each.left_ns(5) is None


@pytest.mark.parametrize(
    ("wall_s", "mono_s", "over"),
    [(99, 99, False), (100, 99, True), (99, 100, True), (0, 100, True)],
)
def test_either_clock_ends_it(wall_s: int, mono_s: int, over: bool) -> None:
    each = active(OverrideKind.SET, "writeback_percent", "20", ends_s=100)
    assert overrides.is_over(each, wall_s * SECOND, mono_s * SECOND) is over


@pytest.mark.parametrize(
    ("wall_s", "ends_s"),
    # As much has passed on both clocks, or nearly; the machine slept; the clock was set back.
    [(50, 150), (50.9, 150), (80, 120), (10, 150)],
)
def test_a_sleep_of_the_machine_leaves_less_time(wall_s: float, ends_s: int) -> None:
    override = Override(OverrideKind.DRAIN, "bcache0", "jo", 0, 100 * SECOND)
    each = ActiveOverride(override, 150 * SECOND)
    found = overrides.after_sleep(each, round(wall_s * SECOND), 100 * SECOND)
    assert found.ends_ns == ends_s * SECOND


@pytest.mark.parametrize(
    ("word", "refused"),
    [
        ("dirty", ""),
        ("clean", ""),
        ("no cache", "no cache is attached"),
        ("inconsistent", "the kernel reports the volume as inconsistent"),
        ("suspended", "the volume is suspended"),
        ("failed", "the kernel reports that the cache has failed"),
        (None, "its state is unknown"),
    ],
)
def test_a_state_that_forbids_writing(word: str | None, refused: str) -> None:
    assert overrides.unwritable_reason(volume_state(state=word)).partition(":")[0] == refused
    assert overrides.unwritable_reason(None) == "its state is unknown"

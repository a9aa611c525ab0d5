# SPDX-License-Identifier: GPL-2.0-only
"""What holds for every sequence of events: no oscillation, no gate shut for ever."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ebbgate.model.decision import Gate, GateKind, Proposal
from ebbgate.model.frame import Rates
from ebbgate.model.heat import ChunkMisses, HeatPeriod
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.promotion import ChunksMoved
from ebbgate.model.records import Direction
from ebbgate.model.volume import Kind
from ebbgate.policy import limits
from ebbgate.policy.defaults import PROMOTE_HOT, STRATEGIES, default_policy
from ebbgate.policy.engine import (
    DestageParams,
    Event,
    Outcome,
    OverrideChange,
    Phase,
    Policy,
    State,
    step,
)
from ebbgate.policy.limits import Bounds, Limits
from ebbgate.policy.rollback_guard import RollbackState, Verdict, Watched, WatchedSetting
from ebbgate.policy.rules import Check, Rule
from ebbgate.policy.state import ArbiterState
from ebbgate.policy.strategies.promote_stop import PromoteParams
from ebbgate.policy.strategies.stream_bypass import StreamMode, StreamParams
from ebbgate.units import GIB, MIB, NS_PER_MS, NS_PER_S
from tests.builders import busy_edge, busy_frame, idle_edge, idle_frame, queue_sample

Made = tuple[Any, dict[str, Any]]
"""A builder of an event, and its signals."""
Events = list[Made]

POLICY = Policy()
DESTAGE = DestageParams()
STREAMS = StreamParams()
SAMPLED_KINDS = (GateKind.OPEN, GateKind.RESTING, GateKind.PACED)

BYTES = st.sampled_from([0, 4096, MIB, 20 * MIB, 420 * MIB, GIB])
RATIOS = st.floats(min_value=0, max_value=1)
RANDOM = (0, 0, 0, MIB)
STREAM = (*[0] * 17, 80 * MIB)
BOTH = (0, 0, 0, *[MIB] * 15)
RUNS = st.sampled_from(
    [
        {Direction.READ: read, Direction.WRITE: write}
        for read in ((), RANDOM, STREAM)
        for write in ((), RANDOM, STREAM, BOTH)
    ]
)
GAPS = st.sampled_from([(), (*[0.0] * 17, 50.0), (*[0.0] * 13, 900.0, *[0.0] * 7, 9.0)])
HOT = tuple(ChunkMisses(chunk, sync_reads=50) for chunk in range(40))
HEAT = st.none() | st.integers(min_value=1, max_value=30).map(
    lambda number: HeatPeriod(number * 10 * NS_PER_S, (number + 1) * 10 * NS_PER_S, HOT)
)
SIGNALS = st.fixed_dictionaries(
    {
        "dirty_bytes": BYTES,
        "dirty_ratio": RATIOS,
        "in_use_ratio": st.none() | RATIOS,
        "dirty_room_bytes": BYTES,
        "time_to_full_s": st.none() | st.floats(min_value=0, max_value=100),
        "dirty_in_bytes_per_s": st.sampled_from([0.0, 1e6, 1e8]),
        "backing_busy_foreground_ratio": st.none() | RATIOS,
        "gap_counts": GAPS,
        "window_ns": st.just(NS_PER_S),
        "foreground": st.just({d: Rates(1, 1) for d in Direction}),
        "run_delta_bytes": RUNS,
        "heat": HEAT,
    }
)
UNKNOWN = st.sampled_from(
    [
        {"dirty_bytes": None},
        {"idle": None},
        {"foreground": None},
        {"cache_bytes": None},
        {"state": "no cache"},
        {"state": "inconsistent"},
        {"cache_mode": "writethrough"},
        {"cache_mode": "none"},
        {"missing": {"destage": "no tracepoint"}},
    ]
)
KNOWN_FRAMES = st.tuples(st.sampled_from([busy_frame, idle_frame]), SIGNALS)
EVENT = st.one_of(
    KNOWN_FRAMES,
    st.tuples(st.just(busy_frame), UNKNOWN),
    st.tuples(st.sampled_from([busy_edge, idle_edge]), st.just({})),
    st.tuples(
        st.just(queue_sample),
        st.fixed_dictionaries({"in_flight_ios": st.integers(min_value=0, max_value=64)}),
    ),
)
EVENTS = st.lists(EVENT, max_size=12)


def rule(name: str, low: float, **settings: Any) -> Rule:
    when = ((Check("dirty_ratio", ">", low),),)
    return Rule(name, when, Proposal(f"rule {name}", "on: w", **settings), ("gate",))


GATES = st.sampled_from([Gate(GateKind.OPEN), Gate(GateKind.CLOSED), Gate(GateKind.PACED, 9 * MIB)])
RULES = st.builds(rule, st.sampled_from("ab"), st.sampled_from([0.0, 0.5]), gate=st.none() | GATES)
DEFAULTS = st.sampled_from([default_policy(kind) for kind in Kind])
POLICIES = (
    st.builds(
        replace,
        DEFAULTS,
        order=st.lists(st.sampled_from((*STRATEGIES, PROMOTE_HOT)), unique=True).map(tuple),
        promotion=st.sampled_from([None, PromoteParams(), PromoteParams(writes_per_day=1.0)]),
        rules=st.lists(RULES, max_size=2, unique_by=lambda each: each.name).map(tuple),
        limits=st.sampled_from(
            [
                Limits(),
                Limits(destage_rate=Bounds(MIB, 8 * MIB)),
                Limits(destage_depth=Bounds(1, 2)),
            ]
        ),
    )
    | DEFAULTS
)
USER = ActiveOverride(
    Override(OverrideKind.SET, "bcache0", "jo", 0, None, "writeback_rate", "8"), None
)
DRAIN = ActiveOverride(Override(OverrideKind.DRAIN, "bcache0", "jo", 0, 1000), 900 * NS_PER_S)
OVERRIDES: st.SearchStrategy[Made] = st.sampled_from(
    [
        OverrideChange(),
        OverrideChange(((USER, "8"),), frozenset({"writeback_rate"})),
        OverrideChange(((USER, "8"),)),
        OverrideChange(drain=DRAIN),
        OverrideChange(drain=replace(DRAIN, ends_ns=20 * NS_PER_S)),
    ]
).map(lambda change: (lambda _at_ms: change, {}))
REPORTS: st.SearchStrategy[Made] = st.sets(st.integers(0, 60)).map(
    lambda moved: (lambda at_ms: ChunksMoved(at_ms * NS_PER_MS, tuple(moved), (), NS_PER_MS), {})
)
ROLLED_BACK = RollbackState(
    {
        setting: Watched(
            suspended_until_ns=NS_PER_S * 12,
            verdict=Verdict(setting, Direction.READ, 1e6, 9e7, 2e7, 1),
        )
        for setting in WatchedSetting
    }
)
STATES = st.sampled_from([State(), State(arbiter=ArbiterState(rollback=ROLLED_BACK))])


def after(state: State, event: Event) -> State:
    return step(state, event, POLICY, 1, applied=False)[0]


def outcome(state: State, now_ns: int = 1) -> Outcome:
    return Outcome(state, POLICY, now_ns)


def play(events: Events, step_ms: int = 250) -> list[State]:
    """The state after each event; events come at a steady pace."""
    state, states = State(), []
    for number, (make, signals) in enumerate(events):
        state = after(state, make(10_000 + number * step_ms, **signals))
        states.append(state)
    return states


def end_of(events: Events) -> State:
    return (play(events) or [State()])[-1]


def kind(state: State) -> GateKind | None:
    gate = outcome(state).gate
    if gate is None:
        return None
    return GateKind.OPEN if gate.kind is GateKind.RESTING else gate.kind


@given(EVENTS)
def test_gate_wait_and_cutoff_stay_within_their_bounds(events: Events) -> None:
    for state in play(events):
        wait = state.destage.wait.wait_ns
        assert DESTAGE.wait.min_ns <= wait <= DESTAGE.wait.max_ns
        decision = outcome(state).explained()
        cutoff = decision.sequential_cutoff_bytes
        assert cutoff is None or STREAMS.cutoff_floor_bytes <= cutoff <= STREAMS.cutoff_wide_bytes
        if decision.gate is not None and decision.gate.kind is GateKind.PACED:
            rate = decision.gate.rate_bytes_per_s
            assert DESTAGE.pace.rate_min_bytes_per_s <= rate <= DESTAGE.pace.rate_max_bytes_per_s


@given(EVENTS)
def test_the_probe_samples_the_queue_exactly_while_write_back_goes_on(events: Events) -> None:
    for state in play(events):
        gate = outcome(state).gate
        opened = gate is not None and gate.kind in SAMPLED_KINDS
        assert (outcome(state).probe_settings.pace_period_ns > 0) == opened


@given(EVENTS, KNOWN_FRAMES)
def test_the_same_frame_again_changes_nothing(events: Events, last: Made) -> None:
    frame = last[0](100_000, **last[1])
    once = after(end_of(events), frame)
    twice = after(once, frame)
    assert outcome(twice).gate == outcome(once).gate
    assert twice.destage.phase is once.destage.phase
    assert (twice.streams.mode, twice.streams.cutoff_bytes) == (
        once.streams.mode,
        once.streams.cutoff_bytes,
    )
    assert not twice.destage.collect


@given(EVENTS)
def test_an_edge_changes_the_gate_at_most_once_and_a_second_one_not_at_all(events: Events) -> None:
    state = end_of(events)
    for make in (busy_edge, idle_edge):
        once = after(state, make(100_000))
        twice = after(once, make(100_001))
        assert kind(twice) == kind(once)
        assert twice.destage.phase is once.destage.phase


@given(st.lists(SIGNALS, min_size=20, max_size=30))
@settings(max_examples=max(20, settings().max_examples // 3))
def test_under_a_steady_load_no_signals_make_the_gate_flutter(
    signals: list[dict[str, Any]],
) -> None:
    dirty = [{**each, "dirty_bytes": 420 * MIB} for each in signals]
    kinds = [kind(state) for state in play([(busy_frame, each) for each in dirty])]
    changes = sum(one != other for one, other in pairwise(kinds))
    # A tick each 250 ms; each pressure lasts its minimum, then it may end and restart at once.
    length_ns = len(signals) * 250 * NS_PER_MS
    assert changes <= 2 * (length_ns // DESTAGE.pressure_min_ns + 1)


@given(st.lists(SIGNALS, min_size=20, max_size=30))
@settings(max_examples=max(20, settings().max_examples // 3))
def test_no_signals_make_the_cutoff_flutter(signals: list[dict[str, Any]]) -> None:
    modes = [state.streams.mode for state in play([(busy_frame, s) for s in signals])]
    changes = sum(one is not other for one, other in pairwise(modes))
    length_ns = len(signals) * 250 * NS_PER_MS
    assert changes <= 2 * (length_ns // STREAMS.hold_ns + 1)


@given(EVENTS)
def test_from_any_state_a_busy_frame_shuts_the_gate_and_the_next_gap_opens_it(
    events: Events,
) -> None:
    state = after(end_of(events), busy_frame(100_000))
    assert state.destage.phase in (Phase.WAIT, Phase.PRESSURE)
    state = after(state, idle_edge(100_300))
    assert kind(state) is GateKind.OPEN


@given(EVENTS)
def test_from_any_state_an_idle_frame_opens_the_gate_even_if_its_edge_was_lost(
    events: Events,
) -> None:
    assert kind(after(end_of(events), idle_frame(100_000))) is GateKind.OPEN


@given(EVENTS, UNKNOWN)
def test_from_any_state_a_missing_signal_releases_the_gate(
    events: Events, signals: dict[str, Any]
) -> None:
    state = after(end_of(events), busy_frame(100_000, **signals))
    if "foreground" in signals or "cache_bytes" in signals:
        return  # Streams need them; the gate does not.
    assert kind(state) in (GateKind.RELEASED, None)
    state = after(state, idle_edge(100_300))
    assert kind(state) in (GateKind.RELEASED, None)


@given(EVENTS)
@settings(max_examples=max(20, settings().max_examples // 3))
def test_from_any_state_dirty_data_is_not_starved_by_a_load_without_a_gap(events: Events) -> None:
    state = end_of(events)
    step_ms = 5000
    for number in range(DESTAGE.age_max_ns // (step_ms * NS_PER_MS) + 2):
        state = after(state, busy_frame(100_000 + number * step_ms))
        if kind(state) is GateKind.PACED:
            return
    raise AssertionError(f"still {state.destage.phase}: {state.destage.why}")


@given(EVENTS)
def test_an_unknown_load_gives_the_cutoff_back(events: Events) -> None:
    state = after(end_of(events), busy_frame(100_000, foreground=None))
    assert state.streams.mode is StreamMode.REST
    assert outcome(state).explained().sequential_cutoff_bytes is None


@given(EVENTS)
def test_a_state_decides_the_same_whenever_it_is_asked(events: Events) -> None:
    state = end_of(events)
    one, other = (outcome(state, now_ns).explained() for now_ns in (1, NS_PER_S))
    assert replace(one, at_ns=0) == replace(other, at_ns=0)


@given(STATES, st.lists(st.tuples(EVENT | OVERRIDES | REPORTS, POLICIES), max_size=12), POLICIES)
def test_an_edge_sees_the_gate_of_the_whole_decision_within_the_limits(
    state: State, events: list[tuple[Made, Policy]], last: Policy
) -> None:
    now_ns = 10 * NS_PER_S
    for (make, signals), policy in events:
        now_ns += 250 * NS_PER_MS
        state, decided = step(state, make(now_ns // NS_PER_MS, **signals), policy, now_ns)
        # The policy may change after the event, too.
        for each in (decided, Outcome(state, last, now_ns)):
            assert_agreed(each)
        # Whatever asks for it: a gap, pressure, a rule, a drain.
        assert limits.clamp_gate(decided.gate, policy.limits) == decided.gate


def assert_agreed(outcome: Outcome) -> None:
    ruling = outcome.ruling
    for decision in (outcome.decision(), outcome.explained()):
        assert decision.gate == ruling.gate
        first = next((each for each in decision.proposals if each.gate is not None), None)
        assert decision.gate_strategy == (first.strategy if first else "")
        assert first is None or first.strategy == ruling.by
        assert (first is None) == (ruling.gate is None)
        assert decision.promotion is outcome.decision().promotion
        assert bool(decision.promotion_strategy) == (decision.promotion is not None)

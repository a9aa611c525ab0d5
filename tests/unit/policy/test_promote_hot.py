# SPDX-License-Identifier: GPL-2.0-only
"""promote_hot in the engine: what is moved, what stops it, and what people read of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ebbgate.model.decision import Decision
from ebbgate.model.frame import Frame, PathLatency
from ebbgate.model.heat import ChunkMisses, HeatPeriod
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.promotion import ChunksMoved
from ebbgate.model.records import Direction
from ebbgate.policy.engine import PROMOTE_HOT, Outcome, Policy, State, WarmChange, step
from ebbgate.policy.rollback_guard import RollbackState, Verdict, Watched, WatchedSetting
from ebbgate.policy.state import ArbiterState, OverrideChange
from ebbgate.policy.strategies.promote_benefit import held_out
from ebbgate.policy.strategies.promote_stop import MOVER_CUTOFF_BYTES, PromoteParams
from ebbgate.policy.strategies.stream_bypass import StreamMode, StreamState
from ebbgate.units import DAY_NS, GIB, KIB, MIB, NS_PER_MS, NS_PER_S
from ebbgate.warm.plan import run_bytes_max
from tests.builders import busy_frame

WINDOW_NS = 10 * NS_PER_S
HOT = tuple(range(100, 164))
MOVE_NS = 20 * NS_PER_MS
"""As long as none was measured."""
POLICY = Policy(promotion=PromoteParams(), order=(*Policy().order, PROMOTE_HOT))


def window(number: int, chunks: tuple[int, ...] = HOT, sync_reads: int = 20) -> HeatPeriod:
    """The heat of a window in which each of these chunks was missed so often.

    The first window shows how large the volume is.
    """
    found = tuple(ChunkMisses(chunk, sync_reads) for chunk in chunks)
    last = (ChunkMisses(99_999, 1),) if number == 1 else ()
    return HeatPeriod(number * WINDOW_NS, (number + 1) * WINDOW_NS, found + last)


def frame(number: int, heat: HeatPeriod | None = None, **signals: Any) -> Frame:
    """A frame right after a window."""
    known = {"cache_bytes": 4 * GIB, "in_use_ratio": 0.5, "dirty_ratio": 0.1}
    at_ms = (number + 1) * WINDOW_NS // NS_PER_MS
    return busy_frame(at_ms, heat=heat or window(number), **{**known, **signals})


def run(*frames: Frame, policy: Policy = POLICY, state: State | None = None) -> Outcome:
    outcome, state = None, state or State()
    for each in frames:
        state, outcome = step(state, each, policy, each.at_ns)
    assert outcome is not None
    return outcome


def reason(decision: Decision) -> str:
    return next(each.reason for each in decision.proposals if each.strategy == PROMOTE_HOT)


def test_hot_chunks_are_moved_but_those_that_are_held_out() -> None:
    decision = run(*map(frame, range(1, 4))).decision()
    assert decision.promotion is not None
    assert decision.promotion_strategy == PROMOTE_HOT
    assert decision.promotion.chunks == tuple(c for c in HOT if not held_out(c, 4 * WINDOW_NS))
    assert 1 <= len(decision.promotion.chunks) < len(HOT)
    moves = len(decision.promotion.chunks)
    assert reason(decision).startswith(f"moves: {moves} MiB to move, {len(HOT) - moves} held out")


def test_a_promotion_stays_the_same_until_chunks_are_moved() -> None:
    first = run(*map(frame, range(1, 4)))
    later = replace(frame(3), at_ns=frame(3).at_ns + 5 * NS_PER_S)
    second = run(later, state=first.state)
    promotion = first.decision().promotion
    assert promotion is not None and second.decision().promotion is promotion
    assert first.key(first.decision()) == second.key(second.decision())
    report = ChunksMoved(second.now_ns, moved=promotion.chunks[:5], failed=promotion.chunks[5:7])
    moved = step(second.state, report, POLICY, second.now_ns)[1]
    left = moved.decision().promotion
    assert left == replace(promotion, chunks=promotion.chunks[7:])
    assert moved.key(moved.decision()) == first.key(first.decision())


def test_chunks_that_could_not_be_moved_are_not_reported_as_moved() -> None:
    first = run(*map(frame, range(1, 4)))
    promotion = first.decision().promotion
    assert promotion is not None
    report = ChunksMoved(first.now_ns, promotion.chunks[:1], promotion.chunks[1:])
    decision = step(first.state, report, POLICY, first.now_ns)[1].decision()
    total = len(promotion.chunks)
    expected = f"rests: 1 of {total} MiB are moved, {total - 1} could not be, "
    assert reason(decision).startswith(expected)


def test_nothing_is_moved_after_a_single_window_with_misses() -> None:
    scan = [frame(n, window(n, tuple(range(n * 100, n * 100 + 40)))) for n in range(1, 4)]
    decision = run(*scan).decision()
    assert decision.promotion is None
    assert "in two windows" in reason(decision)


@pytest.mark.parametrize(
    ("signals", "params", "text"),
    [
        ({"in_use_ratio": 0.95}, {}, "95% of the cache is in use"),
        ({"dirty_ratio": 0.95}, {}, "95% of the cache is dirty"),
        ({"knobs": {"sequential_cutoff": "64.0k"}}, {}, "cutoff of 64 KiB is below 80 KiB"),
        (
            {"cache_written_bytes": 3 * GIB, "at_ns": DAY_NS},
            {"writes_per_day": 0.5},
            "3 GiB of 2 GiB a day (ssd_writes)",
        ),
        ({}, {"writes_per_day": 0.5}, "how much was written to the cache is unknown"),
    ],
)
def test_a_stop_condition_ends_moves_and_is_explained(
    signals: dict[str, Any], params: dict[str, Any], text: str
) -> None:
    policy = replace(POLICY, promotion=PromoteParams(**params))
    frames = [replace(frame(n), **signals) for n in range(1, 4)]
    decision = run(*frames, policy=policy).decision()
    assert decision.promotion is None
    assert reason(decision).startswith("stopped: ") and text in reason(decision)


def test_moves_wait_while_users_wait_longer_than_an_objective() -> None:
    slow = {(Direction.READ, "miss"): PathLatency(9, 9, 20 * NS_PER_MS, 40 * NS_PER_MS)}
    policy = replace(POLICY, promotion=PromoteParams(read_p99_max_ns=30 * NS_PER_MS))
    decision = run(*(frame(n, paths=slow) for n in range(1, 4)), policy=policy).decision()
    assert decision.promotion is None
    assert reason(decision) == "stopped: the p99 of reads is 40 ms, above its objective of 30 ms"


def test_moves_wait_for_a_warm_up() -> None:
    outcome = run(*map(frame, range(1, 4)))
    warmed = step(outcome.state, WarmChange(MIB), POLICY, outcome.now_ns)[0]
    decision = run(frame(4), state=warmed).decision()
    assert (decision.promotion, reason(decision)) == (None, "stopped: a warm-up reads")


def test_moves_wait_for_a_drain_that_a_person_asked_for() -> None:
    outcome = run(*map(frame, range(1, 4)))
    until_ns = outcome.now_ns + 600 * NS_PER_S
    drain = ActiveOverride(Override(OverrideKind.DRAIN, "bcache0", "jo", 0, until_ns), until_ns)
    drained = step(outcome.state, OverrideChange(drain=drain), POLICY, outcome.now_ns)[0]
    decision = run(frame(4), state=drained).decision()
    assert decision.promotion is None
    assert reason(decision) == "stopped: a user has asked to write dirty data back"


def test_moves_wait_while_dirty_data_is_written_back_under_load() -> None:
    moves = run(*map(frame, range(1, 4))).decision()
    full_soon: dict[str, Any] = {
        "dirty_bytes": GIB,
        "dirty_in_bytes_per_s": 20.0 * MIB,
        "time_to_full_s": 2.0,
    }
    decision = run(*(frame(n, **full_soon) for n in range(1, 4))).decision()
    assert moves.promotion is not None and decision.promotion is None
    assert reason(decision) == "stopped: dirty data is written back under load"


def test_a_cache_that_takes_no_writes_back_is_promoted_to() -> None:
    decision = run(*(frame(n, cache_mode="writethrough") for n in range(1, 4))).decision()
    assert decision.promotion is not None
    none = run(*(frame(n, cache_mode="none") for n in range(1, 4))).decision()
    assert none.promotion is None and "caches no reads" in reason(none)


def test_a_cutoff_that_would_defeat_moves_is_raised() -> None:
    outcome = run(*map(frame, range(1, 4)))
    tight = StreamState(StreamMode.BYPASS, cutoff_bytes=256 * KIB)
    decision = replace(outcome, state=replace(outcome.state, streams=tight)).decision()
    assert decision.sequential_cutoff_bytes == MOVER_CUTOFF_BYTES
    assert decision.cutoff_strategy == PROMOTE_HOT
    assert "1.2 MiB instead of 256 KiB (stream_bypass)" in reason(decision)
    assert run_bytes_max(MOVER_CUTOFF_BYTES) >= MIB


def suspended(now_ns: int) -> ArbiterState:
    """The guard has suspended stream_bypass for a second."""
    found = Verdict(WatchedSetting.STREAMS, Direction.READ, 2e7, 3e8, 4e7, now_ns)
    watched = Watched(suspended_until_ns=now_ns + NS_PER_S, verdict=found)
    return ArbiterState(rollback=RollbackState({WatchedSetting.STREAMS: watched}))


def person_set(now_ns: int) -> ArbiterState:
    """A person has set a cutoff under which moves are still cached, in smaller pieces."""
    each = Override(OverrideKind.SET, "bcache0", "jo", now_ns, None, "sequential_cutoff", "524288")
    return ArbiterState(sets=((ActiveOverride(each, None), "512 KiB"),))


@pytest.mark.parametrize(
    ("over", "cutoff_bytes", "by"),
    [(suspended, None, "rollback_guard"), (person_set, 512 * KIB, "override")],
)
def test_a_cutoff_that_does_not_apply_is_not_raised(
    over: Callable[[int], ArbiterState], cutoff_bytes: int | None, by: str
) -> None:
    outcome = run(*map(frame, range(1, 4)))
    tight = StreamState(StreamMode.BYPASS, cutoff_bytes=256 * KIB)
    state = replace(outcome.state, streams=tight, arbiter=over(outcome.now_ns))
    decision = replace(outcome, state=state).decision()
    assert decision.promotion is not None
    assert (decision.sequential_cutoff_bytes, decision.cutoff_strategy) == (cutoff_bytes, by)
    assert "cutoff" not in reason(decision)


def test_unknown_misses_move_nothing() -> None:
    unknown = replace(frame(4), heat=None, missing={"heat": "no bpf here"})
    decision = run(*map(frame, range(1, 4)), unknown).decision()
    assert (decision.promotion, reason(decision)) == (None, "unknown: no bpf here")


@pytest.mark.parametrize("later", [0, 400])
def test_a_time_without_records_of_misses_is_no_cost_of_moves(later: int) -> None:
    outcome = run(*map(frame, range(1, 4)))
    promotion = outcome.decision().promotion
    assert promotion is not None
    report = ChunksMoved(outcome.now_ns, moved=promotion.chunks)
    state = step(outcome.state, report, POLICY, outcome.now_ns)[0]
    numbers = [*range(4, 6), *range(6 + later, 10 + later)]
    benefit = run(*map(frame, numbers), state=state).state.promotion.benefit
    assert benefit.last is not None and benefit.last.moved == len(promotion.chunks)
    assert 0 < benefit.total_cost_ns < len(promotion.chunks) * MOVE_NS, "each move is paid for once"

# SPDX-License-Identifier: GPL-2.0-only
"""The loop of a volume: modes, hold and release, and what it does without its signals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ebbgate.model.decision import GateKind
from ebbgate.model.heat import ChunkMisses, HeatPeriod
from ebbgate.model.records import HeatRecord, Tracked, TrackRefused
from ebbgate.model.volume import Mode
from ebbgate.policy.defaults import Policy
from ebbgate.policy.engine import Phase
from ebbgate.policy.evaluate import PACE_PERIOD_NS
from ebbgate.policy.strategies.destage_state import DestageParams
from ebbgate.units import NS_PER_MS, NS_PER_S
from tests.builders import busy_edge, idle_edge, queue_sample
from tests.volume_loop_fixture import LoopHarness
from tests.waiting import until


def test_misses_reach_the_frame(enforced: LoopHarness) -> None:
    period = HeatPeriod(0, 10 * NS_PER_S, (ChunkMisses(7, sync_reads=2),))
    enforced.loop.on_record(HeatRecord(enforced.volume.name, period.ended_ns, period))
    enforced.tick()
    assert enforced.loop.state.current_frame is not None
    assert enforced.loop.state.current_frame.heat == period


def test_no_window_spans_the_time_in_which_the_volume_was_not_tracked(
    enforced: LoopHarness,
) -> None:
    enforced.tick()
    enforced.now_ms += 60_000
    enforced.loop.on_record(Tracked("bcache0", enforced.now_ns()))
    windows = []
    for _ in range(2):
        enforced.tick()
        assert enforced.loop.state.current_frame is not None
        windows.append(enforced.loop.state.current_frame.window_ns)
    assert windows == [0, 250 * NS_PER_MS]


def test_each_tick_reaches_the_history_though_a_decision_brings_a_status_forward(
    enforced: LoopHarness,
) -> None:
    enforced.gap_and_back()
    before = len(enforced.kept.sampled)
    for _ in range(8):
        enforced.tick()
    assert len(enforced.kept.sampled) == before + 8


# ---- modes --------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.ADVISE])
def test_outside_of_enforce_nothing_is_touched(
    make_loop: Callable[[Mode], LoopHarness], mode: Mode
) -> None:
    harness = make_loop(mode)
    harness.gap_and_back()
    assert harness.sysfs.log == []
    assert harness.knobs() == harness.before
    assert "pace bcache0 0" in harness.said
    assert not any(line.startswith("pace bcache0 1") for line in harness.said)


def test_advise_reports_what_it_would_decide(make_loop: Callable[[Mode], LoopHarness]) -> None:
    harness = make_loop(Mode.ADVISE)
    harness.gap_and_back()
    assert [d.gate.kind for d in harness.kept.decisions if d.gate] == [
        GateKind.CLOSED,
        GateKind.OPEN,
        GateKind.CLOSED,
    ]
    assert harness.kept.document["now"].startswith("In enforce: would hold 420 MiB")


def test_observe_decides_nothing(make_loop: Callable[[Mode], LoopHarness]) -> None:
    harness = make_loop(Mode.OBSERVE)
    harness.gap_and_back()
    assert harness.kept.decisions == []
    assert harness.kept.document["now"] == "Observing: changes nothing"


def test_enforce_closes_opens_and_closes_the_gate(enforced: LoopHarness) -> None:
    assert enforced.gate() is GateKind.CLOSED
    assert enforced.knob("writeback_delay") == "0"
    enforced.idle()
    assert enforced.gate() is GateKind.OPEN
    assert enforced.said[-1] == f"pace bcache0 {PACE_PERIOD_NS}"
    enforced.busy()
    assert enforced.gate() is GateKind.CLOSED
    assert enforced.said[-1] == "pace bcache0 0"
    assert len(enforced.kept.latencies) == 2
    assert enforced.kept.document["mode"] == "enforce"


def test_without_destage_signals_nothing_is_driven_and_the_reason_is_reported(
    enforced: LoopHarness,
) -> None:
    why = "the kernel hides the address of dirty_endio: set kernel.kptr_restrict to 1"
    enforced.loop.on_record(Tracked("bcache0", 1, why))
    enforced.gap_and_back()
    until(lambda: enforced.knobs() == enforced.before)
    assert enforced.gate() is GateKind.RELEASED
    assert enforced.said[-1] == "pace bcache0 0"
    (proposal,) = (
        each for each in enforced.kept.document["proposals"] if each["strategy"] == "idle_destage"
    )
    assert proposal["unsupported"] == f"write-back cannot be followed here: {why}"
    assert enforced.kept.document["missing"]["destage"] == why
    assert why in enforced.kept.document["now"]
    enforced.loop.on_record(Tracked("bcache0", 2))
    enforced.gap_and_back()
    assert enforced.gate() is GateKind.CLOSED


def test_a_volume_that_the_probe_refuses_is_not_driven_and_says_why(enforced: LoopHarness) -> None:
    why = "requests of an NVMe device with several paths cannot be followed: boot with ..."
    enforced.loop.probe_restarted()
    enforced.loop.on_record(TrackRefused("bcache0", 1, why))
    enforced.tick(probe=False)
    until(lambda: enforced.knobs() == enforced.before)
    assert enforced.kept.document["missing"]["foreground"] == why
    assert why in enforced.kept.document["now"]
    enforced.loop.on_record(Tracked("bcache0", 2))
    enforced.tick()
    assert "foreground" not in enforced.kept.document["missing"]


def test_an_edge_is_late_since_the_request_came_or_the_wait_was_over(enforced: LoopHarness) -> None:
    # Idle for 310 ms where the wait was 300, reported 4 ms later.
    enforced.now_ms += 1000
    enforced.loop.on_record(idle_edge(enforced.now_ms - 4, quiet_ms=310))
    enforced.loop.on_record(busy_edge(enforced.now_ms - 3))
    enforced.settle()
    assert enforced.kept.late_ns == [14 * NS_PER_MS, 3 * NS_PER_MS]


def test_a_wait_that_became_shorter_while_idle_is_not_late(enforced: LoopHarness) -> None:
    enforced.loop.probe_restarted()
    told_ms = enforced.now_ms
    enforced.now_ms += 4
    enforced.loop.on_record(idle_edge(enforced.now_ms - 1, quiet_ms=5000))
    assert enforced.kept.late_ns == [(enforced.now_ms - told_ms) * NS_PER_MS]


def test_leaving_enforce_puts_every_knob_back(enforced: LoopHarness) -> None:
    enforced.idle()
    enforced.loop.set_mode(Mode.ADVISE, "a person")
    enforced.settle()
    assert enforced.knobs() == enforced.before
    assert enforced.kept.open == set()
    enforced.gap_and_back()
    assert enforced.knobs() == enforced.before


def test_entering_enforce_in_a_gap_opens_the_gate_at_the_next_tick(
    make_loop: Callable[[Mode], LoopHarness],
) -> None:
    harness = make_loop(Mode.ADVISE)
    harness.tick()
    harness.idle()
    harness.loop.set_mode(Mode.ENFORCE, "a person")
    harness.tick(state="idle")
    assert harness.gate() is GateKind.OPEN


def test_the_pace_under_load_follows_the_queue_without_a_decision_for_each_step(
    enforced: LoopHarness,
) -> None:
    enforced.loop.set_policy(Policy(destage=DestageParams(age_max_ns=1)))
    enforced.tick()
    assert enforced.gate() is GateKind.PACED
    known = len(enforced.kept.decisions)
    rates = set()
    for step, depth in enumerate((3, 6, 9, 5)):
        enforced.loop.on_record(queue_sample(enforced.now_ms + 30 * step, depth, 40 * step))
        enforced.settle()
        rates.add(enforced.knob("writeback_rate"))
    assert len(rates) > 2
    assert len(enforced.kept.decisions) == known


def test_a_rest_leaves_no_decision_and_no_record_of_its_writes(enforced: LoopHarness) -> None:
    for _ in range(3):
        enforced.gap_and_back()
    enforced.idle()
    known = len(enforced.kept.decisions), len(enforced.kept.written)
    begin_ms = enforced.now_ms
    kinds = []
    for later_ms in range(0, 4000, 20):
        enforced.loop.on_record(queue_sample(begin_ms + later_ms, 3, later_ms))
        enforced.settle()
        gate = enforced.loop.driver.applied.gate
        kinds.append(gate.kind if gate else None)
    assert set(kinds) == {GateKind.OPEN, GateKind.RESTING}
    assert (len(enforced.kept.decisions), len(enforced.kept.written)) == known


# ---- hold and release ---------------------------------------------------------------------------
def test_hold_freezes_every_knob_where_it_is(enforced: LoopHarness) -> None:
    enforced.idle()
    frozen = enforced.knobs()
    enforced.loop.freeze(True)
    enforced.busy()
    enforced.tick()
    assert enforced.knobs() == frozen
    assert enforced.kept.document["now"] == "On hold: no knob is changed"
    enforced.loop.freeze(False)
    enforced.tick()
    assert enforced.gate() is GateKind.CLOSED


def test_a_change_of_mode_ends_a_hold(enforced: LoopHarness) -> None:
    enforced.loop.freeze(True)
    enforced.loop.set_mode(Mode.ADVISE, "a person")
    enforced.settle()
    assert not enforced.loop.frozen
    assert enforced.knobs() == enforced.before


def test_a_release_puts_everything_back(enforced: LoopHarness) -> None:
    enforced.loop.release("ebbgated stops")
    enforced.settle()
    assert enforced.knobs() == enforced.before
    assert enforced.kept.open == set()


def test_a_release_of_an_open_gate_ends_restored(enforced: LoopHarness) -> None:
    enforced.idle()
    enforced.loop.release("ebbgated stops")
    enforced.settle()
    assert enforced.knobs() == enforced.before


# ---- what is missing ----------------------------------------------------------------------------
def test_a_probe_that_restarts_means_unknown_signals_and_a_released_gate(
    enforced: LoopHarness,
) -> None:
    enforced.idle()
    enforced.loop.probe_restarted()
    enforced.tick(probe=False)
    assert enforced.loop.state.destage.phase is Phase.UNKNOWN
    assert enforced.knobs() == enforced.before
    enforced.tick()
    assert enforced.gate() is GateKind.CLOSED


def test_a_restarted_probe_gets_all_settings_again(enforced: LoopHarness) -> None:
    enforced.idle()
    del enforced.said[:]
    enforced.loop.probe_restarted()
    assert [line.split()[0] for line in enforced.said] == ["wait", "pace"]


def test_a_probe_that_falls_silent_releases_the_gate(enforced: LoopHarness) -> None:
    for _ in range(16):
        enforced.tick(probe=False)
    assert enforced.knobs() == enforced.before
    assert "s old" in enforced.kept.document["missing"]["foreground"]


def test_a_dirty_level_that_is_gone_releases_the_gate(enforced: LoopHarness) -> None:
    enforced.tick(dirty_bytes=None)
    assert enforced.knobs() == enforced.before


def test_a_volume_that_cannot_be_tuned_any_more_is_released(enforced: LoopHarness) -> None:
    enforced.tick(cache_mode="writethrough")
    assert enforced.knobs() == enforced.before
    assert enforced.kept.document["now"].startswith("Nothing to tune: the cache mode is")


def test_a_released_gate_is_not_released_again_at_each_tick(enforced: LoopHarness) -> None:
    enforced.tick(dirty_bytes=None)
    generation = enforced.loop.worker.generation
    for _ in range(3):
        enforced.tick(dirty_bytes=None)
    assert enforced.loop.worker.generation == generation

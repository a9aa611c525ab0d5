# SPDX-License-Identifier: GPL-2.0-only
"""The loop of a volume: somebody else's writes, failures, streams and the knobs beside the gate."""

from __future__ import annotations

import errno

import pytest

from ebbgate.actuators.reason import Reason
from ebbgate.control.knob_jobs import cutoff_job
from ebbgate.model.decision import GateKind, OutcomeKind
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import Mode
from ebbgate.units import MIB, NS_PER_MS
from tests.builders import tick, volume_state
from tests.fake_sysfs import failing
from tests.volume_loop_fixture import LoopHarness


# ---- other hands --------------------------------------------------------------------------------
def test_a_gate_knob_that_somebody_else_writes_ends_the_tuning_of_the_gate(
    enforced: LoopHarness,
) -> None:
    enforced.someone_writes("writeback_percent", "20")
    expected = {**enforced.before, "writeback_percent": "20"}
    enforced.tick()
    assert enforced.knobs() == expected
    enforced.gap_and_back()
    assert enforced.knobs() == expected
    assert "writeback_percent changed by someone else" in enforced.kept.document["now"]
    assert enforced.kept.document["knobs"]["writeback_percent"]["owner"] == "manual"
    gate = enforced.kept.document["gate"]
    assert (gate["kind"], gate["reason"]) == ("released", "a knob of the gate is manual")
    enforced.idle()
    assert not enforced.loop.urgent


def test_a_value_read_during_a_write_is_not_a_manual_change(enforced: LoopHarness) -> None:
    state = volume_state(knobs={**enforced.knobs(), "writeback_percent": "20"})
    enforced.loop.on_tick(state, knobs_settled=False)
    assert enforced.loop.writer.manual == set()
    enforced.loop.on_tick(state, knobs_settled=True)
    assert enforced.loop.writer.manual == {"writeback_percent"}


def test_a_manual_cutoff_is_left_alone_and_the_gate_goes_on(
    enforced: LoopHarness,
) -> None:
    streaming(enforced, write=40)
    enforced.someone_writes("sequential_cutoff", "1.0M")
    enforced.tick()
    streaming(enforced, read=40)
    assert enforced.knob("sequential_cutoff") == str(MIB)
    enforced.tick()
    enforced.idle()
    assert enforced.gate() is GateKind.OPEN


def test_enforce_takes_a_manual_knob_back(enforced: LoopHarness) -> None:
    enforced.someone_writes("writeback_percent", "20")
    enforced.tick()
    enforced.loop.set_mode(Mode.ENFORCE, "a person")
    enforced.tick()
    assert enforced.gate() is GateKind.CLOSED
    assert enforced.knob("writeback_percent") == "40"
    enforced.loop.release("ebbgated stops")
    enforced.settle()
    assert enforced.knobs() == {**enforced.before, "writeback_percent": "20"}


def test_a_rate_that_the_kernel_opened_by_itself_is_closed_again(enforced: LoopHarness) -> None:
    enforced.someone_writes("writeback_rate", "0.9T")
    enforced.tick()
    assert enforced.gate() is GateKind.CLOSED


def test_a_close_that_failed_is_tried_again_at_the_next_tick(enforced: LoopHarness) -> None:
    enforced.idle()
    enforced.sysfs.before["writeback_rate"] = failing(errno.EBUSY)
    enforced.busy()
    assert enforced.gate() is GateKind.OPEN
    assert enforced.kept.written[-1].kind is OutcomeKind.FAILED
    del enforced.sysfs.before["writeback_rate"]
    enforced.tick()
    assert enforced.gate() is GateKind.CLOSED


def test_a_release_that_failed_is_tried_again_at_the_next_tick(enforced: LoopHarness) -> None:
    enforced.sysfs.before["writeback_delay"] = failing(errno.EBUSY)
    enforced.tick(dirty_bytes=None)
    assert enforced.knob("writeback_delay") == "0"
    del enforced.sysfs.before["writeback_delay"]
    enforced.tick(dirty_bytes=None)
    assert enforced.knobs() == enforced.before


def test_a_restore_that_failed_is_tried_again(enforced: LoopHarness) -> None:
    enforced.sysfs.before["writeback_delay"] = failing(errno.EBUSY)
    enforced.loop.set_mode(Mode.ADVISE, "a person")
    enforced.settle()
    enforced.tick()
    assert enforced.knob("writeback_delay") == "0"
    del enforced.sysfs.before["writeback_delay"]
    enforced.tick()
    assert enforced.knob("writeback_delay") == "0", "the kernel may log each try"
    enforced.now_ms += 10_000
    enforced.tick()
    assert enforced.knobs() == enforced.before


def test_a_restore_that_failed_is_tried_again_in_enforce_too(enforced: LoopHarness) -> None:
    """The policy sets this knob no more, so that no decision writes it."""
    reason = Reason("stream_bypass", "a stream")
    enforced.loop.driver.submit("cutoff", cutoff_job(MIB, reason))
    enforced.settle()
    enforced.sysfs.before["sequential_cutoff"] = failing(errno.EIO)
    for mode in (Mode.ADVISE, Mode.ENFORCE):
        enforced.loop.set_mode(mode, "a person")
        enforced.settle()
    assert enforced.knob("sequential_cutoff") == str(MIB)
    del enforced.sysfs.before["sequential_cutoff"]
    enforced.now_ms += 10_000
    enforced.tick()
    assert enforced.knob("sequential_cutoff") == enforced.before["sequential_cutoff"]
    assert "sequential_cutoff" not in enforced.loop.writer.owned


def test_a_restore_that_is_tried_again_leaves_a_person_s_knob_alone(
    enforced: LoopHarness,
) -> None:
    enforced.sysfs.before["writeback_delay"] = failing(errno.EIO)
    enforced.loop.set_mode(Mode.ADVISE, "a person")
    enforced.settle()
    wanted = Override(OverrideKind.SET, "bcache0", "jo", 1, None, "sequential_cutoff", str(8 * MIB))
    enforced.loop.set_overrides([ActiveOverride(wanted, None)])
    for _ in range(3):
        enforced.tick()
    assert enforced.knob("sequential_cutoff") == str(8 * MIB)
    before = len(enforced.kept.written)
    for _ in range(120):
        enforced.tick()
    assert {each.action.knob for each in enforced.kept.written[before:]} == {"writeback_delay"}
    assert enforced.knob("sequential_cutoff") == str(8 * MIB)


def test_a_repeated_failure_is_logged_once(
    enforced: LoopHarness, caplog: pytest.LogCaptureFixture
) -> None:
    enforced.idle()
    enforced.sysfs.before["writeback_rate"] = failing(errno.EBUSY)
    enforced.busy()
    for _ in range(3):
        enforced.tick()
    del enforced.sysfs.before["writeback_rate"]
    enforced.tick()
    said = [record.getMessage() for record in caplog.records if "writeback_rate" in record.message]
    assert [("resource busy" in text, "written again" in text) for text in said] == [
        (True, False),
        (False, True),
    ]


def test_every_action_names_the_decision_behind_it(enforced: LoopHarness) -> None:
    enforced.gap_and_back()
    last = {
        outcome.action.reason: outcome.action.decision
        for outcome in enforced.kept.written
        if outcome.kind is OutcomeKind.CHANGED
    }
    for reason, number in last.items():
        behind = next(d for n, d in enforced.kept.numbered if n == number)
        assert any(reason in proposal.reason for proposal in behind.proposals)
    assert len(last) >= 2


# ---- streams and the rest -----------------------------------------------------------------------
def streaming(harness: LoopHarness, **runs: int) -> None:
    """Two seconds in which a sequential stream of 40 MiB/s runs."""
    (direction, mib_per_s), *_ = runs.items()
    for number in range(8):
        harness.now_ms += 250
        now_ns = harness.now_ms * NS_PER_MS
        count_bytes = number * mib_per_s * MIB // 4
        flow = {"ios": number * 100, "bytes": count_bytes, "sync": number * 100}
        fields = {"fg": {direction: flow}, "runs": {direction: [*[0] * 17, count_bytes]}}
        harness.loop.on_record(tick(ns=now_ns, state="busy", last_ns=now_ns, **fields))
        state = volume_state(
            at_ns=now_ns, knobs=harness.knobs(), in_use_ratio=0.2, dirty_bytes=1 << 20
        )
        harness.loop.on_tick(state, knobs_settled=True)
        harness.settle()


@pytest.mark.parametrize(("direction", "cutoff"), [("write", 2048 * MIB), ("read", 4 * MIB)])
def test_a_stream_moves_the_cutoff_and_its_end_gives_it_back(
    enforced: LoopHarness, direction: str, cutoff: int
) -> None:
    enforced.someone_writes("sequential_cutoff", "1.0M")
    streaming(enforced, **{direction: 40})
    assert enforced.knob("sequential_cutoff") == str(cutoff)
    for _ in range(20):
        enforced.tick()
    assert enforced.knob("sequential_cutoff") == str(MIB)


def test_enforce_at_the_end_of_a_hold_gives_back_what_is_over(enforced: LoopHarness) -> None:
    streaming(enforced, write=40)
    enforced.loop.freeze(True)
    for _ in range(20):
        enforced.tick()
    assert enforced.knob("sequential_cutoff") == str(2048 * MIB)
    enforced.loop.set_mode(Mode.ENFORCE, "a person")
    enforced.tick()
    assert enforced.knob("sequential_cutoff") == enforced.before["sequential_cutoff"]


def test_a_cutoff_that_failed_is_tried_again(enforced: LoopHarness) -> None:
    enforced.sysfs.before["sequential_cutoff"] = failing(errno.EBUSY)
    streaming(enforced, write=40)
    assert enforced.knob("sequential_cutoff") == enforced.before["sequential_cutoff"]
    del enforced.sysfs.before["sequential_cutoff"]
    streaming(enforced, write=40)
    assert enforced.knob("sequential_cutoff") == str(2048 * MIB)


def test_congestion_is_switched_off_once(enforced: LoopHarness) -> None:
    for count in (0, 4096, 8192):
        enforced.now_ms += 250
        now_ns = enforced.now_ms * NS_PER_MS
        bypass = {"congested": {"ios": 1, "bytes": count}}
        enforced.loop.on_record(tick(ns=now_ns, state="busy", last_ns=now_ns, bypass=bypass))
        enforced.loop.on_tick(
            volume_state(at_ns=now_ns, knobs=enforced.knobs()), knobs_settled=True
        )
        enforced.settle()
    writes = [knob for knob, _ in enforced.sysfs.log if knob.startswith("congested")]
    assert writes == ["congested_read_threshold_us", "congested_write_threshold_us"]


def test_drained_buckets_are_collected(enforced: LoopHarness) -> None:
    enforced.idle()
    enforced.tick(state="idle")
    enforced.tick(state="idle", dirty_bytes=20 * MIB, in_use_ratio=0.42)
    assert ("trigger_gc", "1") in enforced.sysfs.log
    assert "trigger_gc" not in enforced.kept.open


def test_the_live_document_names_originals_and_owners(enforced: LoopHarness) -> None:
    for _ in range(4):
        enforced.tick()
    knob = enforced.kept.document["knobs"]["writeback_percent"]
    assert knob == {"value": "40", "original": "10", "owner": "ebbgate"}
    assert enforced.kept.document["knobs"]["cache_mode"]["owner"] == "kernel"
    assert enforced.kept.document["gate"]["kind"] == "closed"
    assert enforced.kept.document["at_ns"] == enforced.now_ms * NS_PER_MS

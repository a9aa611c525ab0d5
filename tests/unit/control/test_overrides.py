# SPDX-License-Identifier: GPL-2.0-only
"""What a person sets on a volume is written, kept from all strategies, and undone at its end."""

from __future__ import annotations

import errno
from collections.abc import Callable
from threading import Event

import pytest

from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.model.decision import GateKind, Outcome, OutcomeKind
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import Mode
from ebbgate.units import MIB, NS_PER_S
from tests.builders import busy_edge, volume_state
from tests.fake_sysfs import failing
from tests.unit.control.test_volume_loop_knobs import streaming
from tests.volume_loop_fixture import DEADLINE_S, LoopHarness


def setting(knob: str = "writeback_percent", value: str = "20", number: int = 1) -> ActiveOverride:
    override = Override(OverrideKind.SET, "bcache0", "jo", 1, None, knob, value, number)
    return ActiveOverride(override, None)


def drain(harness: LoopHarness, seconds: int = 100) -> ActiveOverride:
    override = Override(OverrideKind.DRAIN, "bcache0", "jo", 1, 1 + seconds * NS_PER_S, id=7)
    return ActiveOverride(override, harness.now_ns() + seconds * NS_PER_S)


def ends(harness: LoopHarness) -> dict[int, str]:
    """Which overrides are over from now on, and why."""
    found: dict[int, str] = {}
    harness.loop.overrides.on_end = lambda override, why: found.update({override.id: why})
    return found


def put_in_force(harness: LoopHarness, *overrides: ActiveOverride) -> None:
    harness.loop.set_overrides(overrides)
    harness.settle()
    harness.tick()


# ---- knobs --------------------------------------------------------------------------------------
def test_a_knob_of_the_gate_that_is_set_ends_the_tuning_of_the_gate(enforced: LoopHarness) -> None:
    put_in_force(enforced, setting())
    expected = {**enforced.before, "writeback_percent": "20"}
    assert enforced.knobs() == expected
    enforced.gap_and_back()
    assert enforced.knobs() == expected
    assert enforced.kept.open == {"writeback_percent"}, "its original is not in the journal"
    assert enforced.loop.writer.manual == set()


def test_the_end_of_an_override_puts_the_original_back_and_strategies_go_on(
    enforced: LoopHarness,
) -> None:
    put_in_force(enforced, setting())
    put_in_force(enforced)
    assert enforced.gate() is GateKind.CLOSED
    assert enforced.knob("writeback_percent") == "40"
    enforced.loop.release("ebbgated stops")
    enforced.settle()
    assert enforced.knobs() == enforced.before


def test_a_cutoff_that_is_set_stays_under_a_stream_and_the_gate_goes_on(
    enforced: LoopHarness,
) -> None:
    put_in_force(enforced, setting("sequential_cutoff", str(MIB)))
    streaming(enforced, write=40)
    assert enforced.knob("sequential_cutoff") == str(MIB)
    enforced.tick()
    enforced.idle()
    assert enforced.gate() is GateKind.OPEN
    put_in_force(enforced)
    assert enforced.knob("sequential_cutoff") == enforced.before["sequential_cutoff"] == "4194304"


def test_a_cutoff_set_while_a_strategy_has_it_keeps_the_first_original(
    enforced: LoopHarness,
) -> None:
    streaming(enforced, write=40)
    put_in_force(enforced, setting("sequential_cutoff", str(MIB)))
    enforced.now_ms += 1000
    enforced.tick()
    assert enforced.knob("sequential_cutoff") == str(MIB)
    put_in_force(enforced)
    for _ in range(20):
        enforced.tick()
    assert enforced.knob("sequential_cutoff") == "4194304"


def test_a_congestion_threshold_that_is_set_stays(enforced: LoopHarness) -> None:
    put_in_force(enforced, setting("congested_read_threshold_us", "5000"))
    enforced.tick(knobs={**enforced.knobs()})
    assert enforced.knob("congested_read_threshold_us") == "5000"
    put_in_force(enforced)
    assert enforced.knobs()["congested_read_threshold_us"] == "2000"


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.ADVISE])
def test_a_person_may_set_a_knob_in_every_mode(
    make_loop: Callable[[Mode], LoopHarness], mode: Mode
) -> None:
    harness = make_loop(mode)
    harness.tick()
    put_in_force(harness, setting())
    assert harness.knobs() == {**harness.before, "writeback_percent": "20"}
    put_in_force(harness)
    assert harness.knobs() == harness.before


def test_a_rate_that_the_kernel_overwrites_is_set_again(enforced: LoopHarness) -> None:
    over = ends(enforced)
    put_in_force(enforced, setting("writeback_rate", "20480"))
    enforced.someone_writes("writeback_rate", "4.0k")
    enforced.tick()
    assert enforced.knob("writeback_rate") == "20480"
    assert over == {}


def test_somebody_elses_write_beats_the_override(enforced: LoopHarness) -> None:
    over = ends(enforced)
    put_in_force(enforced, setting(number=4))
    enforced.someone_writes("writeback_percent", "30")
    enforced.tick()
    assert over == {4: "somebody else has written writeback_percent since"}
    put_in_force(enforced)
    assert enforced.knobs() == {**enforced.before, "writeback_percent": "30"}
    assert enforced.loop.resume_control("writeback_percent") == ("writeback_percent",)
    enforced.tick()
    assert enforced.gate() is GateKind.CLOSED


def test_a_write_that_waits_is_not_made_after_its_override_has_ended(
    make_loop: Callable[[Mode], LoopHarness],
) -> None:
    """Of three knobs of one request the first fails, which ends all three overrides."""
    harness, stuck, go_on = make_loop(Mode.ADVISE), Event(), Event()
    harness.tick()

    def fail() -> None:
        stuck.set()
        assert go_on.wait(DEADLINE_S)
        failing(errno.EIO)()

    harness.sysfs.before["writeback_percent"] = fail
    knobs = {"writeback_percent": "20", "writeback_delay": "7", "sequential_cutoff": str(MIB)}
    sets = [setting(*pair, number) for number, pair in enumerate(knobs.items(), start=1)]
    harness.loop.set_overrides(sets)
    harness.settle()
    seen = volume_state(at_ns=harness.now_ns(), knobs=harness.knobs())
    harness.loop.on_tick(seen, knobs_settled=True)
    assert stuck.wait(DEADLINE_S)
    harness.loop.set_overrides(())
    go_on.set()
    harness.settle()
    assert harness.knobs() == harness.before
    assert harness.kept.open == set()


def test_setting_a_manual_knob_ends_manual(enforced: LoopHarness) -> None:
    enforced.someone_writes("writeback_percent", "30")
    enforced.tick()
    put_in_force(enforced, setting())
    assert enforced.loop.writer.manual == set()
    put_in_force(enforced)
    enforced.loop.release("ebbgated stops")
    enforced.settle()
    assert enforced.knob("writeback_percent") == "30"


def test_a_refused_write_is_replied_and_repeated(enforced: LoopHarness) -> None:
    enforced.sysfs.before["writeback_percent"] = failing(errno.EBUSY)
    enforced.loop.set_overrides((each := setting(),))
    reply = enforced.loop.overrides.first_write(each.override)
    enforced.tick()
    assert str(reply.exception(0)) == str(OSError(errno.EBUSY, "Device or resource busy"))
    del enforced.sysfs.before["writeback_percent"]
    enforced.tick()
    assert enforced.knob("writeback_percent") == "20"


def test_an_override_that_ends_before_its_write_has_a_reason(enforced: LoopHarness) -> None:
    overrides, first, second = enforced.loop.overrides, setting(), setting(number=2)
    enforced.loop.set_overrides((first,))
    replies = [overrides.first_write(first.override)]
    overrides.ending(first.override, "its time is over")
    enforced.loop.set_overrides((second,))
    replies.append(overrides.first_write(second.override))
    enforced.loop.set_overrides(())
    assert [str(reply.exception(0)) for reply in replies] == [
        "the override ended first: its time is over",
        "the override ended first",
    ]


def test_an_override_that_is_not_in_force_was_never_written(enforced: LoopHarness) -> None:
    reply = enforced.loop.overrides.first_write(setting().override)
    assert str(reply.exception(0)) == "it could not be applied"


@pytest.mark.parametrize("state", ["no cache", "inconsistent", None])
def test_nothing_is_written_while_the_state_forbids_it(
    make_loop: Callable[[Mode], LoopHarness], state: str | None
) -> None:
    harness = make_loop(Mode.ADVISE)
    harness.loop.set_overrides((each := setting(),))
    reply = harness.loop.overrides.first_write(each.override)
    for _ in range(3):
        harness.now_ms += 250
        seen = volume_state(at_ns=harness.now_ns(), knobs=harness.knobs(), state=state)
        harness.loop.on_tick(seen, knobs_settled=True)
        harness.settle()
    assert harness.sysfs.log == []
    assert not reply.done()
    harness.tick()
    assert reply.result(0) is None
    assert harness.knob("writeback_percent") == "20"


def test_the_override_is_a_decision_with_who_and_until_when(enforced: LoopHarness) -> None:
    put_in_force(enforced, setting("sequential_cutoff", str(MIB)))
    decision = enforced.kept.decisions[-1]
    first = decision.proposals[0]
    assert first.strategy == "override"
    assert first.reason == "sequential_cutoff 1 MiB, requested by jo, until released"
    assert (decision.sequential_cutoff_bytes, decision.cutoff_strategy) == (MIB, "override")
    assert [p.strategy for p in decision.proposals[1:]] == ["idle_destage", "stream_bypass"]
    (shown,) = enforced.kept.document["overrides"]
    assert (shown["knob"], shown["who"], shown["left_ns"]) == ("sequential_cutoff", "jo", None)
    proposals = {p["strategy"]: p for p in enforced.kept.document["proposals"]}
    assert proposals["override"]["wins"] == ["sequential_cutoff"]


def test_each_write_of_an_override_names_who_asked(enforced: LoopHarness) -> None:
    put_in_force(enforced, setting())
    (write,) = [
        o for o in enforced.kept.written if o.action.strategy == "override" and o.action.new == "20"
    ]
    assert write.kind is OutcomeKind.CHANGED
    assert write.action.reason == "writeback_percent 20%, requested by jo, until released"


@pytest.mark.parametrize("mode", [Mode.ADVISE, Mode.ENFORCE])
@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("sequential_cutoff", str(MIB)),
        ("writeback_percent", "20"),
        ("congested_read_threshold_us", "5000"),
    ],
)
def test_a_release_that_failed_at_the_end_of_an_override_is_repeated(
    make_loop: Callable[[Mode], LoopHarness], mode: Mode, knob: str, value: str
) -> None:
    harness = make_loop(mode)
    harness.tick()
    put_in_force(harness, setting(knob, value))
    harness.sysfs.before[knob] = failing(errno.EBUSY)
    put_in_force(harness)
    assert harness.knob(knob) == value
    del harness.sysfs.before[knob]
    harness.now_ms += 10_000
    harness.tick()
    harness.tick()
    driven = mode is Mode.ENFORCE and knob == "writeback_percent"
    assert harness.knob(knob) == ("40" if driven else harness.before[knob])


def test_a_release_that_failed_is_not_repeated_once_the_knob_is_set_again(
    make_loop: Callable[[Mode], LoopHarness],
) -> None:
    harness = make_loop(Mode.ADVISE)
    put_in_force(harness, setting("sequential_cutoff", str(MIB)))
    harness.sysfs.before["sequential_cutoff"] = failing(errno.EBUSY)
    harness.loop.set_overrides(())
    harness.settle()
    del harness.sysfs.before["sequential_cutoff"]
    harness.now_ms += 10_000
    put_in_force(harness, setting("sequential_cutoff", str(2 * MIB), 2))
    assert harness.knob("sequential_cutoff") == str(2 * MIB)
    assert ("sequential_cutoff", harness.before["sequential_cutoff"]) not in harness.sysfs.log


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("writeback_delay", "600"),
        ("writeback_rate_update_seconds", "5"),
        ("idle_max_writeback_rate", "1"),
    ],
)
def test_an_edge_that_overtakes_the_end_of_an_override_writes_the_knob(
    enforced: LoopHarness, knob: str, value: str
) -> None:
    ours, go_on = enforced.knob(knob), Event()
    put_in_force(enforced, setting(knob, value))
    enforced.now_ms += 1000
    enforced.tick()
    assert enforced.knob(knob) == value

    def wait(_: KnobWriter) -> list[Outcome]:
        assert go_on.wait(DEADLINE_S)
        return []

    enforced.loop.worker.submit("slow", wait)
    enforced.loop.set_overrides(())
    enforced.now_ms += 1000
    enforced.loop.on_record(busy_edge(enforced.now_ms, name="bcache0"))
    go_on.set()
    enforced.settle()
    enforced.tick()
    assert (enforced.gate(), enforced.knob(knob)) == (GateKind.CLOSED, ours)


# ---- drains -------------------------------------------------------------------------------------
def test_a_drain_opens_the_gate_under_load_as_wide_as_needed(enforced: LoopHarness) -> None:
    enforced.tick()
    assert enforced.gate() is GateKind.CLOSED
    put_in_force(enforced, drain(enforced))
    enforced.tick()
    # 420 MiB within 100 s, of which a part is kept in reserve, rounded up.
    assert enforced.gate() is GateKind.PACED
    rate = 512 * int(enforced.knob("writeback_rate"))
    assert 420 * MIB / 70 <= rate <= 1.35 * 420 * MIB / 70
    decision = enforced.kept.decisions[-1]
    assert decision.gate_strategy == "drain"
    assert "420 MiB dirty, needs 6.0 MiB/s" in decision.proposals[0].reason


def test_a_drain_that_is_over_closes_the_gate(enforced: LoopHarness) -> None:
    enforced.tick()
    put_in_force(enforced, drain(enforced))
    enforced.tick()
    put_in_force(enforced)
    assert enforced.gate() is GateKind.CLOSED


def test_a_drain_is_over_once_nothing_is_dirty(enforced: LoopHarness) -> None:
    over = ends(enforced)
    put_in_force(enforced, drain(enforced))
    enforced.tick(dirty_bytes=0)
    assert over == {7: "clean, 99.5 s early"}


def test_the_rest_of_a_drain_is_reported(enforced: LoopHarness) -> None:
    put_in_force(enforced, drain(enforced))
    assert enforced.loop.overrides.unfinished(drain(enforced).override) == (
        "its time is over with 420 MiB dirty"
    )
    assert enforced.loop.overrides.unfinished(setting().override) == ""


def test_without_the_foreground_a_drain_leaves_the_gate_to_the_kernel(
    enforced: LoopHarness,
) -> None:
    put_in_force(enforced, drain(enforced))
    for _ in range(20):
        enforced.tick(probe=False)
    assert enforced.gate() is GateKind.RELEASED
    assert enforced.knobs() == enforced.before

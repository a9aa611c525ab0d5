# SPDX-License-Identifier: GPL-2.0-only
"""Holds, releases, drains and knobs of somebody else: what lasts, and how it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebbgate.model.decision import GateKind
from ebbgate.model.override import IntentKind, OverrideKind
from ebbgate.model.volume import Mode
from ebbgate.policy.limits import Bounds, Limits
from ebbgate.units import KIB, MIB, NS_PER_S
from tests.intent_fixture import MINUTE_NS, IntentHarness, answer


@pytest.fixture
def intents(enforced_intents: IntentHarness) -> IntentHarness:
    """In enforce in all tests of this file."""
    return enforced_intents


# ---- hold ---------------------------------------------------------------------------------------
def test_a_hold_outlives_the_daemon(intents: IntentHarness) -> None:
    assert answer(intents.ask(IntentKind.HOLD, on=True)) == (True, "bcache0: held")
    intents.volume.loop.freeze(False)
    intents.start()
    assert intents.frozen()
    assert answer(intents.ask(IntentKind.HOLD, on=False)) == (True, "bcache0: hold ended")
    assert not intents.frozen()
    assert intents.kept() == ()


def test_a_timed_hold_ends_by_itself(intents: IntentHarness) -> None:
    assert (
        intents.ask(IntentKind.HOLD, on=True, for_ns=MINUTE_NS).outcome == "bcache0: held for 60 s"
    )
    intents.clocks.passes(MINUTE_NS)
    intents.poll()
    assert not intents.frozen()


@pytest.mark.parametrize("kind", [IntentKind.RELEASE, IntentKind.MODE])
def test_a_hold_ends_with_a_release_and_with_a_mode(
    intents: IntentHarness, kind: IntentKind
) -> None:
    intents.ask(IntentKind.HOLD, on=True)
    intents.ask(kind, **({"mode": "enforce"} if kind is IntentKind.MODE else {}))
    assert not intents.frozen()
    assert intents.kept() == ()


def test_setting_a_knob_of_the_gate_in_enforce_explains_the_effect(
    intents: IntentHarness,
) -> None:
    ok, text = intents.set()
    assert ok
    assert text is not None
    assert text.endswith(", and the gate, of which it is a part, is left to the kernel")


# ---- release ------------------------------------------------------------------------------------
def test_a_release_gives_a_manual_knob_back(intents: IntentHarness) -> None:
    intents.volume.someone_writes("writeback_percent", "30")
    intents.tick()
    assert intents.volume.gate() is GateKind.RELEASED
    released = intents.ask(IntentKind.RELEASE)
    assert answer(released) == (True, "bcache0: writeback_percent is tuned by ebbgate again")
    intents.volume.settle()
    intents.tick()
    assert intents.volume.gate() is GateKind.CLOSED


# ---- drain --------------------------------------------------------------------------------------
def test_a_drain_reports_the_needed_rate(intents: IntentHarness) -> None:
    for _ in range(5):
        intents.tick()
    ok, text = answer(intents.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S))
    assert (ok, text) == (
        True,
        "bcache0: drains within 100 s; 420 MiB dirty, needs 6 MiB/s; rate not known yet",
    )
    (override,) = intents.kept()
    assert (override.kind, override.for_ns) == (OverrideKind.DRAIN, 100 * NS_PER_S)


def test_a_drain_beyond_the_limits_of_the_policy_is_said(intents: IntentHarness) -> None:
    loop = intents.volume.loop
    loop.set_policy(replace(loop.policy, limits=Limits(destage_rate=Bounds(high=512 * KIB))))
    for _ in range(5):
        intents.tick()
    text = intents.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S).outcome
    assert "needs 6 MiB/s (the policy allows 512 KiB/s)" in text
    intents.poll()
    assert intents.volume.knob("writeback_rate") == str(512 * KIB // 512)


def test_an_expired_drain_reports_what_is_left(intents: IntentHarness) -> None:
    intents.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S)
    intents.tick(dirty_bytes=7 * MIB)
    intents.clocks.passes(100 * NS_PER_S)
    intents.poll()
    assert intents.ended() == ["its time is over with 7 MiB dirty"]


def test_a_finished_drain_is_reported(intents: IntentHarness) -> None:
    intents.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S)
    intents.tick(dirty_bytes=0)
    intents.look()
    (outcome,) = intents.ended()
    assert outcome.startswith("clean, ")


def test_a_drain_in_another_mode_of_the_cache_is_refused(intents: IntentHarness) -> None:
    intents.tick(cache_mode="writethrough")
    assert answer(intents.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S)) == (
        False,
        "bcache0: the cache mode is writethrough: the kernel alone writes back what is still dirty;"
        " a drain could not open the gate\n  see ebbgate explain",
    )
    assert intents.kept() == ()


def test_a_clean_volume_is_not_drained(intents: IntentHarness) -> None:
    intents.tick(dirty_bytes=0)
    assert answer(intents.ask(IntentKind.DRAIN, for_ns=NS_PER_S)) == (
        False,
        "bcache0: it is clean\n  see ebbgate status",
    )


# ---- what somebody else wrote -------------------------------------------------------------------
def test_a_manual_knob_is_left_alone_after_a_restart(intents: IntentHarness) -> None:
    intents.volume.someone_writes("writeback_percent", "30")
    intents.tick()
    intents.poll()
    intents.volume.loop.writer.manual.clear()
    intents.start()
    assert intents.volume.loop.writer.manual == {"writeback_percent"}
    for _ in range(3):
        intents.poll()
    assert intents.percent() == "30"
    assert intents.volume.gate() is GateKind.RELEASED
    intents.ask(IntentKind.RELEASE)
    intents.poll()
    assert intents.volume.gate() is GateKind.CLOSED
    assert intents.ended() == ["it is tuned by ebbgate again"]


def test_after_a_reboot_the_kernels_value_is_not_manual(intents: IntentHarness) -> None:
    intents.volume.someone_writes("writeback_percent", "30")
    intents.tick()
    intents.poll()
    intents.volume.loop.writer.manual.clear()
    intents.volume.someone_writes("writeback_percent", "10")
    intents.start()
    assert intents.volume.loop.writer.manual == set()
    intents.poll()
    assert intents.ended() == ["the knob has another value now"]


def test_a_manual_knob_that_is_written_again_is_known_by_its_newest_value(
    intents: IntentHarness,
) -> None:
    for value in ("30", "31"):
        intents.volume.someone_writes("writeback_percent", value)
        intents.tick()
        intents.poll()
        intents.flush()
    (override,) = intents.kept()
    assert (override.kind, override.knob, override.value) == (
        OverrideKind.MANUAL,
        "writeback_percent",
        "31",
    )
    assert intents.volume.kept.document["overrides"] == []


# ---- a database that cannot be used --------------------------------------------------------------
def test_an_unreadable_database_stops_nothing_and_is_used_once_readable(
    intents: IntentHarness,
) -> None:
    intents.ask(IntentKind.MODE, mode="observe")
    intents.set()
    intents.stop()
    whole = intents.path.rename(intents.path.with_suffix(".whole"))
    intents.path.mkdir()
    intents.volume.loop.set_overrides(())
    intents.volume.loop.mode = Mode.ADVISE
    intents.start()
    assert "is not a file that belongs to root" in intents.writer.error
    assert intents.registry.modes == {}
    intents.poll()
    assert intents.percent() == "10"
    ok, text = intents.set()
    assert (ok, "it cannot be saved in" in text) == (False, True)
    intents.path.rmdir()
    whole.rename(intents.path)
    intents.clocks.passes(11 * NS_PER_S)
    for _ in range(3):
        intents.poll()
        intents.flush()
    intents.poll()
    assert intents.writer.error == ""
    assert intents.volume.loop.mode is Mode.OBSERVE
    assert intents.percent() == "20"


def test_a_damaged_database_is_kept_aside_and_a_new_one_begun(
    intents: IntentHarness, caplog: pytest.LogCaptureFixture
) -> None:
    intents.set()
    intents.stop()
    for suffix in ("-wal", "-shm"):
        intents.path.with_name(f"overrides.db{suffix}").unlink(missing_ok=True)
    intents.path.write_bytes(b"nonsense" * 1000)
    intents.start()
    assert intents.kept() == ()
    assert intents.path.with_name("overrides.db.damaged").read_bytes() == b"nonsense" * 1000
    assert len([r for r in caplog.records if "a new one is created" in r.message]) == 1
    assert intents.set("30")[0]


# ---- what may not be together --------------------------------------------------------------------
def test_a_drain_beside_a_set_knob_of_the_gate_is_refused(intents: IntentHarness) -> None:
    intents.set()
    ok, text = answer(intents.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S))
    assert ok is False
    assert text == (
        "bcache0: writeback_percent is set to 20% by jo, which leaves the gate to the kernel:"
        " a drain could not open it\n  first: ebbgate release bcache0 writeback_percent"
    )
    assert [each.kind for each in intents.kept()] == [OverrideKind.SET]
    intents.ask(IntentKind.RELEASE, knob="writeback_percent")
    intents.tick()
    assert intents.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S).ok


def test_a_knob_of_the_gate_is_not_set_while_a_drain_runs(intents: IntentHarness) -> None:
    assert intents.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S).ok
    ok, text = intents.set()
    assert (ok, "a drain of jo is under way, which needs writeback_percent" in text) == (
        False,
        True,
    )
    assert "ebbgate release bcache0" in text
    cutoff = intents.ask(IntentKind.SET, knob="sequential_cutoff", value="1MiB")
    assert cutoff.ok, "not a knob of the gate"


def test_a_drain_of_a_volume_on_hold_is_refused(intents: IntentHarness) -> None:
    intents.ask(IntentKind.HOLD, on=True)
    ok, text = answer(intents.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S))
    assert (ok, "first: ebbgate hold bcache0 --off" in text) == (False, True)


def test_a_drain_beside_a_gate_knob_of_somebody_else_is_refused(intents: IntentHarness) -> None:
    intents.volume.someone_writes("writeback_percent", "30")
    intents.tick()
    ok, text = answer(intents.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S))
    assert (ok, "writeback_percent was changed by somebody else" in text) == (False, True)


def test_a_drain_under_a_policy_that_does_not_destage_is_refused(intents: IntentHarness) -> None:
    intents.volume.loop.set_policy(replace(intents.volume.loop.policy, destage=None))
    intents.tick()
    ok, text = answer(intents.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S))
    assert (ok, "does not use idle_destage" in text) == (False, True)

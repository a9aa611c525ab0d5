# SPDX-License-Identifier: GPL-2.0-only
"""Holds, releases, drains and knobs of somebody else: what lasts, and how it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebbgate.model.decision import GateKind
from ebbgate.model.override import IntentKind, OverrideKind
from ebbgate.model.volume import Mode
from ebbgate.units import MIB, NS_PER_S
from tests.intent_fixture import MINUTE_NS, Asked, answer


@pytest.fixture
def asked(enforced_asked: Asked) -> Asked:
    """In enforce in all tests of this file."""
    return enforced_asked


# ---- hold ---------------------------------------------------------------------------------------
def test_a_hold_outlives_the_daemon(asked: Asked) -> None:
    assert answer(asked.ask(IntentKind.HOLD, on=True)) == (True, "bcache0: held")
    asked.bench.loop.freeze(False)
    asked.start()
    assert asked.held()
    assert answer(asked.ask(IntentKind.HOLD, on=False)) == (True, "bcache0: hold ended")
    assert not asked.held()
    assert asked.kept() == ()


def test_a_timed_hold_ends_by_itself(asked: Asked) -> None:
    assert asked.ask(IntentKind.HOLD, on=True, for_ns=MINUTE_NS).outcome == "bcache0: held for 60 s"
    asked.clocks.passes(MINUTE_NS)
    asked.poll()
    assert not asked.held()


@pytest.mark.parametrize("kind", [IntentKind.RELEASE, IntentKind.MODE])
def test_a_hold_ends_with_a_release_and_with_a_mode(asked: Asked, kind: IntentKind) -> None:
    asked.ask(IntentKind.HOLD, on=True)
    asked.ask(kind, **({"mode": "enforce"} if kind is IntentKind.MODE else {}))
    assert not asked.held()
    assert asked.kept() == ()


def test_a_knob_of_the_gate_that_is_set_in_enforce_says_what_that_means(
    asked: Asked,
) -> None:
    ok, text = asked.set()
    assert ok
    assert text is not None
    assert text.endswith(", and the gate, of which it is a part, is left to the kernel")


# ---- release ------------------------------------------------------------------------------------
def test_a_release_gives_a_manual_knob_back(asked: Asked) -> None:
    asked.bench.someone_writes("writeback_percent", "30")
    asked.tick()
    assert asked.bench.gate() is GateKind.RELEASED
    released = asked.ask(IntentKind.RELEASE)
    assert answer(released) == (True, "bcache0: writeback_percent is driven by ebbgate again")
    asked.bench.settle()
    asked.tick()
    assert asked.bench.gate() is GateKind.CLOSED


# ---- drain --------------------------------------------------------------------------------------
def test_a_drain_says_what_it_takes(asked: Asked) -> None:
    for _ in range(5):
        asked.tick()
    ok, text = answer(asked.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S))
    assert (ok, text) == (
        True,
        "bcache0: drains within 100 s; 420 MiB dirty, needs 6 MiB/s; rate not known yet",
    )
    (override,) = asked.kept()
    assert (override.kind, override.for_ns) == (OverrideKind.DRAIN, 100 * NS_PER_S)


def test_a_drain_whose_time_is_over_says_what_is_left(asked: Asked) -> None:
    asked.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S)
    asked.tick(dirty_bytes=7 * MIB)
    asked.clocks.passes(100 * NS_PER_S)
    asked.poll()
    assert asked.ended() == ["its time is over with 7 MiB dirty"]


def test_a_drain_that_is_done_says_so(asked: Asked) -> None:
    asked.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S)
    asked.tick(dirty_bytes=0)
    asked.look()
    (outcome,) = asked.ended()
    assert outcome.startswith("clean, ")


def test_a_clean_volume_is_not_drained(asked: Asked) -> None:
    asked.tick(dirty_bytes=0)
    assert answer(asked.ask(IntentKind.DRAIN, for_ns=NS_PER_S)) == (
        False,
        "bcache0: it is clean\n  see ebbgate status",
    )


# ---- what somebody else wrote -------------------------------------------------------------------
def test_what_somebody_else_wrote_is_left_alone_over_a_restart(asked: Asked) -> None:
    asked.bench.someone_writes("writeback_percent", "30")
    asked.tick()
    asked.poll()
    asked.bench.loop.writer.manual.clear()
    asked.start()
    assert asked.bench.loop.writer.manual == {"writeback_percent"}
    for _ in range(3):
        asked.poll()
    assert asked.percent() == "30"
    assert asked.bench.gate() is GateKind.RELEASED
    asked.ask(IntentKind.RELEASE)
    asked.poll()
    assert asked.bench.gate() is GateKind.CLOSED
    assert asked.ended() == ["it is driven by ebbgate again"]


def test_after_a_reboot_the_kernels_own_value_is_nobodys(asked: Asked) -> None:
    asked.bench.someone_writes("writeback_percent", "30")
    asked.tick()
    asked.poll()
    asked.bench.loop.writer.manual.clear()
    asked.bench.someone_writes("writeback_percent", "10")
    asked.start()
    assert asked.bench.loop.writer.manual == set()
    asked.poll()
    assert asked.ended() == ["the knob has another value now"]


def test_a_manual_knob_that_is_written_again_is_known_by_its_newest_value(
    asked: Asked,
) -> None:
    for value in ("30", "31"):
        asked.bench.someone_writes("writeback_percent", value)
        asked.tick()
        asked.poll()
        asked.flush()
    (override,) = asked.kept()
    assert (override.kind, override.knob, override.value) == (
        OverrideKind.MANUAL,
        "writeback_percent",
        "31",
    )
    assert asked.bench.kept.document["overrides"] == []


# ---- a database that cannot be used --------------------------------------------------------------
def test_a_database_that_cannot_be_read_stops_nothing_and_is_used_once_it_can_be(
    asked: Asked,
) -> None:
    asked.ask(IntentKind.MODE, mode="observe")
    asked.set()
    asked.stop()
    whole = asked.path.rename(asked.path.with_suffix(".whole"))
    asked.path.mkdir()
    asked.bench.loop.set_overrides(())
    asked.bench.loop.mode = Mode.ADVISE
    asked.start()
    assert "is not a file that belongs to root" in asked.writer.error
    assert asked.registry.modes == {}
    asked.poll()
    assert asked.percent() == "10"
    ok, text = asked.set()
    assert (ok, "it cannot be saved in" in text) == (False, True)
    asked.path.rmdir()
    whole.rename(asked.path)
    asked.clocks.passes(11 * NS_PER_S)
    for _ in range(3):
        asked.poll()
        asked.flush()
    asked.poll()
    assert asked.writer.error == ""
    assert asked.bench.loop.mode is Mode.OBSERVE
    assert asked.percent() == "20"


def test_a_damaged_database_is_kept_aside_and_a_new_one_begun(
    asked: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    asked.set()
    asked.stop()
    for suffix in ("-wal", "-shm"):
        asked.path.with_name(f"overrides.db{suffix}").unlink(missing_ok=True)
    asked.path.write_bytes(b"nonsense" * 1000)
    asked.start()
    assert asked.kept() == ()
    assert asked.path.with_name("overrides.db.damaged").read_bytes() == b"nonsense" * 1000
    assert len([r for r in caplog.records if "a new one is created" in r.message]) == 1
    assert asked.set("30")[0]


# ---- what may not be together --------------------------------------------------------------------
def test_a_drain_beside_a_set_knob_of_the_gate_is_refused(asked: Asked) -> None:
    asked.set()
    ok, text = answer(asked.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S))
    assert ok is False
    assert text == (
        "bcache0: writeback_percent is set to 20% by jo, which leaves the gate to the kernel:"
        " a drain could not open it\n  first: ebbgate release bcache0 writeback_percent"
    )
    assert [each.kind for each in asked.kept()] == [OverrideKind.SET]
    asked.ask(IntentKind.RELEASE, knob="writeback_percent")
    asked.tick()
    assert asked.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S).ok


def test_a_knob_of_the_gate_is_not_set_while_a_drain_runs(asked: Asked) -> None:
    assert asked.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S).ok
    ok, text = asked.set()
    assert (ok, "a drain of jo is under way, which needs writeback_percent" in text) == (
        False,
        True,
    )
    assert "ebbgate release bcache0" in text
    cutoff = asked.ask(IntentKind.SET, knob="sequential_cutoff", value="1MiB")
    assert cutoff.ok, "not a knob of the gate"


def test_a_drain_of_a_held_volume_is_refused(asked: Asked) -> None:
    asked.ask(IntentKind.HOLD, on=True)
    ok, text = answer(asked.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S))
    assert (ok, "first: ebbgate hold bcache0 --off" in text) == (False, True)


def test_a_drain_beside_a_gate_knob_of_somebody_else_is_refused(asked: Asked) -> None:
    asked.bench.someone_writes("writeback_percent", "30")
    asked.tick()
    ok, text = answer(asked.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S))
    assert (ok, "writeback_percent was changed by somebody else" in text) == (False, True)


def test_a_drain_under_a_policy_that_does_not_destage_is_refused(asked: Asked) -> None:
    asked.bench.loop.set_policy(replace(asked.bench.loop.policy, destage=None))
    asked.tick()
    ok, text = answer(asked.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S))
    assert (ok, "does not use idle_destage" in text) == (False, True)

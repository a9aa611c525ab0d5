# SPDX-License-Identifier: GPL-2.0-only
"""The sleep of the kernel's thread is reported for as long as it can last."""

from __future__ import annotations

import pytest

from ebbgate.model.volume import Mode
from ebbgate.signals.kernel_sleep import KernelSleep, left_s, on_destage, taken_over
from ebbgate.units import NS_PER_S
from tests.builders import live_document, tick
from tests.unit.conftest import NOW_NS, Cli
from tests.volume_loop_fixture import LoopHarness

TAKEN_NS = 100 * NS_PER_S
ASLEEP = taken_over(None, TAKEN_NS, "30")
SENTENCE = "the kernel's writeback thread may sleep for up to 22 s more"


def after(seconds: float) -> int:
    return TAKEN_NS + round(seconds * NS_PER_S)


def test_a_sleep_may_last_as_long_as_the_delay_was_and_no_longer() -> None:
    assert left_s(ASLEEP, after(0)) == 30
    assert left_s(ASLEEP, after(29)) == 1
    assert left_s(ASLEEP, after(30)) is None


@pytest.mark.parametrize("original", ["0", "not a number"])
def test_without_a_delay_nothing_sleeps(original: str) -> None:
    assert left_s(taken_over(None, TAKEN_NS, original), after(0)) is None


def test_destage_that_moves_shows_the_thread_awake() -> None:
    state = on_destage(on_destage(ASLEEP, after(0.1), 500), after(0.4), 501)
    assert left_s(state, after(1)) is None
    still = on_destage(state, after(0.7), 501)
    assert left_s(still, after(1)) is None, "awake, it does not fall asleep again"


def test_stalled_destage_does_not_end_the_sleep() -> None:
    state = on_destage(on_destage(ASLEEP, after(0.1), 500), after(5), 500)
    assert left_s(state, after(5)) == 25


def test_destage_before_the_knob_was_owned_does_not_end_the_sleep() -> None:
    state = on_destage(ASLEEP, after(-0.1), 400)
    assert left_s(on_destage(state, after(0.1), 500), after(1)) == 29


def test_a_restarted_probe_does_not_end_the_sleep() -> None:
    state = on_destage(on_destage(ASLEEP, after(0.1), 500), after(2), 3)
    assert left_s(state, after(2)) == 28
    assert left_s(on_destage(state, after(3), 4), after(3)) is None


def test_a_knob_that_is_owned_again_restarts_the_sleep() -> None:
    awake = KernelSleep(TAKEN_NS, after(30), 500, over=True)
    assert taken_over(awake, TAKEN_NS, "30") is awake
    assert left_s(taken_over(awake, after(10), "30"), after(10)) == 30


def heard(harness: LoopHarness, done_ios: int) -> object:
    """The reported sleep a second later, at this count of pieces."""
    harness.now_ms += 1000
    done = {"queued_ios": done_ios, "queued_bytes": 0, "done_ios": done_ios, "done_bytes": 0}
    harness.loop.on_record(tick(ns=harness.now_ns(), last_ns=harness.now_ns(), destage=done))
    harness.tick(probe=False)
    return harness.kept.document["kernel_sleep"]


def test_the_status_has_the_sleep_until_destage_moves(enforced: LoopHarness) -> None:
    assert enforced.before["writeback_delay"] == "30"
    asleep = heard(enforced, 5)
    assert isinstance(asleep, dict)
    assert 25 < asleep["left_s"] < 30
    assert "writeback_delay was 30 s" in asleep["text"]
    assert heard(enforced, 6) is None


def test_the_status_has_no_sleep_while_the_kernel_controls_the_thread(
    enforced: LoopHarness,
) -> None:
    enforced.loop.set_mode(Mode.ADVISE, "a person")
    enforced.settle()
    assert heard(enforced, 5) is None


@pytest.mark.parametrize("words", [("status",), ("status", "bcache0"), ("explain", "bcache0")])
def test_the_sleep_is_explained(cli: Cli, words: tuple[str, ...]) -> None:
    asleep = {"left_s": 22.0, "text": f"{SENTENCE} and drains nothing meanwhile"}
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(kernel_sleep=asleep), NOW_NS)
        assert SENTENCE in cli(*words).out
        document = cli(*words, "--json").document
        store.set_live("bcache0", live_document(), NOW_NS)
        assert SENTENCE not in cli(*words).out
    volume = document["volumes"][0] if "volumes" in document else document
    assert volume["kernel_sleep"] == asleep

# SPDX-License-Identifier: GPL-2.0-only
"""How long the event loop was silent is measured where it sleeps, and costs no wake-up."""

from __future__ import annotations

import asyncio
import time

from ebbgate.daemon.loop_silence import LoopSilence, measured_loop
from ebbgate.model.status import LoopSilenceStatus
from ebbgate.units import NS_PER_MS, NS_PER_S


class Clock:
    now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def passes(self, duration_ns: int) -> None:
        self.now_ns += duration_ns


def test_a_long_turn_is_a_silence_and_sleeping_is_none() -> None:
    clock = Clock()
    silence = LoopSilence(clock, clock)
    silence.sleeps()
    clock.passes(5 * NS_PER_S)
    silence.wakes(None, True)
    clock.passes(30)
    silence.sleeps()
    assert silence.report() == LoopSilenceStatus(30, 30, clock.now_ns)
    silence.wakes(None, True)
    clock.passes(20)
    silence.sleeps()
    assert silence.report() == LoopSilenceStatus(20, 30, clock.now_ns - 20)


def test_to_be_woken_late_is_a_silence() -> None:
    clock = Clock()
    silence = LoopSilence(clock, clock)
    silence.sleeps()
    clock.passes(NS_PER_S + 70)
    silence.wakes(1.0, False)
    assert silence.max_ns == 70
    silence.sleeps()
    clock.passes(NS_PER_S)
    silence.wakes(2.0, True)
    assert silence.max_ns == 70, "an event came earlier than the time"


def test_a_real_loop_that_is_busy_is_measured() -> None:
    silence = LoopSilence()

    async def scenario() -> None:
        await asyncio.sleep(0.01)
        silence.begin()
        await asyncio.sleep(0.01)
        time.sleep(0.05)
        await asyncio.sleep(0.01)

    with asyncio.Runner(loop_factory=lambda: measured_loop(silence)) as runner:
        runner.run(scenario())
    assert 50 * NS_PER_MS <= silence.max_ns < 500 * NS_PER_MS

# SPDX-License-Identifier: GPL-2.0-only
"""Tells whether the kernel's writeback thread may still sleep since before ebbgate started. Pure.

The thread reads `writeback_delay` once per full scan of the index and then sleeps that long; no
wake-up ends that (drivers/md/bcache/writeback.c, bch_writeback_thread). A write of 0 to the knob
takes effect at the next scan; until then no gate lets anything out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ebbgate.model.records import Tick
from ebbgate.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class KernelSleep:
    """A sleep that may last. Times in ns of CLOCK_MONOTONIC.

    - `taken_ns`: when ebbgate changed the knob.
    - `until_ns`: when the last sleep that began before that ends.
    - `done_ios`: pieces destaged at the first tick after that (cumulative); None before it.
    - `over`: more was destaged since, so the thread is awake.
    """

    taken_ns: int
    until_ns: int
    done_ios: int | None = None
    over: bool = False


def on_tick(
    state: KernelSleep | None, ours: tuple[int, str] | None, tick: Tick
) -> KernelSleep | None:
    """Handle a tick. `ours`: when ebbgate changed the knob, and its original seconds."""
    if ours is None:
        return None
    return on_destage(taken_over(state, *ours), tick.at_ns, tick.destage_done.ios)


def taken_over(state: KernelSleep | None, taken_ns: int, original: str) -> KernelSleep:
    """Handle that ebbgate changed the knob at `taken_ns`. `original`: its seconds before that."""
    if state is not None and state.taken_ns == taken_ns:
        return state
    delay_s = int(original) if original.isdigit() else 0
    return KernelSleep(taken_ns, taken_ns + delay_s * NS_PER_S)


def on_destage(state: KernelSleep, at_ns: int, done_ios: int) -> KernelSleep:
    """Handle the probe's count of destaged pieces at `at_ns`.

    The thread sleeps only after all its pieces are done. So a piece that is done after the knob was
    changed shows that it is awake, and its next sleep has the new length.
    """
    if at_ns < state.taken_ns or state.over:
        return state
    # A restarted probe counts from zero.
    if state.done_ios is None or done_ios < state.done_ios:
        return replace(state, done_ios=done_ios)
    return replace(state, over=done_ios > state.done_ios)


def left_s(state: KernelSleep | None, now_ns: int) -> float | None:
    """Return how many seconds the thread may still sleep at most; None if it does not."""
    if state is None or state.over or now_ns >= state.until_ns:
        return None
    return (state.until_ns - now_ns) / NS_PER_S

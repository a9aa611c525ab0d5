# SPDX-License-Identifier: GPL-2.0-only
"""Whether the kernel's writeback thread may still be in a sleep that began before we came. Pure.

The thread reads `writeback_delay` once per full scan of the index and then sleeps that long, and no
wake-up ends it (drivers/md/bcache/writeback.c, bch_writeback_thread). Setting the knob to 0 is of
use from its next scan on; until then no gate lets anything out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ebbgate.model.records import Tick
from ebbgate.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class KernelSleep:
    """A sleep that may last. Times in ns of CLOCK_MONOTONIC.

    `taken_ns`: when the knob was taken over; `until_ns`: when the latest sleep that began before
    ends; `done_ios`: pieces destaged when the probe first spoke after that (cumulative; None: it
    did not yet); `over`: destage was seen to move since, so the thread is awake.
    """

    taken_ns: int
    until_ns: int
    done_ios: int | None = None
    over: bool = False


def followed(
    state: KernelSleep | None, ours: tuple[int, str] | None, tick: Tick
) -> KernelSleep | None:
    """At each tick of the probe; `ours`: since when the knob is, and its seconds before."""
    if ours is None:
        return None
    return on_destage(taken_over(state, *ours), tick.at_ns, tick.destage_done.ios)


def taken_over(state: KernelSleep | None, taken_ns: int, original: str) -> KernelSleep:
    """The knob is ours since `taken_ns`; `original`: its seconds before, as the kernel showed
    them.
    """
    if state is not None and state.taken_ns == taken_ns:
        return state
    delay_s = int(original) if original.isdigit() else 0
    return KernelSleep(taken_ns, taken_ns + delay_s * NS_PER_S)


def on_destage(state: KernelSleep, at_ns: int, done_ios: int) -> KernelSleep:
    """The probe's count of destaged pieces at `at_ns`.

    The thread sleeps only after all that it began is done, so a piece that is done later than the
    knob was taken over shows it awake, and its next sleep is as long as we say.
    """
    if at_ns < state.taken_ns or state.over:
        return state
    # A probe that restarted counts anew.
    if state.done_ios is None or done_ios < state.done_ios:
        return replace(state, done_ios=done_ios)
    return replace(state, over=done_ios > state.done_ios)


def left_s(state: KernelSleep | None, now_ns: int) -> float | None:
    """The longest that the thread may sleep on, in seconds; None where it does not."""
    if state is None or state.over or now_ns >= state.until_ns:
        return None
    return (state.until_ns - now_ns) / NS_PER_S

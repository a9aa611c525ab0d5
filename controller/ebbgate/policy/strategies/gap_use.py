# SPDX-License-Identifier: GPL-2.0-only
"""How the gate is used within a gap: as wide as it goes, with rests. Pure.

One rest begins shortly before the gap is likely to end (`signals.gap_ends`), so early that a
returning request finds nothing under way, and the disk's own write cache empty (`disk_cache`). Half
of a short gap is not long enough for that cache, so there the outer loop bounds the rate, too.
Other rests keep the rate that the outer loop (`drain_cap`) or a limit of the policy allows: the
gate rests once more is written, until the mean is right again. Or they bound what is under way,
where the disk takes long for it and a return that is not foreseen would wait. The kernel could keep
a rate more evenly, but for that bcache leaves the idle I/O class, and each piece competes with a
returning request: in the lab that drained half as much, and the first request waited longer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from ebbgate.model.records import QueueSample
from ebbgate.policy.strategies import disk_cache, disk_cache_fill
from ebbgate.policy.strategies.disk_cache import DiskCache
from ebbgate.policy.strategies.disk_cache_fill import DiskCacheFill
from ebbgate.policy.strategies.drain_cap import FELT_MIN, MUCH, RECENT
from ebbgate.signals.gap_ends import ENDS_MIN, EndWindow, end_window, remember
from ebbgate.units import KIB, MIB, NS_PER_MS, NS_PER_S

RUN_OFF_NS_MIN: Final = 60 * NS_PER_MS
"""Samples of the queue come every 20 ms, and writes of a knob take some."""
RUN_OFF_NS_MAX: Final = NS_PER_S
"""What takes longer, a rest does not prevent: the rate must be lower."""
_MARGIN, _LONGER = 1.3, 1.5
_FORGET, _FORGET_HIDDEN = 0.9, 0.98
"""What the queue shows is measured in each gap; what a disk's cache hides is felt now and then."""
_FORGET_BEYOND: Final = 0.995
"""Where no rest is long enough: a gap that only a rest bounds is felt for a minute."""
HIDDEN_NS_MIN: Final = 250 * NS_PER_MS
"""Where the kernel knows of a write cache: a disk takes so long for 32 MiB of pieces in order. A
host hardly faster than the platters fills it too slowly for `disk_cache` to measure it, and before
a rest was long enough some gaps were felt (the lab's `gap-drain`).
"""
_EARLIER_MIN, _EARLIER_MAX = 1.25, 2.0
AHEAD_BYTES: Final = 2 * MIB
"""What is written beyond the rate before a rest. It comes on top of what is under way, and most of
it stays in a disk's cache: in the simulation 8 MiB made the bursts a twentieth slower.
"""
AHEAD_NS: Final = NS_PER_S // 2
"""And at most what the rate allows in this time."""
_LIKELY: Final = 0.75
"""Where fewer gaps end in the window, it may be one by chance, and a return comes before it."""
_DOUBLINGS_MAX: Final = 20.0
"""Beyond any disk, and not beyond a float."""
_BEHIND_NS: Final = 20 * NS_PER_MS
"""A sample ends a rest late by up to its period; without it a quarter of the rate was missed."""
_PAUSE_NS: Final = NS_PER_S
"""After so long without a sample, what was written meanwhile is not of this gap."""
SMALL_PIECE_BYTES: Final = 128 * KIB
"""Of such pieces any number may be under way: to bound them by time cost a third of the drain in
the lab, and no request was faster for it.
"""
UNDER_WAY_NS_MAX: Final = 40 * NS_PER_MS
"""Of larger ones no more than the disk does in this time, since a gap may always end now: bcache
has 64 pieces under way, which of 512 KiB take 0.3 s. When half of it is left the gate opens again,
so the disk hardly runs dry before the next sample.
"""


class Rest(StrEnum):
    """Why the gate is closed within a gap.

    It is likely to `end`; or the `rate` was too high, or too much was under way.
    """

    NONE = "none"
    END = "end"
    RATE = "rate"


@dataclass(frozen=True, slots=True)
class GapUse:
    """What is known of the present gap, and of those before it. Times are 0 where there is none.

    - `lengths_ns`: of recent gaps. `window`: when this one is likely to end, as idle times.
    - `opened_ns`: how long the gap had lasted when the gate opened.
    - `run_off_ns`: how long what is under way goes on after the gate has closed, with a margin.
    - `hidden_ns`: the part of it that no sample shows: the disk empties its own cache.
    - `hidden_ns_min`: the least of that.
    - `run_off_began_ns`: when a rest began whose run-off has not ended yet.
    - `foreseen`: the gate rested when the last gap ended. `was_short`: that gap was `short`.
    - `felt`: whether users felt the last gaps of this kind.
    - `last`: the last sample of the queue, of any gap.
    - `ahead_bytes`: how much more was written than the rate allows; negative: less.
    - `cache`: what the begin of gaps shows of the disk's own cache.
    - `fill`: what that holds now, where the gate does not fill it in each gap; None: not followed.
    """

    lengths_ns: tuple[int, ...] = ()
    window: EndWindow | None = None
    opened_ns: int = 0
    rest: Rest = Rest.NONE
    run_off_ns: int = 120 * NS_PER_MS
    hidden_ns: int = 0
    hidden_ns_min: int = 0
    run_off_began_ns: int = 0
    foreseen: bool = False
    was_short: bool = False
    felt: tuple[bool, ...] = ()
    last: QueueSample | None = None
    ahead_bytes: float = 0.0
    cache: DiskCache = field(default_factory=DiskCache)
    fill: DiskCacheFill | None = None

    @property
    def empty(self) -> bool:
        """Whether the gate rests before the end of the gap, and nothing is under way any more."""
        last = self.last
        return self.rest is Rest.END and last is not None and last.under_way_ios == 0

    @property
    def foreseeing(self) -> bool:
        """Whether the present gap hardly ends but after a rest in time."""
        window = self.window
        likely = window is not None and window.share >= _LIKELY
        return likely and self.run_off_ns < RUN_OFF_NS_MAX

    @property
    def short(self) -> bool:
        """Whether half of the present gap is too short for what a full disk cache needs."""
        window = self.window
        return self.fill is None and window is not None and _room_ns(self, window) < RUN_OFF_NS_MAX


def with_write_cache(use: GapUse, known: bool, opens_wide: bool = True) -> GapUse:
    """Return the state for disks of which the kernel knows that they have a write cache, or not.

    A gate that `opens_wide` fills it in each gap, so a rest of one length empties it.
    """
    least_ns = HIDDEN_NS_MIN if known and opens_wide else 0
    followed = known and not opens_wide
    if followed is (use.fill is None):
        use = replace(use, fill=DiskCacheFill() if followed else None)
    if least_ns == use.hidden_ns_min:
        return use
    return _hiding(replace(use, hidden_ns_min=least_ns), max(use.hidden_ns, least_ns))


def begin(use: GapUse, idle_ns: int, cost_ns: int, opens_wide: bool = True) -> GapUse:
    """Return the state for a gate that opens in a gap that has lasted `idle_ns`.

    Only where it `opens_wide`, or as far as a cache takes in, do completions show the disk's own
    cache, not the pace.
    """
    shown = opens_wide or use.fill is not None
    cache = disk_cache.begin(use.cache) if shown else use.cache
    use = replace(_without_rest(use), cache=cache, opened_ns=idle_ns)
    return replace(use, window=likely_end(use, idle_ns, cost_ns))


def end(use: GapUse, length_ns: int = 0) -> GapUse:
    """Return the state after a gap of this length; 0: it is unknown."""
    lengths_ns = remember(use.lengths_ns, length_ns) if length_ns > 0 else use.lengths_ns
    foreseen = use.rest is Rest.END and use.run_off_ns < RUN_OFF_NS_MAX
    short = use.short
    if foreseen and use.run_off_began_ns:
        # Something was still under way.
        use = replace(use, run_off_ns=min(RUN_OFF_NS_MAX, round(_LONGER * use.run_off_ns)))
    use = _cache_measured(_without_rest(use))
    if use.fill is not None:
        use = replace(use, fill=disk_cache_fill.end(use.fill))
    return replace(use, lengths_ns=lengths_ns, window=None, foreseen=foreseen, was_short=short)


def advance(
    use: GapUse, idle_ns: int, now_ns: int, cost_ns: int, done_ios_per_s: float = 0.0
) -> GapUse:
    """Begin the rest before the likely end of the gap, or end it if the gap has outlived that.

    `done_ios_per_s`: how fast the disk does what is under way; 0: unknown.
    """
    if use.window is not None and idle_ns >= use.window.until_ns:
        use = replace(use, window=likely_end(use, idle_ns, cost_ns))
        if use.rest is Rest.END:
            use = _without_rest(use)
    if use.window is None:
        return use
    if use.rest is Rest.END or idle_ns >= use.window.from_ns - _longer_ns(use, done_ios_per_s):
        return _rest(_cache_measured(use), Rest.END, now_ns)
    return use


def on_queue(
    use: GapUse,
    sample: QueueSample,
    cap_bytes_per_s: float | None,
    done_ios_per_s: float = 0.0,
    idle_ns: int = 0,
) -> GapUse:
    """Keep the mean rate below the cap (None: any rate), and measure the run-off at rest.

    `done_ios_per_s`: how fast the disk does what is under way; 0: that may be any number.
    `idle_ns`: how long the gap has lasted.
    """
    use = replace(use, last=sample, ahead_bytes=_ahead_bytes(use, sample, cap_bytes_per_s))
    use = replace(use, cache=_watched_cache(use, sample, cap_bytes_per_s is not None))
    if use.run_off_began_ns and sample.under_way_ios == 0:
        use = _measured(use, round(_MARGIN * (sample.at_ns - use.run_off_began_ns)))
    if use.rest is Rest.END:
        return use
    if (
        _too_fast(use, cap_bytes_per_s)
        or not _fits(use, sample, done_ios_per_s)
        or _holds_much(use, idle_ns)
    ):
        return _rest(use, Rest.RATE, sample.at_ns)
    return _without_rest(use) if use.rest is Rest.RATE else use


def judge(use: GapUse, felt_ratio: float) -> GapUse:
    """Let rests begin earlier if gaps are felt; `felt_ratio`: what was felt over the target.

    So much earlier that the disk has written what its own cache held, which no sample shows. Where
    that takes longer than RUN_OFF_NS_MAX the gap counts as not foreseen, and `drain_cap` lowers the
    rate. As there, one gap may be felt by chance. Where that is followed, less of it is let in.
    """
    if use.fill is not None and not use.foreseen:
        return replace(use, fill=disk_cache_fill.unforeseen(use.fill, felt_ratio > 1))
    felt = (*use.felt, felt_ratio > 1)[-RECENT:]
    if felt_ratio <= 1 or (sum(felt) < FELT_MIN and felt_ratio < MUCH):
        fill = disk_cache_fill.faster(use.fill) if use.fill and felt_ratio <= 1 else use.fill
        return replace(use, felt=felt, fill=fill)
    if use.fill is not None:
        return replace(use, felt=(), fill=disk_cache_fill.slower(use.fill, felt_ratio))
    factor = min(_EARLIER_MAX, max(_EARLIER_MIN, felt_ratio))
    longer_ns = round(factor * use.run_off_ns) - use.run_off_ns
    return _hiding(replace(use, felt=()), use.hidden_ns + longer_ns)


def follow(use: GapUse, sample: QueueSample, piece_bytes: float) -> GapUse:
    """Take in what the disk's own cache holds, before `on_queue`."""
    if use.fill is None:
        return use
    resting = use.rest is not Rest.NONE
    fill = disk_cache_fill.on_queue(use.fill, use.last, sample, piece_bytes, resting=resting)
    return replace(use, fill=fill)


def rarer(use: GapUse, idle_ns: int) -> float:
    """Return how much rarer returns have become in a gap that has lasted `idle_ns`; 1: not rarer.

    A return is one disturbance, however long the gap was. So in a gap that has outlived the recent
    ones (fewer than ENDS_MIN longer ones are chance) the cap doubles in the time that those took.
    """
    if not use.lengths_ns:
        return 1.0
    usual_ns = sorted(use.lengths_ns)[-min(ENDS_MIN, len(use.lengths_ns))]
    return math.exp2(min(_DOUBLINGS_MAX, max(0.0, idle_ns / usual_ns - 1)))


def likely_end(use: GapUse, idle_ns: int, cost_ns: int) -> EndWindow | None:
    """Return when a gap that has lasted `idle_ns` is likely to end; None if that is open.

    `cost_ns`: the drain time that a disturbed return is worth. What is under way delays it by at
    least the time that it takes. What the disk's own cache hides takes at most half of the gap.
    """
    window = end_window(use.lengths_ns, idle_ns, use.run_off_ns, cost_ns + use.run_off_ns)
    if window is None or use.fill is not None or use.run_off_ns <= _room_ns(use, window):
        return window
    rest_ns = max(use.run_off_ns - use.hidden_ns, _room_ns(use, window))
    return replace(window, from_ns=max(idle_ns, window.first_ns - rest_ns))


def ends_soon(use: GapUse, idle_ns: int, within_ns: int, cost_ns: int) -> bool:
    """Return whether a gap that has lasted `idle_ns` is likely to end `within_ns`."""
    window = likely_end(use, idle_ns, cost_ns)
    if window is None or window.share < _LIKELY:
        return False
    return idle_ns + within_ns >= window.from_ns


def _room_ns(use: GapUse, window: EndWindow) -> int:
    """Return the longest rest that leaves half of the gap for write-back."""
    return max(0, window.first_ns - use.opened_ns) // 2


def _longer_ns(use: GapUse, done_ios_per_s: float) -> int:
    """Return how much longer than usual what is under way now will go on."""
    if use.fill is not None:
        return max(0, use.fill.expected_ns + RUN_OFF_NS_MIN - use.run_off_ns)
    if use.last is None or done_ios_per_s <= 0:
        return 0
    expected_ns = round(use.last.under_way_ios / done_ios_per_s * NS_PER_S) + use.hidden_ns
    # The rate is one of a few pieces, so it may be low by chance.
    most_ns = min(RUN_OFF_NS_MAX, round(_LONGER * use.run_off_ns))
    return max(0, min(most_ns, expected_ns) - use.run_off_ns)


def _cache_measured(use: GapUse) -> GapUse:
    """Take in what the gap has shown of the disk's own cache, once."""
    if use.cache.closed:
        return use
    cache = disk_cache.close(use.cache)
    if use.fill is not None:
        fill = disk_cache_fill.calibrated(use.fill, cache.written_per_s, cache.empties_ns)
        return replace(use, fill=fill, cache=replace(cache, written_per_s=0.0))
    return _hiding(replace(use, cache=cache), max(use.hidden_ns, cache.empties_ns))


def _hiding(use: GapUse, hidden_ns: int) -> GapUse:
    run_off_ns = min(RUN_OFF_NS_MAX, use.run_off_ns + hidden_ns - use.hidden_ns)
    return replace(use, hidden_ns=hidden_ns, run_off_ns=run_off_ns)


def _rest(use: GapUse, rest: Rest, now_ns: int) -> GapUse:
    if use.rest is rest:
        return use
    if use.fill is not None and _longer_ns(use, 0):
        use = replace(use, fill=replace(use.fill, limited=True))
    # After another rest, part of what was under way has run off already.
    return replace(use, rest=rest, run_off_began_ns=now_ns if use.rest is Rest.NONE else 0)


def _without_rest(use: GapUse) -> GapUse:
    return replace(use, rest=Rest.NONE, run_off_began_ns=0)


def _measured(use: GapUse, ran_off_ns: int) -> GapUse:
    """Return the state after a run-off that took this long, a margin included."""
    forget = _FORGET_HIDDEN if use.hidden_ns < RUN_OFF_NS_MAX else _FORGET_BEYOND
    remembered_ns = round(forget * use.hidden_ns)
    empties_ns = use.cache.empties_ns if use.fill is None else 0
    hidden_ns = max(use.hidden_ns_min, empties_ns, remembered_ns)
    seen_ns = max(RUN_OFF_NS_MIN, ran_off_ns, round(_FORGET * (use.run_off_ns - use.hidden_ns)))
    run_off_ns = min(RUN_OFF_NS_MAX, seen_ns + hidden_ns)
    return replace(use, run_off_began_ns=0, run_off_ns=run_off_ns, hidden_ns=hidden_ns)


def _fits(use: GapUse, sample: QueueSample, done_ios_per_s: float) -> bool:
    """Return whether the disk does soon what is under way."""
    most_ns = UNDER_WAY_NS_MAX / (1 if use.rest is Rest.NONE else 2)
    return done_ios_per_s <= 0 or sample.under_way_ios * NS_PER_S <= done_ios_per_s * most_ns


def _watched_cache(use: GapUse, sample: QueueSample, capped: bool) -> DiskCache:
    if capped or (use.fill is not None and use.rest is Rest.RATE):
        return disk_cache.close(use.cache, usable=False)
    if use.rest is Rest.END:
        return use.cache
    if use.fill is None:
        return disk_cache.on_queue(use.cache, sample)
    # The kernel begins with dm-cache's write-back later than the gate opens.
    if use.fill.held_ns == 0 and not use.cache.points:
        return use.cache
    return disk_cache.on_queue(use.cache, sample, disk_cache.SLOW_STEP_NS)


def _holds_much(use: GapUse, idle_ns: int) -> bool:
    """Return whether the disk's own cache holds too much for a gap that may always end."""
    if use.fill is None or use.foreseeing:
        return False
    if use.rest is Rest.NONE:
        return use.fill.expected_ns > use.fill.most_ns * rarer(use, idle_ns)
    return use.fill.held_ns > 0


def _ahead_bytes(use: GapUse, sample: QueueSample, cap_bytes_per_s: float | None) -> float:
    last = use.last
    if cap_bytes_per_s is None or last is None:
        return 0.0
    passed_ns = max(0, sample.at_ns - last.at_ns)
    written = sample.done_bytes - last.done_bytes if passed_ns < _PAUSE_NS else 0
    ahead = use.ahead_bytes + max(0, written) - cap_bytes_per_s * passed_ns / NS_PER_S
    return max(ahead, -cap_bytes_per_s * _BEHIND_NS / NS_PER_S)


def _too_fast(use: GapUse, cap_bytes_per_s: float | None) -> bool:
    """Return whether more was written than the cap allows; at rest until the mean is below it."""
    if cap_bytes_per_s is None or use.rest is Rest.RATE:
        return use.ahead_bytes > 0
    return use.ahead_bytes > min(AHEAD_BYTES, cap_bytes_per_s * AHEAD_NS / NS_PER_S)

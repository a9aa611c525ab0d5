# SPDX-License-Identifier: GPL-2.0-only
"""How much destage may be under way, where the cache driver bounds a number and not a rate. Pure.

dm-cache begins another block as soon as one is done, up to `migration_threshold`. So the number is
the gate, and what a returning request waits for is the number over the pace of the disk:

    depth = clamp(completions per second * target, 1, depth_max)

Stock lets 16 blocks of 64 KiB go at once, for which a first request waits 140 ms. A few blocks
drain nearly as much, since smq's order is not the disk's and the disk seeks for each of them. While
a gap is sure to go on (signals.gaps.sure_ns), more may be under way, so that the disk has something
to sort; it is let run off in time.
"""

from __future__ import annotations

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.records import QueueSample
from ebbgate.policy.strategies.pace_state import PaceParams, PaceState
from ebbgate.units import NS_PER_MS, NS_PER_S

DEPTH_WIDE_IOS = 32
"""As many as are ever let go at once; more drain no faster."""
_START_IOS = 4
"""Before anything was measured: what a disk of 8 ms a piece does in 32 ms."""
_WIDER = 3
"""Beyond this a disk hardly drains more: 130 blocks a second at 4, 140 at 8, 160 at 64."""
_MARGIN_NS = 60 * NS_PER_MS
"""For the sample that is late, and for the estimate of the gaps."""


def opened(state: PaceState, now_ns: int, params: PaceParams) -> Gate:
    """The gate at this moment, with nothing known to be under way."""
    return _gate(state, now_ns, 0, params)


def stepped(state: PaceState, sample: QueueSample, params: PaceParams) -> Gate:
    """The gate after a sample of the queue."""
    return _gate(state, sample.at_ns, sample.under_way_ios, params)


def narrow_ios(state: PaceState, params: PaceParams) -> int:
    """What the disk does in the time that a returning request may wait."""
    if state.completions_per_s <= 0:
        return _START_IOS
    wished = state.completions_per_s * params.target_ns / NS_PER_S
    return int(min(params.depth_max_ios, max(params.depth_min_ios, wished)))


def _gate(state: PaceState, now_ns: int, under_way_ios: int, params: PaceParams) -> Gate:
    narrow = narrow_ios(state, params)
    wide = min(int(params.depth_wide_ios), _WIDER * narrow)
    if state.completions_per_s <= 0 or wide <= narrow:
        return Gate(GateKind.PACED, depth_ios=narrow)
    run_off_ns = max(wide, under_way_ios) / state.completions_per_s * NS_PER_S + _MARGIN_NS
    sure = now_ns + run_off_ns < state.likely_until_ns
    return Gate(GateKind.PACED, depth_ios=wide if sure else narrow)

# SPDX-License-Identifier: GPL-2.0-only
"""How fast to destage: feedback that keeps the backing device's queue at a target. Pure.

It is used under load and, on dm-cache, in gaps; in the gaps of bcache the gate is open (`gap_use`).
A returning request waits for whatever destage has under way, so the *time* that this takes must be
bounded, not a rate: one rate is too high for scattered pieces and too low for contiguous ones.
Under way are pieces being read from the cache, pieces that were read and wait for their turn, and
pieces queued at the disk: up to 64, of which the disk's queue may show a third. By Little's law L
pieces that complete at lambda per second take W = L / lambda. At each sample of the probe:

    L* = clamp(lambda * target, depth_min, depth_max)
    rate = throughput * (1 + gain * (L* - L) / L*)

At the target the rate equals what the disk completes, so the disk never idles. Below it the rate
grows by up to `gain` per sample; above it the rate falls just as fast.

**bcache** (drivers/md/bcache/util.c, bch_next_delay): a pass at a low rate puts the next pass up to
2.5 s off, and no higher rate brings it forward. So under load write-back may begin that much later.

**dm-cache** limits a number of blocks, `migration_threshold`, and starts another block as soon as
one is done. That number is the gate:

    depth = clamp(lambda * target, 1, depth_max)

By default 16 blocks of 64 KiB go at once, and a first request waits 140 ms for them. A few blocks
drain nearly as much, because smq's order is not the disk's and the disk seeks for each block. While
the gap is likely to last (signals.gaps), more may be under way, so that the disk can sort; the
depth is reduced in time for them to complete before the gap is likely to end. Where the end of the
gap is foreseen, the gate rests before it, so until then 32 may be under way on a deep queue: in the
lab that drained twice as much. While that end is far, up to 512 may be, as many as take a third
of the time that is left: the scheduler sorts them (knob nr_requests).
"""

from __future__ import annotations

from dataclasses import replace

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.records import QueueSample
from ebbgate.policy.strategies.pace_state import CLOSED, PaceParams, PaceState, ThrottleKind
from ebbgate.units import MIB, NS_PER_MS, NS_PER_S

_KEEP, _KEEP_DRY = 0.7, 0.97
"""Weight of what was learned before, against a new window."""
DEPTH_WIDE_IOS = 32
"""The most blocks at once where the end of the gap is not foreseen, and the least where it is."""
DEPTH_SORTED_IOS = 512
"""In the model of a disk 32 blocks drain 1.2 times what 16 do, 512 nearly twice as much."""
_SORTED_BYTES_MAX = 32 * MIB
"""dm-kcopyd holds as much memory."""
_LEFT_SHARE = 3
_DEPTH_START_IOS = 4
"""Before anything was measured: what a disk of 8 ms a piece does in 32 ms."""
_WIDER = 3
"""Beyond this a disk hardly drains more: 130 blocks a second at 4, 140 at 8, 160 at 64."""
_RUN_OFF_MARGIN_NS = 60 * NS_PER_MS
"""For a late sample, and for the error of the estimate."""


def begin(state: PaceState, now_ns: int, params: PaceParams, likely_until_ns: int = 0) -> PaceState:
    """Open the gate at the pace that the disk kept last time."""
    state = replace(state, likely_until_ns=likely_until_ns)
    rate = _clamp_rate(state.throughput_bytes_per_s or params.rate_start_bytes_per_s, params)
    gate = Gate(GateKind.PACED, rate)
    if params.throttle is ThrottleKind.DEPTH:
        gate = _depth_gate(state, now_ns, 0, params)
    return replace(state, window_start=None, gate=gate)


def step(state: PaceState, sample: QueueSample, params: PaceParams) -> PaceState:
    """Take a sample of the queue in and set the new gate."""
    state = measure(state, sample, params)
    if params.throttle is ThrottleKind.DEPTH:
        return replace(state, gate=_depth_gate(state, sample.at_ns, sample.under_way_ios, params))
    in_flight = sample.under_way_ios
    target = depth_target_ios(state, params)
    throughput = state.throughput_bytes_per_s or params.rate_start_bytes_per_s
    wanted = throughput * (1 + params.gain * max(-1.0, (target - in_flight) / target))
    rate = _clamp_rate(wanted, params)
    return replace(state, gate=Gate(GateKind.PACED, rate))


def end(state: PaceState) -> PaceState:
    """Close the gate and keep what was learned of the disk."""
    return replace(state, window_start=None, gate=CLOSED)


def depth_target_ios(state: PaceState, params: PaceParams) -> float:
    """Return how many destage writes in flight take `target_ns` to complete."""
    wanted = state.completions_per_s * params.target_ns / NS_PER_S
    return min(params.depth_max_ios, max(params.depth_min_ios, wanted))


def measure(state: PaceState, sample: QueueSample, params: PaceParams) -> PaceState:
    """Learn from a sample how fast the disk takes write-back, and in pieces of what size."""
    start = state.window_start
    dry = sample.in_flight_ios == 0
    if start is None or sample.done_ios < start.done_ios:
        return replace(state, window_start=sample, window_dry=dry)
    span_ns = sample.at_ns - start.at_ns
    if span_ns < params.window_ns:
        return replace(state, window_dry=True) if dry and not state.window_dry else state
    ios = (sample.done_ios - start.done_ios) * NS_PER_S / span_ns
    per_s = (sample.done_bytes - start.done_bytes) * NS_PER_S / span_ns
    # A disk that ran dry could have done more: such a window may raise the figures but lowers them
    # only slowly. Otherwise late samples would make the disk look as slow as they are.
    keep = _KEEP_DRY if dry or state.window_dry else _KEEP
    ios_old, per_s_old = state.completions_per_s, state.throughput_bytes_per_s
    if ios == 0:
        ios, per_s = ios_old, per_s_old
    elif ios_old == 0 or (keep == _KEEP_DRY and ios > ios_old):
        ios_old, per_s_old = ios, per_s
    return replace(
        state,
        window_start=sample,
        window_dry=dry,
        completions_per_s=keep * ios_old + (1 - keep) * ios,
        throughput_bytes_per_s=keep * per_s_old + (1 - keep) * per_s,
    )


def _clamp_rate(rate: float, params: PaceParams) -> int:
    return int(min(params.rate_max_bytes_per_s, max(params.rate_min_bytes_per_s, rate)))


def _depth_gate(state: PaceState, now_ns: int, under_way_ios: int, params: PaceParams) -> Gate:
    if params.foreseen:
        narrow = wide = sorted_ios(state, now_ns, params)
    else:
        narrow = narrow_ios(state, params)
        wide = min(int(params.depth_wide_ios), _WIDER * narrow)
    # What the highest rate keeps under way, by the same law.
    most = params.rate_max_bytes_per_s * params.target_ns / NS_PER_S / state.piece_bytes
    narrow, wide = (max(1, min(each, int(most))) for each in (narrow, wide))
    if state.completions_per_s <= 0 or wide <= narrow:
        return Gate(GateKind.PACED, depth_ios=narrow)
    run_off_ns = max(wide, under_way_ios) / state.completions_per_s * NS_PER_S + _RUN_OFF_MARGIN_NS
    lasts = now_ns + run_off_ns < state.likely_until_ns
    return Gate(GateKind.PACED, depth_ios=wide if lasts else narrow)


def sorted_ios(state: PaceState, now_ns: int, params: PaceParams) -> int:
    """Return how many blocks may be under way while the end of the gap is foreseen.

    Each step is half of the one before, since each is a message to the kernel.
    """
    least = int(params.depth_wide_ios)
    left_ns = max(0, state.likely_until_ns - now_ns)
    fitting = state.completions_per_s * left_ns / NS_PER_S / _LEFT_SHARE
    depth = int(min(params.depth_sorted_ios, _SORTED_BYTES_MAX / state.piece_bytes))
    while depth > max(least, fitting):
        depth //= 2
    return max(least, depth)


def narrow_ios(state: PaceState, params: PaceParams) -> int:
    """Return how many blocks the disk completes in the time that a returning request may wait."""
    if state.completions_per_s <= 0:
        return _DEPTH_START_IOS
    return int(depth_target_ios(state, params))

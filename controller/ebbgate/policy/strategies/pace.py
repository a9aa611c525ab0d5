# SPDX-License-Identifier: GPL-2.0-only
"""How fast to destage: a feedback that holds the backing device's queue at a target. Pure.

A returning request waits for whatever destage has under way, so what must be bounded is the *time*
that it stands for, not a rate: the same rate is too much for scattered pieces and too little for
contiguous ones. Under way are the pieces that are read from the cache, those that were read and
wait for their turn, and those queued at the disk: up to 64, of which the disk's queue may show a
third. By Little's law L pieces that complete at lambda per second stand for W = L / lambda. The law
of this module, at each sample of the probe:

    L* = clamp(lambda * target, depth_min, depth_max)
    rate = throughput * (1 + gain * (L* - L) / L*)

At the target the rate equals what the disk completes, so the disk never idles; below it the rate
grows by up to `gain` per sample, above it it falls just as fast.

bcache has one more trap (drivers/md/bcache/util.c, bch_next_delay): a pass at a low rate pushes the
time of the next pass up to 2.5 s ahead, and no rate written later takes that back. Only
writeback_percent = 0, which skips the rate limit and uses the idle I/O class, gets the thread
going. So a paced gate whose queue stays empty is *asleep*: it gets pulses of writeback_percent = 0,
each as long as the last one suggests for half of the target, until the thread moves by itself
again. The pass that lies ahead is not pushed further meanwhile, since the rate stays high.
"""

from __future__ import annotations

from dataclasses import replace

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.records import QueueSample
from ebbgate.policy.strategies import pace_depth
from ebbgate.policy.strategies.pace_state import CLOSED, PaceParams, PaceState, ThrottleKind
from ebbgate.units import NS_PER_MS, NS_PER_S

_KEEP, _KEEP_DRY = 0.7, 0.97
"""What a window leaves of the figures learned before."""


_HONOURS_CLASSES = frozenset({"mq-deadline", "bfq"})
_CLASSED_TARGET_NS = 36 * NS_PER_MS


def params_for(scheduler: str | None) -> PaceParams:
    """The pace for a backing device under this I/O scheduler (None: unknown).

    Destage through an open gate is in the idle class (bcache does so at writeback_percent 0). A
    scheduler that honours classes serves a returning request before all of that which still waits
    in it, so more may be in flight; `none` and kyber serve it after.
    """
    if scheduler in _HONOURS_CLASSES:
        return PaceParams(target_ns=_CLASSED_TARGET_NS)
    return PaceParams()


def begin(state: PaceState, now_ns: int, params: PaceParams, likely_until_ns: int = 0) -> PaceState:
    """Open the gate at the pace that the disk kept last time.

    `likely_until_ns`: until when the gap will most likely last.
    """
    state = replace(state, likely_until_ns=likely_until_ns)
    rate = _clamp_rate(state.throughput_bytes_per_s or params.rate_start_bytes_per_s, params)
    gate = Gate(GateKind.PACED, rate)
    if params.throttle is ThrottleKind.DEPTH:
        gate = pace_depth.opened(state, now_ns, params)
    return replace(
        state,
        window_start=None,
        last_busy_ns=now_ns,
        asleep=False,
        started_ios=0,
        sampled_ns=0,
        gate=gate,
    )


def step(state: PaceState, sample: QueueSample, params: PaceParams) -> PaceState:
    """One sample of the queue: the new gate is in the state."""
    state = _measure(state, sample, params)
    if params.throttle is ThrottleKind.DEPTH:
        return replace(state, gate=pace_depth.stepped(state, sample, params))
    state = _watch_thread(state, sample, params)
    in_flight = sample.under_way_ios
    target = depth_target_ios(state, params)
    throughput = state.throughput_bytes_per_s or params.rate_start_bytes_per_s
    wished = throughput * (1 + params.gain * max(-1.0, (target - in_flight) / target))
    rate = _clamp_rate(wished, params)
    if state.asleep and in_flight <= max(target / 2, _until_next_ios(state)):
        return replace(state, gate=Gate(GateKind.PULSED, rate, state.pulse_ns))
    if state.asleep:
        rate = max(rate, _clamp_rate(throughput, params))
    return replace(state, gate=Gate(GateKind.PACED, rate))


def _watch_thread(state: PaceState, sample: QueueSample, params: PaceParams) -> PaceState:
    """Is the kernel's thread asleep, and what did the last pulse start?"""
    in_flight = sample.under_way_ios
    started = sample.done_ios + in_flight
    fresh = started - state.started_ios if state.started_ios else 0
    period_ns = state.period_ns
    if state.sampled_ns:
        period_ns = round(0.8 * period_ns + 0.2 * (sample.at_ns - state.sampled_ns))
    state = replace(
        state,
        started_ios=started,
        last_busy_ns=sample.at_ns if in_flight > 0 else state.last_busy_ns,
        sampled_ns=sample.at_ns,
        period_ns=period_ns,
    )
    if state.asleep and state.gate.kind is GateKind.PULSED:
        # What a pulse starts must last until the next one, however late this controller comes.
        wished = depth_target_ios(state, params) / 2 + _until_next_ios(state)
        enough = fresh > 0 and in_flight > 0
        scale = min(2.0, max(0.25, wished / fresh)) if enough else 2.0
        pulse = min(params.pulse_max_ns, max(params.pulse_min_ns, round(state.pulse_ns * scale)))
        return replace(state, pulse_ns=pulse)
    if state.asleep and fresh > 0:
        return replace(state, asleep=False)
    if not state.asleep and sample.at_ns - state.last_busy_ns >= params.starved_ns:
        return replace(state, asleep=True, pulse_ns=state.pulse_ns or params.pulse_min_ns)
    return state


def _until_next_ios(state: PaceState) -> float:
    """What the disk completes between two samples."""
    return state.completions_per_s * state.period_ns / NS_PER_S


def samples_above_ios(state: PaceState, params: PaceParams) -> int | None:
    """A queue that stays shallow though the gate is as good as open is no news; None: all is.

    Then the kernel's thread is what limits, and each look costs it processor time. In powers of
    two, since the depth that is aimed at moves a little all the time.
    """
    if state.gate.kind is not GateKind.PULSED or state.pulse_ns < params.pulse_max_ns:
        return None
    return 1 << int(depth_target_ios(state, params)).bit_length() - 1


def end(state: PaceState) -> PaceState:
    """Close the gate, keeping what was learned of the disk."""
    return replace(state, window_start=None, gate=CLOSED)


def depth_target_ios(state: PaceState, params: PaceParams) -> float:
    """The number of destage writes in flight that takes `target_ns` to complete."""
    wished = state.completions_per_s * params.target_ns / NS_PER_S
    return min(params.depth_max_ios, max(params.depth_min_ios, wished))


def _measure(state: PaceState, sample: QueueSample, params: PaceParams) -> PaceState:
    start = state.window_start
    dry = sample.in_flight_ios == 0
    if start is None or sample.done_ios < start.done_ios:
        return replace(state, window_start=sample, window_dry=dry)
    span_ns = sample.at_ns - start.at_ns
    if span_ns < params.window_ns:
        return replace(state, window_dry=True) if dry and not state.window_dry else state
    ios = (sample.done_ios - start.done_ios) * NS_PER_S / span_ns
    per_s = (sample.done_bytes - start.done_bytes) * NS_PER_S / span_ns
    # A disk that ran dry could have done more: such a window may raise the figures, and lowers
    # them only slowly. Otherwise a controller that comes late would learn a disk as slow as itself.
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

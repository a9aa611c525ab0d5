# SPDX-License-Identifier: GPL-2.0-only
"""When to destage: normal, wait, destage, and a pressure path. Pure.

Based on Nishina et al., dm-ssd: destage is held back while requests come, starts after some idle
time and stops at the first arrival. Here the idle time is learned (signals.gaps), the gate rests
before the likely end of a gap (gap_use), and dirty data also goes out if no gap comes (pace).

    normal    too little dirty data to write back
    wait      dirty data, and users are active: the gate is closed
    destage   an idle gap: the gate is open, with rests, until a request arrives or all is clean
    pressure  no gap came and dirty data must go: paced at a shallow queue, under load
    unknown   a signal is missing: the kernel's own settings apply
"""

from __future__ import annotations

from dataclasses import replace

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.frame import Frame
from ebbgate.model.records import Edge, EdgeKind, QueueSample
from ebbgate.policy.strategies import (
    calm_time,
    collect_garbage,
    disk_cache_fill,
    disk_queue,
    felt_gap,
    gap_use,
    head_return,
    pace,
    pressure,
    sweep,
)
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.policy.strategies.drain_cap import DrainCap
from ebbgate.policy.strategies.gap_use import Rest
from ebbgate.policy.strategies.pace_state import PaceParams, ThrottleKind
from ebbgate.signals.gaps import Wait, learn_wait, likely_until_ns
from ebbgate.units import NS_PER_MS, NS_PER_S, SECTOR_BYTES

_LEARN_INTERVAL_NS = NS_PER_S
"""The wait is learned from many gaps, so not at every tick."""
_REST_LEAK_NS = 100 * NS_PER_MS
"""One piece per this time while a rest keeps a rate."""
_UNKNOWN_NS_MAX = 60 * NS_PER_S
"""After so long without signals the kernel may have written back what waited."""
_AT_ONCE_IOS = 128
"""bcache has 64 pieces under way at once: at a limit of so many in a second they are half of it."""


def gate_of(state: DestageState, params: DestageParams) -> Gate:
    """Return the gate for the phase."""
    if state.phase is Phase.UNKNOWN:
        return Gate(GateKind.RELEASED)
    if state.phase is Phase.PRESSURE:
        return state.pace.gate
    if state.phase is not Phase.DESTAGE:
        depth = params.queue_depth if state.shallow_until_ns else 0
        return Gate(GateKind.CLOSED, _leak_bytes_per_s(state, params), queue_depth=depth)
    depth = params.queue_depth if _queue_is_short(state, params) else 0
    if state.resting:
        return Gate(GateKind.RESTING, _leak_bytes_per_s(state, params), queue_depth=depth)
    if _opens_wide(params):
        return Gate(GateKind.OPEN, mean_rate_max(state, params) or 0, queue_depth=depth)
    return replace(state.pace.gate, queue_depth=depth)


def _queue_is_short(state: DestageState, params: DestageParams) -> bool:
    """Return whether the disks take few requests at once now.

    Parallel reads need the deep queue at once when they return. The blocks of dm-cache come in an
    order that only a disk with many of them can sort, so a deep queue drains twice as much; in a
    gap whose end is foreseen nobody waits for them.
    """
    sorts = state.gap.foreseeing and not _opens_wide(params)
    return state.shallow and not state.gap.empty and not sorts


def _opens_wide(params: DestageParams) -> bool:
    """Return whether a gap needs no pace: dm-cache's destage has no idle I/O class."""
    return params.pace.throttle is ThrottleKind.RATE


def on_edge(state: DestageState, edge: Edge, params: DestageParams) -> DestageState:
    """Handle an edge: the fast path."""
    if edge.at_ns < state.edge_at_ns:
        return state
    state = replace(
        state,
        idle=edge.kind is EdgeKind.IDLE,
        edge_at_ns=edge.at_ns,
        idle_since_ns=edge.at_ns - edge.length_ns,
    )
    if not state.idle:
        state = replace(state, gap_end_ns=edge.at_ns)
        return _end_gap(state, edge.at_ns, params, edge.length_ns)
    if state.phase in (Phase.WAIT, Phase.PRESSURE) and not _left_alone(state, edge.at_ns):
        needed_ms = state.wait.wait_ns // NS_PER_MS
        why = f"idle for {edge.length_ns // NS_PER_MS} ms (needs {needed_ms})"
        return _drain(state, edge.at_ns, why, params)
    return state


def on_queue(state: DestageState, sample: QueueSample, params: DestageParams) -> DestageState:
    """Handle a sample of the backing device's queue: the fast path of rests and of the pace."""
    if state.shallow_until_ns:
        return _watch_residue(state, sample.at_ns, sample.under_way_ios)
    if not state.pacing:
        return state
    if state.phase is Phase.DESTAGE:
        gap = gap_use.follow(state.gap, sample, state.pace.piece_bytes)
        state = _use_gap(replace(state, gap=gap), sample.at_ns, params)
        cap = _cap(state, sample.at_ns, params) if _opens_wide(params) else None
        # dm-cache's pace bounds what is under way, and bfq lets a returning request pass it.
        any_depth = state.shallow or state.gap.foreseeing or not _opens_wide(params)
        any_depth = any_depth or state.pace.piece_bytes <= gap_use.SMALL_PIECE_BYTES
        speed = 0.0 if any_depth else state.pace.completions_per_s
        gap = gap_use.on_queue(state.gap, sample, cap, speed, sample.at_ns - state.idle_since_ns)
        state = _with_head(replace(state, gap=gap), sample.at_ns, params)
        if state.resting or _opens_wide(params):
            return replace(state, pace=pace.measure(state.pace, sample, params.pace))
    return replace(
        state, pace=pace.step(state.pace, sample, _pace_params(state, sample.at_ns, params))
    )


def on_frame(
    state: DestageState, frame: Frame, params: DestageParams, why_not: str = ""
) -> DestageState:
    """Handle a tick with all signals. `why_not`: why nothing can be tuned now."""
    if unknown := why_not or _unknown(frame):
        state = replace(state, head=head_return.forget(state.head))
        if state.phase is Phase.UNKNOWN:
            return replace(state, why=unknown)
        return _enter(state, Phase.UNKNOWN, frame.at_ns, unknown)
    if frame.probed_at_ns is not None and frame.probed_at_ns > state.edge_at_ns:
        idle_since_ns = frame.at_ns - (frame.idle_ns or 0)
        if state.idle and not frame.idle:
            state = replace(state, gap_end_ns=frame.at_ns)
        state = replace(state, idle=bool(frame.idle), idle_since_ns=idle_since_ns)
    state = _with_wait(state, frame, params)
    state = _with_queue(state, frame, params)
    state = _with_cap(state, frame, params)
    if state.phase is Phase.DESTAGE:
        state = _use_gap(state, frame.at_ns, params)
        # The longer the gap has lasted, the more is known about its rest.
        likely = _likely_until_ns(state, frame.at_ns, params)
        if likely != state.pace.likely_until_ns:
            state = replace(state, pace=replace(state.pace, likely_until_ns=likely))
    state = collect_garbage.on_frame(_transition(state, frame, params), frame, params)
    return _with_head(state, frame.at_ns, params)


def _with_queue(state: DestageState, frame: Frame, params: DestageParams) -> DestageState:
    shallow = params.queue_depth > 0 and disk_queue.holds_back(frame)
    if shallow != state.shallow:
        state = replace(state, shallow=shallow)
    gap = gap_use.with_write_cache(state.gap, frame.disk_write_cache, _opens_wide(params))
    if gap is not state.gap:
        state = replace(state, gap=gap)
    if not state.shallow_until_ns:
        return state
    fresh = frame.probed_at_ns is not None and frame.probed_at_ns > state.edge_at_ns
    return _watch_residue(state, frame.at_ns, frame.destage_in_flight_ios if fresh else None)


def _with_cap(state: DestageState, frame: Frame, params: DestageParams) -> DestageState:
    target_ns, found = params.disturbance_ns, frame.disturbance
    if target_ns is None:
        return state if state.cap == DrainCap() else replace(state, cap=DrainCap())
    return state if found is None else felt_gap.judge(state, found, target_ns, frame.at_ns)


def _with_head(state: DestageState, now_ns: int, params: DestageParams) -> DestageState:
    """Have the disks' heads brought back once the write-back of a gap is over."""
    idle = state.idle and params.head_return > 0
    drains = state.phase is Phase.DESTAGE and not state.resting
    over = state.gap.empty or state.phase is Phase.NORMAL
    head = head_return.follow(state.head, state.gap, now_ns, idle=idle, drains=drains, over=over)
    return state if head is state.head else replace(state, head=head)


def mean_rate_max(state: DestageState, params: DestageParams) -> int | None:
    """Return the limit that rests keep; None: there is none, or one so low that only a pace can."""
    limit = params.mean_rate_max_bytes_per_s
    low = limit is None or limit < _AT_ONCE_IOS * state.pace.piece_bytes
    return None if low else limit


def _cap(state: DestageState, now_ns: int, params: DestageParams) -> float | None:
    """Return the highest mean rate at this time of the gap; None: any."""
    most, felt = mean_rate_max(state, params), state.cap.bytes_per_s
    if felt is None or (state.gap.foreseeing and not state.gap.short):
        return most
    felt *= gap_use.rarer(state.gap, now_ns - state.idle_since_ns)
    return felt if most is None else min(felt, most)


def _use_gap(state: DestageState, now_ns: int, params: DestageParams) -> DestageState:
    idle_ns, cost_ns = now_ns - state.idle_since_ns, params.wait.disturbance_cost_ns
    speed = state.pace.completions_per_s
    return replace(state, gap=gap_use.advance(state.gap, idle_ns, now_ns, cost_ns, speed))


def _watch_residue(state: DestageState, now_ns: int, under_way_ios: int | None) -> DestageState:
    """Let the queues go back once what the gap has left is on the disk, or after a bounded time.

    Earlier all of it would fall into the disk at once.
    """
    if under_way_ios == 0 or now_ns >= state.shallow_until_ns:
        return replace(state, shallow_until_ns=0)
    return state


def _end_gap(
    state: DestageState, now_ns: int, params: DestageParams, length_ns: int = 0
) -> DestageState:
    """Close the gate after a gap of this length; 0: it is unknown."""
    left_over = state.shallow and not state.gap.empty
    state = replace(state, gap=gap_use.end(state.gap, length_ns))
    if state.phase is not Phase.DESTAGE:
        return state
    state = _enter(state, Phase.WAIT, now_ns, "a request arrived")
    return replace(state, shallow_until_ns=now_ns + params.shallow_ns_max if left_over else 0)


def _transition(state: DestageState, frame: Frame, params: DestageParams) -> DestageState:
    dirty = frame.dirty_bytes or 0
    if dirty == 0:
        if state.phase is Phase.NORMAL:
            return replace(state, waiting_since_ns=0) if state.waiting_since_ns else state
        state = _enter(state, Phase.NORMAL, frame.at_ns, "nothing is dirty")
        return replace(state, waiting_since_ns=0)
    if state.phase in (Phase.UNKNOWN, Phase.NORMAL):
        floor = start_bytes(frame, params)
        if dirty < floor and not _overdue(state, frame, params):
            return _stay_normal(state, frame)
        state = _enter(state, Phase.WAIT, frame.at_ns, "dirty data waits for an idle gap")
    if state.idle and state.phase is not Phase.DESTAGE:
        left_alone = _left_alone(state, frame.at_ns)
        drained = _drain(state, frame.at_ns, "the volume is idle", params)
        return replace(state, why=calm_time.WHY) if left_alone else drained
    if state.phase is Phase.DESTAGE and not state.idle:
        # The edge was lost.
        state = _end_gap(state, frame.at_ns, params)
    if state.phase is Phase.WAIT:
        due = pressure.reason(state, frame, params)
        if due:
            return _press(state, frame, due, params.pressure_pace)
    if state.phase is Phase.PRESSURE:
        state = replace(state, sweep=sweep.on_frame(state.sweep, frame))
        due = pressure.reason(state, frame, params)
        if due:
            # What is measured now, or another reason than that of the start.
            return state if due == state.why else replace(state, why=due)
        if frame.at_ns - state.since_ns >= params.pressure_min_ns:
            return _enter(state, Phase.WAIT, frame.at_ns, "no reason left to write back under load")
    return state


def _left_alone(state: DestageState, now_ns: int) -> bool:
    """Return whether dirty data waits although the volume is idle."""
    return state.phase is Phase.WAIT and calm_time.lasts(state.calm, now_ns)


def start_bytes(frame: Frame, params: DestageParams) -> int:
    """Return from how many dirty bytes a gap is used."""
    return max(params.start_bytes_min, int(params.start_ratio * (frame.cache_bytes or 0)))


def _unknown(frame: Frame) -> str:
    if frame.dirty_bytes is None:
        return f"the dirty level is unknown: {frame.missing.get('dirty_bytes', 'not in sysfs')}"
    if why_not := unsupported(frame):
        return why_not
    if frame.idle is None:
        return f"the load is unknown: {frame.missing.get('foreground', 'no record')}"
    return ""


def unsupported(frame: Frame) -> str:
    """Return why destage cannot be paced on this volume; empty if it can."""
    why_not = frame.missing.get("destage")
    return f"write-back cannot be followed here: {why_not}" if why_not else ""


def _with_wait(state: DestageState, frame: Frame, params: DestageParams) -> DestageState:
    if params.wait_ns is not None:
        fixed, counts = Wait(params.wait_ns, False, 0.0), frame.gap_counts
        if (state.wait, state.gap_counts) == (fixed, counts):
            return state
        # How long the present gap is likely to last follows from the gaps all the same.
        return replace(state, wait=fixed, gap_counts=counts)
    if state.learned_ns and frame.at_ns - state.learned_ns < _LEARN_INTERVAL_NS:
        return state
    wait = learn_wait(frame.gap_counts, params.wait)
    return replace(state, wait=wait, learned_ns=frame.at_ns, gap_counts=frame.gap_counts)


def _overdue(state: DestageState, frame: Frame, params: DestageParams) -> bool:
    """Return whether dirty data below the start level goes out, too: it is old, or fills the room.

    On bcache a start level above 40 % of the cache is never reached.
    """
    aged = 0 < state.waiting_since_ns <= frame.at_ns - params.age_max_ns
    return aged or pressure.little_room(frame, params.room_ratio_min)


def _stay_normal(state: DestageState, frame: Frame) -> DestageState:
    """Stay in or enter normal; the age of dirty data counts from now on."""
    if state.phase is not Phase.NORMAL:
        state = _enter(state, Phase.NORMAL, frame.at_ns, "too little dirty data to write back")
    if state.waiting_since_ns == 0:
        state = replace(state, waiting_since_ns=frame.at_ns)
    return state


def _enter(state: DestageState, phase: Phase, now_ns: int, why: str) -> DestageState:
    return replace(
        state,
        phase=phase,
        since_ns=now_ns,
        why=why,
        waiting_since_ns=_waiting_since_ns(state, phase, now_ns),
        shallow_until_ns=0,
        collect=False,
        pace=pace.end(state.pace),
    )


def _waiting_since_ns(state: DestageState, phase: Phase, now_ns: int) -> int:
    """Return since when dirty data waits, from this phase on; 0: it does not, or that is unknown.

    A snapshot suspends a volume for a moment, a new probe is silent for some: the time goes on.
    """
    since_ns = state.waiting_since_ns
    if state.phase is Phase.UNKNOWN:
        lost = now_ns - state.since_ns > _UNKNOWN_NS_MAX
        since_ns = 0 if lost else since_ns
    elif phase is Phase.NORMAL or state.phase is Phase.DESTAGE:
        since_ns = 0
    return now_ns if phase is Phase.WAIT and since_ns == 0 else since_ns


def _drain(state: DestageState, now_ns: int, why: str, params: DestageParams) -> DestageState:
    """Open the gate in a gap."""
    state = _enter(state, Phase.DESTAGE, now_ns, why)
    idle_ns, cost_ns = now_ns - state.idle_since_ns, params.wait.disturbance_cost_ns
    state = replace(state, gap=gap_use.begin(state.gap, idle_ns, cost_ns, _opens_wide(params)))
    likely = _likely_until_ns(state, now_ns, params)
    return replace(
        state, pace=pace.begin(state.pace, now_ns, _pace_params(state, now_ns, params), likely)
    )


def _likely_until_ns(state: DestageState, now_ns: int, params: DestageParams) -> int:
    since_ns, window = state.idle_since_ns, state.gap.window
    if window is not None:
        # The gate rests then anyway.
        return since_ns + window.from_ns + state.gap.run_off_ns
    return since_ns + likely_until_ns(state.gap_counts, now_ns - since_ns, params.likely_share)


def _press(state: DestageState, frame: Frame, why: str, params: PaceParams) -> DestageState:
    """Open the gate under load."""
    state = _enter(state, Phase.PRESSURE, frame.at_ns, why)
    swept = sweep.begin(state.sweep, frame)
    return replace(state, sweep=swept, pace=pace.begin(state.pace, frame.at_ns, params))


def _pace_params(state: DestageState, now_ns: int, params: DestageParams) -> PaceParams:
    if state.phase is not Phase.DESTAGE:
        return params.pressure_pace
    if state.gap.foreseeing:
        # The gate rests in time, so that any number may be under way until then.
        foreseen = replace(params.pace, foreseen=True)
        if state.gap.fill is None:
            return foreseen
        return replace(foreseen, depth_wide_ios=disk_cache_fill.DEPTH_IOS, depth_sorted_ios=0.0)
    cap = _cap(state, now_ns, params)
    if cap is None or cap >= params.pace.rate_max_bytes_per_s:
        return params.pace
    return replace(params.pace, rate_max_bytes_per_s=int(cap))


def _leak_bytes_per_s(state: DestageState, params: DestageParams) -> int:
    """Return what a gate lets through that is not open.

    When bcache's gate closes, its thread has a credit of 2 s of the new rate, and then sleeps for
    2.5 s at most (drivers/md/bcache/util.c, bch_next_delay). So the lowest rate lets one piece
    through, and one each 2.5 s; a piece per 0.1 s lets 20 through at once, for which users wait if
    they return. An open gate wakes the thread. A rest that keeps a rate has a higher one: for the
    large pieces of a disk with a write cache the simulation was calmer so in gaps of 2.5 s, and
    the same on average. With a depth as the gate nothing has to go through.
    """
    if params.pace.throttle is ThrottleKind.DEPTH:
        return 0
    if state.resting and state.gap.rest is Rest.RATE and state.pace.completions_per_s > 0:
        return round(state.pace.piece_bytes * NS_PER_S / _REST_LEAK_NS)
    return SECTOR_BYTES

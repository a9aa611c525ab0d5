# SPDX-License-Identifier: GPL-2.0-only
"""What follows from how users felt the write-back of a gap. Pure.

- Nobody knows what they felt: some gaps are left alone, to learn it (`calm_time`).
- The gate did not rest when they returned, or the gap was too short for a rest as long as a disk's
  cache needs: the rate is lowered or raised (`drain_cap`).
- The gate rested: such rests become longer (`gap_use`).
"""

from __future__ import annotations

from dataclasses import replace

from ebbgate.model.frame import Disturbance
from ebbgate.policy.strategies import calm_time, drain_cap, gap_use
from ebbgate.policy.strategies.destage_state import DestageState


def judge(state: DestageState, found: Disturbance, target_ns: int, now_ns: int) -> DestageState:
    """Take in a gap; the same state for one that was taken in before."""
    calm = calm_time.judge(state.calm, found, now_ns)
    state = state if calm is state.calm else replace(state, calm=calm)
    cap = drain_cap.judge(state.cap, found, target_ns, now_ns)
    if cap is state.cap:
        return state
    gap, followed = state.gap, state.gap.fill is not None
    if followed or (gap.foreseen and not gap.was_short):
        # Nothing was under way, or it is followed, so that rate says nothing about other gaps.
        cap = replace(state.cap, judged_gap_ns=cap.judged_gap_ns)
    state = replace(state, cap=cap)
    if found.felt_ns is None or not (followed or gap.foreseen):
        return state
    return replace(state, gap=gap_use.judge(gap, found.felt_ns / max(1, target_ns)))

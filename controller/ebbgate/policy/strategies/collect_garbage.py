# SPDX-License-Identifier: GPL-2.0-only
"""When bcache is asked to collect garbage: many drained buckets still count as in use. Pure."""

from __future__ import annotations

from dataclasses import replace

from ebbgate.model.frame import Frame
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase


def on_frame(state: DestageState, frame: Frame, params: DestageParams) -> DestageState:
    """Request a garbage collection once many drained buckets still count as in use.

    The kernel's cutoffs compare in_use, which falls only at a collection, and the kernel starts one
    only after 1/16 of the cache was written. Until then a drained cache absorbs no burst.
    """
    least = params.gc_ratio
    if least is None or frame.in_use_ratio is None or frame.dirty_ratio is None:
        return replace(state, collect=False) if state.collect else state
    peak = max(state.peak_ratio, frame.dirty_ratio)
    due = (
        state.idle
        and state.phase in (Phase.NORMAL, Phase.DESTAGE)
        and frame.in_use_ratio - frame.dirty_ratio >= least
        and peak - frame.dirty_ratio >= least
        and frame.at_ns - state.collected_at_ns >= params.gc_interval_ns
    )
    if due:
        return replace(
            state, collect=True, collected_at_ns=frame.at_ns, peak_ratio=frame.dirty_ratio
        )
    if (state.collect, state.peak_ratio) == (False, peak):
        return state
    return replace(state, collect=False, peak_ratio=peak)

# SPDX-License-Identifier: GPL-2.0-only
"""Builds the status of promote_hot for people. Pure."""

from __future__ import annotations

from heapq import nlargest
from typing import Final

from ebbgate.model.heat import CHUNK_BYTES
from ebbgate.model.promotion import (
    HotChunk,
    HotGroup,
    MoverStatus,
    PromotionStatus,
)
from ebbgate.policy.engine import PromoteState

_CHUNKS_MAX: Final = 32


def promotion_status(state: PromoteState, mover: MoverStatus, reason: str) -> PromotionStatus:
    """Return the status. `reason`: of the strategy's proposal."""
    plan, benefit = state.plan, state.benefit
    measured = benefit.last is not None
    held_out = sum(each.held_out for each in plan.listed.values())
    return PromotionStatus(
        phase=str(state.phase),
        reason=reason,
        mover=mover.state,
        mover_why=mover.why,
        moved_bytes=mover.moved_chunks * CHUNK_BYTES,
        failed_bytes=mover.failed_chunks * CHUNK_BYTES,
        busy_ns=mover.busy_ns,
        time_share=state.share.share,
        pending_bytes=len(plan.promotion.chunks) * CHUNK_BYTES if plan.promotion else 0,
        held_out_bytes=held_out * CHUNK_BYTES,
        saved_ns=benefit.total_gain_ns if measured else None,
        saved_error_ns=benefit.total_error_ns if measured else None,
        cost_ns=benefit.total_cost_ns if measured else None,
        write_budget_left_bytes=state.budget.left_bytes,
        other_promotions=mover.other_promotions,
        promotion_holds=mover.promotion_holds,
        groups=tuple(HotGroup(name, count) for name, count in plan.groups),
        chunks=_hottest(state),
    )


def _hottest(state: PromoteState) -> tuple[HotChunk, ...]:
    plan = state.plan
    chunks = nlargest(_CHUNKS_MAX, plan.listed, key=lambda chunk: plan.listed[chunk].rate)
    found = []
    for chunk in chunks:
        name = state.owners.name_of(state.owners.group_of(chunk))
        found.append(HotChunk(chunk, plan.state_of(chunk), plan.listed[chunk].rate, name))
    return tuple(found)

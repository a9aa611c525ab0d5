# SPDX-License-Identifier: GPL-2.0-only
"""What the knobs' thread is given to do about streams, and in whose name. Pure."""

from __future__ import annotations

from ebbgate.actuators.bcache_steps import cutoff_steps
from ebbgate.actuators.gate_plan import split_steps
from ebbgate.actuators.gate_worker import Job
from ebbgate.actuators.knob_writer import Reason
from ebbgate.knobs.catalog import CUTOFF, MAX_SECTORS
from ebbgate.model.decision import Decision
from ebbgate.policy.defaults import STREAM_BYPASS


def reason_of_streams(decision: Decision, number: int) -> Reason:
    """Who decided about streams, and why; where nobody wants anything any more, that."""
    for proposal in decision.proposals:
        if proposal.strategy == (decision.cutoff_strategy or STREAM_BYPASS):
            return Reason(proposal.strategy, proposal.reason, number)
    return Reason(STREAM_BYPASS, "no strategy decides about streams", number)


def reason_of_congestion(decision: Decision, number: int) -> Reason:
    """Of the first who wants it off; the strategy itself does for one cause only."""
    first = next((p for p in decision.proposals if p.congestion_bypass is False), None)
    if first is None or first.strategy == STREAM_BYPASS:
        return Reason(STREAM_BYPASS, "jitter of the cache device is not congestion", number)
    return Reason(first.strategy, first.reason, number)


def cutoff_job(cutoff_bytes: int | None, reason: Reason) -> Job:
    """The cutoff; without one the original."""
    if cutoff_bytes is None:
        return lambda writer: writer.release((CUTOFF,), reason)
    steps = cutoff_steps(cutoff_bytes)
    return lambda writer: writer.apply(steps, reason)


def split_job(on: bool, reason: Reason) -> Job:
    """Requests shorter than a cache block, or as they were."""
    if not on:
        return lambda writer: writer.release((MAX_SECTORS,), reason)
    return lambda writer: writer.apply(split_steps(writer.volume), reason)

# SPDX-License-Identifier: GPL-2.0-only
"""The settings of a decision besides the gate, with the strategies behind them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from ebbgate.model.decision import Decision
from ebbgate.policy.defaults import IDLE_DESTAGE, STREAM_BYPASS, Policy
from ebbgate.policy.rollback_guard import WatchedSetting
from ebbgate.signals.totals import MANUAL


class Source(NamedTuple):
    """The strategy or other actor behind a write, and its reason."""

    actor: str
    reason: str


GARBAGE: Final = Source(IDLE_DESTAGE, "drained buckets still count as used")
WARMED: Final = Source("warm", "a warm-up reads nothing meanwhile")
GATE_MANUAL: Final = Source(IDLE_DESTAGE, "a knob of the gate is manual")
NO_GATE: Final = Source(IDLE_DESTAGE, "no strategy decides about the gate")
NO_STREAMS: Final = Source(STREAM_BYPASS, "no strategy decides about streams")
JITTER: Final = Source(STREAM_BYPASS, "jitter of the cache device is not congestion")
BY_POLICY: Final = Source("policy", "backing_scheduler of the policy")
SORTED: Final = Source(IDLE_DESTAGE, "the scheduler sorts what it holds")
NOT_THROTTLED: Final = Source(IDLE_DESTAGE, "the gate decides how much is written back at once")
FOUND: Final = Source(MANUAL, "found when it was read")
RELEASE_FAILED: Final = "it failed before"
"""Why originals are restored again."""


@dataclass(frozen=True, slots=True)
class OtherKnobs:
    """`cutoff_bytes`: None for the original. `streams`: the source of the cutoff and the split.

    `backing_scheduler`: empty for the original. `nr_requests`: at least so many; 0: the original.
    `wbt_lat_usec`: None for the original.
    """

    cutoff_bytes: int | None
    split_requests: bool
    streams: Source
    congestion_off: bool
    congestion: Source
    collect_garbage: bool
    backing_scheduler: str
    nr_requests: int
    wbt_lat_usec: int | None


def other_knobs(decision: Decision, policy: Policy) -> OtherKnobs:
    """Return what a decision and its policy ask of every knob that is not the gate's."""
    return OtherKnobs(
        decision.sequential_cutoff_bytes,
        decision.split_requests,
        _streams(decision),
        decision.congestion_bypass is False,
        _congestion(decision),
        decision.collect_garbage,
        policy.backing_scheduler,
        policy.destage.nr_requests if policy.destage else 0,
        policy.destage.wbt_lat_usec if policy.destage else None,
    )


def _streams(decision: Decision) -> Source:
    for each in decision.proposals:
        # The rollback guard has a proposal for each setting that it suspends.
        of_gate = each.suppresses and WatchedSetting.STREAMS not in each.suppresses
        if each.strategy == (decision.cutoff_strategy or STREAM_BYPASS) and not of_gate:
            return Source(each.strategy, each.reason)
    return NO_STREAMS


def _congestion(decision: Decision) -> Source:
    """Return the first strategy that wants it off; stream_bypass has one cause only."""
    first = next((each for each in decision.proposals if each.congestion_bypass is False), None)
    if first is None or first.strategy == STREAM_BYPASS:
        return JITTER
    return Source(first.strategy, first.reason)

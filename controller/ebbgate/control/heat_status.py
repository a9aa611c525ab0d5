# SPDX-License-Identifier: GPL-2.0-only
"""Builds the status of users' misses by place for people. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Final

from ebbgate.model.frame import Frame
from ebbgate.model.heat import (
    CHUNK_BYTES,
    HEAT_BINS_MAX,
    HeatStatus,
    MissedChunk,
    MissedGroup,
)
from ebbgate.model.owners import NO_GROUP, NO_OWNERS, Owners, owners_of
from ebbgate.model.promotion import ChunkState
from ebbgate.policy.engine import PromoteState
from ebbgate.signals.recent_misses import RecentMisses, bin_chunks, binned

_LISTED_MAX: Final = 20
"""Chunks and groups in the status, which is written once a second."""


@dataclass(slots=True)
class CachedHeatStatus:
    """The status of one volume, built anew after each period of misses; it changes in place."""

    _shown: HeatStatus = field(default_factory=HeatStatus)
    _period_ns: int = 0
    _owners: Owners = NO_OWNERS

    def get(
        self, recent: RecentMisses, frame: Frame, promote: PromoteState, volume_bytes: int
    ) -> HeatStatus:
        """Return the status. `promote`: the state of promote_hot, all defaults where it is off."""
        if frame.heat is None:
            return HeatStatus(why=frame.missing.get("heat", "no record of misses yet"))
        if recent.ended_ns != self._period_ns:
            self._period_ns = recent.ended_ns
            self._owners = owners_of(self._owners, frame.layout)
            self._shown = heat_status(recent, self._owners, promote, volume_bytes)
        return self._shown


def heat_status(
    recent: RecentMisses, owners: Owners, promote: PromoteState, volume_bytes: int
) -> HeatStatus:
    """Return the status. `owners`: `NO_OWNERS` where no layout is known."""
    states = _states(promote)
    by_state = {
        state: [chunk for chunk, each in states.items() if each is state] for state in ChunkState
    }
    hottest = nlargest(_LISTED_MAX, recent.chunks, key=recent.chunks.__getitem__)
    total = -(-volume_bytes // CHUNK_BYTES)
    each = bin_chunks(total, HEAT_BINS_MAX)
    return HeatStatus(
        observed_ns=round(recent.observed_ns),
        misses=round(sum(recent.chunks.values()) + recent.unlisted),
        unlisted=round(recent.unlisted),
        bin_bytes=each * CHUNK_BYTES,
        bins=binned(recent.chunks.items(), total, each),
        moved=_counted(by_state[ChunkState.MOVED], total, each),
        pending=_counted(by_state[ChunkState.PENDING], total, each),
        held_out=_counted(by_state[ChunkState.HELD_OUT], total, each),
        chunks=tuple(
            MissedChunk(
                chunk,
                round(recent.chunks[chunk]),
                owners.name_of(owners.group_of(chunk)),
                states.get(chunk),
            )
            for chunk in hottest
        ),
        groups=() if owners is NO_OWNERS else _groups(recent, owners, by_state),
    )


def _states(promote: PromoteState) -> Mapping[int, ChunkState]:
    """Return what promote_hot does with chunks; the later of two states counts."""
    plan, watched = promote.plan, promote.benefit.chunks
    held_out = [
        chunk for chunks in (watched, plan.listed) for chunk in chunks if chunks[chunk].held_out
    ]
    return {
        **dict.fromkeys(plan.listed, ChunkState.PENDING),
        **dict.fromkeys(promote.in_cache, ChunkState.MOVED),
        **dict.fromkeys(plan.failed, ChunkState.FAILED),
        **dict.fromkeys(held_out, ChunkState.HELD_OUT),
    }


def _counted(chunks: Collection[int], total: int, each: int) -> tuple[int, ...]:
    """Return how many of the chunks each part has; empty without any."""
    return binned(((chunk, 1) for chunk in chunks), total, each) if chunks else ()


def _groups(
    recent: RecentMisses, owners: Owners, by_state: Mapping[ChunkState, Iterable[int]]
) -> tuple[MissedGroup, ...]:
    misses = defaultdict[int, float](float)
    for chunk, count in recent.chunks.items():
        misses[owners.group_of(chunk)] += count
    counts = {state: Counter(map(owners.group_of, found)) for state, found in by_state.items()}
    return tuple(
        MissedGroup(
            owners.name_of(group),
            round(misses[group]),
            None if group == NO_GROUP else owners.size_of(group),
            moved=counts[ChunkState.MOVED][group],
            pending=counts[ChunkState.PENDING][group],
            held_out=counts[ChunkState.HELD_OUT][group],
        )
        for group in nlargest(_LISTED_MAX, misses, key=misses.__getitem__)
    )

# SPDX-License-Identifier: GPL-2.0-only
"""Which chunks are worth a move. Pure.

The list goes down as long as the predicted gain exceeds the cost with a margin. One of 16 chunks of
the list is held out, to measure the gain (promote_benefit), and stays so until it was compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import nlargest
from types import MappingProxyType
from typing import Final, NamedTuple

from ebbgate.model.promotion import ChunksMoved, ChunkState, Promotion
from ebbgate.policy.strategies.promote_benefit import Costs, Watched, held_out
from ebbgate.policy.strategies.promote_score import UNSEEN, WINDOWS_MIN, Groups

COST_MARGIN: Final = 1.5
"""The predicted gain must exceed this times the cost."""
LIST_MAX: Final = 2048
_TIER: Final = 64
"""So many chunks of the list at a time are moved in the order of the disk, which spares seeks."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What makes a chunk worth a move. `ratio`: of realised to predicted gain so far."""

    costs: Costs
    ratio: float

    def gain_ns(self, rate: float) -> float:
        """Return the disk time that a move of a chunk with this rate of misses will save."""
        saved = rate * self.ratio - self.costs.displaced_rate
        return saved * self.costs.horizon_s * self.costs.service_ns

    @property
    def least_ns(self) -> float:
        """The gain above which a chunk is worth its move."""
        return COST_MARGIN * self.costs.move_ns


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done until the next window.

    - `at_ns`: when it was made; 0: there is none yet.
    - `listed`: the chunks worth a move, in the order in which they are moved, and what is predicted
      of each; held-out ones among them.
    - `promotion`: what is still to be moved; None: nothing.
    - `done`: chunks that were moved, or could not be; `failed`: the latter.
    - `admitted`: chunks of which enough is known; `best_ns`, `least_ns`: the gain of the best of
      them, and the gain from which a move is worth it. `groups`: names with counts.
    """

    at_ns: int = 0
    listed: Mapping[int, Watched] = field(default_factory=dict)
    promotion: Promotion | None = None
    done: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()
    admitted: int = 0
    best_ns: float = 0.0
    least_ns: float = 0.0
    groups: tuple[tuple[str, int], ...] = ()

    def with_report(self, report: ChunksMoved) -> Plan:
        """Return the plan after a report of the mover."""
        tried = self.listed.keys() & {*report.moved, *report.failed}
        if tried <= self.done:
            return self
        done, promotion = self.done | tried, self.promotion
        # The mover had begun with it before it was chosen as one to hold out.
        listed = dict(self.listed)
        for chunk in tried:
            listed[chunk] = replace(listed[chunk], held_out=False)
        if promotion is not None:
            left = tuple(chunk for chunk in promotion.chunks if chunk not in done)
            promotion = replace(promotion, chunks=left) if left else None
        failed = self.failed | tried.intersection(report.failed)
        return replace(self, listed=listed, promotion=promotion, done=done, failed=failed)

    def state_of(self, chunk: int) -> ChunkState:
        """Return what became of a listed chunk."""
        if self.listed[chunk].held_out:
            return ChunkState.HELD_OUT
        if chunk in self.failed:
            return ChunkState.FAILED
        return ChunkState.MOVED if chunk in self.done else ChunkState.PENDING

    def to_watch(self, now_ns: int, *, ended: bool) -> Mapping[int, Watched]:
        """Return chunks to watch from now on: moved ones, and held-out ones whose turn has come.

        That is, those that the list has before the last moved one. `ended`: nothing has stopped the
        moves, so that behind the last one all others had their turn, too. Else held-out chunks of
        short lists would be moved in the end, and only moved ones of such lists would be compared.
        """
        found: dict[int, Watched] = {}
        held_out: dict[int, Watched] = {}
        for chunk, each in self.listed.items():
            if each.held_out:
                held_out[chunk] = each
            elif chunk in self.done:
                found |= {**held_out, chunk: each}
                held_out = {}
        if ended and self.promotion is None:
            found |= held_out
        return {chunk: replace(each, at_ns=now_ns) for chunk, each in found.items()}


class Room(NamedTuple):
    """How many chunks may be moved, and in which share of the time."""

    chunks: int
    time_share: float


class Earlier(NamedTuple):
    """What was done with chunks before.

    - `watched`: these are left as they are. `in_cache`: moved of late.
    - `listed`: by the plan before; what was held out stays so.
    """

    watched: Collection[int] = ()
    in_cache: Collection[int] = ()
    listed: Mapping[int, Watched] = MappingProxyType({})

    def held_out(self, chunk: int, at_ns: int) -> bool:
        """Return whether a chunk on the list of this time is not moved."""
        before = self.listed.get(chunk)
        return held_out(chunk, at_ns) if before is None else before.held_out


def choose(at_ns: int, groups: Groups, worth: Worth, room: Room, earlier: Earlier) -> Plan:
    """Return the plan of this time."""
    rates = {
        chunk: rate
        for chunk, rate in _candidates(groups, worth, earlier.in_cache)
        if chunk not in earlier.watched
    }
    chosen = [chunk for chunk, rate in rates.items() if worth.gain_ns(rate) > worth.least_ns]
    chosen = nlargest(min(room.chunks, LIST_MAX), chosen, key=rates.__getitem__)
    listed = {
        chunk: Watched(at_ns, rates[chunk], earlier.held_out(chunk, at_ns))
        for chunk in _tiers(chosen)
    }
    moves = tuple(chunk for chunk, each in listed.items() if not each.held_out)
    names = Counter(groups.heats[groups.owners.group_of(chunk)].name for chunk in listed)
    return Plan(
        at_ns=at_ns,
        listed=listed,
        promotion=Promotion(moves, room.time_share) if moves else None,
        admitted=len(rates),
        best_ns=worth.gain_ns(max(rates.values())) if rates else 0.0,
        least_ns=worth.least_ns,
        groups=tuple(names.most_common(3)),
    )


def _candidates(
    groups: Groups, worth: Worth, in_cache: Collection[int]
) -> Iterator[tuple[int, float]]:
    """Yield admitted chunks with the rate of misses to expect.

    These are chunks that were missed in separate windows, and the other chunks of their groups.
    """
    scores, hot_groups = groups.scores, set[int]()
    for chunk, (misses, windows) in scores.chunks.items():
        if windows >= WINDOWS_MIN:
            group = groups.owners.group_of(chunk)
            hot_groups.add(group)
            yield chunk, groups.heats[group].expected_rate(misses, scores.seconds)
    for group in hot_groups:
        heat = groups.heats[group]
        if group < 0 or worth.gain_ns(heat.rate) <= worth.least_ns:
            continue
        for chunk in groups.owners.chunks_of(group):
            misses, windows = scores.chunks.get(chunk, UNSEEN)
            if windows < WINDOWS_MIN and chunk not in in_cache:
                yield chunk, heat.expected_rate(misses, scores.seconds)


def _tiers(chosen: list[int]) -> Iterator[int]:
    for start in range(0, len(chosen), _TIER):
        yield from sorted(chosen[start : start + _TIER])

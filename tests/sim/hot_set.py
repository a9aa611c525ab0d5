# SPDX-License-Identifier: GPL-2.0-only
"""A small cache under a hot set that moves, with promote_hot and its mover. For tests.

The cache is an LRU list of pages. A read that misses brings its page in, as bcache does; a move
brings in all pages of a chunk. The disk takes the same time for each miss, and users wait longer
for it while the mover reads.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from random import Random
from typing import Final

from ebbgate.model.decision import Decision
from ebbgate.model.frame import Frame, PathLatency
from ebbgate.model.heat import CHUNK_BYTES, ChunkMisses, HeatPeriod, VolumeLayout
from ebbgate.model.promotion import ChunksMoved, Promotion
from ebbgate.model.records import Direction
from ebbgate.policy.engine import PROMOTE_HOT, Policy, State, step
from ebbgate.policy.strategies.promote_hot import PromoteState
from ebbgate.policy.strategies.promote_stop import PromoteParams
from ebbgate.units import NS_PER_MS, NS_PER_S
from ebbgate.warm.duty_cycle import DutyCycle

READ_NS: Final = 8 * NS_PER_MS
MOVE_NS: Final = 16 * NS_PER_MS
WINDOW_S: Final = 10
_HIT_BUCKET, _MISS_BUCKET, _SLOW_MISS_BUCKET = 24, 48, 56

Load = Callable[[Random, int], Iterable[int]]
"""The chunks that users read in a second, for each second."""


def policy(params: PromoteParams | None = None) -> Policy:
    """A policy with promote_hot alone."""
    return Policy(
        destage=None, streams=None, promotion=params or PromoteParams(), order=(PROMOTE_HOT,)
    )


def shifting(chunks: int, hot: int, phase_s: int, reads_per_s: int) -> Load:
    """Zipf over a hot set that is another one in each phase."""

    weights = list(accumulate(1 / (rank + 1) for rank in range(hot)))

    def load(random: Random, second: int) -> Iterable[int]:
        members = Random(f"{chunks} {second // phase_s}").sample(range(chunks), hot)
        return random.choices(members, cum_weights=weights, k=reads_per_s)

    return load


def uniform(chunks: int, reads_per_s: int) -> Load:
    """Every chunk is as likely as any other."""

    def load(random: Random, second: int) -> Iterable[int]:
        return random.choices(range(chunks), k=reads_per_s)

    return load


@dataclass(slots=True)
class HotSet:
    """`moves`: whether the mover does what is decided. `slows`: whether users feel it.

    `pages`: of a chunk.

    `waits`: users wait for their reads, so that in each second they get as many of its load as the
    disk has time for, which the mover shortens. `reads`, `misses`: of users, by second. `moved`:
    chunks, by second.
    """

    load: Load
    cache_chunks: int
    policy: Policy = field(default_factory=policy)
    seed: int = 1
    moves: bool = True
    slows: bool = False
    waits: bool = False
    pages: int = 64
    layout: VolumeLayout | None = None
    state: State = field(default_factory=State)
    reads: list[int] = field(default_factory=list)
    misses: list[int] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    second: int = 0
    written_bytes: int = 0
    decision: Decision | None = None
    on_decision: Callable[[Decision], None] = lambda _: None
    _cache: OrderedDict[tuple[int, int], None] = field(default_factory=OrderedDict)
    _heat: Counter[int] = field(default_factory=Counter)
    _period: HeatPeriod | None = None
    _duty: DutyCycle = field(default_factory=DutyCycle)
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)

    @property
    def promotion(self) -> PromoteState:
        """The state of promote_hot."""
        return self.state.promotion

    def run(self, seconds: int) -> HotSet:
        """Run for so many seconds."""
        for _ in range(seconds):
            self._second()
        return self

    def disk_s(self, since_s: int = 0) -> float:
        """Disk time of users and mover."""
        return (
            sum(self.misses[since_s:]) * READ_NS + sum(self.moved[since_s:]) * MOVE_NS
        ) / NS_PER_S

    def _second(self) -> None:
        self.second += 1
        busy_ns = self._move(self.decision.promotion if self.decision else None)
        hits, misses = self._read(NS_PER_S - busy_ns)
        self.reads.append(hits + misses)
        self.misses.append(misses)
        if self.second % WINDOW_S == 0:
            self._end_window()
        slow = round(misses * busy_ns / NS_PER_S) if self.slows else 0
        frame = self._frame(hits, misses, slow)
        self.state, outcome = step(self.state, frame, self.policy, frame.at_ns)
        self.decision = outcome.decision()
        self.on_decision(self.decision)

    def _read(self, disk_ns: int) -> tuple[int, int]:
        hits = misses = 0
        for chunk in self.load(self._random, self.second):
            if self.waits and misses * READ_NS >= disk_ns:
                break
            page = chunk, self._random.randrange(self.pages)
            if page in self._cache:
                self._cache.move_to_end(page)
                hits += 1
            else:
                misses += 1
                self._heat[chunk] += 1
                self._insert(page)
        return hits, misses

    def _move(self, promotion: Promotion | None) -> int:
        """Move for this second; return the time that it took."""
        at_ns = self.second * NS_PER_S
        if promotion is None or not self.moves or not self._may_move(promotion, at_ns):
            self.moved.append(0)
            return 0
        chunks = promotion.chunks[: NS_PER_S // MOVE_NS]
        for chunk in chunks:
            for page in range(self.pages):
                self._insert((chunk, page))
        self.moved.append(len(chunks))
        report = ChunksMoved(at_ns, moved=chunks, busy_ns=len(chunks) * MOVE_NS)
        self._duty.spend(report.busy_ns)
        self.state = step(self.state, report, self.policy, at_ns)[0]
        return report.busy_ns

    def _may_move(self, promotion: Promotion, at_ns: int) -> bool:
        self._duty.set_share(promotion.time_share)
        return self._duty.wait_ns(at_ns) == 0

    def _insert(self, page: tuple[int, int]) -> None:
        if page not in self._cache:
            self.written_bytes += CHUNK_BYTES // self.pages
        self._cache[page] = None
        self._cache.move_to_end(page)
        while len(self._cache) > self.cache_chunks * self.pages:
            self._cache.popitem(last=False)

    def _end_window(self) -> None:
        found = [ChunkMisses(chunk, ios) for chunk, ios in self._heat.most_common(2048)]
        left_out = sum(self._heat.values()) - sum(each.sync_reads for each in found)
        ended_ns = self.second * NS_PER_S
        began_ns = ended_ns - WINDOW_S * NS_PER_S
        self._period = HeatPeriod(began_ns, ended_ns, tuple(found), left_out)
        self._heat.clear()

    def _frame(self, hits: int, misses: int, slow: int) -> Frame:
        """Return the frame of the last second. `slow`: of these misses."""
        return Frame(
            "bcache0",
            self.second * NS_PER_S,
            window_ns=NS_PER_S,
            paths={
                (Direction.READ, "hit"): _latency({_HIT_BUCKET: hits}),
                (Direction.READ, "miss"): _latency(
                    {_MISS_BUCKET: misses - slow, _SLOW_MISS_BUCKET: slow}
                ),
            },
            backing_busy_foreground_ratio=min(1.0, misses * READ_NS / NS_PER_S),
            cache_bytes=self.cache_chunks * CHUNK_BYTES,
            cache_written_bytes=self.written_bytes,
            in_use_ratio=0.5,
            cache_mode="writeback",
            heat=self._period,
            layout=self.layout,
        )


def _latency(ios: Mapping[int, int]) -> PathLatency:
    """Return what a path says of so many requests in each bucket."""
    counts = [0] * (max(ios) + 1)
    for bucket, count in ios.items():
        counts[bucket] = count
    total = sum(counts)
    return PathLatency(total, total * 4096, None, None, tuple(counts))


def without_moves(simulation: HotSet) -> HotSet:
    """The same cache and load without a mover."""
    return replace(simulation, moves=False)

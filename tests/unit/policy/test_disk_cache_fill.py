# SPDX-License-Identifier: GPL-2.0-only
"""What a disk's own write cache holds is followed, so that it is empty when users return."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.policy.strategies import disk_cache_fill, explanation, gap_use
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.policy.strategies.disk_cache_fill import HELD_NS_MAX, DiskCacheFill
from ebbgate.policy.strategies.gap_use import GapUse, Rest
from ebbgate.policy.strategies.pace_state import PaceState
from ebbgate.signals.gap_ends import EndWindow
from ebbgate.units import KIB, NS_PER_MS, NS_PER_S
from tests.builders import idle_frame, queue_sample

PIECE_BYTES = 64.0 * KIB
PIECE_NS = 6 * NS_PER_MS + round(PIECE_BYTES / disk_cache_fill.TRANSFER_BYTES_PER_S * NS_PER_S)
COST_NS = 250 * NS_PER_MS
TARGET_MS = 3.0


def filled(fill: DiskCacheFill, *samples: tuple[int, int, int]) -> DiskCacheFill:
    """The state after samples: time in ms, pieces under way, pieces done."""
    last = None
    for at_ms, under_way, done in samples:
        sample = queue_sample(at_ms, under_way, done)
        fill = disk_cache_fill.on_queue(fill, last, sample, PIECE_BYTES)
        last = sample
    return fill


@pytest.mark.parametrize(
    ("samples", "pieces", "passed_ms"),
    [
        ([(0, 0, 100)], 0, 0),
        ([(0, 0, 100), (20, 8, 100)], 8, 0),
        ([(0, 0, 100), (20, 8, 100), (40, 0, 108)], 8, 20),
        ([(0, 0, 100), (20, 8, 150), (40, 4, 200)], 104, 20),
        # A disk does no work ahead.
        ([(0, 0, 0), (20, 1, 0), (900, 0, 1), (920, 2, 1)], 2, 0),
        # Behind a pause only what is under way is known, and so it is if the probe begins anew.
        ([(0, 0, 0), (1000, 3, 5000)], 3, 0),
        ([(0, 0, 5000), (20, 2, 0)], 0, 0),
    ],
)
def test_the_cache_holds_what_was_begun_less_what_the_disk_writes(
    samples: list[tuple[int, int, int]], pieces: int, passed_ms: int
) -> None:
    held_ns = filled(DiskCacheFill(), *samples).held_ns
    assert held_ns == pytest.approx(pieces * PIECE_NS - passed_ms * NS_PER_MS, abs=1)


def test_large_pieces_take_the_time_of_their_bytes() -> None:
    sample = queue_sample(0, 1)
    small, large = (
        disk_cache_fill.on_queue(DiskCacheFill(), None, sample, size * KIB).held_ns
        for size in (4, 1024)
    )
    assert small < 6.1 * NS_PER_MS
    assert large > 13 * NS_PER_MS


def test_only_a_gap_in_which_the_gate_rested_for_it_makes_pieces_faster() -> None:
    fill = DiskCacheFill()
    assert disk_cache_fill.faster(fill) is fill
    assert disk_cache_fill.faster(replace(fill, limited=True)).slowness == pytest.approx(0.95)
    assert disk_cache_fill.slower(fill, 1.3).slowness == pytest.approx(1.3)


@given(st.lists(st.none() | st.floats(1.0, 1e6), max_size=60))
def test_whatever_is_felt_a_piece_keeps_a_bounded_time(felt: list[float | None]) -> None:
    fill = DiskCacheFill()
    for ratio in felt:
        fill = replace(fill, limited=True)
        fill = (
            disk_cache_fill.faster(fill) if ratio is None else disk_cache_fill.slower(fill, ratio)
        )
        assert 0.2 <= fill.slowness <= 8


# ---- gaps on a disk whose cache takes pieces at once --------------------------------------------
@dataclass
class CachingDisk:
    """A disk that takes 700 pieces a second and needs `piece_ms` for each, 500 in its cache."""

    piece_ms: float
    held: float = 0.0
    done: int = 0

    def advance(self, ms: int, open_gate: bool) -> None:
        """Let time pass; an open gate sends as much as the disk takes."""
        self.held = max(0.0, self.held - ms / self.piece_ms)
        taken = int(min(0.7 * ms, 500 - self.held)) if open_gate else 0
        self.held += taken
        self.done += taken


def run_gap(use: GapUse, disk: CachingDisk, start_ms: int, length_ms: int) -> tuple[GapUse, float]:
    """A gap in which the kernel begins at `start_ms`; returns what it left in ms of the disk."""
    use = gap_use.begin(use, 30 * NS_PER_MS, COST_NS, opens_wide=False)
    for now_ms in range(40, length_ms, 20):
        disk.advance(20, now_ms >= start_ms and use.rest is Rest.NONE)
        sample = queue_sample(now_ms, 0, disk.done)
        use = gap_use.follow(use, sample, PIECE_BYTES)
        use = gap_use.advance(use, now_ms * NS_PER_MS, now_ms * NS_PER_MS, COST_NS)
        use = gap_use.on_queue(use, sample, None, idle_ns=now_ms * NS_PER_MS)
    left_ms = disk.held * disk.piece_ms
    disk.held = 0.0
    use = replace(gap_use.end(use, length_ms * NS_PER_MS), last=None)
    # Reads of a burst of a second wait for what is left.
    return gap_use.judge(use, 10 * left_ms / 1000 / TARGET_MS), left_ms


@pytest.mark.parametrize("piece_ms", [3.0, 5.2, 9.0, 14.0])
def test_in_gaps_alike_the_cache_is_empty_at_the_end_and_was_used(piece_ms: float) -> None:
    rng, disk = random.Random(1), CachingDisk(piece_ms)
    use = gap_use.with_write_cache(GapUse(), known=True, opens_wide=False)
    left, done, possible = [], [], 0.0
    for number in range(80):
        start_ms, before = rng.randrange(1000, 2000, 20), disk.done
        use, left_ms = run_gap(use, disk, start_ms, 2500)
        if number >= 40:
            left.append(left_ms)
            done.append(disk.done - before)
            possible += (2500 - start_ms) / piece_ms
    assert sum(left) / len(left) < 300
    assert sum(done) > 0.75 * possible


def test_a_gap_that_fills_the_cache_shows_what_the_disk_writes() -> None:
    rng, disk = random.Random(3), CachingDisk(4.0)
    use = gap_use.with_write_cache(GapUse(), known=True, opens_wide=False)
    for _ in range(8):
        start_ms, before = rng.randrange(1000, 2000, 20), disk.done
        use, left_ms = run_gap(use, disk, start_ms, 10_000)
    assert use.fill is not None
    assert use.fill.piece_ns == pytest.approx(1.4 * 4 * NS_PER_MS, rel=0.1)
    assert use.fill.capacity_ios == pytest.approx(1.25 * 500, rel=0.1)
    assert left_ms == 0
    assert disk.done - before > 0.75 * (10_000 - start_ms) / 4


def test_a_gap_that_outlives_the_recent_ones_uses_the_whole_cache() -> None:
    disk = CachingDisk(6.5)
    use = gap_use.with_write_cache(GapUse(), known=True, opens_wide=False)
    for length_ms in (1400, 1700, 2100, 2600):
        use, _ = run_gap(use, disk, 1000, length_ms)
    before = disk.done
    run_gap(use, disk, 1000, 60_000)
    assert disk.done - before > 0.95 * 59_000 / 6.5


@pytest.mark.parametrize(("felt", "bound_ns"), [(True, NS_PER_S // 10), (False, 60 * NS_PER_S)])
def test_gaps_that_nobody_foresees_let_more_in_until_it_is_felt(felt: bool, bound_ns: int) -> None:
    fill = DiskCacheFill()
    assert disk_cache_fill.unforeseen(fill, felt) is fill
    before = fill.most_ns
    for _ in range(30):
        fill = disk_cache_fill.unforeseen(replace(fill, limited=True), felt)
        assert (fill.most_ns < before) is felt or fill.most_ns == bound_ns
        before = fill.most_ns
    assert (fill.most_ns, fill.slowness) == (bound_ns, 1.0)


def test_in_gaps_that_may_always_end_the_cache_holds_little() -> None:
    rng, disk = random.Random(2), CachingDisk(6.5)
    use = gap_use.with_write_cache(GapUse(), known=True, opens_wide=False)
    left = []
    for _ in range(30):
        use, left_ms = run_gap(use, disk, 1000, rng.randrange(1500, 9000))
        left.append(left_ms)
    assert sum(left) / len(left) < HELD_NS_MAX / NS_PER_MS
    assert max(left) < 3 * HELD_NS_MAX / NS_PER_MS
    assert disk.done > 1000


@pytest.mark.parametrize(
    ("alike", "held_ms", "holds", "bound"),
    [
        (True, 900, True, "1 s (until users return)"),
        (True, 1100, False, "1 s (until users return)"),
        (False, 400, True, "500 ms (users may return at any time)"),
        (False, 600, False, "500 ms (users may return at any time)"),
    ],
)
def test_what_the_disk_holds_is_explained(
    alike: bool, held_ms: int, holds: bool, bound: str
) -> None:
    frame = replace(idle_frame(), idle_ns=0)
    window = EndWindow(2 * NS_PER_S, 2_500 * NS_PER_MS, 3 * NS_PER_S) if alike else None
    gap = GapUse(window=window, fill=DiskCacheFill(held_ns=held_ms * NS_PER_MS))
    pace = PaceState(likely_until_ns=frame.at_ns + NS_PER_S)
    state = DestageState(phase=Phase.DESTAGE, gap=gap, pace=pace)
    (found,) = (
        each
        for each in explanation.of_destage(state, frame, DestageParams())
        if each.signal == "disk's own write cache"
    )
    assert (found.holds, found.threshold) == (holds, bound)


def test_only_where_the_kernel_knows_of_a_cache_dm_cache_follows_it() -> None:
    for known, wide in ((True, True), (False, False), (False, True)):
        assert gap_use.with_write_cache(GapUse(), known, wide).fill is None
    use = gap_use.with_write_cache(GapUse(), known=True, opens_wide=False)
    assert use.fill == DiskCacheFill()
    assert gap_use.with_write_cache(use, known=True, opens_wide=False) is use
    assert gap_use.with_write_cache(use, known=False, opens_wide=False).fill is None

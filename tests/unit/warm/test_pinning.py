# SPDX-License-Identifier: GPL-2.0-only
"""How much may be pinned, and how often it is touched."""

from __future__ import annotations

import pytest

from ebbgate.model.volume import Kind
from ebbgate.units import GIB, HOUR_NS, KIB, MIB, MINUTE_NS, NS_PER_S
from ebbgate.warm.pinning import (
    READS_MAX,
    Need,
    is_cold,
    is_due,
    limit_text,
    need,
    need_of_blocks,
    step_bytes,
    warm_again_ns,
)
from ebbgate.warm.plan import Piece, spread

BCACHE, DM_CACHE = Kind.BCACHE, Kind.DM_CACHE


def test_each_bucket_is_touched_twice_and_each_block_once() -> None:
    assert step_bytes(512 * KIB, 0) == 256 * KIB
    assert step_bytes(0, 64 * KIB) == 64 * KIB


def test_a_file_takes_as_many_touches_as_steps_whatever_its_pieces_are() -> None:
    assert need(10 * MIB, MIB) == Need(10 * MIB, 10 * MIB, 10)
    assert need(1, MIB) == Need(1, 1, 1)
    for pieces in (1, 3, 640):
        length = 10 * MIB // pieces
        parts = [Piece(n * length, n * 64 * MIB, length) for n in range(pieces)]
        for first in range(0, MIB, 128 * KIB):
            assert len(list(spread(parts, MIB, first))) <= need(10 * MIB, MIB).reads


@pytest.mark.parametrize(
    ("kind", "since_s", "written", "due"),
    [
        (BCACHE, 1, 0, False),
        (BCACHE, 1, 65 * MIB, True),
        (BCACHE, 299, 63 * MIB, False),
        (BCACHE, 300, 0, True),
        (DM_CACHE, 54, 10 * GIB, False),
        (DM_CACHE, 55, 0, True),
    ],
)
def test_touches_are_due_before_the_cache_can_have_been_replaced(
    kind: Kind, since_s: int, written: int, due: bool
) -> None:
    assert is_due(kind, since_s * NS_PER_S, written, GIB) is due


def test_one_miss_of_a_hundred_touches_is_tolerated() -> None:
    assert not is_cold(99, 100)
    assert is_cold(98, 100)
    assert is_cold(3, 4)
    assert not is_cold(0, 0)


def test_a_file_that_does_not_stay_is_warmed_less_and_less_often() -> None:
    waits = [warm_again_ns(count) // MINUTE_NS for count in (1, 2, 3, 4, 5, 6, 99)]
    assert waits == [1, 2, 4, 8, 16, 16, 16]


def test_a_file_of_which_a_part_is_not_cached_is_warmed_rarely() -> None:
    """Each time that part is read for nothing."""
    waits = [warm_again_ns(count, partly_elsewhere=True) // HOUR_NS for count in (1, 2, 3, 9)]
    assert waits == [1, 2, 4, 24]


def test_files_beyond_the_share_are_refused_with_the_figures() -> None:
    own = Need(200 * MIB, 200 * MIB, 800)
    text = limit_text(BCACHE, own, (100 * MIB, 400), GIB, 0.25)
    assert text == (
        "its 200 MiB and 100 MiB of other pinned files are more than 256 MiB, 25% of the cache"
        " (pin_limit in the settings)"
    )
    own = Need(156 * MIB, 156 * MIB, 800)
    assert not limit_text(BCACHE, own, (100 * MIB, 400), GIB, 0.25)


def test_a_file_in_many_small_pieces_takes_whole_blocks_of_dm_cache() -> None:
    """9000 pieces of 4 KiB are 35.2 MiB of data, and 8.8 GiB of a cache with blocks of 1 MiB."""
    own = need_of_blocks(9000 * 4 * KIB, 9000, MIB)
    assert limit_text(DM_CACHE, own, (0, 0), 10 * GIB, 0.25) == (
        "its 8.8 GiB of whole cache blocks (35.2 MiB of data) and 0 B of other pinned files are"
        " more than 2.5 GiB, 25% of the cache (pin_limit in the settings)"
    )
    assert not limit_text(DM_CACHE, need_of_blocks(9000 * 4 * KIB, 36, MIB), (0, 0), GIB, 0.25)


def test_files_that_take_too_many_touches_are_refused_with_the_figures() -> None:
    text = limit_text(DM_CACHE, Need(MIB, MIB, 20_000), (MIB, 10_000), GIB, 0.25)
    assert text == (
        f"it takes 20000 touches, and other pinned files 10000: more than {READS_MAX[DM_CACHE]},"
        " at 500 a second"
    )

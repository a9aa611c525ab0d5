# SPDX-License-Identifier: GPL-2.0-only
"""The arithmetic of `shifting-postgres`, and the choice of the mover that it is compared with."""

from __future__ import annotations

import pytest

from ebbgate.warm.plan import Piece
from ebbgate.warm.target import Target
from tests.bench.guest.file_mover import Chunk, best_files, chunks_of, to_move
from tests.bench.guest.misses import missed
from tests.bench.postgres_volume import CACHE_MIB, TABLES, Phase
from tests.bench.shifting_postgres import (
    ARMS,
    FINAL_S,
    LENGTHS,
    PAIR,
    VARIANTS,
    WINDOW_S,
    Phases,
    figures,
    seconds_to,
    variant_ratios,
)
from tests.lab.devices import MIB
from tests.lab.postgres import Tables, transactions_per_s


def test_no_table_is_hot_in_two_phases() -> None:
    phases = Phases(count=6, hot=4)
    assert len({name for hot in phases.hot_tables(seed=1) for name in hot}) == 24
    assert phases.hot_tables(seed=1) != phases.hot_tables(seed=2)


def test_a_hot_set_fits_into_the_cache_and_all_tables_do_not() -> None:
    for phases in LENGTHS.values():
        assert phases.hot * TABLES.mib < CACHE_MIB < TABLES.count * TABLES.mib / 2


def test_each_variant_has_arms() -> None:
    assert {"".join(variant.split("/")[2:]) for variant in VARIANTS} == set(ARMS) == set(LENGTHS)


def test_a_page_is_full_of_rows() -> None:
    assert Tables(1, 48).rows == 48 * 128 * 7
    assert Tables(1, 1).select("t00").count("random(1, 896)") == 8


def test_the_speed_of_each_second_is_read_of_the_progress() -> None:
    text = (
        "pgbench: setting random seed to 1\n"
        "progress: 1.0 s, 113.9 tps, lat 34.067 ms stddev 9.197, 0 failed\n"
        "progress: 2.0 s, 120.0 tps, lat 33.082 ms stddev 8.258, 0 failed\n"
    )
    assert transactions_per_s(text) == [113.9, 120.0]


def test_a_phase_is_at_speed_once_some_seconds_on_average_were() -> None:
    steady = [100.0] * (WINDOW_S + FINAL_S)
    assert seconds_to([10.0] * 20 + steady, 0.9) == 20 + WINDOW_S
    assert seconds_to(steady, 0.9) == WINDOW_S
    assert seconds_to([0.0, 500.0, 0.0, 0.0, 0.0, 0.0, *steady], 0.9) == WINDOW_S


def test_the_first_phase_does_not_count() -> None:
    slow, fast = Phase([10.0] * 30, 300), Phase([10.0] * 15 + [30.0] * 15, 60)
    assert figures([slow, fast, fast]) == {
        "tps": 20,
        "to_90_s": 20,
        "final_tps": 30,
        "disk_reads_per_s": 2,
        "phase_1_tps": 10,
        "phase_2_tps": 20,
        "phase_3_tps": 20,
    }


def test_ebbgate_is_compared_with_stock_and_the_best_fixed_share() -> None:
    speeds = dict(zip(ARMS[""], (100, 110, 180, 150, 400, 210), strict=True))
    runs = {arm: [{"tps": tps, "to_90_s": 2000 / tps}] for arm, tps in speeds.items()}
    goal = {"speed_vs_stock": 2.1, "to_90_vs_stock": 1 / 2.1, "vs_best_fixed": 210 / 180}
    assert variant_ratios(runs) == pytest.approx(goal)
    pair = {arm: runs[arm] for arm in PAIR}
    assert set(variant_ratios(pair)) == {"speed_vs_stock", "to_90_vs_stock"}
    fixed = {arm: runs[arm] for arm in ARMS["fixed"]}
    assert variant_ratios(fixed) == pytest.approx({"vs_best_fixed": 210 / 180})


def test_the_mover_reads_misses_of_both_kinds_of_cache() -> None:
    bcache = " kworker/0:1-9 [000] ..... 1.0: bcache_read: 8,0  R 2064 + 16 hit 0 bypass 0"
    dm = " postgres-9 [001] ..... 1.0: block_bio_remap: 253,2 R 5120 + 16 <- (253,3) 6144"
    assert (missed(bcache), missed(dm)) == ((1, False), (3, False))
    assert missed(dm.replace(" R ", " WS ")) == (3, True)
    assert missed("CPU:0 [LOST 12 EVENTS]") is None


def test_the_mover_cuts_files_at_chunks_of_the_volume() -> None:
    pieces = (Piece(0, 3 * MIB // 2, MIB), Piece(MIB, 8 * MIB, MIB))
    assert chunks_of(Target(-1, (8, 0), pieces, {})) == [
        Chunk(1, 0, MIB // 2),
        Chunk(2, MIB // 2, MIB // 2),
        Chunk(8, MIB, MIB),
    ]


def test_the_mover_takes_files_by_requests_per_size_from_200_requests_on() -> None:
    files = {
        "cold": [Chunk(0, 0, MIB)],
        "written": [Chunk(1, 0, MIB)],
        "read": [Chunk(2, 0, MIB)],
        "large": [Chunk(3, 0, MIB), Chunk(4, MIB, MIB)],
    }
    counts = {0: (199, 0), 1: (0, 300), 2: (200, 0), 3: (200, 0), 4: (100, 0)}
    assert best_files(counts, files) == ["read", "large", "written"]


def test_the_mover_moves_a_chunk_again_only_if_users_miss_it() -> None:
    chunks = [Chunk(number, 0, MIB) for number in (1, 2, 3)]
    assert to_move(chunks, {1, 2}, {2: (1, 0)}) == chunks[1:]

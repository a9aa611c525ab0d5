# SPDX-License-Identifier: GPL-2.0-only
"""The arithmetic of `gap-drain`: which gaps and bursts count, and what is compared with what."""

from __future__ import annotations

import pytest

from tests.bench.burst_figures import figures
from tests.bench.gap_drain import (
    DEFAULT_VARIANTS,
    DISKS,
    GAPS_COUNTED,
    GOALS,
    HDD_BYTES,
    PIECES,
    SSDS,
    VARIANTS,
    Pieces,
    Rhythm,
    disk_of,
    variant_ratios,
)
from tests.lab.devices import MIB
from tests.lab.hdd_model import TRANSFER_BYTES_PER_S

BURSTS = [[90.0, 90.0], [12.0, 8.0], [30.0, 10.0], [40.0, 4.0]]


def test_reads_after_gaps_that_left_dirty_data_are_pooled() -> None:
    found = figures({"bursts": BURSTS[:3], "gaps": [(400, 300), (300, 240)]})
    assert found == {
        "drained_mib": 80,
        "mean_ms": 15,
        "p50_ms": 11,
        "p99_ms": 30,
        "first_median_ms": 21,
        "first_max_ms": 30,
        "counted": 2,
        "dirty_mib": 400,
    }


def test_a_gap_that_came_clean_and_its_burst_do_not_count() -> None:
    found = figures({"bursts": BURSTS, "gaps": [(400, 300), (300, 240), (240, 0)]})
    assert found == figures({"bursts": BURSTS[:3], "gaps": [(400, 300), (300, 240)]})


def test_without_a_gap_that_left_dirty_data_all_count_and_are_reported_as_none() -> None:
    found = figures({"bursts": BURSTS[:2], "gaps": [(40, 0)]})
    assert (found["drained_mib"], found["first_max_ms"], found["counted"]) == (40, 12, 0)


def test_the_gaps_in_which_a_daemon_learns_do_not_count() -> None:
    late = figures({"bursts": BURSTS, "gaps": [(400, 300), (300, 240), (240, 40)]}, 2)
    assert (late["drained_mib"], late["first_max_ms"], late["counted"]) == (200, 40, 1)


def run(drained_mib: float, ms: float, counted: float = 7) -> list[dict[str, float]]:
    """One repetition in which every latency is the same."""
    latencies = dict.fromkeys(("mean_ms", "p99_ms", "first_median_ms", "first_max_ms"), ms)
    return [{"drained_mib": drained_mib, "counted": counted, **latencies}]


def test_drain_is_compared_with_stock_and_unpaced_and_latency_with_no_destage() -> None:
    variant = DEFAULT_VARIANTS[0]
    arms = {
        "off": run(0, 10),
        "stock": run(20, 9),
        "unpaced": run(200, 40),
        "ebbgate": run(180, 12),
    }
    ratios = variant_ratios({f"{variant} {arm}": runs for arm, runs in arms.items()}, variant)
    assert ratios.keys() == GOALS.keys()
    assert (ratios["drain_vs_stock"], ratios["drain_vs_unpaced"]) == (9, 0.9)
    assert {ratios[name] for name in GOALS if name.endswith("_vs_off")} == {1.2}


def test_a_stock_that_drains_nothing_counts_as_a_mebibyte() -> None:
    arms = {"off": run(0, 10), "stock": run(0, 10), "unpaced": run(9, 10), "ebbgate": run(9, 10)}
    ratios = variant_ratios({f"v {arm}": runs for arm, runs in arms.items()}, "v")
    assert ratios["drain_vs_stock"] == 9


@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
def test_the_dirty_data_fits_and_is_not_where_users_read(pieces: Pieces) -> None:
    size = next(ssd.size_bytes for ssd in SSDS if ssd.name == pieces.ssd)
    assert pieces.dirty_mib < pieces.range_mib < HDD_BYTES // MIB // 2
    assert pieces.dirty_mib * MIB < 0.6 * size, "the kernel stops caching writes at 0.7"


@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
def test_every_gap_leaves_dirty_data(pieces: Pieces) -> None:
    size = next(ssd.size_bytes for ssd in SSDS if ssd.name == pieces.ssd)
    gaps, gap_s = pieces.learning + GAPS_COUNTED, Rhythm().gap_s
    # Of small pieces no machine was seen to drain more than 14 MiB/s.
    most_bytes_per_s = TRANSFER_BYTES_PER_S if pieces.kib > 4 else 18 * MIB
    assert pieces.dirty_mib * MIB > gaps * gap_s * most_bytes_per_s
    assert 250 <= pieces.dirty_mib - 0.1 * size / MIB <= 350, "as far above stock's target"


def test_variants_name_pieces_scheduler_and_disk() -> None:
    assert set(DEFAULT_VARIANTS) < set(VARIANTS)
    assert disk_of("4k/none/scsi-through") is DISKS["scsi-through"]
    assert disk_of("4k/none/scsi").features.write_cache_bytes
    assert not disk_of("4k/none/scsi-through").features.write_cache_bytes
    assert len({disk_of(variant) for variant in DEFAULT_VARIANTS}) == 1, "one boot, one disk"

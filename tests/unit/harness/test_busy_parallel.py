# SPDX-License-Identifier: GPL-2.0-only
"""The arithmetic of `busy-parallel`."""

from __future__ import annotations

from tests.bench.busy_parallel import (
    PAUSE_S,
    READS_BETWEEN_PAUSES,
    VARIANTS,
    ratios_of,
    reads_per_busy_s,
)
from tests.bench.gap_drain import disk_of


def test_pauses_do_not_count_as_time_with_reads() -> None:
    reads = 3 * READS_BETWEEN_PAUSES + 10
    assert reads_per_busy_s(reads, 20 + 3 * PAUSE_S) == reads / 20


def test_throughput_is_compared_with_a_gate_that_never_opens() -> None:
    arms = {"closed": (200, 0), "shallow": (120, 0), "ebbgate": (198, 900)}
    runs = {
        f"bfq/ahci {arm}": [{"reads_per_busy_s": reads, "drained_mib": mib}]
        for arm, (reads, mib) in arms.items()
    }
    found = ratios_of(runs, "bfq/ahci")
    assert found == {"reads_vs_closed": 0.99, "shallow_vs_closed": 0.6, "drained_mib": 900}


def test_each_variant_names_a_disk() -> None:
    assert {disk_of(variant).attachment for variant in VARIANTS}
    assert disk_of("bfq/ahci").features.write_cache_bytes

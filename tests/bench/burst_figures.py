# SPDX-License-Identifier: GPL-2.0-only
"""Figures of bursts with gaps between them, as guest/bursts.py reports them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, median
from typing import Any

from tests.bench.report import percentile


def figures(result: Mapping[str, Any], learning_gaps: int = 0) -> dict[str, float]:
    """Return what a gap drained, and what the reads of the bursts after it waited.

    Only gaps that left dirty data count, and only bursts after them: a volume that came clean
    drained what there was, and disturbs nobody. Without such a gap all count, and `counted` is 0.
    The reads of all counted bursts are pooled. The first `learning_gaps` count for no arm.
    """
    gaps: Sequence[tuple[float, float]] = result["gaps"]
    after = list(zip(gaps, result["bursts"][1:], strict=True))[learning_gaps:]
    left = [pair for pair in after if pair[0][1] > 0]
    counted = left or after
    reads = [latency for _, burst in counted for latency in burst]
    firsts = [burst[0] for _, burst in counted]
    return {
        "drained_mib": median(before - behind for (before, behind), _ in counted),
        "mean_ms": mean(reads),
        "p50_ms": median(reads),
        "p99_ms": percentile(reads, 0.99),
        "first_median_ms": median(firsts),
        "first_max_ms": max(firsts),
        "counted": float(len(left)),
        "dirty_mib": gaps[0][0],
    }

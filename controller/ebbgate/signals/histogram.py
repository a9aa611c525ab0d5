# SPDX-License-Identifier: GPL-2.0-only
"""Arithmetic on histograms whose trailing zeros may be missing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

LATENCY_SUB_BUCKETS: Final = 4
"""Sub-buckets per octave of the latency histogram (bpf/hist.h); the first octaves are exact in
us.
"""


def subtract(now: Sequence[int], before: Sequence[int]) -> tuple[int, ...]:
    """What arrived between two cumulative histograms; never negative (a probe may restart)."""
    if now == before:
        return (0,) * len(now)
    pairs = zip_longest(now, before, fillvalue=0)
    return tuple([a - b if a > b else 0 for a, b in pairs])


def decay_add(old: Sequence[float], new: Sequence[int], keep_ratio: float) -> tuple[float, ...]:
    """The old histogram faded by `keep_ratio` (0..1), plus the new counts."""
    return tuple([a * keep_ratio + b for a, b in zip_longest(old, new, fillvalue=0)])


def latency_bucket_us(bucket: int) -> tuple[float, float]:
    """Lower and upper edge, in microseconds, of a log-linear latency bucket.

    Buckets 0..3 are 0, 1, 2 and 3 us; above, four linear buckets share each octave.
    """
    if bucket < LATENCY_SUB_BUCKETS:
        return float(bucket), float(bucket + 1)
    octave, step = divmod(bucket, LATENCY_SUB_BUCKETS)
    base = 1 << (octave + 1)
    width = base / LATENCY_SUB_BUCKETS
    return base + step * width, base + (step + 1) * width


def latency_percentile_ns(counts: Sequence[int], quantile: float) -> int | None:
    """The latency that a share `quantile` (0..1) of the requests did not exceed.

    Interpolated inside its bucket, so good to a quarter octave at worst. None without requests.
    """
    total = sum(counts)
    if total == 0:
        return None
    rank = quantile * total
    seen = 0
    for bucket, count in enumerate(counts):
        if count and seen + count >= rank:
            lower, upper = latency_bucket_us(bucket)
            return round((lower + (upper - lower) * (rank - seen) / count) * 1000)
        seen += count
    raise AssertionError("unreachable: the rank is at most the total")

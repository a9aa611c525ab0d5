# SPDX-License-Identifier: GPL-2.0-only
"""Arithmetic on histograms whose trailing zeros may be missing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from operator import mul
from typing import Final

from ebbgate.units import SECTOR_BYTES

LATENCY_SUB_BUCKETS: Final = 4
"""Sub-buckets per octave of the latency histogram (bpf/hist.h); the first octaves are exact in
us.
"""
COARSE_BUCKETS: Final = 53
"""Of `coarse_latency`."""
_FINE_EDGE: Final = 100
"""The first bucket of 2^26 us (67 s)."""


def subtract(now: Sequence[int], before: Sequence[int]) -> tuple[int, ...]:
    """Return what came between two cumulative histograms; never negative (probes restart)."""
    if now == before:
        return (0,) * len(now)
    pairs = zip_longest(now, before, fillvalue=0)
    return tuple([a - b if a > b else 0 for a, b in pairs])


def decay_add(old: Sequence[float], new: Sequence[int], keep_ratio: float) -> tuple[float, ...]:
    """Return the old histogram times `keep_ratio` (0..1), plus the new counts."""
    return tuple([a * keep_ratio + b for a, b in zip_longest(old, new, fillvalue=0)])


def latency_bucket_us(bucket: int) -> tuple[float, float]:
    """Return the lower and upper edge, in microseconds, of a log-linear latency bucket.

    Buckets 0..3 are 0, 1, 2 and 3 us; above, four linear buckets share each octave.
    """
    if bucket < LATENCY_SUB_BUCKETS:
        return float(bucket), float(bucket + 1)
    octave, step = divmod(bucket, LATENCY_SUB_BUCKETS)
    base = 1 << (octave + 1)
    width = base / LATENCY_SUB_BUCKETS
    return base + step * width, base + (step + 1) * width


def latency_percentile_ns(counts: Sequence[int], quantile: float) -> int | None:
    """Return the latency that a share `quantile` (0..1) of the requests did not exceed.

    Interpolated inside its bucket, so exact to a quarter octave. None without requests.
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


def add(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """Return the sum of two histograms."""
    return [a + b for a, b in zip_longest(one, other, fillvalue=0)]


def coarse_latency(counts: Sequence[int]) -> list[int]:
    """Return a latency histogram in at most `COARSE_BUCKETS` buckets, two per octave.

    Their edges are edges of the probe's buckets. The last one has no upper edge.
    """
    head, rest = counts[:LATENCY_SUB_BUCKETS], counts[LATENCY_SUB_BUCKETS:_FINE_EDGE]
    coarse = [*head, *add(rest[::2], rest[1::2])]
    return [*coarse, sum(counts[_FINE_EDGE:])] if len(counts) > _FINE_EDGE else coarse


def coarse_edge_us(bucket: int) -> float:
    """Return the upper edge of a bucket of `coarse_latency`: 1, 2, 3, 4, 6, 8, 12 and so on."""
    if bucket < LATENCY_SUB_BUCKETS:
        return float(bucket + 1)
    octave, second = divmod(bucket - LATENCY_SUB_BUCKETS, 2)
    return float((4 << octave) * 2 if second else (4 << octave) * 1.5)


def without_slowest(counts: Sequence[int], slowest: int) -> list[int]:
    """Return a latency histogram without so many of its slowest requests."""
    kept = list(counts)
    for bucket in reversed(range(len(kept))):
        taken = min(slowest, kept[bucket])
        kept[bucket] -= taken
        slowest -= taken
    return kept


def latency_sum_ns(counts: Sequence[int]) -> int:
    """Return the sum of all latencies, each the middle of its bucket: exact to an eighth."""
    return sum(map(mul, counts, _MIDDLES_NS))


def _middle_ns(bucket: int) -> int:
    return round(sum(latency_bucket_us(bucket)) * 500)


_MIDDLES_NS: Final = tuple(_middle_ns(bucket) for bucket in range(128))


# ---- log2 buckets -------------------------------------------------------------------------------
def count_beyond(counts: Sequence[float], value: int, base: int) -> float:
    """Return the count of what had reached `value`; linear inside a bucket.

    Bucket i holds [base * 2^i, base * 2^(i+1)).
    """
    bucket = (value // base).bit_length() - 1
    total = float(sum(counts[bucket + 1 :]))
    if 0 <= bucket < len(counts):
        low = base << bucket
        total += counts[bucket] * (2 * low - value) / low
    return total


def bytes_beyond(runs: Sequence[float], cutoff_bytes: int) -> float:
    """Return the bytes of runs that had reached `cutoff_bytes`."""
    return count_beyond(runs, cutoff_bytes, SECTOR_BYTES)


def share_beyond(runs: Sequence[float], cutoff_bytes: int) -> float | None:
    """Return the share (0..1) of bytes that a cutoff would bypass; None without bytes."""
    total = sum(runs)
    return bytes_beyond(runs, cutoff_bytes) / total if total else None


def cutoff_for(runs: Sequence[float], floor_bytes: int, ceiling_bytes: int) -> int:
    """Return the highest cutoff that bypasses nearly all (95 %) of what the lowest would.

    A higher cutoff spares short sequential runs of small files, so it is doubled from the floor as
    long as the curve stays flat. Without measurements it is `floor_bytes`.
    """
    reachable = bytes_beyond(runs, floor_bytes)
    cutoff = floor_bytes
    while cutoff * 2 <= ceiling_bytes and bytes_beyond(runs, cutoff * 2) >= 0.95 * reachable > 0:
        cutoff *= 2
    return cutoff

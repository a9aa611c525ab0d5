# SPDX-License-Identifier: GPL-2.0-only
"""Packs the latencies of a sample by direction for the history. Pure.

A histogram in buckets of `signals.histogram.coarse_latency` is a flat list of those that are not
empty: bucket, count, bucket, count and so on. `{"read":[13,40,25,3]}`: 40 reads of 96 to 128 us,
three of 6 to 8 ms. A direction without requests is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from ebbgate.model.frame import Frame
from ebbgate.model.records import Direction
from ebbgate.signals.histogram import COARSE_BUCKETS, add, coarse_latency

Packed = Sequence[int]
Latency = Mapping[str, Packed]


def frame_latency(frame: Frame) -> dict[str, list[int]] | None:
    """Return the latencies of all paths of a frame; None where the probe has none."""
    if not frame.paths:
        return None
    found = {}
    for direction in Direction:
        parts = [part.counts for (way, _), part in frame.paths.items() if way is direction]
        packed = pack(coarse_latency(reduce(add, parts, [])))
        if packed:
            found[str(direction)] = packed
    return found


def pack(counts: Sequence[int]) -> list[int]:
    """Return bucket and count of the buckets that are not empty."""
    return [part for bucket, count in enumerate(counts) if count for part in (bucket, count)]


def unpack(packed: Packed) -> list[int]:
    """Return all `COARSE_BUCKETS`. Raises IndexError and TypeError for invalid input."""
    counts = [0] * COARSE_BUCKETS
    add_packed(counts, packed)
    return counts


def add_packed(counts: list[int], packed: Packed) -> None:
    """Add packed counts to `counts`, which has all `COARSE_BUCKETS`."""
    for bucket, count in zip(packed[::2], packed[1::2], strict=True):
        counts[bucket] += count


def merge_latency(parts: Iterable[Latency | None]) -> dict[str, list[int]] | None:
    """Return the sums of the known parts; None without any."""
    sums: dict[str, list[int]] | None = None
    for part in parts:
        if part is not None:
            sums = {} if sums is None else sums
            for direction, packed in part.items():
                add_packed(sums.setdefault(direction, [0] * COARSE_BUCKETS), packed)
    if sums is None:
        return None
    return {direction: pack(counts) for direction, counts in sorted(sums.items())}

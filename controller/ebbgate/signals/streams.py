# SPDX-License-Identifier: GPL-2.0-only
"""What a sequential cutoff would do, read off the bytes by run length. Pure.

Seed: Jo and Won keep sequential segments out of a filling cache but leave the threshold open; the
curve answers for every threshold at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbgate.units import SECTOR_BYTES


def bucket_low_bytes(bucket: int) -> int:
    """The shortest run of a bucket: [512 * 2^i, 512 * 2^(i+1)) bytes."""
    return SECTOR_BYTES << bucket


def bytes_beyond(runs: Sequence[float], cutoff_bytes: int) -> float:
    """Bytes that belong to a run that had reached `cutoff_bytes`; linear inside a bucket."""
    bucket = (cutoff_bytes // SECTOR_BYTES).bit_length() - 1
    total = float(sum(runs[bucket + 1 :]))
    if 0 <= bucket < len(runs):
        low, high = bucket_low_bytes(bucket), bucket_low_bytes(bucket + 1)
        total += runs[bucket] * (high - cutoff_bytes) / (high - low)
    return total


def share_beyond(runs: Sequence[float], cutoff_bytes: int) -> float | None:
    """The share (0..1) of bytes that a cutoff would bypass; None without bytes."""
    total = sum(runs)
    return bytes_beyond(runs, cutoff_bytes) / total if total else None


def cutoff_for(runs: Sequence[float], floor_bytes: int, ceiling_bytes: int) -> int:
    """The highest cutoff that still bypasses nearly all (95 %) of what the lowest one would.

    A higher cutoff spares short sequential bursts of small files; it is doubled from the floor as
    long as the curve stays flat. `floor_bytes` where nothing was measured.
    """
    reachable = bytes_beyond(runs, floor_bytes)
    cutoff = floor_bytes
    while cutoff * 2 <= ceiling_bytes and bytes_beyond(runs, cutoff * 2) >= 0.95 * reachable > 0:
        cutoff *= 2
    return cutoff

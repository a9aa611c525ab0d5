# SPDX-License-Identifier: GPL-2.0-only
"""Measurements of the daemon that support an advice, or do not. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ebbgate.doctor.model import Weight
from ebbgate.model.status import VolumeStatus
from ebbgate.signals.gaps import reaching
from ebbgate.signals.histogram import share_beyond
from ebbgate.units import format_bytes, format_ns, format_rate, format_ratio

STREAM_SHARE_MIN: Final = 0.05
"""With a smaller share of streams, a limit for streams has no noticeable effect."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """`text`: what was measured; empty if nothing was. `supports`: whether it supports the advice;
    None if nothing was measured.
    """

    text: str = ""
    supports: bool | None = None

    @property
    def weight(self) -> Weight:
        """Return the weight: recommended only if a measurement supports the advice."""
        return Weight.ADVICE if self.supports else Weight.NOTE


def streams(status: VolumeStatus, cutoff_bytes: int) -> Evidence:
    """Measure the share of recent bytes in streams that a cutoff would keep out."""
    shares = {
        direction: share
        for direction, runs in status.run_bytes.items()
        if (share := share_beyond(runs, cutoff_bytes)) is not None
    }
    if not shares:
        return Evidence()
    parts = [f"{format_ratio(share)} of the bytes of {each}s" for each, share in shares.items()]
    text = f"recently {' and '.join(parts)} were in runs longer than {format_bytes(cutoff_bytes)}"
    return Evidence(text, max(shares.values()) >= STREAM_SHARE_MIN)


def congested(status: VolumeStatus) -> Evidence:
    """Measure the bytes that bypassed the cache in the last second because it was slow."""
    count = status.bypass_bytes.get("congested")
    if count is None:
        return Evidence()
    text = f"{format_bytes(count)} bypassed the cache for this reason in the last second"
    return Evidence(text, count > 0)


def level(status: VolumeStatus, high_ratio: float) -> Evidence:
    """Measure the share of dirty data; it supports the advice from `high_ratio` (0..1) on."""
    ratio, full_s = status.dirty_ratio, status.time_to_full_s
    if ratio is None:
        return Evidence()
    text = f"{format_ratio(ratio)} of the cache is dirty now"
    # Infinite where it does not fill.
    if full_s is not None and full_s != float("inf"):
        text = f"{text}, full in {full_s:.0f} s"
    return Evidence(text, ratio >= high_ratio)


def destage(status: VolumeStatus) -> Evidence:
    """Measure the rate of write-back, and the latency of users meanwhile."""
    rate = status.destage_bytes_per_s
    p99_ns = max((path.p99_ns for path in status.paths if path.p99_ns), default=None)
    if rate is None:
        return Evidence()
    text = f"dirty data is being written back at {format_rate(rate)}"
    if p99_ns is None:
        return Evidence(text, supports=False)
    return Evidence(f"{text}, and the p99 latency of users is {format_ns(p99_ns)}", rate > 0)


def gaps(status: VolumeStatus) -> Evidence:
    """Measure what one gap writes back; it supports a faster drain if more than that is dirty."""
    total, counts, wait_ns = status.totals.destage, status.totals.gap_counts, status.wait_ns
    if total is None or not counts or not wait_ns:
        return Evidence()
    used = reaching(counts, wait_ns)
    if used < 1:
        return Evidence()
    per_gap = total.bytes / used
    text = (
        f"{format_bytes(total.bytes)} written back, with {used:.0f} gaps longer than"
        f" {format_ns(wait_ns)}: about {format_bytes(per_gap)} for each"
    )
    if status.disturbance_ns is not None:
        longer = format_ns(status.disturbance_ns)
        text = f"{text}; returning requests waited {longer} longer after the last one"
    if status.dirty_bytes is None:
        return Evidence(text, supports=False)
    text = f"{text}; {format_bytes(status.dirty_bytes)} dirty now"
    return Evidence(text, status.dirty_bytes > per_gap)

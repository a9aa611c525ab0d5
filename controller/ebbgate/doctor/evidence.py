# SPDX-License-Identifier: GPL-2.0-only
"""What the daemon has measured of a volume, as evidence for advice; else nothing. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ebbgate.signals.streams import share_beyond
from ebbgate.units import format_bytes, format_ns, format_rate, format_ratio

Live = Mapping[str, Any]


def streams(live: Live, cutoff_bytes: int) -> str:
    """How much of what was moved lately belongs to streams that a cutoff would keep out."""
    found = []
    for direction, runs in (live.get("run_bytes") or {}).items():
        share = share_beyond(runs, cutoff_bytes)
        if share is not None:
            found.append(f"{format_ratio(share)} of the bytes of {direction}s")
    if not found:
        return ""
    return f"of late {' and '.join(found)} were in runs beyond {format_bytes(cutoff_bytes)}"


def congested(live: Live) -> str:
    """What was sent past the cache for its slowness within the last second."""
    count = (live.get("bypass_bytes") or {}).get("congested")
    if count is None:
        return ""
    return f"{format_bytes(count)} were sent past the cache for it in the last second"


def level(live: Live) -> str:
    """How much is dirty, and when the kernel stops caching writes."""
    ratio, full_s = live.get("dirty_ratio"), live.get("time_to_full_s")
    if ratio is None:
        return ""
    text = f"{format_ratio(ratio)} of the cache is dirty now"
    return f"{text}, and full in {full_s:.0f} s" if full_s is not None else text


def destage(live: Live) -> str:
    """How fast destage runs beside users now, and what they feel."""
    rate, p99_ns = live.get("destage_bytes_per_s"), _worst_p99_ns(live)
    if rate is None:
        return ""
    text = f"destage runs at {format_rate(rate)} now"
    return f"{text}, and the p99 of users is {format_ns(p99_ns)}" if p99_ns else text


def _worst_p99_ns(live: Live) -> int | None:
    found = [path["p99_ns"] for path in live.get("paths") or () if path.get("p99_ns")]
    return max(found, default=None)

# SPDX-License-Identifier: GPL-2.0-only
"""What the daemon has measured of a volume, and whether that speaks for an advice. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ebbgate.doctor.model import Weight
from ebbgate.signals.streams import share_beyond
from ebbgate.units import format_bytes, format_ns, format_rate, format_ratio

Live = Mapping[str, Any]

STREAM_SHARE_MIN: Final = 0.05
"""Where less of the bytes was in streams, a limit for streams changes nothing that is felt."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """`text`: what was measured, empty where nothing was. `supports`: does it speak for the advice?
    None where nothing was measured.
    """

    text: str = ""
    supports: bool | None = None

    @property
    def weight(self) -> Weight:
        """Recommended only where a measurement speaks for it."""
        return Weight.ADVICE if self.supports else Weight.NOTE


def streams(live: Live, cutoff_bytes: int) -> Evidence:
    """How much of what was moved lately belongs to streams that a cutoff would keep out."""
    shares = {
        direction: share
        for direction, runs in (live.get("run_bytes") or {}).items()
        if (share := share_beyond(runs, cutoff_bytes)) is not None
    }
    if not shares:
        return Evidence()
    parts = [f"{format_ratio(share)} of the bytes of {each}s" for each, share in shares.items()]
    text = f"recently {' and '.join(parts)} were in runs longer than {format_bytes(cutoff_bytes)}"
    return Evidence(text, max(shares.values()) >= STREAM_SHARE_MIN)


def congested(live: Live) -> Evidence:
    """How much went past the cache within the last second because the cache device was slow."""
    count = (live.get("bypass_bytes") or {}).get("congested")
    if count is None:
        return Evidence()
    text = f"{format_bytes(count)} bypassed the cache for this reason in the last second"
    return Evidence(text, count > 0)


def level(live: Live, high_ratio: float) -> Evidence:
    """How much is dirty, and when the kernel stops caching writes; `high_ratio`: from which level
    (0..1) on that speaks for an advice.
    """
    ratio, full_s = live.get("dirty_ratio"), live.get("time_to_full_s")
    if ratio is None:
        return Evidence()
    text = f"{format_ratio(ratio)} of the cache is dirty now"
    # Infinite where it does not fill.
    if full_s is not None and full_s != float("inf"):
        text = f"{text}, full in {full_s:.0f} s"
    return Evidence(text, ratio >= high_ratio)


def destage(live: Live) -> Evidence:
    """How fast dirty data is written back now, and what users feel meanwhile."""
    rate, p99_ns = live.get("destage_bytes_per_s"), _worst_p99_ns(live)
    if rate is None:
        return Evidence()
    text = f"dirty data is written back at {format_rate(rate)} now"
    if p99_ns is None:
        return Evidence(text, supports=False)
    return Evidence(f"{text}, and the p99 of users is {format_ns(p99_ns)}", rate > 0)


def _worst_p99_ns(live: Live) -> int | None:
    found = [path["p99_ns"] for path in live.get("paths") or () if path.get("p99_ns")]
    return max(found, default=None)

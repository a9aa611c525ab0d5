# SPDX-License-Identifier: GPL-2.0-only
"""Parameters and state of the pace of destage. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.records import QueueSample
from ebbgate.units import KIB, MIB, NS_PER_MS

CLOSED = Gate(GateKind.CLOSED)


class ThrottleKind(StrEnum):
    """What limits destage: `rate` in bytes per second (bcache), `depth` in pieces (dm-cache)."""

    RATE = "rate"
    DEPTH = "depth"


@dataclass(frozen=True, slots=True)
class PaceParams:
    """What a policy may set.

    - `target_ns`: how long the destage under way may take: two or three random reads.
    - `depth_min_ios`: below two the disk would idle between pieces.
    - `depth_max_ios`: bcache itself allows 64 in flight.
    - `window_ns`: completions are counted over at least this long.
    - `depth_wide_ios`: the depth while the gap is likely to last, if `throttle` is depth.
    - `depth_sorted_ios`: the greatest depth while the end of the gap is foreseen and far.
    - `foreseen`: the gate closes before the gap is likely to end, in time for what is under way.
    """

    throttle: ThrottleKind = ThrottleKind.RATE
    target_ns: int = 28 * NS_PER_MS
    depth_min_ios: float = 2.0
    depth_max_ios: float = 60.0
    gain: float = 0.8
    window_ns: int = 25 * NS_PER_MS
    rate_start_bytes_per_s: int = 8 * MIB
    rate_min_bytes_per_s: int = 256 * KIB
    rate_max_bytes_per_s: int = 1024 * MIB
    depth_wide_ios: float = 0.0
    depth_sorted_ios: float = 0.0
    foreseen: bool = False


@dataclass(frozen=True, slots=True)
class PaceState:
    """What the pace remembers; the disk's pace is kept over a closed gate, the window is not.

    - `throughput_bytes_per_s`, `completions_per_s`: of destage at the backing device, smoothed.
    - `likely_until_ns`: the gap will most likely last until then.
    """

    throughput_bytes_per_s: float = 0.0
    completions_per_s: float = 0.0
    window_start: QueueSample | None = None
    window_dry: bool = False
    gate: Gate = CLOSED
    likely_until_ns: int = 0

    @property
    def piece_bytes(self) -> float:
        """The mean size of a destage write; 64 KiB until one was measured."""
        if min(self.completions_per_s, self.throughput_bytes_per_s) <= 0:
            return 64.0 * KIB
        return self.throughput_bytes_per_s / self.completions_per_s

# SPDX-License-Identifier: GPL-2.0-only
"""What users felt over the frame's window, over all paths through the cache. Pure."""

from __future__ import annotations

from ebbgate.model.frame import Frame
from ebbgate.model.records import Direction


def worst_p99_ns(frame: Frame, direction: Direction) -> int | None:
    """The p99 of the slowest path that carried requests; None without any.

    An upper bound of the p99 over all of them, which the paths' own figures do not give.
    """
    found = [
        path.p99_ns
        for (way, _), path in frame.paths.items()
        if way is direction and path.p99_ns is not None
    ]
    return max(found) if found else None


def p99_ns(frame: Frame, direction: Direction, path: str) -> int | None:
    """The p99 of one path; None without requests on it."""
    latency = frame.paths.get((direction, path))
    return None if latency is None else latency.p99_ns


def read_hit_ratio(frame: Frame) -> float | None:
    """Share of reads (0..1) that found all their data in the cache; None without reads."""
    ios = {path: seen.ios for (way, path), seen in frame.paths.items() if way is Direction.READ}
    total = sum(ios.values())
    return ios.get("hit", 0) / total if total else None

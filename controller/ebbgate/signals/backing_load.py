# SPDX-License-Identifier: GPL-2.0-only
"""How busy users keep the backing device, from two ticks. Pure."""

from __future__ import annotations

from ebbgate.model.records import Direction, Tick
from ebbgate.signals.histogram import latency_sum_ns, subtract


def in_flight_ios(tick: Tick) -> int:
    """Return users' requests in flight at the volume."""
    return sum(tick.in_flight_ios.values())


def destage_in_flight_ios(tick: Tick) -> int:
    """Return the pieces under way; old recordings have only the counts, which drift by losses."""
    if tick.destage_in_flight_ios is not None:
        return tick.destage_in_flight_ios
    return max(0, tick.destage_queued.ios - tick.destage_done.ios)


def users_busy_ratio(first: Tick, tick: Tick) -> float:
    """Return an upper bound of the share of time that the backing device worked for users.

    The summed latencies of users' requests there over the window: exact to an eighth at depth 1 and
    too high above it, which only makes destage under load more careful. A request that is there all
    the time, as while a disk spins up, has no latency yet.
    """
    now, before = tick.backing_latency, first.backing_latency
    busy_ns = sum(latency_sum_ns(subtract(now[d], before[d])) for d in Direction)
    if busy_ns == 0 and _users_wait(first):
        return 1.0
    return min(1.0, busy_ns / (tick.at_ns - first.at_ns))


def _users_wait(tick: Tick) -> bool:
    """Return whether a request of users is at the backing device; False where none is counted."""
    depth = tick.backing_depth_ios
    return depth is not None and in_flight_ios(tick) > 0 and depth > destage_in_flight_ios(tick)

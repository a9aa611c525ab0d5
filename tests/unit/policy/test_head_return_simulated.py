# SPDX-License-Identifier: GPL-2.0-only
"""The first request after a gap, where users read one end of a disk and dirty data is everywhere.

On a simulated disk as disks are sold, with a track buffer, and with or without a write cache.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from statistics import median
from typing import Any

import pytest

from ebbgate.model.decision import Gate, GateKind
from ebbgate.policy.defaults import Policy
from ebbgate.policy.strategies.destage_state import DestageParams
from ebbgate.units import GIB, KIB, MIB, NS_PER_MS
from tests.lab.hdd_queue import AS_SOLD
from tests.sim.scenarios import GapDrain, gap_drain
from tests.sim.simulation import Setup, scattered

GAPS = 80
pytestmark = pytest.mark.timeout(300)
WRITE_CACHE = pytest.mark.parametrize("write_cache", [False, True])


@lru_cache
def bursts(
    scheduler: str, gap_ms: int, *, write_cache: bool, head_return: int = 1, closed: bool = False
) -> GapDrain:
    """Bursts of 20 reads, after 300 by which it is known how fast reads are."""
    disk_bytes = 16 * GIB
    depth_ios = 8 if scheduler == "bfq" else 0
    setup = Setup(
        scattered(64 * KIB, 7000 * MIB, disk_bytes=disk_bytes),
        Policy(DestageParams(queue_depth=depth_ios, head_return=head_return)),
        scheduler=scheduler,
        depth_settable=scheduler == "bfq",
        features=AS_SOLD if write_cache else replace(AS_SOLD, write_cache_bytes=0),
        tells_cache=write_cache,
        disk_bytes=disk_bytes,
        gate=(lambda _: Gate(GateKind.CLOSED)) if closed else (lambda gate: gate),
    )
    rest_ns, lengths_ns = 100 * NS_PER_MS, (gap_ms * NS_PER_MS,)
    return gap_drain(setup, GAPS, reads=20, rest_ns=rest_ns, lengths_ns=lengths_ns, calm_reads=300)


def all_bursts(*, write_cache: bool, **how: Any) -> list[GapDrain]:
    """Under both schedulers, in gaps of two lengths."""
    of = (("mq-deadline", 600), ("bfq", 1200))
    return [bursts(*each, write_cache=write_cache, **how) for each in of]


def first_ns(found: list[GapDrain]) -> float:
    """Median of the second half: the first gaps show how long gaps are."""
    return median(ns for each in found for ns in each.first_ns[GAPS // 2 :])


@WRITE_CACHE
def test_the_first_request_hardly_waits_for_the_way_of_the_heads(*, write_cache: bool) -> None:
    calm = first_ns(all_bursts(write_cache=write_cache, closed=True))
    without = first_ns(all_bursts(write_cache=write_cache, head_return=0))
    found = all_bursts(write_cache=write_cache)
    assert without >= calm + NS_PER_MS
    assert first_ns(found) - calm <= (without - calm) / 2
    # Every gap that counts had write-back.
    assert min(drained for each in found for drained in each.drained_bytes[GAPS // 2 :]) > 0


@WRITE_CACHE
def test_as_much_is_drained_with_the_read(*, write_cache: bool) -> None:
    """The loop on what was felt tries other rates, so single loads differ by chance."""

    def drained(head_return: int) -> int:
        found = all_bursts(write_cache=write_cache, head_return=head_return)
        return sum(each.drained_total_bytes for each in found)

    assert drained(1) >= 0.9 * drained(0)

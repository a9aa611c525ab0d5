# SPDX-License-Identifier: GPL-2.0-only
"""Short bursts with short gaps between them, on a simulated disk with a write cache.

No rest in such a gap is long enough for a full cache, and no burst is without what a gap has left.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import fmean, median

import pytest

from ebbgate.model.decision import Gate, GateKind
from ebbgate.policy.defaults import Policy
from ebbgate.policy.strategies.destage_state import DestageParams
from ebbgate.units import GIB, KIB, MIB, NS_PER_MS
from tests.lab.hdd_queue import AS_SOLD
from tests.sim.scenarios import GapDrain, gap_drain
from tests.sim.simulation import Setup, scattered

GAPS = 120
READS = 20
DISK_BYTES = 16 * GIB
DIRTY_BYTES = {4 * KIB: 300 * MIB, 64 * KIB: 1950 * MIB}
TARGET_NS = 3 * NS_PER_MS
QUEUE_DEPTHS = {"mq-deadline": 0, "bfq": 8}
SCHEDULERS = pytest.mark.parametrize("scheduler", QUEUE_DEPTHS)
GAP_LENGTHS = pytest.mark.parametrize("gap_ms", [400, 600, 1200])
TELLS_CACHE = pytest.mark.parametrize("tells_cache", [False, True])
CALM_READS = pytest.mark.parametrize("calm_reads", [0, 300])
"""300 in a row tell how fast reads are that nothing delays."""


@lru_cache
def bursts(
    scheduler: str,
    gap_ms: int,
    target_ns: int | None = TARGET_NS,
    *,
    calm_reads: int = 0,
    tells_cache: bool = False,
    closed: bool = False,
    reads: int = READS,
    piece_bytes: int = 64 * KIB,
) -> GapDrain:
    """Bursts of reads; `closed`: without any write-back."""
    setup = Setup(
        scattered(piece_bytes, DIRTY_BYTES[piece_bytes], disk_bytes=DISK_BYTES),
        Policy(DestageParams(disturbance_ns=target_ns, queue_depth=QUEUE_DEPTHS[scheduler])),
        scheduler=scheduler,
        depth_settable=scheduler == "bfq",
        features=AS_SOLD,
        tells_cache=tells_cache,
        disk_bytes=DISK_BYTES,
        gate=(lambda _: Gate(GateKind.CLOSED)) if closed else (lambda gate: gate),
    )
    return gap_drain(
        setup,
        GAPS,
        reads=reads,
        rest_ns=100 * NS_PER_MS,
        lengths_ns=(gap_ms * NS_PER_MS,),
        calm_reads=calm_reads,
    )


def later_mean_ns(found: GapDrain) -> float:
    """Mean of the reads of the second half."""
    return fmean(found.burst_means_ns[GAPS // 2 :])


@SCHEDULERS
@GAP_LENGTHS
@TELLS_CACHE
@CALM_READS
def test_users_feel_no_more_than_the_target(
    scheduler: str, gap_ms: int, *, tells_cache: bool, calm_reads: int
) -> None:
    calm_ns = later_mean_ns(bursts(scheduler, gap_ms, closed=True))
    found = bursts(scheduler, gap_ms, calm_reads=calm_reads, tells_cache=tells_cache)
    assert later_mean_ns(found) <= calm_ns + TARGET_NS
    # No gap that counts came without write-back.
    assert min(found.drained_bytes[GAPS // 2 :]) > 0


@SCHEDULERS
@pytest.mark.parametrize(
    ("reads", "gap_ms"),
    [(4, 600), (4, 1200), (8, 400), (8, 600), (8, 1200), (12, 400), (12, 600), (12, 1200)],
)
def test_bursts_of_few_reads_are_felt_as_well(scheduler: str, gap_ms: int, reads: int) -> None:
    """Of 4 reads one is the first, for which the head comes back from where it wrote."""
    calm_ns = later_mean_ns(bursts(scheduler, gap_ms, closed=True, reads=reads))
    found = bursts(scheduler, gap_ms, reads=reads)
    assert later_mean_ns(found) <= calm_ns + TARGET_NS
    assert min(found.drained_bytes[GAPS // 2 :]) > 0


@SCHEDULERS
def test_with_small_pieces_the_rate_does_not_return_to_what_was_felt(scheduler: str) -> None:
    """A full cache of them takes the disk a minute."""
    calm_ns = later_mean_ns(bursts(scheduler, 600, closed=True))
    found = bursts(scheduler, 600, calm_reads=300, piece_bytes=4 * KIB)
    later_ns = found.burst_means_ns[GAPS // 2 :]
    assert fmean(later_ns) <= calm_ns + TARGET_NS
    assert median(later_ns) <= 1.2 * calm_ns
    # Some are felt, since the loop tries whether more is possible.
    assert sum(each > calm_ns + TARGET_NS for each in later_ns) <= len(later_ns) / 4
    assert fmean(found.drained_bytes[GAPS // 2 :]) >= MIB // 2


@SCHEDULERS
@TELLS_CACHE
@CALM_READS
def test_a_disk_writes_back_in_each_gap_what_it_can(
    scheduler: str, *, tells_cache: bool, calm_reads: int
) -> None:
    """It writes some 100 pieces in 0.6 s: 6 MiB."""
    found = bursts(scheduler, 600, calm_reads=calm_reads, tells_cache=tells_cache)
    drained = found.drained_bytes[GAPS // 2 :]
    assert fmean(drained) >= 4 * MIB


@SCHEDULERS
def test_without_a_target_the_write_cache_makes_every_burst_slow(scheduler: str) -> None:
    calm_ns = later_mean_ns(bursts(scheduler, 600, closed=True))
    assert later_mean_ns(bursts(scheduler, 600, None)) >= 1.7 * calm_ns


@SCHEDULERS
def test_what_is_not_known_is_learned_in_some_seconds_without_write_back(scheduler: str) -> None:
    found = bursts(scheduler, 600)
    calm_ns = later_mean_ns(bursts(scheduler, 600, closed=True))
    begin, *others = [number for number, drained in enumerate(found.drained_bytes) if drained < MIB]
    assert begin <= 4
    # A gap and its burst take 0.8 s.
    assert 8 <= len([number for number in others if number < 20]) <= 16
    assert found.burst_means_ns[begin + 9] <= calm_ns + TARGET_NS

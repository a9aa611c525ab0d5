# SPDX-License-Identifier: GPL-2.0-only
"""Reads take their share of the time and no more, whatever they take and whenever they stop."""

from __future__ import annotations

from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.units import NS_PER_MS, NS_PER_S
from ebbgate.warm.duty_cycle import PERIOD_NS, REST_NS_MIN, DutyCycle

SHARES = st.floats(0.05, 0.8)


def played(duty: DutyCycle, durations_ns: list[int]) -> list[tuple[int, int]]:
    """Send a read whenever one may be sent; return when each began and ended."""
    now_ns, found = 1000 * NS_PER_S, []
    for duration_ns in durations_ns:
        while wait_ns := duty.wait_ns(now_ns):
            now_ns += wait_ns
        found.append((now_ns, now_ns + duration_ns))
        now_ns += duration_ns
        duty.spend(duration_ns)
    return found


def busy_ns(reads: list[tuple[int, int]], begin_ns: int, end_ns: int) -> int:
    return sum(max(0, min(end, end_ns) - max(begin, begin_ns)) for begin, end in reads)


@given(SHARES, st.lists(st.integers(1, 60 * NS_PER_MS), min_size=1, max_size=300))
def test_no_period_has_more_reads_than_its_share_and_one_read(
    share: float, durations_ns: list[int]
) -> None:
    duty = DutyCycle(share)
    reads, period_ns = played(duty, durations_ns), ceil(duty.period_ns)
    most = max(
        busy_ns(reads, edge, edge + period_ns)
        for begin, end in reads
        for edge in (begin, end - period_ns)
    )
    assert most <= share * period_ns + max(durations_ns) + NS_PER_MS


@given(SHARES, st.integers(NS_PER_MS, 3 * NS_PER_S))
def test_the_share_is_used_and_kept_over_a_long_time(share: float, duration_ns: int) -> None:
    count = max(5, 20 * PERIOD_NS // duration_ns)
    reads = played(DutyCycle(share), [duration_ns] * count)
    took_ns = reads[-1][0] - reads[0][0]
    found = busy_ns(reads[:-1], reads[0][0], reads[-1][0]) / took_ns
    assert share * 0.9 - 0.02 <= found <= share * 1.1 + duration_ns / took_ns


def test_reads_come_in_bursts() -> None:
    reads = played(DutyCycle(0.25), [PERIOD_NS // 400] * 300)
    rests = [begin - end for (_, end), (begin, _) in pairwise(reads)]
    assert rests[:99] == [0] * 99
    assert 0.7 * PERIOD_NS < max(rests[99:101]) < 0.8 * PERIOD_NS


@pytest.mark.parametrize(("share", "burst_s"), [(0.4, 4), (0.8, 12)])
def test_a_large_share_has_longer_bursts_and_rests_that_can_be_measured(
    share: float, burst_s: float
) -> None:
    reads = played(DutyCycle(share), [PERIOD_NS // 400] * 1600)
    rests = [begin - end for (_, end), (begin, _) in pairwise(reads)]
    pauses = [rest for rest in rests if rest]
    assert all(
        rest == pytest.approx(burst_s / share * (1 - share) * NS_PER_S, rel=0.05) for rest in pauses
    )
    assert min(pauses) > 0.95 * REST_NS_MIN
    burst_ns = next(number + 1 for number, rest in enumerate(rests) if rest) * PERIOD_NS // 400
    assert burst_ns == pytest.approx(burst_s * NS_PER_S, rel=0.05)


def test_another_share_counts_from_now_on() -> None:
    duty = DutyCycle(0.05)
    assert duty.wait_ns(NS_PER_S * 100) == 0
    duty.spend(NS_PER_S)
    long_ns = duty.wait_ns(NS_PER_S * 101)
    duty.set_share(0.5)
    assert 0 < duty.wait_ns(NS_PER_S * 101) < long_ns
    duty.set_share(7.0)
    assert duty.share < 1

# SPDX-License-Identifier: GPL-2.0-only
"""A client may ask so often and no more, whatever it does to the clock or to its address."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ebbgate.web.rate_limit import CLIENTS_MAX, Limiter, Rate


@given(st.lists(st.floats(0, 10), max_size=200))
def test_never_more_than_the_burst_and_the_rate(waits_s: list[float]) -> None:
    limiter, now_s, taken = Limiter(Rate(5, 2)), 100.0, 0
    for wait_s in waits_s:
        now_s += wait_s
        taken += limiter.take("a", now_s) == 0
    assert taken <= 5 + 2 * (now_s - 100.0) + 1e-6


def test_who_waits_as_told_gets_in() -> None:
    limiter = Limiter(Rate(1, 0.5))
    assert limiter.take("a", 0) == 0
    wait_s = limiter.take("a", 0)
    assert wait_s == 2
    assert limiter.take("a", wait_s) == 0


def test_asking_does_not_prolong_the_wait() -> None:
    limiter = Limiter(Rate(1, 1))
    limiter.take("a", 0)
    for tenth in range(1, 10):
        assert limiter.take("a", tenth / 10) > 0
    assert limiter.take("a", 1.0) == 0


def test_a_clock_that_goes_back_gives_nothing() -> None:
    limiter = Limiter(Rate(1, 1))
    limiter.take("a", 100)
    assert limiter.take("a", 50) > 0


def test_a_look_takes_nothing() -> None:
    limiter = Limiter(Rate(1, 1))
    assert [limiter.wait_s("a", 0) for _ in range(3)] == [0, 0, 0]


def test_the_memory_for_addresses_is_bounded() -> None:
    limiter = Limiter(Rate(1, 1))
    for number in range(2 * CLIENTS_MAX):
        limiter.take(str(number), 0)
    assert len(limiter._buckets) == CLIENTS_MAX
    assert limiter.take(str(2 * CLIENTS_MAX - 1), 0) > 0

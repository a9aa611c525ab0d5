# SPDX-License-Identifier: GPL-2.0-only
"""While a warm-up reads, no strategy sets a cutoff under which its reads would bypass the cache."""

from __future__ import annotations

import pytest

from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.policy.defaults import Policy
from ebbgate.policy.engine import Outcome, OverrideChange, State, WarmChange, step
from ebbgate.policy.limits import Bounds, Limits
from ebbgate.policy.strategies.stream_bypass import StreamMode, StreamState
from ebbgate.units import KIB, MIB, NS_PER_S
from tests.builders import busy_frame

POLICY = Policy()
TIGHT = StreamState(StreamMode.BYPASS, "random writes need the room", 256 * KIB)


def warmed(policy: Policy = POLICY, *, override: bool = False) -> Outcome:
    state = State(streams=TIGHT, frame=busy_frame())
    if override:
        wanted = Override(OverrideKind.SET, "bcache0", "jo", 0, None, "sequential_cutoff", "65536")
        change = OverrideChange(((ActiveOverride(wanted, None), "64 KiB"),))
        state, _ = step(state, change, policy, NS_PER_S)
    _, outcome = step(state, WarmChange(4 * MIB), policy, NS_PER_S)
    return outcome


def test_a_tight_cutoff_is_raised_and_explained() -> None:
    decision = warmed().explained()
    assert (decision.sequential_cutoff_bytes, decision.cutoff_strategy) == (4 * MIB, "warm")
    assert decision.congestion_bypass is False, "the warm-up itself makes the cache device slow"
    (reason,) = [each.reason for each in decision.proposals if each.strategy == "warm"]
    assert "strategies set no sequential cutoff below 4 MiB, such as 256 KiB" in reason


def test_the_end_of_the_warm_up_returns_the_cutoff() -> None:
    _, outcome = step(warmed().state, WarmChange(None), POLICY, NS_PER_S)
    assert outcome.decision().sequential_cutoff_bytes == 256 * KIB
    assert outcome.decision().congestion_bypass is None
    assert all(each.strategy != "warm" for each in outcome.decision().proposals)


def test_a_person_and_the_limits_of_the_policy_are_above_a_warm_up() -> None:
    assert warmed(override=True).decision().sequential_cutoff_bytes == 64 * KIB
    limited = Policy(limits=Limits(sequential_cutoff=Bounds(high=MIB)))
    assert warmed(limited).decision().sequential_cutoff_bytes == MIB


@pytest.mark.parametrize("cutoff", [None, 2 << 30])
def test_a_higher_cutoff_stays(cutoff: int | None) -> None:
    streams = StreamState(StreamMode.ABSORB if cutoff else StreamMode.REST, "", cutoff)
    state = State(streams=streams, frame=busy_frame())
    _, outcome = step(state, WarmChange(4 * MIB), POLICY, NS_PER_S)
    assert outcome.decision().sequential_cutoff_bytes == cutoff


def test_a_person_decides_how_a_slow_cache_device_is_treated() -> None:
    wanted = Override(
        OverrideKind.SET, "bcache0", "jo", 0, None, "congested_read_threshold_us", "2000"
    )
    change = OverrideChange(((ActiveOverride(wanted, None), "2 ms"),))
    state, _ = step(State(frame=busy_frame()), change, POLICY, NS_PER_S)
    _, outcome = step(state, WarmChange(4 * MIB), POLICY, NS_PER_S)
    assert outcome.decision().congestion_bypass is None

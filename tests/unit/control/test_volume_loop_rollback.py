# SPDX-License-Identifier: GPL-2.0-only
"""The no-regret guard in the loop of a volume: an action that users feel ends at the knobs."""

from __future__ import annotations

from typing import Any

import pytest

from ebbgate.model.decision import GateKind
from ebbgate.model.volume import Mode
from ebbgate.units import MIB, NS_PER_MS
from tests.builders import tick, volume_state
from tests.volume_loop_fixture import LoopHarness

FAST, SLOW = 52, 64
"""Latency buckets of the probe: some 16 ms, some 131 ms."""


class Users:
    """Fifty reads in each quarter of a second, all in one bucket of the latency."""

    def __init__(self, harness: LoopHarness) -> None:
        self.harness = harness
        self.counts = [0] * (SLOW + 1)

    def reads(self, seconds: float, bucket: int, **seen: Any) -> None:
        for _ in range(round(seconds * 4)):
            harness = self.harness
            harness.now_ms += 250
            self.counts[bucket] += 50
            now_ns, ios = harness.now_ms * NS_PER_MS, sum(self.counts)
            flow = {"ios": ios, "bytes": ios * 4096, "lat": list(self.counts)}
            disk = {"backing": {"read": {"fg": flow}}}
            fields = {"fg": {"read": flow}, "path": {"read": {"miss": flow}}, "dev": disk}
            harness.loop.on_record(tick(ns=now_ns, state="busy", last_ns=now_ns, **fields))
            known = {"dirty_bytes": 100 * MIB, "in_use_ratio": 0.2, **seen}
            harness.loop.on_tick(
                volume_state(at_ns=now_ns, knobs=harness.knobs(), **known), knobs_settled=True
            )
            harness.settle()


@pytest.fixture
def users(enforced: LoopHarness) -> Users:
    return Users(enforced)


def under_pressure(users: Users) -> None:
    """Users are used to 16 ms; then dirty data becomes due."""
    users.reads(2, FAST)
    loop = users.harness.loop
    waiting = loop.state.destage.waiting_since_ns
    users.harness.now_ms = waiting // NS_PER_MS + 600_000 - 8_000
    users.reads(7.5, FAST)
    assert users.harness.gate() is GateKind.CLOSED
    users.reads(1, FAST)
    assert users.harness.gate() is GateKind.PACED


def test_destage_that_slows_users_is_rolled_back_and_reported(users: Users) -> None:
    under_pressure(users)
    users.reads(8, SLOW)
    assert users.harness.gate() is GateKind.CLOSED
    decision = users.harness.kept.decisions[-1]
    assert decision.gate_strategy == "rollback_guard"
    assert "write-back under load is suspended for" in decision.proposals[0].reason
    written = [o for o in users.harness.kept.written if o.action.strategy == "rollback_guard"]
    assert written, "no knob was written for it"
    proposals = {each["strategy"]: each for each in users.harness.kept.document["proposals"]}
    assert proposals["rollback_guard"]["wins"] == ["destage"]
    assert users.harness.kept.document["totals"]["rollbacks"] == {"gate": 1, "streams": 0}


def test_after_the_suspension_it_is_tried_again(users: Users) -> None:
    under_pressure(users)
    users.reads(8, SLOW)
    users.reads(50, FAST)
    assert users.harness.gate() is GateKind.CLOSED
    users.reads(12, FAST)
    assert users.harness.gate() is GateKind.PACED


def test_an_action_that_users_do_not_notice_goes_on(users: Users) -> None:
    under_pressure(users)
    users.reads(8, FAST)
    assert users.harness.gate() is GateKind.PACED
    names = {p.strategy for d in users.harness.kept.decisions for p in d.proposals}
    assert "rollback_guard" not in names


def test_a_cache_that_runs_full_is_drained_whatever_users_feel(users: Users) -> None:
    under_pressure(users)
    users.reads(8, SLOW, in_use_ratio=0.38)
    assert users.harness.gate() is GateKind.PACED
    assert users.harness.kept.decisions[-1].gate_strategy == "idle_destage"
    first = users.harness.kept.decisions[-1].proposals[0]
    assert first.strategy == "rollback_guard"
    assert first.reason.endswith("ignored, since dirty data must be written back")


def test_in_advise_nothing_is_regretted(users: Users) -> None:
    users.harness.loop.set_mode(Mode.ADVISE, "a person")
    users.harness.settle()
    users.reads(2, FAST)
    waiting = users.harness.loop.state.destage.waiting_since_ns
    users.harness.now_ms = waiting // NS_PER_MS + 600_000 - 8_000
    users.reads(9, FAST)
    users.reads(8, SLOW)
    assert users.harness.kept.decisions[-1].gate_strategy == "idle_destage"

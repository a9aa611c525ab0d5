# SPDX-License-Identifier: GPL-2.0-only
"""From misses to moves: records of the probe, the decision, a worker, and its reports."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ebbgate.daemon import promotion_mover
from ebbgate.daemon.promotion_movers import PromotionMovers
from ebbgate.model.heat import ChunkMisses, HeatPeriod
from ebbgate.model.promotion import ChunkState, MoverState
from ebbgate.model.records import HeatRecord
from ebbgate.model.volume import Mode
from ebbgate.policy.engine import PROMOTE_HOT, Policy
from ebbgate.policy.strategies.promote_stop import PromoteParams
from ebbgate.units import MIB, NS_PER_MS, NS_PER_S
from tests.intent_fixture import IntentHarness
from tests.waiting import until
from tests.warm_fixture import NO_BLOCKS, OPENED, FakeProcess, turn

HOT = tuple(range(40, 72))
POLICY = Policy(promotion=PromoteParams(), order=(*Policy().order, PROMOTE_HOT))


@pytest.fixture
def movers(intents: IntentHarness, monkeypatch: pytest.MonkeyPatch) -> Iterator[PromotionMovers]:
    FakeProcess.made, FakeProcess.first = [], OPENED
    monkeypatch.setattr(promotion_mover, "WarmProcess", FakeProcess)
    made = PromotionMovers(intents.volume.loop.writer.sysfs, intents.daemon.volumes)
    yield made
    intents.run(made.stop())


def misses(intents: IntentHarness, *others: int) -> None:
    """A window of 10 s in which users miss each chunk of the hot ones, and a few others.

    Nothing is dirty, so that no write-back comes first.
    """
    volume = intents.volume
    volume.now_ms += 10_000
    end_ns = volume.now_ns()
    found = tuple(ChunkMisses(chunk, sync_reads=20) for chunk in (*HOT, *others))
    period = HeatPeriod(end_ns - 10 * NS_PER_S, end_ns, found)
    volume.loop.on_record(HeatRecord("bcache0", end_ns, period))
    volume.tick(in_use_ratio=0.5, dirty_bytes=0)
    volume.tick(in_use_ratio=0.5, dirty_bytes=0)


def decided(intents: IntentHarness, mode: Mode) -> None:
    """Let the strategy find what is to be moved."""
    intents.volume.loop.set_mode(mode, "")
    intents.volume.loop.set_policy(POLICY)
    # The first window shows how large the volume is.
    misses(intents, 1999)
    for _ in range(3):
        misses(intents)
    assert intents.volume.loop.state.promotion.promotion is not None


def looked_at(intents: IntentHarness, movers: PromotionMovers) -> MoverState:
    intents.run(turn(lambda: movers.on_tick("bcache0")))
    return intents.volume.loop.mover.state


def test_in_advise_nothing_is_read(intents: IntentHarness, movers: PromotionMovers) -> None:
    decided(intents, Mode.ADVISE)
    assert [looked_at(intents, movers) for _ in range(3)] == [MoverState.IDLE] * 3
    assert FakeProcess.made == []


def test_in_enforce_misses_are_moved_and_counted(
    intents: IntentHarness, movers: PromotionMovers
) -> None:
    decided(intents, Mode.ENFORCE)
    until(lambda: looked_at(intents, movers) is MoverState.MOVING, "the mover to begin")
    (worker,) = FakeProcess.made
    chunks = next(each["chunks"] for each in worker.sent[1:] if each["command"] == "move")
    assert set(chunks) < set(HOT), "some are held out"
    report = {"event": "moved", "moved": list(chunks), "failed": [], "busy_ns": 50 * NS_PER_MS}
    report |= {"collect": False, **NO_BLOCKS}
    intents.run(turn(lambda: worker.events.put_nowait(report)))
    assert intents.volume.loop.state.promotion.promotion is None
    intents.volume.now_ms += 1000
    intents.volume.tick(in_use_ratio=0.5)
    found = intents.volume.kept.status.promotion
    assert found is not None
    assert (found.moved_bytes, found.pending_bytes) == (len(chunks) * MIB, 0)
    assert found.held_out_bytes == (len(HOT) - len(chunks)) * MIB
    assert {each.state for each in found.chunks} <= {ChunkState.MOVED, ChunkState.HELD_OUT}

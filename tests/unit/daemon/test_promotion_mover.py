# SPDX-License-Identifier: GPL-2.0-only
"""Hot data is moved in enforce only, where a warm-up may read, whatever becomes of the worker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon import promotion_mover
from ebbgate.daemon.promotion_movers import PromotionMovers
from ebbgate.model.promotion import ChunksMoved, MoverState, Promotion
from ebbgate.model.volume import Mode
from ebbgate.model.warm import JobState, JobStatus
from ebbgate.policy.defaults import Policy
from ebbgate.warm.promotion_watch import BlockReads, PromotionWatch
from tests.builders import busy_edge
from tests.intent_fixture import IntentHarness
from tests.waiting import until
from tests.warm_fixture import NO_BLOCKS, OPENED, FakeProcess, turn

CHUNKS = (40, 7, 9)
NOTHING = {"event": "moved", "moved": [], "failed": [], "busy_ns": 0, "collect": False, **NO_BLOCKS}
"""A report of a worker that has read nothing."""


class Machine:
    """A volume in mode enforce whose decision promotes something, and its workers."""

    def __init__(self, intents: IntentHarness, patch: pytest.MonkeyPatch) -> None:
        self.intents = intents
        self.loop = intents.volume.loop
        self.reports: list[ChunksMoved] = []
        self.movers = PromotionMovers(self.loop.writer.sysfs, intents.daemon.volumes)
        patch.setattr(VolumeLoop, "on_chunks_moved", lambda _, report: self.reports.append(report))
        self.loop.set_mode(Mode.ENFORCE, "")
        self.promotion: Promotion | None = Promotion(CHUNKS, 0.35)

    @property
    def worker(self) -> FakeProcess:
        return FakeProcess.made[-1]

    @property
    def why(self) -> str:
        return self.loop.mover.why

    def now(self, act: Callable[[], object]) -> None:
        self.intents.run(turn(act))

    def tick(self, seconds: float = 0.25) -> None:
        self.intents.volume.now_ms += int(seconds * 1000)

        def act() -> None:
            self.loop.promotion = self.promotion if self.loop.mode is Mode.ENFORCE else None
            self.movers.on_tick("bcache0")

        self.now(act)

    def begins(self) -> FakeProcess:
        """Wait until a worker reads."""

        def reads() -> bool:
            self.tick()
            return self.loop.mover.state is MoverState.MOVING

        until(reads, "the mover to begin")
        return self.worker

    def waits_for(self, holds: Callable[[], bool], what: str) -> None:
        """Let the daemon work until it holds."""

        def holds_now() -> bool:
            self.now(lambda: None)
            return holds()

        until(holds_now, what)

    def ended(self, worker: FakeProcess) -> bool:
        """Wait until a worker is ended."""
        self.waits_for(lambda: worker.ended, "the worker to end")
        return True

    def hears(self, moved: object = (), failed: object = (), **fields: Any) -> None:
        event = {**NOTHING, "moved": moved, "failed": failed, **fields}
        self.now(lambda: self.worker.events.put_nowait(event))


@pytest.fixture
def machine(intents: IntentHarness, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    FakeProcess.made, FakeProcess.first = [], OPENED
    monkeypatch.setattr(promotion_mover, "WarmProcess", FakeProcess)
    intents.tick()
    made = Machine(intents, monkeypatch)
    yield made
    intents.run(made.movers.stop())


def lists(worker: FakeProcess) -> list[tuple[int, ...]]:
    return [tuple(each["chunks"]) for each in worker.sent[1:] if each["command"] == "move"]


def test_a_worker_opens_the_volume_and_gets_chunks_with_their_share(machine: Machine) -> None:
    worker = machine.begins()
    assert worker.sent[0]["device"] == "/dev/bcache0"
    assert worker.commands[:2] == ["serve", "move"]
    assert worker.sent[1]["kind"] == "bcache"
    assert (lists(worker), worker.sent[2]["share"]) == ([CHUNKS], 0.35)
    assert len(FakeProcess.made) == 1


@pytest.mark.parametrize("mode", [Mode.ADVISE, Mode.OBSERVE])
def test_nothing_is_read_outside_enforce(machine: Machine, mode: Mode) -> None:
    machine.loop.set_mode(mode, "")
    machine.tick()
    machine.tick()
    assert FakeProcess.made == []


def test_reports_reach_the_engine_and_are_counted(machine: Machine) -> None:
    machine.begins()
    machine.intents.volume.now_ms += 500
    machine.hears([7, 40], [9], busy_ns=200_000_000)
    machine.hears([7], busy_ns=1000)
    assert [(each.moved, each.failed) for each in machine.reports] == [((7, 40), (9,)), ((), ())]
    assert machine.reports[0].at_ns == machine.loop.now_ns()
    found = machine.loop.mover
    assert (found.moved_chunks, found.failed_chunks, found.busy_ns) == (2, 1, 200_001_000)


def test_a_list_is_sent_again_only_when_others_are_chosen(machine: Machine) -> None:
    worker = machine.begins()
    machine.hears([40])
    machine.tick()
    machine.tick()
    assert lists(worker) == [CHUNKS]
    machine.promotion = Promotion((9, 50), 0.35)
    machine.tick()
    assert lists(worker)[1:] == [(9, 50)]
    machine.promotion = Promotion((9, 50), 0.4)
    machine.tick()
    assert worker.sent[-1]["share"] == 0.4


def test_a_long_list_is_sent_in_parts(machine: Machine) -> None:
    machine.promotion = Promotion(tuple(range(1000)), 0.35)
    worker = machine.begins()
    machine.hears(list(range(100)))
    machine.tick()
    assert lists(worker) == [tuple(range(256))]
    machine.hears(list(range(100, 200)))
    machine.tick()
    assert lists(worker)[1:] == [tuple(range(200, 456))]


def test_a_chunk_that_is_chosen_again_later_is_read_again(machine: Machine) -> None:
    worker = machine.begins()
    machine.hears([40])
    machine.promotion = Promotion((7, 9), 0.35)
    machine.tick()
    machine.promotion = Promotion((40, 7, 9), 0.35)
    machine.tick()
    assert lists(worker)[-1] == (40, 7, 9)


def test_returning_users_get_a_moment_without_reads(machine: Machine) -> None:
    worker = machine.begins()
    machine.now(lambda: machine.movers.on_edge(busy_edge(10_000)))
    assert worker.commands[-1] == "pause"
    assert machine.loop.mover.state is MoverState.MOVING


def test_a_job_of_a_person_has_precedence(machine: Machine) -> None:
    worker = machine.begins()
    machine.loop.jobs = (JobStatus(3, "/srv/a", JobState.READING),)
    machine.tick()
    assert worker.commands[-1] == "hold"
    assert (machine.loop.mover.state, machine.why) == (MoverState.WAITING, "job 3 warms /srv/a")
    machine.loop.jobs = (JobStatus(3, "/srv/a", JobState.DONE),)
    machine.tick()
    assert lists(worker) == [CHUNKS, CHUNKS]


def test_a_job_that_is_paused_stops_no_moves(machine: Machine) -> None:
    worker = machine.begins()
    machine.loop.jobs = (JobStatus(3, "/srv/a", JobState.PAUSED),)
    machine.tick()
    assert machine.loop.mover.state is MoverState.MOVING
    machine.loop.jobs = (JobStatus(3, "/srv/a", JobState.WAITING),)
    machine.tick()
    assert (worker.commands[-1], machine.why) == ("hold", "job 3 warms /srv/a")


def test_it_stands_back_where_a_warm_up_does(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    worker = machine.begins()
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(promotion_mover, "stands_back", lambda *_, **__: "the cache is full")
    machine.tick()
    machine.tick(30)
    assert (worker.commands[-1], machine.why) == ("hold", "the cache is full")
    assert "no hot data" not in caplog.text, "short waits are not logged"
    machine.tick(40)
    machine.tick(40)
    assert caplog.text.count("no hot data is moved for now: the cache is full") == 1


@pytest.mark.parametrize("change", ["advise", "freeze", "policy", "gone"])
def test_the_worker_ends_with_its_reason(machine: Machine, change: str) -> None:
    worker = machine.begins()
    if change == "advise":
        machine.loop.set_mode(Mode.ADVISE, "")
        machine.tick()
    elif change == "freeze":
        machine.loop.freeze(on=True)
        machine.tick()
    elif change == "policy":
        machine.loop.set_policy(Policy(name="other"))
        machine.tick()
    else:
        machine.intents.daemon.volumes.clear()
        machine.now(machine.movers.poll)
    assert machine.ended(worker)


def test_a_worker_that_reports_at_the_moment_of_its_end_is_ended(machine: Machine) -> None:
    worker = machine.begins()
    machine.loop.set_mode(Mode.ADVISE, "")

    def act() -> None:
        worker.events.put_nowait(NOTHING)
        machine.movers.on_tick("bcache0")

    machine.now(act)
    assert worker.ended


def test_it_waits_where_users_misses_are_promoted_more_often_beside_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = machine.begins()
    machine.loop.promoted.others, machine.loop.promoted.holds = 310, 2
    monkeypatch.setattr(PromotionWatch, "why", lambda *_: "too many")
    machine.tick()
    found = machine.loop.mover
    assert (worker.commands[-1], found.state, found.why) == ("hold", MoverState.WAITING, "too many")
    assert (found.other_promotions, found.promotion_holds) == (310, 2)


def test_what_its_reads_bring_in_is_told_from_users(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.begins()
    seen: list[object] = []
    monkeypatch.setattr(PromotionWatch, "on_reads", lambda _, __, reads: seen.append(reads))
    monkeypatch.setattr(PromotionWatch, "on_ended", lambda *_: seen.append("ended"))
    machine.hears(touched=9, brought=3, pending=2)
    machine.loop.set_mode(Mode.ADVISE, "")
    machine.tick()
    machine.tick()
    assert seen == [BlockReads(9, 3, 2), "ended"]


def test_a_worker_without_work_reports_what_it_has_read_and_is_ended_later(
    machine: Machine,
) -> None:
    worker = machine.begins()
    machine.promotion = None
    machine.tick()
    machine.tick()
    assert (lists(worker), worker.commands[-1], worker.ended) == ([CHUNKS, ()], "move", False)
    machine.hears([40], [7])
    assert (machine.reports[-1].moved, machine.reports[-1].failed) == ((40,), (7,))
    machine.promotion = Promotion((9, 50), 0.35)
    machine.tick()
    assert lists(worker)[-1] == (9, 50)
    machine.promotion = None
    machine.tick(61)
    assert machine.ended(worker)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({}, "the reading process has ended"),
        ({"event": "failed", "text": "no such device"}, "no such device"),
        ({**NOTHING, "moved": [1 << 40]}, "cannot be right"),
        ({**NOTHING, "moved": [True]}, "cannot be right"),
        ({**NOTHING, "moved": 5}, "cannot be right"),
        ({**NOTHING, "busy_ns": 1 << 60}, "cannot be right"),
        ({**NOTHING, "busy_ns": -1}, "cannot be right"),
        ({**NOTHING, "touched": 3.5}, "cannot be right"),
        ({**NOTHING, "touched": 3, "brought": 4}, "cannot be right"),
        ({**NOTHING, "pending": -1}, "cannot be right"),
        ({"event": "moved"}, "cannot be right"),
        ({"nothing": 1}, "cannot be right"),
    ],
)
def test_a_worker_that_dies_or_lies_is_replaced_later_and_logged_once(
    machine: Machine, caplog: pytest.LogCaptureFixture, event: dict[str, Any], text: str
) -> None:
    worker = machine.begins()
    machine.now(lambda: worker.events.put_nowait(event))
    assert machine.ended(worker)
    assert text in machine.why
    assert machine.reports == []
    machine.tick()
    assert len(FakeProcess.made) == 1, "not at once"
    FakeProcess.first = {"event": "failed", "text": "still not there"}
    machine.tick(11)
    machine.waits_for(lambda: len(FakeProcess.made) == 2, "a second worker")
    machine.tick(11)
    assert len(FakeProcess.made) == 2, "the second wait is longer"
    FakeProcess.first = OPENED
    machine.tick(11)
    machine.begins()
    machine.hears([7])
    assert caplog.text.count("hot data cannot be moved") == 1
    assert machine.reports[-1].moved == (7,)


def test_a_worker_that_hangs_is_replaced(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(promotion_mover, "_SILENCE_S", 0.01)

    def given_up() -> bool:
        machine.tick()
        return "does not answer" in machine.why

    until(given_up, "the worker to be given up")
    assert machine.ended(machine.worker)
    assert "does not answer; tried again in 10 s" in caplog.text


def test_chunks_that_nobody_asked_for_are_not_reported(machine: Machine) -> None:
    machine.begins()
    machine.hears([5, 6, 40], busy_ns=10)
    assert machine.reports[-1].moved == (40,)
    assert not machine.worker.ended


def test_garbage_is_collected_where_the_worker_asks_for_it(machine: Machine) -> None:
    machine.begins()
    log = machine.intents.volume.sysfs.log
    machine.hears([40])
    machine.hears([7], collect="yes")
    assert ("trigger_gc", "1") not in log
    machine.hears([9], collect=True)
    machine.waits_for(lambda: log.count(("trigger_gc", "1")) == 1, "the write")


def test_the_daemon_stops_it(machine: Machine) -> None:
    worker = machine.begins()
    machine.intents.run(machine.movers.stop())
    assert machine.ended(worker)

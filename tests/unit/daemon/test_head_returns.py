# SPDX-License-Identifier: GPL-2.0-only
"""A hard disk's heads are brought back in enforce only, whatever becomes of a read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from ebbgate.daemon.head_returns import HeadReturns
from ebbgate.errors import Unavailable
from ebbgate.log_messages.volumes import HEAD_RETURN_FAILED
from ebbgate.model.heat import CHUNK_BYTES, ChunkMisses, HeatPeriod
from ebbgate.model.records import HeatRecord
from ebbgate.model.volume import Mode
from ebbgate.policy.defaults import Policy
from ebbgate.units import MINUTE_NS, NS_PER_MS, NS_PER_S
from tests.builders import busy_edge
from tests.intent_fixture import IntentHarness
from tests.waiting import until
from tests.warm_fixture import RecordingProcess, turn

READ = {"event": "read", "device": "/dev/bcache0"}


class Machine:
    """A volume in mode enforce whose gaps ask for reads, and the processes that would read."""

    def __init__(self, intents: IntentHarness) -> None:
        RecordingProcess.made = []
        self.intents = intents
        self.loop = intents.volume.loop
        self.starts: Callable[[], object] = lambda: None
        self.heads = HeadReturns(intents.daemon.volumes, self.now_ns, self.start)
        self.loop.set_mode(Mode.ENFORCE, "")
        self.rotates(True)
        self.misses(40)
        self.heads.follow("bcache0")

    def now_ns(self) -> int:
        return self.intents.volume.now_ms * NS_PER_MS

    async def start(self) -> RecordingProcess:
        self.starts()
        return await RecordingProcess.start()

    def rotates(self, rotational: bool | None) -> None:
        backing = replace(self.loop.volume.backing, rotational=rotational)
        self.loop.volume = replace(self.loop.volume, disks=(), backing=backing)

    def misses(self, *chunks: int) -> None:
        found = tuple(ChunkMisses(chunk, 1) for chunk in chunks)
        period = HeatPeriod(self.now_ns(), self.now_ns() + NS_PER_S, found)
        self.loop.on_record(HeatRecord("bcache0", self.now_ns(), period))

    def asks(self) -> None:
        """A gap's write-back is over."""
        destage = self.loop.state.destage
        head = replace(destage.head, count=destage.head.count + 1)
        self.loop.state = replace(self.loop.state, destage=replace(destage, head=head))
        self.now(lambda: self.heads.follow("bcache0"))

    def now(self, act: Callable[[], object]) -> None:
        self.intents.run(turn(act))

    def hears(self, **event: object) -> None:
        self.now(lambda: self.process.events.put_nowait(event))

    @property
    def process(self) -> RecordingProcess:
        found: RecordingProcess = RecordingProcess.made[-1]
        return found

    def sent(self, count: int) -> list[dict[str, object]]:
        """What the worker was asked to read, once it is so much."""

        def all_sent() -> bool:
            self.now(lambda: None)
            return bool(RecordingProcess.made) and len(self.process.sent) > count

        until(all_sent, "the worker to be asked")
        assert self.process.sent[0] == {"heads": True}
        return self.process.sent[1:]


@pytest.fixture
def machine(intents: IntentHarness) -> Iterator[Machine]:
    intents.tick()
    made = Machine(intents)
    yield made
    intents.run(made.heads.stop())


def test_a_page_near_the_middle_of_the_misses_is_read(machine: Machine) -> None:
    machine.misses(10, 900, 40, 40, 40)
    machine.asks()
    (found,) = machine.sent(1)
    volume = machine.loop.volume
    assert (found["device"], found["devno"]) == ("/dev/bcache0", volume.devno)
    assert isinstance(found["offset"], int)
    assert abs(found["offset"] // CHUNK_BYTES - 40) <= 8


def test_one_process_reads_for_each_gap(machine: Machine) -> None:
    machine.asks()
    machine.sent(1)
    machine.hears(**READ)
    machine.asks()
    first, second = machine.sent(2)
    assert first["offset"] != second["offset"]
    assert len(RecordingProcess.made) == 1


def test_the_same_count_is_one_read(machine: Machine) -> None:
    machine.asks()
    machine.sent(1)
    machine.hears(**READ)
    machine.now(lambda: machine.heads.follow("bcache0"))
    assert len(machine.process.sent) == 2


def no_hard_disk(machine: Machine) -> None:
    machine.rotates(False)


def unknown_disk(machine: Machine) -> None:
    machine.rotates(None)


def advises(machine: Machine) -> None:
    machine.loop.set_mode(Mode.ADVISE, "")


def frozen(machine: Machine) -> None:
    machine.loop.freeze(True)


def no_gate(machine: Machine) -> None:
    machine.loop.set_policy(replace(Policy(), destage=None))


def gate_of_a_person(machine: Machine) -> None:
    machine.loop.writer.manual.add("writeback_rate")


@pytest.mark.parametrize(
    "why_not", [no_hard_disk, unknown_disk, advises, frozen, no_gate, gate_of_a_person]
)
def test_nothing_is_read(machine: Machine, why_not: Callable[[Machine], None]) -> None:
    why_not(machine)
    machine.asks()
    assert RecordingProcess.made == []


def test_nothing_is_read_where_no_miss_is_known(intents: IntentHarness) -> None:
    intents.tick()
    machine = Machine(intents)
    machine.loop.signals = type(machine.loop.signals)(machine.loop.writer, machine.now_ns, 0)
    machine.asks()
    assert RecordingProcess.made == []


def test_a_volume_that_appears_anew_is_not_read_for_what_it_asked_before(machine: Machine) -> None:
    destage = machine.loop.state.destage
    head = replace(destage.head, count=7)
    machine.loop.state = replace(machine.loop.state, destage=replace(destage, head=head))
    fresh = HeadReturns(machine.intents.daemon.volumes, machine.now_ns, machine.start)
    machine.now(lambda: fresh.follow("bcache0"))
    assert RecordingProcess.made == []


def test_what_was_not_read_before_users_returned_is_dropped(machine: Machine) -> None:
    machine.asks()
    machine.sent(1)
    # The first read is under way, so the second one waits.
    machine.asks()
    machine.now(lambda: machine.heads.on_edge(busy_edge(20_000, 500)))
    machine.hears(**READ)
    assert len(machine.process.sent) == 2
    machine.asks()
    assert len(machine.sent(2)) == 2


def test_a_failed_read_is_logged_once_until_one_works(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    failed = {"event": "failed", "device": "/dev/bcache0", "text": "Input/output\x1b error"}
    for number, event in enumerate([failed, failed, READ, failed], start=1):
        machine.asks()
        machine.sent(number)
        machine.hears(**event)
    records = [record for record in caplog.records if record.msg is HEAD_RETURN_FAILED]
    assert len(records) == 2
    assert "\x1b" not in records[0].getMessage()


def test_a_worker_that_cannot_be_started_is_not_tried_at_each_gap(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    tries = []

    def refuse() -> None:
        tries.append(machine.now_ns())
        raise Unavailable("no socket")

    machine.starts = refuse
    machine.asks()
    until(lambda: len(tries) == 1, "a worker to be started")
    machine.asks()
    machine.asks()
    assert len(tries) == 1
    assert "no socket" in caplog.text
    machine.intents.volume.now_ms += 11 * MINUTE_NS // NS_PER_MS
    machine.starts = lambda: None
    machine.asks()
    assert len(machine.sent(1)) == 1


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"event": None},
        {"text": "?"},
        {"event": "failed"},
        {"event": "failed", "text": 5},
        {"event": "failed", "text": ["a"]},
    ],
)
def test_a_worker_that_ends_or_sends_nonsense_is_given_up(
    machine: Machine, event: dict[str, object]
) -> None:
    machine.asks()
    machine.sent(1)
    worker = machine.process
    machine.hears(**event)
    if event != {"event": None}:
        until(lambda: worker.ended, "the worker to be ended")
        machine.asks()
        assert RecordingProcess.made == [worker]

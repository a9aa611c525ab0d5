# SPDX-License-Identifier: GPL-2.0-only
"""Layouts are read when they are due, checked, and forgotten when no policy wants them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon import layout_reader
from ebbgate.daemon.layout_reader import LayoutReader
from ebbgate.daemon.warm_process import WarmProcess
from ebbgate.errors import Unavailable
from ebbgate.kernel.device_mapper import Target
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.model.attribution import FileId
from ebbgate.model.heat import ChunkRun
from ebbgate.model.status import LayoutStatus
from ebbgate.model.volume import Mode
from ebbgate.policy.strategies.promote_stop import PromoteParams
from ebbgate.units import NS_PER_S
from tests.layout_fixture import FakeTables
from tests.volume_loop_fixture import LoopHarness

MINUTE_NS = 60 * NS_PER_S
GROUPS = {"event": "groups", "names": ["/srv/a"]}
RUNS = {"event": "runs", "runs": [[4, 6, 0]]}
INODES = {"event": "inodes", "inodes": [[3, 12, 0]]}
END: dict[str, Any] = {
    "event": "surveyed",
    "files": 1,
    "bytes": 4096,
    "left_out": {"on another device": 2},
    "error": "",
    "changed": False,
}


class FakeProcess(WarmProcess):
    """Says these lines. `request`: what it was asked."""

    def __init__(self, lines: list[dict[str, Any]]) -> None:
        self.lines = list(lines)
        self.request: Mapping[str, Any] = {}
        self.ended = False

    def send(self, message: Mapping[str, object]) -> None:
        self.request = message

    async def event(self) -> dict[str, Any]:
        if not self.lines:
            await asyncio.sleep(60)
        return self.lines.pop(0)

    async def end(self) -> None:
        self.ended = True


class Reader:
    """A reader of bcache0, and a clock. `answers`: of the next processes; the last one stays."""

    def __init__(self, loop: VolumeLoop) -> None:
        self.loop = loop
        self.now_ns = 0
        self.answers: list[list[dict[str, Any]]] = [[GROUPS, RUNS, INODES, END]]
        self.made: list[FakeProcess] = []
        self.tables = FakeTables()
        self.volumes = {"bcache0": loop}
        sysfs = Sysfs(loop.writer.sysfs.root, self.tables)
        self.reader = LayoutReader(sysfs, self.volumes, self._start, lambda: self.now_ns)

    async def _start(self) -> WarmProcess:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.made.append(FakeProcess(answer))
        return self.made[-1]

    def wants(self, *files: str) -> None:
        self.loop.set_policy(replace(self.loop.policy, promotion=PromoteParams(files=files)))

    def passes(self, duration_ns: int = 0, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Let time pass, and the reader do what is due then."""
        self.now_ns += duration_ns

        async def work() -> None:
            self.reader.poll()
            meanwhile()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*others)

        asyncio.run(work())

    @property
    def status(self) -> LayoutStatus:
        assert self.loop.layout is not None
        return self.loop.layout

    @property
    def runs(self) -> tuple[ChunkRun, ...]:
        assert self.loop.signals.layout is not None
        return self.loop.signals.layout.runs


@pytest.fixture
def reader(make_loop: Callable[[Mode], LoopHarness]) -> Iterator[Reader]:
    harness = make_loop(Mode.ADVISE)
    harness.tick()
    made = Reader(harness.loop)
    made.wants("/srv/*")
    yield made
    assert all(process.ended for process in made.made)


def test_a_layout_goes_to_the_frame_and_to_the_status(reader: Reader) -> None:
    reader.passes(7 * NS_PER_S)
    assert reader.made[0].request == {"layout": ("/srv/*",), "volume": "bcache0", "tables": {}}
    assert reader.runs == (ChunkRun(4, 6, 0),)
    assert reader.loop.signals.layout is not None
    assert reader.loop.signals.layout.files == {FileId(3, 12): 0}
    assert reader.status == LayoutStatus(1, 4096, {"on another device": 2}, 7 * NS_PER_S)
    layout = reader.loop.signals.layout
    assert layout is not None
    assert (layout.read_ns, layout.groups) == (7 * NS_PER_S, ("/srv/a",))


def test_it_is_read_every_five_minutes_and_after_a_change_of_the_policy(reader: Reader) -> None:
    reader.passes()
    reader.passes(4 * MINUTE_NS)
    assert len(reader.made) == 1
    reader.passes(MINUTE_NS)
    assert len(reader.made) == 2
    reader.wants("/srv/b")
    reader.passes(NS_PER_S)
    assert [each.request["layout"] for each in reader.made[1:]] == [("/srv/*",), ("/srv/b",)]


def test_it_is_not_read_again_while_nobody_uses_the_volume(reader: Reader) -> None:
    reader.passes()
    loop, frame = reader.loop, reader.loop.state.current_frame
    assert frame is not None
    loop.state = replace(loop.state, frame=replace(frame, idle_ns=6 * MINUTE_NS))
    reader.passes(5 * MINUTE_NS)
    assert len(reader.made) == 1
    reader.passes(2 * MINUTE_NS)
    assert len(reader.made) == 2


def test_it_is_forgotten_once_the_policy_names_no_files(reader: Reader) -> None:
    reader.passes()
    reader.wants()
    reader.passes(NS_PER_S)
    assert (reader.loop.layout, reader.loop.signals.layout) == (None, None)
    assert len(reader.made) == 1


def test_an_answer_is_not_used_once_the_policy_names_no_files(reader: Reader) -> None:
    reader.passes(meanwhile=reader.wants)
    assert (reader.loop.layout, reader.loop.signals.layout) == (None, None)


def test_a_layout_that_changed_while_it_was_read_is_read_again(reader: Reader) -> None:
    reader.answers = [[END | {"changed": True}], [GROUPS, RUNS, END]]
    reader.passes()
    assert len(reader.made) == 2
    assert reader.runs == (ChunkRun(4, 6, 0),)


def test_a_table_that_changed_while_files_were_read_is_noticed(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeTables, "names", lambda self: tuple(self.tables))
    count = 0

    def move() -> None:
        nonlocal count
        count += 1
        place = min(count, 2)
        reader.tables.tables["vg-a"] = (Target(0, 8, "linear", f"252:0 {place}"),)

    reader.tables.tables["vg-a"] = ()
    reader.tables.before_read = move
    reader.passes()
    sent = [each.request["tables"]["vg-a"] for each in reader.made]
    assert sent == [[(0, 8, "linear", "252:0 1")], [(0, 8, "linear", "252:0 2")]]


@pytest.mark.parametrize("method", ["names", "table"])
def test_files_are_read_without_device_mapper(
    reader: Reader, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def refuse(*_: object) -> None:
        raise Unavailable("device-mapper cannot be queried")

    monkeypatch.setattr(FakeTables, "names", lambda _: ("vg-a",))
    monkeypatch.setattr(FakeTables, method, refuse)
    reader.passes()
    assert reader.made[0].request["tables"] == {}
    assert reader.status.files == 1


def test_one_that_changes_all_the_time_is_given_up_and_the_last_one_stays(reader: Reader) -> None:
    reader.passes()
    reader.answers = [[END | {"changed": True}]]
    reader.passes(5 * MINUTE_NS)
    assert len(reader.made) == 4
    assert reader.status.error.startswith("the devices below the files change")
    assert (reader.status.files, reader.status.read_ns) == (1, 0)
    assert reader.runs == (ChunkRun(4, 6, 0),)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ({"event": "runs", "runs": [[0, 1, 0]]}, "what the reading process says of the layout"),
        ({"event": "failed", "text": "too many files", "hint": ""}, "too many files"),
    ],
)
def test_a_failure_is_reported_once_and_tried_again_after_a_minute(
    reader: Reader, caplog: pytest.LogCaptureFixture, line: dict[str, Any], error: str
) -> None:
    reader.answers = [[line]]
    reader.passes()
    reader.passes(59 * NS_PER_S)
    assert len(reader.made) == 1
    assert reader.status.error.startswith(error)
    assert reader.loop.signals.layout is None
    reader.passes(NS_PER_S)
    assert len(reader.made) == 2
    assert len([each for each in caplog.records if error in each.getMessage()]) == 1


def test_one_that_fails_is_tried_less_and_less_often(reader: Reader) -> None:
    """Each time may leave a process behind, of which there is a bounded number."""
    reader.answers = [[{"event": "failed", "text": "too many files", "hint": ""}]]
    reader.passes()
    made = []
    for _ in range(60):
        reader.passes(MINUTE_NS)
        made.append(len(reader.made))
    assert [made.index(count) + 1 for count in range(2, 7)] == [1, 3, 7, 15, 31]
    assert made[-1] == 6


def test_one_that_fails_keeps_no_other_waiting(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout_reader, "_ANSWER_S", 0.05)
    other = copy(reader.loop)
    other.policy = replace(other.policy, promotion=PromoteParams(files=("/other/*",)))
    reader.volumes["bcache1"] = other
    reader.answers = [[GROUPS]]
    for _ in range(2):
        # It takes longer than the time after which the first one is tried again.
        reader.passes(2 * MINUTE_NS)
    assert [each.request["layout"] for each in reader.made] == [("/srv/*",), ("/other/*",)]


def test_a_process_that_hangs_is_ended(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_reader, "_ANSWER_S", 0.05)
    reader.answers = [[GROUPS]]
    reader.passes()
    assert reader.status.error == "the files could not be read within 0.05 s"
    assert reader.made[0].ended


def test_a_process_that_cannot_be_started_is_reported(reader: Reader) -> None:
    async def start() -> WarmProcess:
        raise Unavailable("the reading process cannot be started: refused")

    reader.reader = LayoutReader(Sysfs(dm=FakeTables()), reader.volumes, start, lambda: 0)
    reader.passes()
    assert reader.status.error == "the reading process cannot be started: refused"


def test_a_volume_that_was_put_together_anew_is_read_at_once(reader: Reader) -> None:
    reader.passes()
    del reader.volumes["bcache0"]
    reader.passes(NS_PER_S)
    reader.volumes["bcache0"] = reader.loop
    reader.passes(NS_PER_S)
    assert len(reader.made) == 2


def test_the_end_of_the_daemon_ends_the_process(reader: Reader) -> None:
    reader.answers = [[GROUPS]]

    async def work() -> None:
        reader.reader.poll()
        while not reader.made or reader.made[0].lines:
            await asyncio.sleep(0.01)
        await reader.reader.stop()

    asyncio.run(work())
    assert reader.made[0].ended


def test_a_real_process_answers(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of this machine are on no bcache0."""
    monkeypatch.delenv("EBBGATE_WARM_SOCKET", raising=False)
    (tmp_path / "a").write_bytes(bytes(4096))
    reader.wants(f"{tmp_path}/*", f"{tmp_path}/none*")
    reader.reader = LayoutReader(Sysfs(dm=FakeTables()), reader.volumes, now_ns=lambda: 0)
    reader.passes()
    assert (reader.status.files, sum(reader.status.left_out.values())) == (0, 2)
    assert reader.status.read_ns == 0
    assert reader.runs == ()

# SPDX-License-Identifier: GPL-2.0-only
"""The touches of one volume: what is asked of the process that reads, and when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.cache_facts import CacheFacts
from ebbgate.daemon.pin_intents import PinIntents
from ebbgate.daemon.pin_registry import PinRegistry
from ebbgate.daemon.pin_touches import PinTouches
from ebbgate.model.pin import Pin
from ebbgate.model.volume import Kind
from ebbgate.model.warm import JobState, JobStatus
from ebbgate.units import GIB, KIB, MIB
from tests.builders import dm_volume
from tests.pin_fixture import HANGS, OPENED, FakeProcess

ROUND_NS = 300 * 10**9


class EndingProcess(FakeProcess):
    """Says that it has ended to whoever waits for it, and nothing of files that hang."""

    def send(self, message: Mapping[str, object]) -> None:
        if self.found.get(str(message.get("touch"))) == HANGS:
            self.sent.append(dict(message))
        else:
            super().send(message)

    async def end(self) -> None:
        await super().end()
        self.events.put_nowait({})


def fake_loop(kind: Kind = Kind.BCACHE) -> VolumeLoop:
    volume = SimpleNamespace(
        name="bcache0",
        title="bcache0",
        kind=kind,
        devno=(252, 0),
        uuid="",
        backing=SimpleNamespace(devno=(8, 0)),
    )
    state = SimpleNamespace(current_frame=SimpleNamespace(cache_bytes=16 * GIB))
    return cast("VolumeLoop", SimpleNamespace(volume=volume, pins=(), state=state))


class Machine:
    """What touching needs of the daemon, and a clock. `warmed`: pins for which it was asked.

    `begun`: the state of their warm-ups; None: they are over.
    """

    def __init__(self, kind: Kind = Kind.BCACHE, pins: int = 1) -> None:
        self.now_ns = 10**12
        self.loop = fake_loop(kind)
        self.registry = PinRegistry(cast("Any", None), now_ns=lambda: self.now_ns, loaded=True)
        for number in range(1, pins + 1):
            path = f"/srv/{number}"
            self.registry.pins[number] = Pin("bcache0", path, 5, 7, "jo", 0, "/srv", number)
        self.touches = PinTouches(self.loop, self.registry, self, 0.25, EndingProcess.start)
        self.cache = CacheFacts(512, 0, 16 * GIB, 512 * KIB)
        self.warmed: list[int] = []
        self.begun: JobState | None = None

    async def facts(self, loop: VolumeLoop) -> CacheFacts:
        del loop
        return self.cache

    async def written_bytes(self, loop: VolumeLoop) -> int | None:
        del loop
        return 0

    async def volume_of(self, devno: tuple[int, int]) -> str | None:
        del devno
        return self.loop.volume.name

    async def warm(self, pin: Pin) -> int:
        self.warmed.append(pin.id)
        return len(self.warmed) if self.begun else 0

    def job(self, number: int) -> JobStatus | None:
        return JobStatus(number, "/srv/1", self.begun) if self.begun else None


@pytest.fixture(autouse=True)
def processes() -> Iterator[list[FakeProcess]]:
    FakeProcess.made, FakeProcess.found = [], {}
    FakeProcess.touched = FakeProcess.reads = 100
    FakeProcess.elsewhere = 0
    yield FakeProcess.made
    FakeProcess.elsewhere = 0


async def steps(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# ---- the process ends ----------------------------------------------------------------------------
def test_a_look_that_is_cancelled_goes_on_with_no_answer_of_that_moment(
    processes: list[FakeProcess],
) -> None:
    machine = Machine(pins=3)
    FakeProcess.found = {"/srv/1": HANGS}

    async def work() -> None:
        look = asyncio.create_task(machine.touches.look())
        await steps()
        processes[0].events.put_nowait({"event": "failed", "text": "it cannot be opened"})
        look.cancel()
        await asyncio.wait({look}, timeout=5.0)
        assert look.cancelled()

    asyncio.run(work())
    assert [each["touch"] for each in processes[0].sent] == ["/srv/1"]


def test_no_process_is_started_once_the_touches_have_ended(processes: list[FakeProcess]) -> None:
    machine = Machine(pins=3)
    FakeProcess.found = {"/srv/1": HANGS}

    async def work() -> None:
        look = asyncio.create_task(machine.touches.look())
        await steps()
        assert not look.done()
        await machine.touches.end()
        await asyncio.wait_for(look, 5)

    asyncio.run(work())
    assert [process.ended for process in processes] == [True]


def test_a_process_that_starts_meanwhile_is_ended(processes: list[FakeProcess]) -> None:
    machine, begins = Machine(pins=3), asyncio.Event()

    async def start() -> EndingProcess:
        await begins.wait()
        return await EndingProcess.start()

    machine.touches.start = start

    async def work() -> None:
        look = asyncio.create_task(machine.touches.look())
        await steps()
        await machine.touches.end()
        begins.set()
        await asyncio.wait_for(look, 5)

    asyncio.run(work())
    assert [(process.ended, process.sent) for process in processes] == [(True, [])]


def pin_intents(machine: Machine, volumes: Mapping[str, VolumeLoop]) -> PinIntents:
    """As the daemon has them, but without sysfs and databases."""
    made = PinIntents(cast("Any", None), volumes, machine.registry, cast("Any", None), lambda: 1)
    return made


@pytest.fixture
def no_sysfs(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    for name in ("facts", "written_bytes", "volume_of"):
        own = getattr(machine, name)
        monkeypatch.setattr(PinIntents, name, lambda _, arg, own=own: own(arg))
    monkeypatch.setattr("ebbgate.daemon.pin_intents.WarmProcess", EndingProcess)
    monkeypatch.setattr(PinRegistry, "place", lambda *_: None)
    monkeypatch.setattr(PinRegistry, "keep_up", lambda _: asyncio.sleep(0))
    monkeypatch.setattr(PinRegistry, "saved", lambda _: asyncio.sleep(0))


@pytest.mark.parametrize("how", ["unpinned", "gone", "registered again", "stopped"])
@pytest.mark.usefixtures("no_sysfs")
def test_whatever_ends_in_a_round_leaves_no_process(processes: list[FakeProcess], how: str) -> None:
    machine = Machine(pins=3)
    FakeProcess.found = {"/srv/1": HANGS}
    volumes = {"bcache0": machine.loop}
    pins = pin_intents(machine, volumes)

    async def work() -> None:
        pins.poll()
        await steps()
        assert len(processes) == 1
        if how == "unpinned":
            machine.registry.pins.clear()
        elif how == "gone":
            volumes.clear()
        elif how == "registered again":
            volumes["bcache0"] = fake_loop()
        if how != "stopped":
            for _ in range(5):
                pins.poll()
                await steps()
        await asyncio.wait_for(pins.stop(), 5)

    asyncio.run(work())
    assert all(process.ended for process in processes)


def test_a_volume_that_caches_no_reads_any_more_is_not_touched(
    processes: list[FakeProcess],
) -> None:
    """`lvconvert` may give a volume another kind of cache."""
    machine = Machine()
    asyncio.run(machine.touches.look())
    machine.loop.volume.kind = Kind.DM_WRITECACHE  # type: ignore[misc]
    machine.now_ns += ROUND_NS
    for _ in range(3):
        asyncio.run(machine.touches.look())
    (status,) = machine.touches.statuses()
    assert (str(status.state), status.why) == ("absent", "dm-writecache caches no reads")
    assert [process.ended for process in processes] == [True]


def test_no_file_stays_open_after_an_unforeseen_error(
    processes: list[FakeProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()

    def fail(*_: object) -> str:
        raise KeyError("kind")

    monkeypatch.setattr("ebbgate.daemon.pin_touches.limit_text", fail)
    with pytest.raises(KeyError):
        asyncio.run(machine.touches.look())
    assert [process.ended for process in processes] == [True]


@pytest.mark.parametrize(
    ("state", "touches"),
    [(JobState.WAITING, 4), (JobState.PAUSED, 4), (JobState.READING, 1), (JobState.CHECKING, 1)],
)
def test_what_is_left_in_the_cache_is_touched_while_the_warm_up_waits(
    processes: list[FakeProcess], state: JobState, touches: int
) -> None:
    machine = Machine()
    machine.begun, FakeProcess.touched = state, 90
    rounds(machine, 4)
    (status,) = machine.touches.statuses()
    assert (str(status.state), status.hit_ratio) == ("warming", 0.9)
    assert touch_count(processes) == touches
    assert machine.warmed == [1]
    machine.begun, FakeProcess.touched = None, 100
    rounds(machine, 1)
    assert str(machine.touches.statuses()[0].state) == "hot"


def test_a_new_pin_is_left_to_its_warm_up(processes: list[FakeProcess]) -> None:
    machine = Machine()
    machine.begun = JobState.WAITING
    asyncio.run(machine.touches.warm(machine.registry.pins[1], "pinned just now"))
    rounds(machine, 3)
    assert touch_count(processes) == 0


def test_a_file_of_which_nothing_was_read_is_not_hot() -> None:
    machine = Machine()
    FakeProcess.touched = FakeProcess.reads = 0
    asyncio.run(machine.touches.look())
    (status,) = machine.touches.statuses()
    assert (str(status.state), status.hit_ratio, status.touched_unix_ns) == ("absent", None, None)


# ---- a volume with a part that is not cached -----------------------------------------------------
def rounds(machine: Machine, count: int) -> None:
    for _ in range(count):
        asyncio.run(machine.touches.look())
        machine.now_ns += ROUND_NS


def touch_count(processes: list[FakeProcess]) -> int:
    sent = [message for process in processes for message in process.sent]
    return sum(message.get("command") == "touch" for message in sent)


def test_a_file_that_is_not_on_the_cached_volume_is_not_warmed(
    processes: list[FakeProcess],
) -> None:
    machine = Machine()
    FakeProcess.touched, FakeProcess.elsewhere = 0, 100
    rounds(machine, 24)
    (status,) = machine.touches.statuses()
    assert (str(status.state), status.why) == (
        "elsewhere",
        "its data is not on bcache0: see ebbgate layout show",
    )
    assert (status.size_bytes, status.hit_ratio, machine.touches.used()) == (0, None, (0, 0))
    assert machine.warmed == []
    assert touch_count(processes) == 2, "once an hour"


def test_a_file_that_has_moved_is_looked_at_at_once(processes: list[FakeProcess]) -> None:
    machine = Machine()
    FakeProcess.touched, FakeProcess.elsewhere = 0, 100
    rounds(machine, 2)
    FakeProcess.found = {"/srv/1": {**OPENED, "layout": 2}}
    FakeProcess.touched, FakeProcess.elsewhere = 100, 0
    rounds(machine, 2)
    (status,) = machine.touches.statuses()
    assert (str(status.state), status.why, status.hit_ratio) == ("hot", "", 1.0)
    assert touch_count(processes) == 3


def test_a_file_that_is_elsewhere_is_still_looked_for(processes: list[FakeProcess]) -> None:
    machine = Machine()
    FakeProcess.touched, FakeProcess.elsewhere = 0, 100
    rounds(machine, 2)
    FakeProcess.found = {"/srv/1": {**OPENED, "event": "missing"}}
    rounds(machine, 1)
    assert machine.registry.pins == {}


def test_what_is_not_on_the_cached_volume_is_no_miss(processes: list[FakeProcess]) -> None:
    machine = Machine()
    FakeProcess.touched, FakeProcess.elsewhere = 60, 40
    rounds(machine, 1)
    (status,) = machine.touches.statuses()
    assert (str(status.state), status.why, status.hit_ratio) == (
        "hot",
        "40% of it is not on bcache0",
        1.0,
    )
    assert machine.warmed == []


def test_a_file_of_which_a_part_is_elsewhere_is_warmed_once_an_hour_at_most(
    processes: list[FakeProcess],
) -> None:
    machine = Machine()
    FakeProcess.touched, FakeProcess.elsewhere = 30, 40
    rounds(machine, 25)
    (status,) = machine.touches.statuses()
    assert status.hit_ratio == 0.5
    assert machine.warmed == [1, 1], "at once, after 1 h; then after 2 h"


# ---- dm-cache caches whole blocks ----------------------------------------------------------------
def test_a_pinned_file_in_small_pieces_takes_whole_blocks_of_dm_cache(
    processes: list[FakeProcess],
) -> None:
    machine = Machine(Kind.DM_CACHE, pins=2)
    machine.loop.volume = replace(dm_volume(block_sectors=2048), name="bcache0")
    machine.cache = CacheFacts(512, MIB, 16 * GIB)
    scattered = {**OPENED, "bytes": 3000 * 4 * KIB, "pieces": 3000, "blocks": {str(MIB): 3000}}
    FakeProcess.found = {"/srv/1": scattered, "/srv/2": scattered}
    rounds(machine, 1)
    first, second = machine.touches.statuses()
    assert (str(first.state), first.size_bytes) == ("hot", 3000 * 4 * KIB)
    assert first.cache_ratio == 3000 / (16 * 1024)
    assert (str(second.state), "2.9 GiB of whole cache blocks" in second.why) == (
        "too_large",
        True,
    ), second.why
    assert processes[0].sent[0] == {"touch": "/srv/1", "block_sizes": [MIB]}

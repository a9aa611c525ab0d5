# SPDX-License-Identifier: GPL-2.0-only
"""The registry goes on when the disk answers, and neither a slow nor a full disk stops it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbgate.daemon.override_registry import OverrideRegistry
from ebbgate.errors import Unavailable
from ebbgate.intents.database import OverrideDatabase
from ebbgate.model.override import Override, OverrideKind
from ebbgate.model.volume import Mode
from ebbgate.units import NS_PER_S
from tests.volume_loop_fixture import LoopHarness

HOLD = Override(OverrideKind.HOLD, "bcache0", "jo", 1)


class SlowDisk:
    """A writer that does its work when a test says so. `full`: it refuses more work."""

    error = ""

    def __init__(self, database: OverrideDatabase) -> None:
        self.full = False
        self._database = database
        self._works: deque[tuple[Future[Any], Callable[[OverrideDatabase], Any]]] = deque()

    def __len__(self) -> int:
        return len(self._works)

    def submit(self, work: Callable[[OverrideDatabase], Any]) -> Future[Any]:
        if self.full:
            raise Unavailable("64 jobs are waiting already")
        self._works.append((Future(), work))
        return self._works[-1][0]

    def begin(self) -> None:
        """Begin the oldest work, which cannot be cancelled any more."""
        self._works[0][0].set_running_or_notify_cancel()

    async def answer(self, error: Exception | None = None) -> None:
        """Do the oldest work, or fail it."""
        future, work = self._works.popleft()
        if error is None:
            future.set_result(work(self._database))
        else:
            future.set_exception(error)
        await turn()


async def turn() -> None:
    """Let the event loop run what is ready."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SlowDisk]:
    with closing(OverrideDatabase.open(tmp_path / "overrides.db")) as database:
        yield SlowDisk(database)


@pytest.fixture
def registry(disk: SlowDisk, enforced: LoopHarness) -> OverrideRegistry:
    return OverrideRegistry(disk, {"bcache0": enforced.loop})


async def held(registry: OverrideRegistry, disk: SlowDisk) -> Override:
    """Load an empty database, then hold the volume."""
    loading = asyncio.create_task(registry.load())
    await turn()
    await disk.answer()
    await loading
    keeping = asyncio.create_task(registry.keep([HOLD]))
    await turn()
    await disk.answer()
    registry.enforce(kept := await keeping)
    return kept[0]


async def test_overrides_on_a_slow_disk_are_in_force_once_it_answers_without_a_tick(
    registry: OverrideRegistry, disk: SlowDisk, enforced: LoopHarness
) -> None:
    adding: Future[Any] = disk.submit(lambda database: database.add([HOLD]))
    modes = disk.submit(lambda database: database.set_mode("bcache0", Mode.OBSERVE, 1))
    await disk.answer()
    await disk.answer()
    assert (adding.done(), modes.done()) == (True, True)
    await registry.load(timeout_s=0.01)
    assert (registry.active, enforced.loop.frozen) == ({}, False)
    await disk.answer()
    assert (len(registry.active), enforced.loop.frozen) == (1, True)
    assert enforced.loop.mode is Mode.OBSERVE


async def test_a_drain_knows_that_the_machine_has_slept(
    registry: OverrideRegistry, disk: SlowDisk, enforced: LoopHarness
) -> None:
    wall_s, since_ns = 1000, registry.now_ns()
    registry.wall_ns = lambda: wall_s * NS_PER_S
    registry.now_ns = lambda: since_ns
    await held(registry, disk)
    until_ns = (wall_s + 8 * 3600) * NS_PER_S
    drain = Override(OverrideKind.DRAIN, "bcache0", "jo", wall_s * NS_PER_S, until_ns, id=9)
    registry.enforce([drain])
    registry.poll()
    wall_s += 6 * 3600
    registry.poll()
    found = enforced.loop.state.arbiter.drain
    assert found is not None
    assert found.left_ns(since_ns) == 2 * 3600 * NS_PER_S


async def test_saved_returns_once_the_disk_answers_without_a_tick(
    registry: OverrideRegistry, disk: SlowDisk, enforced: LoopHarness
) -> None:
    registry.end(await held(registry, disk), "jo released it")
    assert not enforced.loop.frozen, "the end waits for the disk"
    saved = asyncio.create_task(registry.saved())
    await turn()
    assert not saved.done()
    await disk.answer()
    assert saved.done()
    await saved


async def test_saved_waits_for_what_ends_during_a_write(
    registry: OverrideRegistry, disk: SlowDisk
) -> None:
    first = await held(registry, disk)
    keeping = asyncio.create_task(registry.keep([Override(OverrideKind.HOLD, "gone", "jo", 1)]))
    await turn()
    await disk.answer()
    registry.enforce(second := await keeping)
    registry.end(first, "jo released it")
    saved = asyncio.create_task(registry.saved())
    await turn()
    registry.end(second[0], "jo released it")
    await disk.answer()
    assert not saved.done()
    await disk.answer()
    await saved


@pytest.mark.parametrize("full", [False, True])
async def test_saved_fails_with_the_disk_and_a_tick_repeats_it(
    registry: OverrideRegistry, disk: SlowDisk, full: bool
) -> None:
    override = await held(registry, disk)
    disk.full = full
    registry.end(override, "jo released it")
    saved = asyncio.create_task(registry.saved())
    await turn()
    if not full:
        await disk.answer(Unavailable("the disk is full"))
    with pytest.raises(Unavailable):
        await saved
    disk.full = False
    registry.poll()
    await turn()
    await disk.answer()
    await registry.saved()
    assert len(disk) == 0


async def test_a_request_that_is_given_up_does_not_end_the_write(
    registry: OverrideRegistry, disk: SlowDisk
) -> None:
    registry.end(await held(registry, disk), "jo released it")
    given_up, other = (asyncio.create_task(registry.saved()) for _ in range(2))
    await turn()
    given_up.cancel()
    await turn()
    await disk.answer()
    await other


async def test_a_manual_knob_is_written_once_while_the_disk_is_slow(
    registry: OverrideRegistry, disk: SlowDisk, enforced: LoopHarness
) -> None:
    await held(registry, disk)
    enforced.loop.freeze(False)
    enforced.someone_writes("writeback_percent", "30")
    enforced.tick()
    for _ in range(3):
        registry.poll()
        await turn()
    assert len(disk) == 1
    await disk.answer()
    registry.poll()
    await turn()
    assert len(disk) == 0


async def test_a_uuid_that_cannot_be_written_is_written_later(
    registry: OverrideRegistry, disk: SlowDisk, enforced: LoopHarness
) -> None:
    for work in (
        disk.submit(lambda database: database.add([HOLD])),
        disk.submit(lambda database: database.set_mode("bcache0", Mode.OBSERVE, 1)),
    ):
        await disk.answer()
        assert work.done()
    enforced.loop.volume = replace(enforced.loop.volume, backing_uuid="uuid-a")
    loading = asyncio.create_task(registry.load())
    await turn()
    await disk.answer()
    await loading
    assert (len(registry.of("bcache0")), enforced.loop.mode) == (1, Mode.OBSERVE)
    await turn()
    await disk.answer(Unavailable("the disk is full"))
    registry.poll()
    await turn()
    await disk.answer()
    kept = disk.submit(lambda database: database.load())
    await disk.answer()
    assert [each.device_uuid for each in kept.result().overrides] == ["uuid-a"]
    assert kept.result().modes == {"uuid-a": Mode.OBSERVE}
    registry.poll()
    await turn()
    assert len(disk) == 0


@pytest.mark.parametrize("before", [None, Mode.OBSERVE])
async def test_a_mode_that_is_given_up_is_the_one_before_again(
    registry: OverrideRegistry, disk: SlowDisk, enforced: LoopHarness, before: Mode | None
) -> None:
    enforced.loop.volume = replace(enforced.loop.volume, backing_uuid="uuid-a")
    if before is not None:
        keeping = asyncio.create_task(registry.keep_mode("bcache0", before))
        await turn()
        await disk.answer()
        await keeping
    giving_up = asyncio.create_task(registry.keep_mode("bcache0", Mode.ENFORCE))
    await turn()
    disk.begin()
    giving_up.cancel()
    await turn()
    while len(disk):
        await disk.answer()
    kept = disk.submit(lambda database: database.load())
    await disk.answer()
    assert kept.result().modes == ({} if before is None else {"uuid-a": before})

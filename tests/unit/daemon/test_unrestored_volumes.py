# SPDX-License-Identifier: GPL-2.0-only
"""A cache is detached, and one knob of its disk could not be restored."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ebbgate.daemon import unrestored_volumes
from ebbgate.model.volume import Mode
from ebbgate.store.journal import read
from tests.fake_sysfs import failing
from tests.unit.daemon.test_volume_set import VolumeSetHarness

DEPTH = "/sys/block/vda/device/queue_depth"


class Detached(VolumeSetHarness):
    """bcache0 has lost its cache while a person's depth of 8 was in force; 32 is not back."""

    async def detach(self) -> None:
        await self.looks()
        self.override("queue_depth:vda", "8")
        await self.looks()
        self.sysfs.before["queue_depth"] = failing(errno.EIO)
        link = self.sysfs.locate(f"{self.sysfs.real('/sys/block/bcache0/bcache')}/cache")
        self.cache = link.readlink()
        link.unlink()
        self.daemon.volume_set.rediscover()
        await self.looks()
        assert (self.depth, self.left) == ("8", ["queue_depth:vda"])
        assert not self.daemon.volumes

    async def attach(self) -> None:
        link = self.sysfs.locate(f"{self.sysfs.real('/sys/block/bcache0/bcache')}/cache")
        link.symlink_to(self.cache)
        self.daemon.volume_set.rediscover()
        await self.looks()

    @property
    def depth(self) -> str:
        return self.fake.read(DEPTH)

    @property
    def left(self) -> list[str]:
        self.journal.flush()
        return [entry.knob for entry in read(self.folder / "state/journal.db")]


@pytest.fixture
def detached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Detached]:
    monkeypatch.setattr(unrestored_volumes, "_AGAIN_NS", 0)
    harness = Detached(tmp_path, Mode.ENFORCE)
    yield harness
    harness.stop()


async def looked_until(harness: Detached, done: Callable[[], bool]) -> None:
    for _ in range(200):
        if done():
            return
        await harness.looks(1)
    assert done()


async def test_it_is_restored_once_the_kernel_takes_it(detached: Detached) -> None:
    await detached.detach()
    await detached.looks()
    assert detached.depth == "8"
    del detached.sysfs.before["queue_depth"]
    await looked_until(detached, lambda: (detached.depth, detached.left) == ("32", []))
    assert detached.daemon.volume_set.release_all() == []


async def test_a_stop_tries_once_more_and_names_the_volume(detached: Detached) -> None:
    await detached.detach()
    assert detached.daemon.volume_set.release_all() == ["bcache0"]
    del detached.sysfs.before["queue_depth"]
    assert detached.daemon.volume_set.release_all() == []
    assert (detached.depth, detached.left) == ("32", [])


async def test_a_volume_that_comes_back_takes_over(detached: Detached) -> None:
    await detached.detach()
    detached.daemon.overrides.enforce(())
    await detached.attach()
    await looked_until(detached, lambda: list(detached.daemon.volumes) == ["bcache0"])
    writer = detached.daemon.volumes["bcache0"].writer
    assert [entry.original for entry in writer.unrestored if "depth" in entry.knob] == ["32"]
    del detached.sysfs.before["queue_depth"]
    assert detached.daemon.volume_set.release_all() == []
    assert (detached.depth, detached.left) == ("32", [])


async def test_a_value_of_somebody_else_is_left_alone(detached: Detached) -> None:
    await detached.detach()
    del detached.sysfs.before["queue_depth"]
    detached.fake.write(DEPTH, "16")
    await looked_until(detached, lambda: detached.left == [])
    assert detached.depth == "16"

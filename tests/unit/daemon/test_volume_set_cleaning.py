# SPDX-License-Identifier: GPL-2.0-only
"""A cleaning loads a table of ebbgate's own: its volume is another one only by that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.model.volume import Mode
from ebbgate.policy.cleaning import Cleaning
from tests.unit.daemon.test_volume_set import VolumeSetHarness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[VolumeSetHarness]:
    made = VolumeSetHarness(tmp_path, Mode.ADVISE)
    yield made
    made.stop()


async def changed(harness: VolumeSetHarness, *, cleaning: bool) -> VolumeLoop:
    """Return the loop of a volume that is put together in another way by the next look."""
    await harness.looks()
    loop = harness.daemon.volumes["bcache0"]
    if cleaning:
        loop.cleaner.cleaning = Cleaning(0, 1, "jo", 1)
    loop.volume = replace(loop.volume, caches=())
    harness.daemon.volume_set.rediscover()
    return loop


async def test_its_volume_is_followed_to_the_end(harness: VolumeSetHarness) -> None:
    loop = await changed(harness, cleaning=True)
    await harness.daemon.volume_set.discover()
    assert harness.daemon.volumes == {"bcache0": loop}


async def test_a_volume_that_is_put_together_anew_is_followed_anew(
    harness: VolumeSetHarness,
) -> None:
    loop = await changed(harness, cleaning=False)
    await harness.daemon.volume_set.discover()
    assert harness.daemon.volumes["bcache0"] is not loop


async def test_a_volume_that_goes_away_during_it_is_not_followed(
    harness: VolumeSetHarness,
) -> None:
    await changed(harness, cleaning=True)
    harness.vanish()
    await harness.daemon.volume_set.discover()
    assert harness.daemon.volumes == {}

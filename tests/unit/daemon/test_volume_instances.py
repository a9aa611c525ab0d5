# SPDX-License-Identifier: GPL-2.0-only
"""A volume that is registered again, or dropped, is never written by the loop of the old one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbgate.model.records import Edge
from ebbgate.model.volume import Mode
from ebbgate.units import NS_PER_MS
from tests.builders import busy_edge, idle_edge
from tests.unit.daemon.test_volume_set import VolumeSetHarness
from tests.volume_loop_fixture import DEADLINE_S


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[VolumeSetHarness]:
    made = VolumeSetHarness(tmp_path, Mode.ENFORCE)
    yield made
    made.stop()


async def take(harness: VolumeSetHarness, edge: Edge) -> None:
    """Take an edge, and wait for the writes that follow from it."""
    harness.daemon.on_record(edge)
    deadline = time.monotonic() + DEADLINE_S
    while not harness.daemon.volumes["bcache0"].worker.idle:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


def now_ms() -> int:
    return time.monotonic_ns() // NS_PER_MS


async def test_the_gate_of_the_old_registration_does_not_close_on_the_new_one(
    harness: VolumeSetHarness,
) -> None:
    await harness.looks()
    await take(harness, idle_edge(now_ms()))
    assert harness.knobs()["writeback_percent"] == "0"
    harness.vanish()
    harness.appear()
    await take(harness, busy_edge(now_ms()))
    assert harness.knobs() == harness.before
    await harness.looks()
    owned = harness.daemon.volumes["bcache0"].writer.owned
    assert owned["writeback_percent"].original == "10"
    assert harness.knobs()["writeback_percent"] == "40"

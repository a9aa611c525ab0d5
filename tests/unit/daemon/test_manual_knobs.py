# SPDX-License-Identifier: GPL-2.0-only
"""What somebody else wrote is left alone when its volume comes back, if it is still there."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbgate.model.override import Override, OverrideKind
from ebbgate.model.volume import Mode
from tests.unit.daemon.test_volume_set import VolumeSetHarness
from tests.volume_loop_fixture import DEADLINE_S

CUTOFF = "/sys/block/bcache0/bcache/sequential_cutoff"


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[VolumeSetHarness]:
    made = VolumeSetHarness(tmp_path, Mode.ENFORCE)
    yield made
    made.stop()


def keep_manual(harness: VolumeSetHarness, value: str) -> None:
    """Have what an earlier daemon kept: somebody set the cutoff to this value."""
    row = Override(
        OverrideKind.MANUAL, "bcache0", "somebody", time.time_ns(), None, "sequential_cutoff", value
    )
    writer = harness.daemon.overrides.writer
    writer.submit(lambda database: database.add((row,))).result(DEADLINE_S)


@pytest.mark.parametrize("first", ["rows", "volume"])
@pytest.mark.parametrize(("kept", "left_alone"), [("4194304", True), ("65536", False)])
async def test_no_knob_is_read_on_the_event_loop_when_a_volume_comes(
    harness: VolumeSetHarness, kept: str, left_alone: bool, first: str
) -> None:
    """Its file waits for bcache's lock, which the kernel holds while another volume comes."""
    keep_manual(harness, kept)
    readers = set[threading.Thread]()
    harness.sysfs.reading["sequential_cutoff"] = lambda: readers.add(threading.current_thread())
    if first == "rows":
        await harness.daemon.overrides.load()
        await harness.daemon.volume_set.discover()
    else:
        await harness.daemon.volume_set.discover()
        await harness.daemon.overrides.load()
    writer = harness.daemon.volumes["bcache0"].writer
    assert ("sequential_cutoff" in writer.manual) == left_alone
    assert readers
    assert threading.main_thread() not in readers

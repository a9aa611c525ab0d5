# SPDX-License-Identifier: GPL-2.0-only
"""What ebbgate wrote last is lost: the original stays, until a person has set it by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ebbgate.model.decision import OutcomeKind
from ebbgate.model.volume import Mode
from ebbgate.store.journal import read
from tests.gate_worker_fixture import REASON
from tests.unit.daemon.test_volume_set import VolumeSetHarness
from tests.waiting import until

DELAY = "/sys/block/bcache0/bcache/writeback_delay"
Make = Callable[[Mode, str], VolumeSetHarness]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Builds a daemon that finds an original of 30 and another value."""
    made: list[VolumeSetHarness] = []

    def build(mode: Mode, found: str) -> VolumeSetHarness:
        harness = VolumeSetHarness(tmp_path, mode)
        made.append(harness)
        harness.last_written.end(harness.leave_original(DELAY))
        harness.fake.write(DELAY, found)
        return harness

    yield build
    for harness in made:
        harness.stop()


def delay_rows(harness: VolumeSetHarness) -> list[str]:
    harness.journal.flush()
    entries = read(harness.folder / "state/journal.db")
    return [entry.original for entry in entries if entry.knob == "writeback_delay"]


async def test_a_knob_whose_last_value_is_lost_is_not_driven(make: Make) -> None:
    harness = make(Mode.ENFORCE, "7")
    await harness.looks()
    assert delay_rows(harness) == ["30"]
    assert harness.fake.read(DELAY) == "7"
    assert harness.daemon.volume_set.release_all() == ["bcache0"]
    assert delay_rows(harness) == ["30"]


@pytest.mark.parametrize("mode", [Mode.ADVISE, Mode.ENFORCE])
async def test_a_restore_closes_the_entry_once_the_original_is_set_by_hand(
    make: Make, mode: Mode
) -> None:
    harness = make(mode, "7")
    await harness.looks()
    harness.fake.write(DELAY, "30")
    harness.daemon.restore_volume("bcache0")
    until(lambda: delay_rows(harness) == [])
    loop = harness.daemon.volumes["bcache0"]
    assert loop.writer.unrestored == []
    harness.fake.write(DELAY, "7")
    loop.set_mode(Mode.ENFORCE, "a test")
    await harness.looks()
    assert delay_rows(harness) == ["7"], "it is the original from now on"
    assert harness.fake.read(DELAY) == "0"


async def test_a_restore_names_what_it_cannot_restore(make: Make) -> None:
    harness = make(Mode.ADVISE, "7")
    await harness.looks()
    harness.daemon.restore_volume("bcache0")
    loop = harness.daemon.volumes["bcache0"]
    until(lambda: loop.worker.idle)
    assert [entry.knob for entry in loop.writer.unrestored] == ["writeback_delay"]
    assert harness.fake.read(DELAY) == "7"


async def test_the_first_value_that_was_written_is_restored(make: Make) -> None:
    harness = make(Mode.ADVISE, "0")
    await harness.looks()
    until(lambda: harness.fake.read(DELAY) == "30")
    assert delay_rows(harness) == []


async def test_a_refused_write_says_what_to_do(make: Make) -> None:
    harness = make(Mode.ENFORCE, "7")
    await harness.looks()
    writer = harness.daemon.volumes["bcache0"].writer
    (outcome,) = writer.claim(writer.plan.base[1:2], REASON)
    assert outcome.kind is OutcomeKind.REFUSED
    assert outcome.error == (
        "what was written last is unknown: set it to 30 by hand, then ebbgate restore"
    )

# SPDX-License-Identifier: GPL-2.0-only
"""Overrides on a dm-cache survive a table reload and a cleaning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbgate.kernel.device_mapper import Target
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.probes.volume_state import read_state
from ebbgate.units import NS_PER_S
from tests.fake_dm import CACHE_TABLE, LENGTH_SECTORS
from tests.unit.control.test_volume_loop_dm import NAME, DmLoopHarness
from tests.volume_loop_fixture import DEADLINE_S


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[DmLoopHarness]:
    made = DmLoopHarness(tmp_path)
    made.tick()
    yield made
    assert made.loop.worker.stop(DEADLINE_S)


def override(harness: DmLoopHarness, knob: str = "", value: str = "") -> None:
    each = ActiveOverride(Override(OverrideKind.SET, NAME, "jo", 1, None, knob, value, 1), None)
    harness.loop.set_overrides((each,) if knob else ())
    harness.settle()
    harness.tick()


def test_a_threshold_that_is_set_ends_the_tuning_of_the_gate(harness: DmLoopHarness) -> None:
    assert harness.cache.threshold == 0
    override(harness, "migration_threshold", "4096")
    assert harness.cache.threshold == 4096
    harness.idle()
    harness.busy()
    assert harness.cache.threshold == 4096
    override(harness)
    harness.tick()
    assert harness.cache.threshold == 0
    harness.loop.release("ebbgated stops")
    harness.settle()
    assert harness.cache.threshold == 2048


@pytest.mark.parametrize("suspended", [False, True])
def test_a_reloaded_table_does_not_end_an_override(
    harness: DmLoopHarness, *, suspended: bool
) -> None:
    over: dict[int, str] = {}
    harness.loop.overrides.on_end = lambda ended, why: over.update({ended.id: why})
    override(harness, "migration_threshold", "4096")
    if suspended:
        # A look falls into the load of the table.
        harness.cache.suspended = True
        harness.tick()
        harness.cache.suspended = False
    harness.dm.reload(NAME, (Target(0, LENGTH_SECTORS, "cache", CACHE_TABLE),))
    assert harness.cache.threshold == 2048
    harness.tick()
    harness.tick()
    assert harness.cache.threshold == 4096
    assert over == {}


def test_a_reload_that_was_seen_during_a_write_is_not_forgotten_by_another(
    harness: DmLoopHarness,
) -> None:
    """LVM suspends a volume several times to extend it."""
    override(harness, "migration_threshold", "4096")
    harness.dm.reload(NAME, (Target(0, LENGTH_SECTORS, "cache", CACHE_TABLE),))
    harness.now_ms += 250
    seen = read_state(harness.sysfs, harness.volume, harness.now_ns())
    harness.loop.on_tick(seen, knobs_settled=False)
    harness.cache.suspended = True
    harness.tick()
    harness.cache.suspended = False
    harness.tick()
    harness.tick()
    assert harness.cache.threshold == 4096
    assert harness.loop.writer.manual == set()


def test_a_cleaning_does_not_end_an_override_and_is_left_alone_meanwhile(
    harness: DmLoopHarness,
) -> None:
    override(harness, "migration_threshold", "4096")
    harness.loop.clean(60 * NS_PER_S, "jo")
    harness.settle()
    for _ in range(3):
        harness.tick()
    assert harness.cache.table.endswith("cleaner 0")
    assert harness.cache.threshold == 2048
    harness.cache.dirty = 0
    for _ in range(5):
        harness.tick()
    assert harness.cache.table == CACHE_TABLE
    assert harness.cache.threshold == 4096


def test_the_length_of_requests_that_is_set_stays(harness: DmLoopHarness) -> None:
    override(harness, "max_sectors_kb", "512")
    assert harness.max_sectors_kb == "512"
    harness.now_ms += 1000
    harness.tick()
    (wins,) = (p["wins"] for p in harness.kept.document["proposals"] if p["strategy"] == "override")
    assert wins == ["max_sectors_kb"], "dm-cache has no sequential_cutoff"
    override(harness)
    assert harness.max_sectors_kb == "1280"

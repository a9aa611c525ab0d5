# SPDX-License-Identifier: GPL-2.0-only
"""What a person sets on a dm-cache: kept over a table that is loaded anew, and over a cleaning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbgate.kernel.device_mapper import Target
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.units import NS_PER_S
from tests.fake_dm import CACHE_TABLE, LENGTH_SECTORS
from tests.unit.control.test_volume_loop_dm import NAME, MappedBench
from tests.volume_loop_fixture import DEADLINE_S


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[MappedBench]:
    made = MappedBench(tmp_path)
    made.tick()
    yield made
    assert made.loop.worker.stop(DEADLINE_S)


def override(bench: MappedBench, knob: str = "", value: str = "") -> None:
    each = ActiveOverride(Override(OverrideKind.SET, NAME, "jo", 1, None, knob, value, 1), None)
    bench.loop.set_overrides((each,) if knob else ())
    bench.settle()
    bench.tick()


def test_a_threshold_that_is_set_ends_the_tuning_of_the_gate(bench: MappedBench) -> None:
    assert bench.cache.threshold == 0
    override(bench, "migration_threshold", "4096")
    assert bench.cache.threshold == 4096
    bench.idle()
    bench.busy()
    assert bench.cache.threshold == 4096
    override(bench)
    bench.tick()
    assert bench.cache.threshold == 0
    bench.loop.release("ebbgated stops")
    bench.settle()
    assert bench.cache.threshold == 2048


def test_a_table_that_is_loaded_anew_does_not_end_an_override(bench: MappedBench) -> None:
    over: dict[int, str] = {}
    bench.loop.overrides.on_end = lambda ended, why: over.update({ended.id: why})
    override(bench, "migration_threshold", "4096")
    bench.dm.reload(NAME, (Target(0, LENGTH_SECTORS, "cache", CACHE_TABLE),))
    assert bench.cache.threshold == 2048
    bench.tick()
    bench.tick()
    assert bench.cache.threshold == 4096
    assert over == {}


def test_a_cleaning_does_not_end_an_override_and_is_left_alone_meanwhile(
    bench: MappedBench,
) -> None:
    override(bench, "migration_threshold", "4096")
    bench.loop.clean(60 * NS_PER_S, "jo")
    bench.settle()
    for _ in range(3):
        bench.tick()
    assert bench.cache.table.endswith("cleaner 0")
    assert bench.cache.threshold == 2048
    bench.cache.dirty = 0
    for _ in range(5):
        bench.tick()
    assert bench.cache.table == CACHE_TABLE
    assert bench.cache.threshold == 4096


def test_the_length_of_requests_that_is_set_stays(bench: MappedBench) -> None:
    override(bench, "max_sectors_kb", "512")
    assert bench.max_sectors_kb == "512"
    override(bench)
    assert bench.max_sectors_kb == "1280"

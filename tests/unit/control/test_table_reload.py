# SPDX-License-Identifier: GPL-2.0-only
"""The loop of a dm-cache volume whose table is loaded again, with its threshold or another one."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.kernel.device_mapper import Target
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.probes.volume_state import read_state
from tests.fake_dm import CACHE_TABLE, LENGTH_SECTORS
from tests.gate_worker_fixture import CLOSED, REASON
from tests.unit.control.test_volume_loop_dm import NAME, DmLoopHarness
from tests.volume_loop_fixture import DEADLINE_S

OTHER_TABLE = CACHE_TABLE.replace("mq 10", "mq 12") + " migration_threshold"


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[DmLoopHarness]:
    made = DmLoopHarness(tmp_path)
    yield made
    assert made.loop.worker.stop(DEADLINE_S)


def test_a_reloaded_table_is_not_a_manual_change(harness: DmLoopHarness) -> None:
    harness.tick()
    harness.cache.threshold, harness.cache.promotions = 2048, 0
    harness.tick()
    assert harness.cache.threshold == 0
    assert harness.loop.writer.manual == set()
    harness.release("stop")
    assert harness.cache.threshold == 2048


def test_a_reloaded_table_is_noticed_while_the_disk_has_another_scheduler(
    harness: DmLoopHarness,
) -> None:
    harness.cache.promotions = harness.cache.demotions = 0
    harness.fake.write("/sys/block/vda/queue/scheduler", "[mq-deadline] bfq none")
    harness.loop.set_policy(replace(harness.policy, backing_scheduler="bfq"))
    harness.tick()
    assert harness.fake.read("/sys/block/vda/queue/scheduler") == "bfq"
    harness.cache.threshold = 2048
    harness.tick()
    assert (harness.cache.threshold, harness.loop.writer.manual) == (0, set())


def test_a_threshold_that_equals_its_original_is_no_reload(
    harness: DmLoopHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.cache.promotions = harness.cache.demotions = 0
    override = Override(OverrideKind.SET, NAME, "jo", 1, None, "migration_threshold", "2048", 1)
    harness.loop.set_overrides((ActiveOverride(override, None),))
    harness.settle()
    for _ in range(3):
        harness.tick()
    assert "its table was reloaded" not in caplog.text
    harness.cache.threshold = 777
    harness.tick()
    assert "migration_threshold" in harness.loop.writer.manual


@pytest.mark.parametrize("looks", [0, 3])
def test_a_table_that_is_loaded_during_a_hold_is_nobodys_choice(
    harness: DmLoopHarness, looks: int
) -> None:
    harness.tick()
    harness.loop.freeze(True)
    harness.tick()
    harness.dm.reload(NAME, (Target(0, LENGTH_SECTORS, "cache", CACHE_TABLE),))
    for _ in range(looks):
        harness.tick()
    assert harness.cache.threshold == 2048, "a hold keeps every knob"
    harness.loop.freeze(False)
    for _ in range(2):
        harness.tick()
    assert (harness.cache.threshold, harness.loop.writer.manual) == (0, set())


def test_a_reload_that_is_seen_during_a_write_is_kept_in_mind(harness: DmLoopHarness) -> None:
    harness.tick()
    harness.dm.reload(NAME, (Target(0, LENGTH_SECTORS, "cache", CACHE_TABLE),))
    seen = read_state(harness.sysfs, harness.volume, harness.now_ns())
    harness.loop.on_tick(seen, knobs_settled=False)
    harness.tick()
    assert (harness.cache.threshold, harness.loop.writer.manual) == (0, set())


def test_the_threshold_of_another_table_becomes_the_original(
    harness: DmLoopHarness,
) -> None:
    harness.tick()
    table = f"{OTHER_TABLE} 4096"
    harness.dm.reload(NAME, (Target(0, LENGTH_SECTORS, "cache", table),))
    harness.tick()
    assert harness.cache.threshold == 0
    assert harness.loop.writer.manual == set()
    harness.release("stop")
    assert harness.cache.threshold == 4096
    assert harness.kept.open == set()


def test_another_table_is_noticed_whatever_was_promoted_since(harness: DmLoopHarness) -> None:
    harness.tick()
    load(harness, 4096)
    harness.tick()
    assert (harness.cache.threshold, harness.loop.writer.manual) == (0, set())
    harness.release("stop")
    assert harness.cache.threshold == 4096


@pytest.mark.parametrize("noticed", [True, False])
def test_the_first_table_may_come_back(harness: DmLoopHarness, noticed: bool) -> None:
    """The daemon keeps its first look at the volume as long as the volume is the same."""
    harness.tick()
    load(harness, 4096)
    harness.tick()
    load(harness, None)
    if noticed:
        harness.tick()
        assert harness.cache.threshold == 0
    harness.release("stop")
    assert harness.loop.writer.manual == set()
    assert harness.cache.threshold == 2048
    assert harness.kept.open == set()


def test_what_a_person_sets_after_another_table_is_manual(harness: DmLoopHarness) -> None:
    harness.tick()
    load(harness, 4096)
    harness.cache.threshold = 777
    harness.tick()
    assert harness.loop.writer.manual == {"migration_threshold"}
    assert harness.cache.threshold == 777


def test_an_original_stays_whose_table_could_not_be_read(harness: DmLoopHarness) -> None:
    harness.cache.threshold = 5000
    harness.dm.fails["table"] = errno.EIO
    harness.tick()
    harness.dm.fails.clear()
    harness.tick()
    assert harness.cache.threshold == 0
    harness.release("stop")
    assert harness.cache.threshold == 5000


def load(harness: DmLoopHarness, threshold: int | None) -> None:
    """Load a table; as many blocks are promoted as before until somebody looks."""
    promoted = harness.cache.promotions
    table = CACHE_TABLE if threshold is None else f"{OTHER_TABLE} {threshold}"
    harness.dm.reload(NAME, (Target(0, LENGTH_SECTORS, "cache", table),))
    harness.cache.threshold, harness.cache.promotions = threshold or 2048, promoted


@pytest.mark.parametrize("noticed", [True, False])
def test_a_threshold_that_came_with_a_table_is_put_back_whatever_was_written_since(
    harness: DmLoopHarness, noticed: bool
) -> None:
    """LVM loads a table, and the gate is written before anybody looks: its value says nothing."""
    harness.tick()
    table = f"{OTHER_TABLE} 4096"
    harness.dm.reload(NAME, (Target(0, LENGTH_SECTORS, "cache", table),))
    harness.cache.threshold = 0
    if noticed:
        harness.tick()
        harness.settle()
        assert "migration_threshold" in harness.kept.open
    harness.release("stop")
    assert harness.cache.threshold == 4096
    assert harness.kept.open == set()


def test_the_gate_closes_while_the_original_of_another_table_is_journalled(
    harness: DmLoopHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.tick()
    harness.idle()
    table = f"{OTHER_TABLE} 4096"
    harness.dm.reload(NAME, (Target(0, LENGTH_SECTORS, "cache", table),))
    harness.cache.threshold = 4 * 128
    seen = []

    def replace(*_arguments: object) -> None:
        harness.loop.worker.set_gate(CLOSED, REASON)
        seen.append(harness.cache.threshold)

    monkeypatch.setattr(harness.kept, "replace", replace)
    harness.loop.driver.on_table_reload(read_state(harness.sysfs, harness.volume, 0))
    harness.settle()
    assert seen == [0]

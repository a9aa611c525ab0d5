# SPDX-License-Identifier: GPL-2.0-only
"""The loop of a dm-cache volume: the gate by message, a table loaded anew, a cleaning."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import ActuationError
from ebbgate.kernel.device_mapper import Target
from ebbgate.model.volume import Mode
from ebbgate.policy.defaults import policy_for
from ebbgate.probes.topology import find
from ebbgate.probes.volume_state import read_state
from ebbgate.units import MIB, NS_PER_S
from tests.builders import queue_sample, tick
from tests.fake_dm import CACHE_TABLE, LENGTH_SECTORS, FakeCache, fake_lvm
from tests.fake_sysfs import FakeSysfs, WatchedSysfs
from tests.volume_loop_fixture import DEADLINE_S, LoopBench

NAME = "vg-data"
STREAM = {"read": [], "write": [0] * 14 + [64 * MIB]}


class MappedBench(LoopBench):
    """vg/data with 6372 dirty blocks, in enforce."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, Mode.ENFORCE)
        self.done = 0

    def set_up(self, root: Path) -> None:
        self.fake = FakeSysfs(root)
        self.fake.disk("vda", "254:0")
        self.fake.disk("vdb", "254:16", rotational=False)
        self.dm = fake_lvm(self.fake)
        self.sysfs = WatchedSysfs(root, self.dm)
        self.volume = find(self.sysfs, "vg/data")
        self.policy = policy_for(self.volume)

    @property
    def cache(self) -> FakeCache:
        return self.dm.devices[0]

    @property
    def max_sectors_kb(self) -> str:
        return self.fake.read("/sys/block/dm-0/queue/max_sectors_kb")

    def tick(self, **fields: Any) -> None:
        self.now_ms += 250
        now_ns = self.now_ns()
        known = {"vol": NAME, "ns": now_ns, "state": "busy", "last_ns": now_ns}
        self.loop.on_record(tick(**{**known, **fields}))
        self.loop.on_tick(read_state(self.sysfs, self.volume, now_ns), knobs_settled=True)
        self.settle()

    def release(self, why: str) -> None:
        self.loop.release(why)
        self.settle()

    def sample(self, under_way: int, done: int) -> None:
        self.now_ms += 30
        self.done += done
        found = queue_sample(self.now_ms, under_way, self.done)
        self.loop.on_record(replace(found, volume=NAME))
        self.settle()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[MappedBench]:
    made = MappedBench(tmp_path)
    yield made
    assert made.loop.worker.stop(DEADLINE_S)


def test_the_gate_is_shut_under_load_and_four_blocks_wide_in_a_gap(bench: MappedBench) -> None:
    bench.tick()
    assert bench.cache.threshold == 0
    bench.idle()
    assert bench.cache.threshold == 4 * 128
    bench.busy()
    assert bench.cache.threshold == 0
    assert bench.kept.open == {"migration_threshold"}


def test_a_quick_disk_gets_more_at_once(bench: MappedBench) -> None:
    bench.tick()
    bench.idle()
    for _ in range(40):
        bench.sample(4, 9)
    assert 9 * 128 <= bench.cache.threshold <= 11 * 128


def test_nothing_is_left_behind(bench: MappedBench) -> None:
    bench.tick()
    bench.loop.set_mode(Mode.ADVISE, "asked for")
    bench.settle()
    assert bench.cache.threshold == 2048
    assert bench.kept.open == set()


def test_a_hand_on_the_threshold_is_respected(bench: MappedBench) -> None:
    bench.tick()
    bench.cache.threshold = 777
    bench.tick()
    bench.idle()
    assert bench.cache.threshold == 777
    assert "migration_threshold" in bench.loop.writer.manual


def test_a_table_loaded_anew_is_no_hand(bench: MappedBench) -> None:
    bench.tick()
    bench.cache.threshold, bench.cache.promotions = 2048, 0
    bench.tick()
    assert bench.cache.threshold == 0
    assert bench.loop.writer.manual == set()
    bench.release("stop")
    assert bench.cache.threshold == 2048


def test_the_threshold_of_another_table_is_no_hand_and_is_what_comes_back(
    bench: MappedBench,
) -> None:
    bench.tick()
    table = CACHE_TABLE.replace("mq 10", "mq 12") + " migration_threshold 4096"
    bench.dm.reload(NAME, (Target(0, LENGTH_SECTORS, "cache", table),))
    bench.tick()
    assert bench.cache.threshold == 0
    assert bench.loop.writer.manual == set()
    bench.release("stop")
    assert bench.cache.threshold == 4096
    assert bench.kept.open == set()


@pytest.mark.parametrize("noticed", [True, False])
def test_a_threshold_that_came_with_a_table_is_put_back_whatever_was_written_since(
    bench: MappedBench, noticed: bool
) -> None:
    """LVM loads a table, and the gate is written before anybody looks: its value says nothing."""
    bench.tick()
    table = CACHE_TABLE.replace("mq 10", "mq 12") + " migration_threshold 4096"
    bench.dm.reload(NAME, (Target(0, LENGTH_SECTORS, "cache", table),))
    bench.cache.threshold = 0
    if noticed:
        bench.tick()
        bench.settle()
        assert bench.kept.open == {"migration_threshold"}
    bench.release("stop")
    assert bench.cache.threshold == 4096
    assert bench.kept.open == set()


def test_a_volume_that_somebody_changed_keeps_what_he_set(bench: MappedBench) -> None:
    bench.tick()
    bench.cache.threshold = 5000
    bench.release("the volume is gone or changed")
    assert bench.cache.threshold == 5000
    assert bench.kept.open == set()


def test_a_volume_that_is_deactivated_leaves_nothing_open(
    bench: MappedBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.tick()
    bench.dm.devices.clear()
    bench.release("the volume is gone or changed")
    assert bench.kept.open == set()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_refused_message_is_tried_again_and_said_once(
    bench: MappedBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.cache.refuses = errno.EBUSY
    for _ in range(3):
        bench.tick()
    assert bench.cache.threshold == 2048
    assert len([r for r in caplog.records if "refused by the kernel" in r.message]) == 1
    bench.cache.refuses = 0
    bench.tick()
    assert bench.cache.threshold == 0


@pytest.mark.parametrize(
    "break_it",
    [
        lambda cache: setattr(cache, "end", "rw needs_check"),
        lambda cache: setattr(cache, "line", "Fail"),
        lambda cache: setattr(cache, "suspended", True),
    ],
)
def test_a_sick_volume_gets_its_threshold_back_and_no_more(
    bench: MappedBench, break_it: Callable[[FakeCache], None]
) -> None:
    bench.tick()
    break_it(bench.cache)
    bench.tick()
    # A failed cache takes no message: its original is kept.
    failed = bench.cache.line == "Fail"
    assert bench.cache.threshold == (0 if failed else 2048)
    assert ("migration_threshold" in bench.loop.writer.owned) is failed
    bench.cache.messages.clear()
    bench.idle()
    bench.tick()
    assert bench.cache.messages == []


def test_a_stream_that_competes_with_random_writes_is_split(bench: MappedBench) -> None:
    bench.tick()
    runs = {"read": [], "write": [0, 0, 0, 8 * MIB, *[0] * 10, 64 * MIB]}
    bench.tick(runs=runs)
    assert bench.max_sectors_kb == "32"
    assert "max_sectors_kb" in bench.kept.open
    for _ in range(20):
        bench.tick(runs=runs)
    assert bench.max_sectors_kb == "1280"


def test_a_stream_of_reads_is_said_to_be_out_of_reach(bench: MappedBench) -> None:
    bench.tick()
    (reads,) = [p for p in bench.kept.document["proposals"] if p["strategy"].endswith("reads")]
    assert "promotes the blocks it reads" in reads["unsupported"]
    assert not bench.kept.document["now"].startswith("nothing to tune")


def test_a_cleaning_takes_the_gate_back_and_ends_by_itself(bench: MappedBench) -> None:
    bench.tick()
    said = bench.loop.clean(60 * NS_PER_S, "anna")
    assert "398 MiB" in said
    bench.settle()
    assert "cleaner" in bench.cache.table
    assert bench.cache.threshold == 2048
    bench.cache.dirty = 3000
    bench.idle()
    for _ in range(4):
        bench.tick()
    assert bench.cache.threshold == 2048
    assert bench.kept.document["now"].startswith("Cleaning for anna: 188 MiB dirty, about")
    bench.cache.dirty = 0
    bench.tick()
    assert bench.cache.table == CACHE_TABLE
    bench.cache.dirty = 96
    bench.tick()
    bench.tick()
    assert bench.cache.threshold == 0


def test_a_cleaning_that_takes_too_long_is_given_up(bench: MappedBench) -> None:
    bench.tick()
    bench.loop.clean(10 * NS_PER_S, "anna")
    bench.settle()
    bench.tick()
    bench.now_ms += 10_000
    bench.tick()
    assert bench.cache.table == CACHE_TABLE


def test_nobody_cleans_twice(bench: MappedBench) -> None:
    bench.tick()
    bench.loop.clean(60 * NS_PER_S, "anna")
    with pytest.raises(ActuationError, match="a cleaning is under way"):
        bench.loop.clean(60 * NS_PER_S, "bert")
    bench.settle()


def test_under_a_light_load_it_says_what_the_kernel_waits_for(bench: MappedBench) -> None:
    for _ in range(30):
        bench.tick()
    assert bench.kept.document["now"].startswith(
        "Writing back 398 MiB once the slow device had no I/O for a second, as the kernel requires"
    )
    assert 0 < bench.cache.threshold <= 4 * 128

# SPDX-License-Identifier: GPL-2.0-only
"""The loop of a dm-cache volume: the gate by message, a reloaded table, a cleaning."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.errors import ActuationError
from ebbgate.model.decision import Outcome
from ebbgate.model.volume import Mode
from ebbgate.policy.defaults import default_policy
from ebbgate.probes.topology import find
from ebbgate.probes.volume_state import read_state
from ebbgate.units import MIB, NS_PER_S
from tests.builders import queue_sample, tick
from tests.fake_dm import CACHE_TABLE, FakeCache, fake_lvm
from tests.fake_sysfs import FakeSysfs, WatchedSysfs
from tests.volume_loop_fixture import DEADLINE_S, LoopHarness

NAME = "vg-data"
STREAM = {"read": [], "write": [0] * 14 + [64 * MIB]}


class DmLoopHarness(LoopHarness):
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
        self.policy = default_policy(self.volume.kind)

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
def harness(tmp_path: Path) -> Iterator[DmLoopHarness]:
    made = DmLoopHarness(tmp_path)
    yield made
    assert made.loop.worker.stop(DEADLINE_S)


def test_the_gate_is_shut_under_load_and_four_blocks_wide_in_a_gap(harness: DmLoopHarness) -> None:
    harness.tick()
    assert harness.cache.threshold == 0
    harness.idle()
    assert harness.cache.threshold == 4 * 128
    harness.busy()
    assert harness.cache.threshold == 0
    assert harness.kept.open == {"migration_threshold", "nr_requests:vda"}


def test_a_quick_disk_gets_more_at_once(harness: DmLoopHarness) -> None:
    harness.tick()
    harness.idle()
    for _ in range(40):
        harness.sample(4, 9)
    assert 9 * 128 <= harness.cache.threshold <= 11 * 128


def test_nothing_is_left_behind(harness: DmLoopHarness) -> None:
    harness.tick()
    harness.loop.set_mode(Mode.ADVISE, "asked for")
    harness.settle()
    assert harness.cache.threshold == 2048
    assert harness.kept.open == set()


def test_enforce_right_after_advise_is_not_undone_by_its_release(harness: DmLoopHarness) -> None:
    harness.tick()
    go_on = Event()

    def wait(_: KnobWriter) -> list[Outcome]:
        assert go_on.wait(DEADLINE_S)
        return []

    harness.loop.worker.submit("slow", wait)
    harness.loop.set_mode(Mode.ADVISE, "asked for")
    harness.loop.set_mode(Mode.ENFORCE, "asked for")
    harness.now_ms += 250
    seen = read_state(harness.sysfs, harness.volume, harness.now_ns())
    harness.loop.on_tick(seen, knobs_settled=False)
    go_on.set()
    harness.settle()
    harness.tick()
    assert harness.cache.threshold == 0
    assert "migration_threshold" in harness.kept.open


def test_a_manual_threshold_is_respected(harness: DmLoopHarness) -> None:
    harness.tick()
    harness.cache.threshold = 777
    harness.tick()
    harness.idle()
    assert harness.cache.threshold == 777
    assert "migration_threshold" in harness.loop.writer.manual


def test_a_volume_that_somebody_changed_keeps_what_he_set(harness: DmLoopHarness) -> None:
    harness.tick()
    harness.cache.threshold = 5000
    harness.release("the volume is gone or changed")
    assert harness.cache.threshold == 5000
    assert harness.kept.open == set()


def test_a_volume_that_is_deactivated_leaves_nothing_open(
    harness: DmLoopHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.tick()
    harness.dm.devices.clear()
    harness.release("the volume is gone or changed")
    assert harness.kept.open == set()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_the_gate_does_not_close_on_a_volume_that_was_activated_again(
    harness: DmLoopHarness,
) -> None:
    harness.tick()
    harness.idle()
    harness.plug_in_again("dm-0")
    harness.cache.threshold = 2048
    harness.busy()
    assert harness.cache.threshold == 2048
    harness.release("the volume is gone or changed")
    assert harness.cache.threshold == 2048
    assert harness.kept.open == set()


def test_a_refused_message_is_retried_and_logged_once(
    harness: DmLoopHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.cache.refuses = errno.EBUSY
    for _ in range(3):
        harness.tick()
    assert harness.cache.threshold == 2048
    assert len([r for r in caplog.records if "refused by the kernel" in r.message]) == 1
    harness.cache.refuses = 0
    harness.tick()
    assert harness.cache.threshold == 0


@pytest.mark.parametrize(
    "break_it",
    [
        lambda cache: setattr(cache, "end", "rw needs_check"),
        lambda cache: setattr(cache, "line", "Fail"),
        lambda cache: setattr(cache, "suspended", True),
    ],
)
def test_a_sick_volume_gets_its_threshold_back_and_no_more(
    harness: DmLoopHarness, break_it: Callable[[FakeCache], None]
) -> None:
    harness.tick()
    break_it(harness.cache)
    harness.tick()
    # A failed cache takes no message: its original is kept.
    failed = harness.cache.line == "Fail"
    assert harness.cache.threshold == (0 if failed else 2048)
    assert ("migration_threshold" in harness.loop.writer.owned) is failed
    harness.cache.messages.clear()
    harness.idle()
    harness.tick()
    assert harness.cache.messages == []


def test_a_stream_that_competes_with_random_writes_is_split(harness: DmLoopHarness) -> None:
    harness.tick()
    runs = {"read": [], "write": [0, 0, 0, 8 * MIB, *[0] * 10, 64 * MIB]}
    harness.tick(runs=runs)
    assert harness.max_sectors_kb == "32"
    assert "max_sectors_kb" in harness.kept.open
    for _ in range(20):
        harness.tick(runs=runs)
    assert harness.max_sectors_kb == "1280"


def test_a_stream_of_reads_is_reported_as_unsupported(harness: DmLoopHarness) -> None:
    harness.tick()
    (reads,) = [p for p in harness.kept.document["proposals"] if p["strategy"].endswith("reads")]
    assert "promotes the blocks it reads" in reads["unsupported"]
    assert not harness.kept.document["now"].startswith("nothing to tune")


def test_a_cleaning_takes_the_gate_back_and_ends_by_itself(harness: DmLoopHarness) -> None:
    harness.tick()
    said = harness.loop.clean(60 * NS_PER_S, "anna")
    assert "398 MiB" in said
    harness.settle()
    assert "cleaner" in harness.cache.table
    assert harness.cache.threshold == 2048
    harness.cache.dirty = 3000
    harness.idle()
    for _ in range(4):
        harness.tick()
    assert harness.cache.threshold == 2048
    assert harness.kept.document["now"].startswith("Cleaning for anna: 188 MiB dirty, about")
    harness.cache.dirty = 0
    harness.tick()
    assert harness.cache.table == CACHE_TABLE
    harness.cache.dirty = 96
    harness.tick()
    harness.tick()
    assert harness.cache.threshold == 0


def test_a_cleaning_that_takes_too_long_is_given_up(harness: DmLoopHarness) -> None:
    harness.tick()
    harness.loop.clean(10 * NS_PER_S, "anna")
    harness.settle()
    harness.tick()
    harness.now_ms += 10_000
    harness.tick()
    assert harness.cache.table == CACHE_TABLE


def test_a_second_cleaning_is_refused(harness: DmLoopHarness) -> None:
    harness.tick()
    harness.loop.clean(60 * NS_PER_S, "anna")
    with pytest.raises(ActuationError, match="a cleaning is under way"):
        harness.loop.clean(60 * NS_PER_S, "bert")
    harness.settle()


def test_under_a_light_load_the_wait_of_the_kernel_is_reported(harness: DmLoopHarness) -> None:
    for _ in range(30):
        harness.tick()
    assert harness.kept.document["now"].startswith(
        "Writing back 398 MiB once the slow device had no I/O for a second, as the kernel requires"
    )
    assert 0 < harness.cache.threshold <= 4 * 128

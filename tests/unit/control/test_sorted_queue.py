# SPDX-License-Identifier: GPL-2.0-only
"""The loop of a dm-cache volume: how many requests the schedulers of its disks may hold."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.model.decision import JournalEntry
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import Mode
from ebbgate.probes.topology import find
from tests.fake_sysfs import failing
from tests.unit.control.test_volume_loop_dm import DmLoopHarness
from tests.volume_loop_fixture import DEADLINE_S

KNOB = "nr_requests:vda"
HELD = "/sys/block/vda/queue/nr_requests"
SCHEDULER = "/sys/block/vda/queue/scheduler"


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[DmLoopHarness]:
    made = DmLoopHarness(tmp_path)
    yield made
    assert made.loop.worker.stop(DEADLINE_S)


def found_with(harness: DmLoopHarness, path: str, value: str) -> None:
    """The disk was like this when the volume was found."""
    harness.fake.write(path, value)
    harness.loop.writer.volume = harness.volume = find(harness.sysfs, "vg/data")


def test_enforce_lets_the_scheduler_hold_more_and_advise_takes_it_back(
    harness: DmLoopHarness,
) -> None:
    harness.tick()
    assert harness.fake.read(HELD) == "768"
    harness.loop.set_mode(Mode.ADVISE, "asked for")
    harness.settle()
    assert harness.fake.read(HELD) == "64"
    assert harness.kept.open == set()


def test_a_queue_that_is_longer_stays(harness: DmLoopHarness) -> None:
    # After the volume was found.
    harness.fake.write(HELD, "1024")
    harness.tick()
    assert harness.fake.read(HELD) == "1024"


def test_another_policy_counts_from_the_original(harness: DmLoopHarness) -> None:
    harness.tick()
    destage = harness.policy.destage
    assert destage is not None
    harness.loop.set_policy(replace(harness.policy, destage=replace(destage, nr_requests=256)))
    harness.tick()
    assert harness.fake.read(HELD) == "768", "a queue is changed once a second"
    harness.now_ms += 1000
    harness.tick()
    assert harness.fake.read(HELD) == "256"


def test_a_queue_that_cannot_be_read_is_left_alone(harness: DmLoopHarness) -> None:
    harness.sysfs.reading["nr_requests"] = failing(errno.EIO)
    harness.tick()
    assert harness.fake.read(HELD) == "64"


def test_a_disk_without_a_scheduler_keeps_its_queue(harness: DmLoopHarness) -> None:
    found_with(harness, SCHEDULER, "[none] mq-deadline")
    harness.tick()
    assert harness.fake.read(HELD) == "64"


def test_a_disk_that_lost_its_scheduler_since_it_was_found_keeps_its_queue(
    harness: DmLoopHarness,
) -> None:
    harness.fake.write(SCHEDULER, "[none] mq-deadline")
    harness.tick()
    assert harness.fake.read(HELD) == "64"


def test_a_policy_may_leave_the_queue_as_it_is(harness: DmLoopHarness) -> None:
    harness.tick()
    destage = harness.policy.destage
    assert destage is not None
    harness.loop.set_policy(replace(harness.policy, destage=replace(destage, nr_requests=0)))
    harness.tick()
    assert harness.fake.read(HELD) == "64"
    harness.loop.set_policy(harness.policy)
    harness.now_ms += 1000
    harness.tick()
    assert harness.fake.read(HELD) == "768"
    harness.loop.set_policy(replace(harness.policy, destage=None))
    harness.tick()
    assert harness.fake.read(HELD) == "64"


def test_what_somebody_else_sets_stays(harness: DmLoopHarness) -> None:
    harness.tick()
    harness.fake.write(HELD, "128")
    harness.tick()
    harness.release("ebbgated stops")
    assert harness.fake.read(HELD) == "128"


def test_what_a_person_asks_for_stays_until_that_ends(harness: DmLoopHarness) -> None:
    harness.tick()
    wanted = Override(OverrideKind.SET, "vg-data", "jo", 1, None, KNOB, "128", 1)
    harness.loop.set_overrides((ActiveOverride(wanted, None),))
    harness.now_ms += 1000
    harness.tick()
    assert harness.fake.read(HELD) == "128"
    destage = harness.policy.destage
    assert destage is not None
    harness.loop.set_policy(replace(harness.policy, destage=replace(destage, nr_requests=512)))
    harness.now_ms += 1000
    harness.tick()
    assert harness.fake.read(HELD) == "128"
    harness.loop.set_overrides(())
    harness.now_ms += 1000
    harness.tick()
    harness.now_ms += 1000
    harness.tick()
    assert harness.fake.read(HELD) == "512"


def test_a_queue_that_is_as_long_already_is_claimed_but_not_written(
    harness: DmLoopHarness,
) -> None:
    """Another volume of the disk may have set it, which gives the original back when it leaves."""
    harness.fake.write(HELD, "768")
    harness.tick()
    assert KNOB in harness.kept.open
    assert [knob for knob, _ in harness.sysfs.log if knob == "nr_requests"] == []


@pytest.mark.parametrize("knob", ["nr_requests", "scheduler"])
def test_what_the_journal_refused_is_tried_again_each_minute(
    harness: DmLoopHarness, monkeypatch: pytest.MonkeyPatch, knob: str
) -> None:
    if knob == "scheduler":
        harness.loop.set_policy(replace(harness.policy, backing_scheduler="bfq"))
    tried: list[str] = []

    def put(entry: JournalEntry) -> JournalEntry:
        tried.append(entry.knob)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(harness.kept, "put", put)
        for _ in range(20):
            harness.now_ms += 2000
            harness.tick()
    assert tried.count(f"{knob}:vda") == 1
    for _ in range(10):
        harness.now_ms += 2000
        harness.tick()
    path, value = (HELD, "768") if knob == "nr_requests" else (SCHEDULER, "bfq")
    assert harness.fake.read(path) == value


def test_a_queue_that_the_kernel_refuses_is_tried_again_each_minute(
    harness: DmLoopHarness,
) -> None:
    harness.sysfs.before["nr_requests"] = failing(errno.EINVAL)
    harness.tick()
    harness.now_ms += 61_000
    del harness.sysfs.before["nr_requests"]
    harness.tick()
    assert harness.fake.read(HELD) == "768"


def test_a_scheduler_that_the_kernel_lacks_is_tried_once(harness: DmLoopHarness) -> None:
    harness.loop.set_policy(replace(harness.policy, backing_scheduler="bfq"))
    tried: list[str] = []
    refused = failing(errno.EINVAL)

    def search() -> None:
        tried.append("bfq")
        refused()

    harness.sysfs.before["scheduler"] = search
    for _ in range(3):
        harness.now_ms += 100_000
        harness.tick()
    assert tried == ["bfq"]


def test_a_scheduler_of_the_policy_comes_first(harness: DmLoopHarness) -> None:
    """The kernel gives it a queue of its own length."""
    found_with(harness, SCHEDULER, "[none] bfq")
    harness.tick()
    harness.loop.set_policy(replace(harness.policy, backing_scheduler="bfq"))
    harness.tick()
    order = [knob for knob, _ in harness.sysfs.log if knob in ("scheduler", "nr_requests")]
    assert order == ["scheduler", "nr_requests"]
    assert harness.fake.read(HELD) == "768"
    harness.loop.set_policy(replace(harness.policy, backing_scheduler=""))
    harness.tick()
    order = [knob for knob, _ in harness.sysfs.log if knob in ("scheduler", "nr_requests")]
    assert order[2:] == ["nr_requests", "scheduler"]
    assert harness.fake.read(HELD) == "64"

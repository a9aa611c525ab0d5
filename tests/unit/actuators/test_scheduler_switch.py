# SPDX-License-Identifier: GPL-2.0-only
"""The length of a disk's queue is restored with its scheduler, on a shared disk, too."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.actuators.ownership import identify
from ebbgate.actuators.restore import Workers, one_by_one, restore
from ebbgate.actuators.volume_workers import VolumeWorkers
from ebbgate.control.knob_jobs import scheduler_job
from ebbgate.knobs.catalog import ANY_VALUE
from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.store.last_written import LastWritten, Values
from tests.builders import journal_entry
from tests.fake_journal import FakeJournal
from tests.fake_sysfs import FakeSysfs, WatchedSysfs, failing, fake_bcache, switch_resets_length
from tests.knob_writer_fixture import REASON
from tests.unit.actuators.test_shared_disk import SharedDisk

LENGTH, SCHEDULER = "nr_requests:vda", "scheduler:vda"
QUEUE = "/sys/block/vda/queue"
BOOT = "this boot"
VALUES = {LENGTH: ("200", "200"), SCHEDULER: ("mq-deadline", "bfq")}
"""Of each knob the original, and what the daemon wrote last."""


class LeftQueue:
    """A daemon that died has left bfq, and a queue that was 200 long under mq-deadline."""

    def __init__(self, root: Path, order: tuple[str, ...] = (LENGTH, SCHEDULER)) -> None:
        self.fake: FakeSysfs = fake_bcache(root)
        self.sysfs = WatchedSysfs(root)
        self.journal = FakeJournal()
        self.fake.write(f"{QUEUE}/scheduler", "mq-deadline [bfq] none")
        self.fake.write(f"{QUEUE}/nr_requests", "200")
        for knob in order:
            self.keep(knob)
        switch_resets_length(self.fake, self.sysfs, "vda")

    def keep(self, knob: str, original: str = "") -> None:
        path = f"{QUEUE}/{knob.partition(':')[0]}"
        known, ours = VALUES.get(knob, (original, ANY_VALUE))
        original = original or known
        uuid, instance = identify(self.sysfs, path)
        entry = journal_entry(knob, path=path, original=original, last_written=ours)
        self.journal.put(replace(entry, device_uuid=uuid, instance=instance))

    def last_wrote(self, new: str, before: str) -> None:
        """The daemon wrote this length last."""
        self.journal.last[LENGTH] = Values(new, before)

    def restore(self, workers: Workers = one_by_one) -> dict[str, Outcome]:
        found = restore(self.journal, self.sysfs, BOOT, workers=workers)
        done = {each.action.knob: each for each in found}
        assert len(done) == len(found), "each knob once"
        return done

    @property
    def queue(self) -> tuple[str, str]:
        return self.fake.read(f"{QUEUE}/scheduler"), self.fake.read(f"{QUEUE}/nr_requests")


@pytest.fixture
def left(tmp_path: Path) -> LeftQueue:
    return LeftQueue(tmp_path)


@pytest.mark.parametrize("order", [(LENGTH, SCHEDULER), (SCHEDULER, LENGTH)])
@pytest.mark.parametrize("workers", [one_by_one, VolumeWorkers(lambda: None)])
def test_a_restore_without_a_daemon_writes_the_length_after_the_scheduler(
    tmp_path: Path, order: tuple[str, ...], workers: Workers
) -> None:
    left = LeftQueue(tmp_path, order)
    done = left.restore(workers)
    assert [each.kind for each in done.values()] == [OutcomeKind.CHANGED] * 2
    assert (left.queue, left.journal.open) == (("mq-deadline", "200"), {})


def test_a_restore_takes_back_a_longer_queue_of_ebbgate(left: LeftQueue) -> None:
    left.last_wrote("768", "200")
    left.fake.write(f"{QUEUE}/nr_requests", "768")
    left.restore()
    assert left.queue == ("mq-deadline", "200")


def test_a_restore_keeps_a_length_of_somebody_else(left: LeftQueue) -> None:
    left.fake.write(f"{QUEUE}/nr_requests", "128")
    done = left.restore()
    assert (left.queue, done[LENGTH].kind) == (("mq-deadline", "128"), OutcomeKind.MANUAL)


def test_a_restore_from_a_journal_without_the_length_keeps_it(tmp_path: Path) -> None:
    left = LeftQueue(tmp_path, (SCHEDULER,))
    left.restore()
    assert (left.queue, left.journal.open) == (("mq-deadline", "200"), {})


def test_a_length_that_the_kernel_refuses_stays_in_the_journal(left: LeftQueue) -> None:
    left.sysfs.before["nr_requests"] = failing(errno.EIO)
    done = left.restore()
    assert (done[LENGTH].kind, list(left.journal.open)) == (OutcomeKind.FAILED, [LENGTH])


def test_where_the_scheduler_stays_the_length_is_restored_all_the_same(left: LeftQueue) -> None:
    left.last_wrote("768", "200")
    left.fake.write(f"{QUEUE}/nr_requests", "768")
    left.sysfs.before["scheduler"] = failing(errno.EIO)
    done = left.restore()
    assert (done[SCHEDULER].kind, left.queue[1]) == (OutcomeKind.FAILED, "200")


def test_a_scheduler_that_somebody_has_chosen_stays_with_its_length(left: LeftQueue) -> None:
    left.fake.write(f"{QUEUE}/scheduler", "mq-deadline bfq [none]")
    left.fake.write(f"{QUEUE}/nr_requests", "32")
    done = left.restore()
    assert {each.kind for each in done.values()} == {OutcomeKind.MANUAL}
    assert left.fake.read(f"{QUEUE}/nr_requests") == "32"


def test_a_daemon_that_is_killed_during_a_switch_leaves_a_length_that_is_restored(
    left: LeftQueue,
) -> None:
    """The kernel has reset it, and it is not written again yet."""
    left.last_wrote(ANY_VALUE, "200")
    left.fake.write(f"{QUEUE}/nr_requests", "64")
    left.restore()
    assert left.queue == ("mq-deadline", "200")


class SwitchedDisk(SharedDisk):
    """Two volumes on a disk with mq-deadline, whose queue a person has made longer."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.fake.write("/sys/block/sda/queue/scheduler", "[mq-deadline] bfq none")
        self.fake.write("/sys/block/sda/queue/nr_requests", "200")
        switch_resets_length(self.fake, self.sysfs, "sda")

    def queue(self) -> tuple[str, str]:
        return self.value("scheduler:sda"), self.value("nr_requests:sda")


@pytest.fixture
def switched(tmp_path: Path) -> Iterator[SwitchedDisk]:
    made = SwitchedDisk(tmp_path)
    yield made
    made.journal.stop()


@pytest.mark.parametrize("first", [0, 1])
def test_the_last_volume_on_a_disk_restores_the_length(switched: SwitchedDisk, first: int) -> None:
    for writer in switched.writers:
        scheduler_job("bfq", REASON)(writer)
        assert (switched.queue(), switched.look()) == (("bfq", "200"), [])
    scheduler_job("", REASON)(switched.writers[first])
    assert (switched.queue(), switched.look()) == (("bfq", "200"), [])
    scheduler_job("", REASON)(switched.writers[1 - first])
    assert switched.queue() == ("mq-deadline", "200")
    assert not any(writer.owned for writer in switched.writers)
    assert not any(writer.manual for writer in switched.writers)


def test_a_restore_without_a_daemon_restores_the_length_for_both(switched: SwitchedDisk) -> None:
    for writer in switched.writers:
        scheduler_job("bfq", REASON)(writer)
    assert switched.restore_without_daemon() == []
    assert switched.queue() == ("mq-deadline", "200")


def test_during_a_switch_the_journal_expects_any_length(switched: SwitchedDisk) -> None:
    """Also another volume that looks then has the original of the first."""
    writer, other = switched.writers
    reset, originals = switched.sysfs.after["scheduler"], []

    def look() -> None:
        reset()
        owned = writer.owned["nr_requests:sda"]
        kept = LastWritten(switched.state / "last-written")
        assert kept.values(owned.entry) == Values(ANY_VALUE, "200")
        kept.close()
        entry = journal_entry(
            "nr_requests:sda",
            volume=other.volume.name,
            path=owned.entry.path,
            original="64",
            instance=owned.entry.instance,
            device_uuid=owned.entry.device_uuid,
            boot_id=owned.entry.boot_id,
        )
        originals.append(switched.journal.put(entry).original)

    switched.sysfs.after["scheduler"] = look
    scheduler_job("bfq", REASON)(writer)
    assert originals == ["200"]
    assert switched.queue() == ("bfq", "200")

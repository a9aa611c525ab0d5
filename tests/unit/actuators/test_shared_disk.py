# SPDX-License-Identifier: GPL-2.0-only
"""Two volumes on one disk: its queue stays deep, and its knobs get their first values back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Thread

import pytest

from ebbgate.actuators.bcache_steps import Step
from ebbgate.actuators.gate_worker import drive
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.actuators.restore import Done, Work, Workers, one_by_one, restore
from ebbgate.actuators.scheduler_switch import is_scheduler
from ebbgate.control.knob_jobs import nr_requests_job, scheduler_job
from ebbgate.model.decision import Gate, GateKind, JournalEntry, Outcome, OutcomeKind
from ebbgate.model.volume import DiskUsers, Volume
from ebbgate.probes.topology import discover
from ebbgate.probes.volume_state import read_knobs
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten
from ebbgate.store.unrestored import UnrestoredOriginals
from tests.fake_sysfs import WatchedSysfs, switch_resets_length, two_on_a_disk
from tests.knob_writer_fixture import CLOSED, REASON, RELEASED, kinds

DEPTH, SCHEDULER = "queue_depth:sda", "scheduler:sda"
OPEN = Gate(GateKind.OPEN, queue_depth=8)


class SharedDisk:
    """The writers of two volumes on one disk, with the daemon's journal."""

    def __init__(self, folder: Path) -> None:
        self.state = folder
        self.fake = two_on_a_disk(folder / "sys")
        self.sysfs = WatchedSysfs(folder / "sys")
        self.journal = JournalWriter(folder / "journal.db", LastWritten(folder / "last-written"))
        self.restored: list[Outcome] = []
        self.writers = [self.writer(each) for each in discover(self.fake.sysfs)]

    def writer(self, volume: Volume) -> KnobWriter:
        made = KnobWriter(self.sysfs, volume, self.journal, "this boot")
        made.disk_users = DiskUsers(("the other one",))
        return made

    def restore_without_daemon(self, workers: Workers = one_by_one) -> list[JournalEntry]:
        """Restore as `ebbgate restore` does; return what is left to restore."""
        self.journal.flush()
        last = LastWritten(self.state / "last-written")
        originals = UnrestoredOriginals.open(self.state / "journal.db", last, renew=False)
        self.restored = restore(originals, self.sysfs, "this boot", workers=workers)
        left = originals.left()
        originals.close()
        last.close()
        return left

    def value(self, knob: str) -> str:
        return dict(read_knobs(self.sysfs, self.writers[0].volume))[knob]

    def look(self) -> list[str]:
        """Both look whether somebody else has changed their knobs."""
        seen = ((each, read_knobs(self.sysfs, each.volume)) for each in self.writers)
        return [knob for each, knobs in seen for knob in each.check_manual(knobs)]


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[SharedDisk]:
    made = SharedDisk(tmp_path)
    yield made
    made.journal.stop()


def test_no_gap_of_either_volume_touches_the_queue_of_a_shared_disk(shared: SharedDisk) -> None:
    first, second = shared.writers
    for gates in ((OPEN, OPEN), (CLOSED, OPEN), (OPEN, CLOSED), (OPEN, OPEN)):
        drive(first, gates[0], REASON)
        drive(second, gates[1], REASON)
        assert (shared.value(DEPTH), shared.look()) == ("32", [])
        assert DEPTH not in first.owned.keys() | second.owned.keys()
    for each in shared.writers:
        drive(each, RELEASED, REASON)
        assert each.owned == {}
    assert not [knob for knob, _ in shared.sysfs.log if knob == "queue_depth"]


def test_a_queue_that_was_short_before_the_disk_was_shared_becomes_deep_again(
    shared: SharedDisk,
) -> None:
    first, second = shared.writers
    users, first.disk_users = first.disk_users, DiskUsers()
    drive(first, OPEN, REASON)
    assert shared.value(DEPTH) == "8"
    first.disk_users = users
    drive(first, CLOSED, REASON)
    assert shared.value(DEPTH) == "32"
    drive(second, OPEN, REASON)
    first.release(list(first.owned), REASON)
    assert (shared.value(DEPTH), shared.look()) == ("32", [])


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize(("knob", "value"), [(DEPTH, "4"), (SCHEDULER, "bfq")])
def test_the_last_of_two_volumes_restores_a_knob_of_their_disk(
    shared: SharedDisk, knob: str, value: str, order: tuple[int, int]
) -> None:
    if knob == SCHEDULER:
        shared.fake.write("/sys/block/sda/queue/scheduler", "[mq-deadline] bfq none")
    before = shared.value(knob)
    for each in shared.writers:
        each.apply((Step(knob, value),), REASON)
        assert shared.look() == []
    first, last = (shared.writers[number] for number in order)
    first.release((knob,), REASON)
    assert (shared.value(knob), first.owned, shared.look()) == (value, {}, [])
    last.release((knob,), REASON)
    assert (shared.value(knob), last.owned) == (before, {})


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_persons_who_want_different_depths_leave_the_first_one(
    shared: SharedDisk, order: tuple[int, int]
) -> None:
    for each, value in zip(shared.writers, ("8", "4"), strict=True):
        each.apply((Step(DEPTH, value),), REASON)
    for number in order:
        shared.writers[number].release((DEPTH,), REASON)
    assert shared.value(DEPTH) == "32"


def test_a_restore_of_both_volumes_at_once_keeps_the_length_of_the_queue(
    shared: SharedDisk,
) -> None:
    """While one worker switches the scheduler back, the other must not take the kernel's length for
    somebody's.
    """
    shared.fake.write("/sys/block/sda/queue/scheduler", "[mq-deadline] bfq none")
    shared.fake.write("/sys/block/sda/queue/nr_requests", "512")
    switch_resets_length(shared.fake, shared.sysfs, "sda")
    for each in shared.writers:
        scheduler_job("bfq", REASON)(each)

    def at_once(volumes: Mapping[str, Sequence[JournalEntry]], work: Work) -> Iterator[Done]:
        """Have the second worker read the length between the first one's switch and its length."""
        of_disk = [each for each in volumes.values() if any(is_scheduler(e.knob) for e in each)]
        if len(of_disk) == 1:
            yield from one_by_one(volumes, work)
            return
        (switch, *rest), second = of_disk
        yield switch, work(switch)
        done: list[Done] = []

        def first_goes_on() -> None:
            del shared.sysfs.reading["scheduler"]
            done.extend((each, work(each)) for each in rest)

        shared.sysfs.reading["scheduler"] = first_goes_on
        for each in second:
            yield each, work(each)
        yield from done

    assert shared.restore_without_daemon(at_once) == []
    assert shared.fake.read("/sys/block/sda/queue/scheduler") == "mq-deadline"
    assert shared.fake.read("/sys/block/sda/queue/nr_requests") == "512"


def test_a_volume_that_leaves_during_the_other_ones_switch_takes_no_length_for_manual(
    shared: SharedDisk,
) -> None:
    shared.fake.write("/sys/block/sda/queue/scheduler", "[mq-deadline] bfq none")
    shared.fake.write("/sys/block/sda/queue/nr_requests", "512")
    switch_resets_length(shared.fake, shared.sysfs, "sda")
    first, last = shared.writers
    for each in shared.writers:
        scheduler_job("bfq", REASON)(each)
    first.release((SCHEDULER,), REASON)
    leaving = Thread(target=lambda: first.release(list(first.owned), REASON))
    reset = shared.sysfs.after["scheduler"]

    def switch() -> None:
        reset()
        leaving.start()
        leaving.join(0.2)

    shared.sysfs.after["scheduler"] = switch
    scheduler_job("", REASON)(last)
    leaving.join()
    assert (first.manual, first.owned, last.owned) == (set(), {}, {})
    assert shared.fake.read("/sys/block/sda/queue/nr_requests") == "512"


def test_what_another_volume_of_the_disk_writes_is_nobody_elses(shared: SharedDisk) -> None:
    held = "/sys/block/sda/queue/nr_requests"
    first, last = shared.writers
    for each in shared.writers:
        scheduler_job("bfq", REASON)(each)
    nr_requests_job(512, REASON)(first)
    assert shared.look() == []
    nr_requests_job(1024, REASON)(last)
    assert (shared.fake.read(held), shared.look()) == ("1024", [])
    first.release(list(first.owned), REASON)
    assert (shared.fake.read(held), first.manual) == ("1024", set())
    shared.fake.write(held, "256")
    assert shared.look() == ["nr_requests:sda"]


def test_a_restore_knows_what_was_written_for_both_volumes(shared: SharedDisk) -> None:
    for each, value in zip(shared.writers, ("8", "4"), strict=True):
        each.apply((Step(DEPTH, value),), REASON)
    shared.writers[0].apply((Step(DEPTH, "16"),), REASON)
    assert shared.value(DEPTH) == "16"
    assert shared.restore_without_daemon() == []
    assert OutcomeKind.MANUAL not in kinds(shared.restored)
    assert shared.value(DEPTH) == "32"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_value_of_the_other_volume_is_no_persons_value(
    shared: SharedDisk, order: tuple[int, int]
) -> None:
    """A person has set each volume another depth: the newer one is in force."""
    first, second = (shared.writers[each] for each in order)
    for each, value in ((first, "4"), (second, "8")):
        each.pinned.add(DEPTH)
        assert kinds(each.apply((Step(DEPTH, value),), REASON)) == [OutcomeKind.CHANGED]
    assert first.release([DEPTH], REASON) == []
    assert (shared.value(DEPTH), first.manual, first.owned) == ("8", set(), {})
    assert kinds(second.release([DEPTH], REASON)) == [OutcomeKind.CHANGED]
    assert shared.value(DEPTH) == "32"


def test_a_depth_that_neither_volume_wrote_is_a_persons_value(shared: SharedDisk) -> None:
    first, second = shared.writers
    for each, value in ((first, "4"), (second, "8")):
        each.apply((Step(DEPTH, value),), REASON)
    shared.fake.write("/sys/block/sda/device/queue_depth", "16")
    assert kinds(first.release([DEPTH], REASON)) == [OutcomeKind.MANUAL]
    assert (shared.value(DEPTH), first.manual) == ("16", {DEPTH})

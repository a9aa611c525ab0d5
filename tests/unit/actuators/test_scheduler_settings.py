# SPDX-License-Identifier: GPL-2.0-only
"""What a disk's own I/O scheduler was set to is put back after ebbgate's switch, and only then."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbgate.actuators.restore import Workers, one_by_one
from ebbgate.actuators.scheduler_settings import SWITCHED_BACK
from ebbgate.actuators.volume_workers import VolumeWorkers
from ebbgate.control.knob_jobs import scheduler_job
from ebbgate.model.decision import OutcomeKind
from ebbgate.store.last_written import LastWritten, Values
from tests.fake_sysfs import failing, switch_resets_settings
from tests.knob_writer_fixture import REASON
from tests.unit.actuators.test_scheduler_switch import LeftQueue
from tests.unit.actuators.test_shared_disk import SharedDisk

SETTINGS, SCHEDULER, LENGTH = "iosched:vda", "scheduler:vda", "nr_requests:vda"
QUEUE = "/sys/block/vda/queue"
BOOT = "this boot"
MINE = {"fifo_batch": "16", "read_expire": "200", "writes_starved": "4"}
"""As a person has set mq-deadline; the first has the kernel's default."""
TEXT = " ".join(f"{name}={value}" for name, value in MINE.items())


class EndedError(Exception):
    """The process is ended here."""


class LeftScheduler(LeftQueue):
    """A daemon that died has left bfq on a disk whose mq-deadline a person had set."""

    def __init__(self, root: Path, order: tuple[str, ...] = (SCHEDULER, SETTINGS)) -> None:
        super().__init__(root, ())
        self.folder = switch_resets_settings(self.fake, self.sysfs, "vda")
        for knob in order:
            self.keep(knob, TEXT if knob == SETTINGS else "")

    def choose(self, scheduler: str) -> None:
        """Somebody chooses a scheduler by hand."""
        self.sysfs.write_text(f"{QUEUE}/scheduler", scheduler)

    @property
    def settings(self) -> dict[str, str]:
        names = sorted(self.fake.sysfs.names(self.folder))
        return {name: self.fake.read(f"{self.folder}/{name}") for name in names}


@pytest.fixture
def left(tmp_path: Path) -> LeftScheduler:
    return LeftScheduler(tmp_path)


@pytest.mark.parametrize("order", [(SETTINGS, SCHEDULER), (SCHEDULER, LENGTH, SETTINGS)])
@pytest.mark.parametrize("workers", [one_by_one, VolumeWorkers(lambda: None)])
def test_a_restore_without_a_daemon_puts_the_settings_back_after_the_scheduler(
    tmp_path: Path, order: tuple[str, ...], workers: Workers
) -> None:
    left = LeftScheduler(tmp_path, order)
    done = left.restore(workers)
    assert {each.kind for each in done.values()} == {OutcomeKind.CHANGED}
    assert (left.settings, left.journal.open) == (MINE, {})


def test_settings_with_the_kernels_defaults_need_no_write(left: LeftScheduler) -> None:
    left.keep(SETTINGS, "read_expire=500 fifo_batch=16")
    done = left.restore()
    assert (done[SETTINGS].kind, left.journal.open) == (OutcomeKind.UNCHANGED, {})
    assert [knob for knob, _ in left.sysfs.log] == ["scheduler", "nr_requests"]


@pytest.mark.parametrize("chosen", ["mq-deadline", "kyber"])
def test_settings_stay_where_somebody_has_chosen_the_scheduler(
    left: LeftScheduler, chosen: str
) -> None:
    left.choose(chosen)
    before = left.settings
    done = left.restore()
    assert done[SETTINGS].kind is OutcomeKind.UNCHANGED
    assert (left.settings, left.journal.open) == (before, {})


def test_settings_wait_for_a_scheduler_that_cannot_be_restored(left: LeftScheduler) -> None:
    left.sysfs.before["scheduler"] = failing(errno.EIO)
    done = left.restore()
    assert {each.kind for each in done.values()} == {OutcomeKind.FAILED}
    del left.sysfs.before["scheduler"]
    left.restore()
    assert (left.settings, left.journal.open) == (MINE, {})


def test_a_restore_that_is_ended_during_the_switch_is_finished_by_the_next_one(
    tmp_path: Path,
) -> None:
    """The kernel has the scheduler and its defaults; both rows are still in the journal."""
    left = LeftScheduler(tmp_path, (LENGTH, SCHEDULER, SETTINGS))
    reset = left.sysfs.after["scheduler"]

    def switch_and_end() -> None:
        reset()
        raise EndedError

    left.sysfs.after["scheduler"] = switch_and_end
    left.sysfs.before["nr_requests"] = switch_and_end
    with pytest.raises(EndedError):
        left.restore()
    assert left.settings["read_expire"] == "500"
    assert left.fake.read(f"{QUEUE}/nr_requests") == "64"
    del left.sysfs.before["nr_requests"]
    done = left.restore()
    assert [done[knob].kind for knob in (SETTINGS, LENGTH)] == [OutcomeKind.CHANGED] * 2
    assert (left.settings, left.fake.read(f"{QUEUE}/nr_requests")) == (MINE, "200")


def test_a_daemon_that_is_killed_after_its_switch_back_leaves_settings_that_are_restored(
    tmp_path: Path,
) -> None:
    """The scheduler's row is closed before the settings are written."""
    left = LeftScheduler(tmp_path, (SETTINGS,))
    left.choose("mq-deadline")
    left.journal.last[SETTINGS] = Values(*SWITCHED_BACK)
    left.restore()
    assert (left.settings, left.journal.open) == (MINE, {})


def test_a_setting_that_the_kernel_refuses_keeps_no_other_from_being_written(
    left: LeftScheduler,
) -> None:
    left.sysfs.before["read_expire"] = failing(errno.EINVAL)
    done = left.restore()
    assert (done[SETTINGS].kind, list(left.journal.open)) == (OutcomeKind.FAILED, [SETTINGS])
    assert left.settings == {**MINE, "read_expire": "500"}
    del left.sysfs.before["read_expire"]
    left.restore()
    assert (left.settings, left.journal.open) == (MINE, {})


def test_a_setting_that_cannot_be_read_is_written(left: LeftScheduler) -> None:
    left.sysfs.reading["read_expire"] = failing(errno.EIO)
    assert left.restore()[SETTINGS].kind is OutcomeKind.CHANGED
    assert left.settings == MINE


def test_settings_that_this_kernel_lacks_and_odd_names_are_left_out(left: LeftScheduler) -> None:
    left.keep(SETTINGS, "read_expire=200 ../nr_requests=1 gone=1 /etc/x=1 writes_starved")
    before = left.fake.read(f"{QUEUE}/nr_requests")
    assert left.restore()[SETTINGS].kind is OutcomeKind.CHANGED
    assert left.settings == {"fifo_batch": "16", "read_expire": "200", "writes_starved": "2"}
    assert left.fake.read(f"{QUEUE}/nr_requests") == before


@pytest.mark.parametrize("change", [{"boot_id": "an older boot"}, {"path": "/sys/block/vdb/x"}])
def test_settings_of_another_boot_or_place_are_not_written(
    left: LeftScheduler, change: dict[str, Any]
) -> None:
    entry = left.journal.open[SETTINGS]
    left.journal.put(replace(entry, **change))
    assert left.restore()[SETTINGS].kind is OutcomeKind.UNCHANGED
    assert left.settings["read_expire"] == "500"


def test_a_name_that_is_no_path_is_left_in_the_journal(left: LeftScheduler) -> None:
    entry = left.journal.open[SETTINGS]
    left.journal.close(entry.volume, SETTINGS, "damaged")
    odd = replace(entry, knob="iosched:v\0", path="/sys/block/v\0/queue/iosched")
    left.journal.put(odd)
    left.journal.last[odd.knob] = Values(*SWITCHED_BACK)
    done = left.restore()
    assert done[odd.knob].kind is OutcomeKind.FAILED
    assert done[SCHEDULER].kind is OutcomeKind.CHANGED


def test_settings_of_another_disk_of_the_same_name_are_not_written(left: LeftScheduler) -> None:
    entry = left.journal.open[SETTINGS]
    left.journal.put(replace(entry, instance=entry.instance + 1))
    assert left.restore()[SETTINGS].kind is OutcomeKind.UNCHANGED
    assert left.settings["read_expire"] == "500"


class SwitchedDisk(SharedDisk):
    """Two volumes on a disk whose mq-deadline a person has set."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.fake.write("/sys/block/sda/queue/scheduler", "[mq-deadline] bfq none")
        self.folder = switch_resets_settings(self.fake, self.sysfs, "sda")
        for name, value in MINE.items():
            self.fake.write(f"{self.folder}/{name}", value)

    def use(self, scheduler: str, writer: int) -> None:
        outcomes = scheduler_job(scheduler, REASON)(self.writers[writer])
        assert not [each for each in outcomes if each.kind is OutcomeKind.FAILED]

    @property
    def settings(self) -> dict[str, str]:
        names = self.fake.sysfs.names(self.folder)
        return {name: self.fake.read(f"{self.folder}/{name}") for name in names}


@pytest.fixture
def switched(tmp_path: Path) -> Iterator[SwitchedDisk]:
    made = SwitchedDisk(tmp_path)
    yield made
    made.journal.stop()


@pytest.mark.parametrize("first", [0, 1])
def test_the_last_volume_on_a_disk_puts_the_settings_back(
    switched: SwitchedDisk, first: int
) -> None:
    switched.use("bfq", 0)
    switched.use("bfq", 1)
    switched.use("", first)
    assert "low_latency" in switched.settings
    switched.use("", 1 - first)
    assert switched.settings == MINE
    assert not any(writer.owned for writer in switched.writers)


def test_a_restore_without_a_daemon_puts_them_back_for_both(switched: SwitchedDisk) -> None:
    switched.use("bfq", 0)
    switched.use("bfq", 1)
    assert switched.restore_without_daemon() == []
    assert switched.settings == MINE


def test_the_daemon_notes_its_switch_back_before_it(switched: SwitchedDisk) -> None:
    switched.use("bfq", 0)
    seen: list[Values | None] = []

    def look() -> None:
        kept = LastWritten(switched.state / "last-written")
        seen.append(kept.values(switched.writers[0].owned["iosched:sda"].entry))
        kept.close()

    switched.sysfs.before["scheduler"] = look
    switched.use("", 0)
    assert seen == [Values(*SWITCHED_BACK)]
    assert switched.settings == MINE

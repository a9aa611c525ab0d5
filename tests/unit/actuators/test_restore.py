# SPDX-License-Identifier: GPL-2.0-only
"""Originals are restored without a daemon, but never to another device or in another boot."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.actuators.ownership import identify
from ebbgate.actuators.restore import Work, restore
from ebbgate.actuators.volume_workers import VolumeWorkers
from ebbgate.model.decision import JournalEntry, Outcome, OutcomeKind
from ebbgate.units import NS_PER_S
from tests.builders import action, journal_entry
from tests.fake_journal import FakeJournal
from tests.fake_sysfs import FakeSysfs, WatchedSysfs, failing, fake_bcache

BOOT = "this boot"
FOLDER = "/sys/block/bcache0/bcache"


class RestoreHarness:
    """A journal of three knobs that an earlier daemon did not restore."""

    def __init__(self, root: Path) -> None:
        self.fake: FakeSysfs = fake_bcache(root / "sys")
        self.sysfs = WatchedSysfs(root / "sys")
        self.journal = FakeJournal()
        for knob, original, ours in (
            ("writeback_delay", "30", "0"),
            ("writeback_rate", "8", "16384"),
            ("writeback_percent", "10", "40"),
        ):
            self.left(knob, original, last_written=ours)
            self.fake.write(f"{FOLDER}/{knob}", ours)

    def left(self, knob: str, original: str, **parts: str) -> None:
        known = {"path": f"{FOLDER}/{knob}", "original": original, **parts}
        self.journal.put(journal_entry(knob, **known))

    def identified(self) -> None:
        """Add the knobs' devices to the journal entries."""
        for entry in self.journal.entries():
            device = identify(self.sysfs, entry.path)
            known = replace(entry, device_uuid=device.uuid, instance=device.instance)
            self.journal.put(known)

    def restore(self, volume: str | None = None) -> list[Outcome]:
        return restore(self.journal, self.sysfs, BOOT, volume)

    def restored(self, knob: str) -> Outcome:
        """Restore all; return the outcome of one knob."""
        (found,) = (each for each in self.restore() if each.action.knob == knob)
        return found

    @property
    def open(self) -> list[str]:
        return [entry.knob for entry in self.journal.entries()]


@pytest.fixture
def harness(tmp_path: Path) -> RestoreHarness:
    return RestoreHarness(tmp_path)


def test_every_original_is_restored_newest_first_and_the_kernel_is_woken(
    harness: RestoreHarness,
) -> None:
    outcomes = harness.restore()
    assert {outcome.kind for outcome in outcomes} == {OutcomeKind.CHANGED}
    assert harness.sysfs.log == [
        ("writeback_percent", "10"),
        ("writeback_running", "1"),
        ("writeback_rate", "8"),
        ("writeback_delay", "30"),
    ]
    assert harness.open == []


def test_a_second_restore_finds_nothing_to_do(harness: RestoreHarness) -> None:
    harness.restore()
    assert harness.restore() == []


def test_stopped_writeback_is_not_started(harness: RestoreHarness) -> None:
    harness.fake.write(f"{FOLDER}/writeback_running", "0")
    harness.restore()
    assert harness.fake.read(f"{FOLDER}/writeback_running") == "0"


def test_a_restore_of_one_volume_leaves_the_others(harness: RestoreHarness) -> None:
    harness.left("writeback_percent", "10", volume="bcache1")
    harness.restore("bcache1")
    assert sorted(harness.open) == ["writeback_delay", "writeback_percent", "writeback_rate"]
    assert len(harness.restore("bcache0")) == 3


def test_a_journal_from_another_boot_is_closed_without_a_write(harness: RestoreHarness) -> None:
    harness.restore()
    del harness.sysfs.log[:]
    harness.left("writeback_percent", "5", boot_id="another boot")
    (outcome,) = harness.restore()
    assert outcome.kind is OutcomeKind.UNCHANGED
    assert "another boot" in outcome.error
    assert (harness.sysfs.log, harness.open) == ([], [])


def test_an_entry_of_a_missing_device_is_closed(harness: RestoreHarness) -> None:
    harness.fake.remove(f"{FOLDER}/writeback_delay")
    gone = harness.restored("writeback_delay")
    assert gone.kind is OutcomeKind.UNCHANGED
    assert "gone" in gone.error
    assert harness.open == []


def test_a_refusing_knob_stays_in_the_journal_and_the_others_are_restored(
    harness: RestoreHarness,
) -> None:
    harness.sysfs.before["writeback_rate"] = failing(errno.EBUSY)
    refused = harness.restored("writeback_rate")
    assert (refused.kind, "busy" in refused.error) == (OutcomeKind.FAILED, True)
    assert harness.open == ["writeback_rate"]
    assert harness.fake.read(f"{FOLDER}/writeback_delay") == "30"
    harness.sysfs.before.clear()
    assert [outcome.kind for outcome in harness.restore()] == [OutcomeKind.CHANGED]


def test_a_restore_names_the_strategy_that_wrote_the_knob(harness: RestoreHarness) -> None:
    for outcome in harness.restore():
        assert outcome.action.strategy == "restore"
        assert outcome.action.reason == "journalled by idle_destage"


@pytest.mark.parametrize(
    ("knob", "parts"),
    [
        ("io_disable", {}),
        ("cache_mode", {}),
        ("sequential_cutoff", {"path": f"{FOLDER}/io_disable"}),
    ],
)
def test_a_damaged_journal_never_leads_to_another_file(
    harness: RestoreHarness, knob: str, parts: dict[str, str]
) -> None:
    harness.left(knob, "1", **parts)
    harness.fake.write(f"{FOLDER}/io_disable", "0")
    before = harness.fake.read(f"{FOLDER}/cache_mode")
    left = harness.restored(knob)
    assert left.kind is OutcomeKind.UNCHANGED
    assert left.error == "ebbgate writes no such knob: unchanged"
    assert harness.fake.read(f"{FOLDER}/io_disable") == "0"
    assert harness.fake.read(f"{FOLDER}/cache_mode") == before
    assert harness.open == []


@pytest.mark.parametrize(
    "parts",
    [
        {"original": "9" * 400},
        {"original": "9" * 5000},
        {"last_written": "9" * 400},
        {"path": f"{FOLDER}\0/sequential_cutoff"},
        {"path": "/sys/block/bcache\0/bcache/sequential_cutoff"},
    ],
)
def test_a_row_without_sense_keeps_no_other_knob_from_its_original(
    harness: RestoreHarness, parts: dict[str, str]
) -> None:
    harness.left("sequential_cutoff", **{"original": "4194304", "last_written": "0", **parts})
    harness.fake.write(f"{FOLDER}/sequential_cutoff", "1.0M")
    before = harness.fake.read(f"{FOLDER}/sequential_cutoff")
    found = {each.action.knob: each.kind for each in harness.restore()}
    assert found.pop("sequential_cutoff") is not OutcomeKind.CHANGED
    assert harness.fake.read(f"{FOLDER}/sequential_cutoff") == before
    assert set(found.values()) == {OutcomeKind.CHANGED}


# ---- errors -------------------------------------------------------------------------------------
ERRNOS = [errno.EACCES, errno.ENOMEM, errno.EIO, errno.EINTR, errno.EBUSY, errno.ENOSPC]


@pytest.mark.parametrize("number", ERRNOS)
@pytest.mark.parametrize("knob", ["writeback_delay", "backing_dev_uuid"])
def test_the_entry_of_an_unreadable_file_stays_open(
    harness: RestoreHarness, number: int, knob: str
) -> None:
    harness.identified()
    harness.sysfs.reading[knob] = failing(number)
    failed = harness.restored("writeback_delay")
    assert (failed.kind, os.strerror(number) in failed.error) == (OutcomeKind.FAILED, True)
    assert "writeback_delay" in harness.open
    harness.sysfs.reading.clear()
    harness.restore()
    assert (harness.open, harness.fake.read(f"{FOLDER}/writeback_delay")) == ([], "30")


@pytest.mark.parametrize("number", [*ERRNOS, errno.EINVAL, errno.EPERM])
def test_the_entry_of_a_refused_write_stays_open(harness: RestoreHarness, number: int) -> None:
    harness.sysfs.before["writeback_delay"] = failing(number)
    assert harness.restored("writeback_delay").kind is OutcomeKind.FAILED
    assert harness.open == ["writeback_delay"]


def test_the_entry_of_a_value_that_the_kernel_changed_stays_open(harness: RestoreHarness) -> None:
    harness.sysfs.after["writeback_delay"] = lambda: harness.fake.write(
        f"{FOLDER}/writeback_delay", "7"
    )
    assert harness.restored("writeback_delay").error == "the kernel changed it to 7"
    assert harness.open == ["writeback_delay"]


def test_nothing_counts_as_gone_without_a_mounted_sysfs(harness: RestoreHarness) -> None:
    harness.fake.root.rename(harness.fake.root.with_name("unmounted"))
    outcomes = harness.restore()
    assert {outcome.kind for outcome in outcomes} == {OutcomeKind.FAILED}
    assert len(harness.open) == 3


# ---- somebody else's values ----------------------------------------------------------------------
def test_a_value_of_somebody_else_stays_and_is_reported(harness: RestoreHarness) -> None:
    harness.fake.write(f"{FOLDER}/writeback_percent", "25")
    kept = harness.restored("writeback_percent")
    assert (kept.kind, kept.read_back) == (OutcomeKind.MANUAL, "25")
    assert kept.error == "somebody else has changed it to 25: left unchanged"
    assert harness.fake.read(f"{FOLDER}/writeback_percent") == "25"
    assert harness.open == []


@pytest.mark.parametrize("value", ["0", "40"])
def test_both_values_of_an_interrupted_write_are_restored(
    harness: RestoreHarness, value: str
) -> None:
    (entry,) = [each for each in harness.journal.entries() if each.knob == "writeback_percent"]
    harness.journal.writing(entry, "0", "40")
    harness.fake.write(f"{FOLDER}/writeback_percent", value)
    harness.restore()
    assert harness.fake.read(f"{FOLDER}/writeback_percent") == "10"
    assert harness.open == []


def test_a_knob_with_its_original_is_not_written(harness: RestoreHarness) -> None:
    harness.fake.write(f"{FOLDER}/writeback_percent", "10")
    harness.restore()
    assert "writeback_percent" not in dict(harness.sysfs.log)
    assert harness.open == []


def test_a_value_of_unknown_origin_is_neither_overwritten_nor_forgotten(
    harness: RestoreHarness,
) -> None:
    """The file of last values is lost, and the knob does not have the first value."""
    harness.journal.last.clear()
    harness.fake.write(f"{FOLDER}/writeback_delay", "3")
    unknown = harness.restored("writeback_delay")
    assert unknown.kind is OutcomeKind.FAILED
    assert "the value that ebbgate wrote last is unknown" in unknown.error
    assert harness.fake.read(f"{FOLDER}/writeback_delay") == "3"
    assert harness.open == ["writeback_delay"]
    assert harness.fake.read(f"{FOLDER}/writeback_percent") == "10", "the first value is known"


def test_the_rate_is_restored_whatever_its_value(harness: RestoreHarness) -> None:
    harness.fake.write(f"{FOLDER}/writeback_rate", "500.0k")
    harness.restore()
    assert harness.fake.read(f"{FOLDER}/writeback_rate") == str(8 * 512)


# ---- another device under the same name ----------------------------------------------------------
REAL = "/sys/devices/pci0/vda/block/vda/bcache"


def test_a_device_that_was_registered_again_keeps_the_kernels_values(
    harness: RestoreHarness,
) -> None:
    """The value is equal by chance, but the device was created again since."""
    harness.identified()
    real = harness.sysfs.locate(REAL)
    shutil.copytree(real, real.with_name("anew"), symlinks=True)
    real.rename(harness.fake.root.with_name("gone"))
    real.with_name("anew").rename(real)
    outcomes = harness.restore()
    assert {outcome.kind for outcome in outcomes} == {OutcomeKind.UNCHANGED}
    assert {outcome.error for outcome in outcomes} == {
        "the device was created again, with the kernel's values"
    }
    assert (harness.sysfs.log, harness.open) == ([], [])


def test_a_renamed_device_is_restored_and_its_successor_left_alone(harness: RestoreHarness) -> None:
    harness.identified()
    fake = harness.fake
    for link in ("/sys/block/bcache0", "/sys/class/block/bcache0", "/sys/dev/block/252:0"):
        fake.sysfs.locate(link).unlink()
    fake.sysfs.locate("/sys/devices/virtual/block/bcache0").rename(
        fake.sysfs.locate("/sys/devices/virtual/block/bcache1")
    )
    fake.links("bcache1", "/sys/devices/virtual/block/bcache1", "252:16")
    fake.disk("vdc", "254:32")
    fake.bcache("bcache0", backing="vdc", cache=None, files={"writeback_percent": "40"})
    harness.restore()
    assert fake.read("/sys/block/bcache0/bcache/writeback_percent") == "40"
    assert fake.read("/sys/block/bcache1/bcache/writeback_percent") == "10"
    assert harness.open == []


def test_a_path_that_leads_out_of_sysfs_is_left_alone(harness: RestoreHarness) -> None:
    for path in ("/etc/writeback_percent", "/sys/block/../../etc/writeback_percent"):
        harness.left("writeback_percent", "1", path=path, volume="bcache7")
        (outcome,) = harness.restore("bcache7")
        assert outcome.error == "ebbgate writes no such knob: unchanged"
    assert "writeback_percent" in harness.open


# ---- a volume that hangs -------------------------------------------------------------------------
def test_a_hanging_volume_delays_neither_the_others_nor_the_restore(
    harness: RestoreHarness, tmp_path: Path
) -> None:
    pipe = tmp_path / "hangs"
    os.mkfifo(pipe)
    harness.left("writeback_percent", "10", volume="bcache1")
    harness.left("writeback_delay", "30", volume="bcache1")

    def hanging(work: Work) -> Work:
        def hangs(entry: JournalEntry) -> Outcome:
            if entry.volume == "bcache1":
                # As a write to bcache does while it registers a device.
                os.open(pipe, os.O_RDONLY)
            return work(entry)

        return hangs

    workers = VolumeWorkers(lambda: None, deadline_ns=NS_PER_S // 2)
    begun_s = time.monotonic()
    outcomes = restore(
        harness.journal,
        harness.sysfs,
        BOOT,
        workers=lambda groups, work: workers(groups, hanging(work)),
    )
    assert time.monotonic() - begun_s < 5
    failed = [outcome for outcome in outcomes if outcome.kind is OutcomeKind.FAILED]
    assert {outcome.action.volume for outcome in failed} == {"bcache1"}
    assert len(failed) == 2
    assert failed[0].error == (
        "the kernel has not answered for 500 ms: bcache1 hangs at writeback_delay"
    )
    assert harness.fake.read(f"{FOLDER}/writeback_percent") == "10"
    assert {entry.volume for entry in harness.journal.entries()} == {"bcache1"}


def test_the_entries_of_a_killed_worker_stay_open(harness: RestoreHarness) -> None:
    def dies(entry: JournalEntry) -> Outcome:
        os._exit(9)

    workers = VolumeWorkers(lambda: None)
    outcomes = restore(
        harness.journal, harness.sysfs, BOOT, workers=lambda groups, _: workers(groups, dies)
    )
    assert {outcome.kind for outcome in outcomes} == {OutcomeKind.FAILED}
    assert len(harness.open) == 3


def test_a_worker_closes_all_files_of_its_parent(harness: RestoreHarness, tmp_path: Path) -> None:
    """Above all the lock: a worker that hangs in the kernel would hold it."""
    lock = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)

    def holds(entry: JournalEntry) -> Outcome:
        try:
            os.fstat(lock)
        except OSError as error:
            return Outcome(action(), OutcomeKind.CHANGED, 1, error=str(error.errno))
        return Outcome(action(), OutcomeKind.FAILED, 1)

    found = VolumeWorkers(lambda: None)({"bcache0": harness.journal.entries()[:1]}, holds)
    ((_, outcome),) = found
    assert isinstance(outcome, Outcome)
    assert outcome.error == str(errno.EBADF)
    os.close(lock)

# SPDX-License-Identifier: GPL-2.0-only
"""The threshold of a dm volume is restored, but never to another device."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.actuators.ownership import identify
from ebbgate.actuators.restore import restore
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.knobs.catalog import THRESHOLD
from ebbgate.knobs.places import knob_path
from ebbgate.model.decision import JournalEntry, OutcomeKind
from ebbgate.model.volume import Volume
from ebbgate.probes.topology import find
from tests.fake_dm import FakeCache, lvm_disks, lvm_machine
from tests.fake_journal import FakeJournal
from tests.fake_sysfs import NO_DM, FakeSysfs


@pytest.fixture
def fake(tmp_path: Path) -> FakeSysfs:
    return lvm_disks(tmp_path)


def entry_of(volume: Volume) -> JournalEntry:
    path = str(knob_path(volume, THRESHOLD))
    return JournalEntry(volume.name, THRESHOLD, path, "2048", "0", "this boot", 1, "idle_destage")


def identified(sysfs: Sysfs, entry: JournalEntry, instance: int | None = None) -> JournalEntry:
    """As a daemon journals it; `instance`: of another life of the device."""
    device = identify(sysfs, entry.path)
    known = device.instance if instance is None else instance
    return replace(entry, device_uuid=device.uuid, instance=known)


def test_a_renamed_volume_gets_its_threshold_back(fake: FakeSysfs) -> None:
    sysfs, dm = lvm_machine(fake, FakeCache(threshold=0))
    journal = FakeJournal([entry_of(find(sysfs, "vg/data"))])
    dm.devices[0].name = "vg-other"
    (outcome,) = restore(journal, sysfs, "this boot")
    assert (outcome.kind, dm.devices[0].threshold) == (OutcomeKind.CHANGED, 2048)
    assert journal.open == {}


def test_the_entry_of_a_missing_dm_volume_is_closed(fake: FakeSysfs) -> None:
    sysfs, dm = lvm_machine(fake)
    journal = FakeJournal([entry_of(find(sysfs, "vg/data"))])
    dm.devices.clear()
    (outcome,) = restore(journal, sysfs, "this boot")
    assert (outcome.kind, outcome.error) == (OutcomeKind.UNCHANGED, "the device is gone")


def test_the_entry_of_a_refused_message_stays_open(fake: FakeSysfs) -> None:
    sysfs, _ = lvm_machine(fake, FakeCache(threshold=0, refuses=errno.EBUSY))
    journal = FakeJournal([entry_of(find(sysfs, "vg/data"))])
    (outcome,) = restore(journal, sysfs, "this boot")
    assert outcome.kind is OutcomeKind.FAILED
    assert list(journal.open) == [THRESHOLD]


@pytest.mark.parametrize(
    "number", [errno.EACCES, errno.ENOMEM, errno.EIO, errno.EINTR, errno.EBUSY, errno.ENOSPC]
)
@pytest.mark.parametrize("call", ["status", "device", "message"])
def test_the_entry_of_a_failing_call_stays_open(fake: FakeSysfs, call: str, number: int) -> None:
    sysfs, dm = lvm_machine(fake, FakeCache(threshold=0))
    journal = FakeJournal([identified(sysfs, entry_of(find(sysfs, "vg/data")))])
    dm.fails[call] = number
    (outcome,) = restore(journal, sysfs, "this boot")
    assert (outcome.kind, os.strerror(number) in outcome.error) == (OutcomeKind.FAILED, True)
    assert list(journal.open) == [THRESHOLD]
    dm.fails.clear()
    (outcome,) = restore(journal, sysfs, "this boot")
    assert (outcome.kind, dm.devices[0].threshold) == (OutcomeKind.CHANGED, 2048)


def test_nothing_counts_as_gone_without_a_control_device(fake: FakeSysfs) -> None:
    sysfs, _ = lvm_machine(fake, FakeCache(threshold=0))
    journal = FakeJournal([identified(sysfs, entry_of(find(sysfs, "vg/data")))])
    (outcome,) = restore(journal, Sysfs(fake.root, NO_DM), "this boot")
    assert outcome.kind is OutcomeKind.FAILED
    assert "device-mapper cannot be queried" in outcome.error
    assert list(journal.open) == [THRESHOLD]


def test_an_administrators_threshold_stays(fake: FakeSysfs) -> None:
    sysfs, dm = lvm_machine(fake, FakeCache(threshold=7777))
    journal = FakeJournal([identified(sysfs, entry_of(find(sysfs, "vg/data")))])
    (outcome,) = restore(journal, sysfs, "this boot")
    assert (outcome.kind, outcome.read_back) == (OutcomeKind.MANUAL, "7777")
    assert (dm.devices[0].threshold, dm.devices[0].messages, journal.open) == (7777, [], {})


def test_a_snapshot_origin_under_the_old_name_gets_no_message(fake: FakeSysfs) -> None:
    """The cache goes on under another uuid, with the threshold of its new table."""
    sysfs, dm = lvm_machine(fake, FakeCache(threshold=0))
    journal = FakeJournal([identified(sysfs, entry_of(find(sysfs, "vg/data")))])
    dm.devices[0].kind = "snapshot-origin"
    (outcome,) = restore(journal, sysfs, "this boot")
    assert (outcome.kind, journal.open) == (OutcomeKind.UNCHANGED, {})
    assert dm.devices[0].messages == []


def test_a_device_that_was_activated_again_is_another_device(fake: FakeSysfs) -> None:
    sysfs, dm = lvm_machine(fake, FakeCache(threshold=0))
    journal = FakeJournal([identified(sysfs, entry_of(find(sysfs, "vg/data")), instance=1)])
    (outcome,) = restore(journal, sysfs, "this boot")
    assert "created again" in outcome.error
    assert (dm.devices[0].messages, journal.open) == ([], {})


def test_a_device_without_a_uuid_is_found_under_its_new_name(fake: FakeSysfs) -> None:
    old = FakeCache(uuid="", threshold=0)
    sysfs, dm = lvm_machine(fake, old)
    entry = identified(sysfs, entry_of(find(sysfs, "vg-data")))
    assert entry.path == f"dm:vg-data/{THRESHOLD}"
    old.name = "moved"
    dm.devices.append(FakeCache(uuid="", devno=(253, 4), threshold=0))
    journal = FakeJournal([entry])
    (outcome,) = restore(journal, sysfs, "this boot")
    assert outcome.kind is OutcomeKind.CHANGED
    assert (old.threshold, dm.devices[1].threshold) == (2048, 0)

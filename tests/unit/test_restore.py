# SPDX-License-Identifier: GPL-2.0-only
"""Originals come back without a daemon, but never onto another device or another boot."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ebbgate.actuators.restore import restore
from ebbgate.model.decision import Outcome, OutcomeKind
from tests.builders import journal_entry
from tests.fake_journal import FakeJournal
from tests.fake_sysfs import FakeSysfs, WatchedSysfs, fake_bcache

BOOT = "this boot"
FOLDER = "/sys/block/bcache0/bcache"


class Bench:
    """A journal of three knobs that an earlier daemon left at its own values."""

    def __init__(self, root: Path) -> None:
        self.fake: FakeSysfs = fake_bcache(root / "sys")
        self.sysfs = WatchedSysfs(root / "sys")
        self.journal = FakeJournal()
        for knob, original, ours in (
            ("writeback_delay", "30", "0"),
            ("writeback_rate", "8", "16384"),
            ("writeback_percent", "10", "40"),
        ):
            self.left(knob, original)
            self.fake.write(f"{FOLDER}/{knob}", ours)

    def left(self, knob: str, original: str, **parts: str) -> None:
        known = {"path": f"{FOLDER}/{knob}", "original": original, **parts}
        self.journal.put(journal_entry(knob, **known))

    def restore(self, volume: str | None = None) -> list[Outcome]:
        return restore(self.journal, self.sysfs, BOOT, volume)

    @property
    def open(self) -> list[str]:
        return [entry.knob for entry in self.journal.entries()]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_every_knob_gets_its_original_newest_first_and_the_thread_looks_at_it(
    bench: Bench,
) -> None:
    outcomes = bench.restore()
    assert {outcome.kind for outcome in outcomes} == {OutcomeKind.CHANGED}
    assert bench.sysfs.log == [
        ("writeback_percent", "10"),
        ("writeback_running", "1"),
        ("writeback_rate", "8"),
        ("writeback_delay", "30"),
    ]
    assert bench.open == []


def test_a_second_restore_finds_nothing_to_do(bench: Bench) -> None:
    bench.restore()
    assert bench.restore() == []


def test_writeback_that_somebody_stopped_is_not_started(bench: Bench) -> None:
    bench.fake.write(f"{FOLDER}/writeback_running", "0")
    bench.restore()
    assert bench.fake.read(f"{FOLDER}/writeback_running") == "0"


def test_one_volume_only(bench: Bench) -> None:
    bench.left("writeback_percent", "10", volume="bcache1")
    bench.restore("bcache1")
    assert sorted(bench.open) == ["writeback_delay", "writeback_percent", "writeback_rate"]
    assert len(bench.restore("bcache0")) == 3


def test_a_journal_from_another_boot_is_closed_without_a_write(bench: Bench) -> None:
    bench.restore()
    del bench.sysfs.log[:]
    bench.left("writeback_percent", "5", boot_id="another boot")
    (outcome,) = bench.restore()
    assert outcome.kind is OutcomeKind.UNCHANGED
    assert "another boot" in outcome.error
    assert (bench.sysfs.log, bench.open) == ([], [])


def test_a_device_that_is_gone_took_its_knobs_with_it(bench: Bench) -> None:
    bench.fake.remove(f"{FOLDER}/writeback_delay")
    outcomes = {outcome.action.knob: outcome for outcome in bench.restore()}
    gone = outcomes["writeback_delay"]
    assert gone.kind is OutcomeKind.UNCHANGED
    assert "gone" in gone.error
    assert bench.open == []


def test_a_knob_that_refuses_stays_in_the_journal_and_the_others_come_back(bench: Bench) -> None:
    def busy() -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    bench.sysfs.before["writeback_rate"] = busy
    outcomes = {outcome.action.knob: outcome for outcome in bench.restore()}
    assert outcomes["writeback_rate"].kind is OutcomeKind.FAILED
    assert "busy" in outcomes["writeback_rate"].error
    assert bench.open == ["writeback_rate"]
    assert bench.fake.read(f"{FOLDER}/writeback_delay") == "30"
    bench.sysfs.before.clear()
    assert [outcome.kind for outcome in bench.restore()] == [OutcomeKind.CHANGED]


def test_a_restore_says_who_had_written_the_knob(bench: Bench) -> None:
    for outcome in bench.restore():
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
def test_a_damaged_journal_leads_to_no_file_that_is_never_written(
    bench: Bench, knob: str, parts: dict[str, str]
) -> None:
    bench.left(knob, "1", **parts)
    bench.fake.write(f"{FOLDER}/io_disable", "0")
    before = bench.fake.read(f"{FOLDER}/cache_mode")
    outcomes = bench.restore()
    (left,) = [outcome for outcome in outcomes if outcome.action.knob == knob]
    assert (left.kind, left.error) == (
        OutcomeKind.UNCHANGED,
        "no knob of ebbgate: left alone",
    )
    assert bench.fake.read(f"{FOLDER}/io_disable") == "0"
    assert bench.fake.read(f"{FOLDER}/cache_mode") == before
    assert bench.open == []

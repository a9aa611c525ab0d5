# SPDX-License-Identifier: GPL-2.0-only
"""The attack on the disk is one, stays small and leaves nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.bench.hostile_attacker import (
    COUNTED,
    OTHERS,
    SCRATCH,
    SYNCED_BYTES,
    SYNCED_FILES,
    Attacker,
)
from tests.bench.hostile_client import LEAST_A_MINUTE

SYNCS = 3 * SYNCED_FILES


class Counting(Attacker):
    """An attacker whose time is over after some writes."""

    def goes_on(self) -> bool:
        return self.counts["syncs"] < SYNCS


def attack(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Counting, list[int]]:
    """Return an attacker that is done, and how much its files held at each fsync."""
    (folder / SCRATCH).mkdir()
    held = []

    def synced(handle: int) -> None:
        assert os.fstat(handle).st_size == SYNCED_BYTES
        files = [path for path in folder.rglob("*") if path.is_file()]
        held.append(sum(path.stat().st_size for path in files))

    monkeypatch.setattr(os, "fsync", synced)
    attacker = Counting(folder, time.monotonic() + 60, "seed")
    attacker.sync_files()
    return attacker, held


def test_the_disk_is_written_to_and_synced_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attacker, held = attack(tmp_path, monkeypatch)
    assert attacker.counts["syncs"] == len(held) == SYNCS
    assert max(held) <= SYNCED_FILES * SYNCED_BYTES <= 4 << 20
    assert list((tmp_path / SCRATCH).iterdir()) == []


def test_a_full_disk_is_a_failed_attack_that_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / SCRATCH).mkdir()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        Counting(tmp_path, time.monotonic() + 60, "seed").sync_files()
    assert list((tmp_path / SCRATCH).iterdir()) == []


def test_two_of_its_processes_do_that_and_a_run_without_it_counts_as_none() -> None:
    assert OTHERS.count(Attacker.sync_files) == 2
    assert "syncs" in COUNTED
    assert LEAST_A_MINUTE["syncs"] > 0

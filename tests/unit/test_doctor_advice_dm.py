# SPDX-License-Identifier: GPL-2.0-only
"""Advice for dm-cache and dm-writecache: each for its own reason, with a command of LVM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ebbgate.doctor.advice import advise
from ebbgate.doctor.finding import Advice, Facts, Weight
from ebbgate.model.dm import CacheStatus, Health, WritecacheStatus
from ebbgate.model.volume import Kind, Volume, VolumeState
from ebbgate.units import MIB
from tests.builders import cache_status, device, mapped_volume
from tests.fake_dm import CACHE_TABLE

READS = "EBB-304"


def found(volume: Volume | None = None, mode: str = "writeback", **status: Any) -> list[Advice]:
    line = cache_status(**status)
    state = VolumeState(0, "dirty", mode, 6 << 20, 908 << 20, 0.97, {}, line)
    of = volume or mapped_volume()
    disks = (device("dm-4"),)
    return [each for each in advise(Facts(of, state, disks)) if each.id != READS]


def test_a_sound_cache_is_told_of_streams_alone() -> None:
    assert found() == []
    state = VolumeState(0, "dirty", "writeback", 0, 1, 0.5, {}, cache_status())
    (note,) = advise(Facts(mapped_volume(), state, (device("dm-4"),)))
    assert (note.id, note.weight) == (READS, Weight.NOTE)
    for alternative in ("dm-writecache", "bcache", "larger cache blocks"):
        assert alternative in note.text


@pytest.mark.parametrize(
    ("number", "mode", "status", "command"),
    [
        ("EBB-202", "writethrough", {}, ""),
        ("EBB-302", "writeback", {"metadata_used": 1900}, "lvconvert --splitcache vg/data"),
        ("EBB-303", "passthrough", {}, "lvchange --cachemode writethrough vg/data"),
        (
            "EBB-305",
            "writeback",
            {"migration_threshold_sectors": 40960},
            "lvchange --cachesettings migration_threshold=2048 vg/data",
        ),
        ("EBB-307", "writeback", {"policy": "cleaner"}, "lvchange --refresh vg/data"),
    ],
)
def test_each_reason_has_its_number_and_command(
    number: str, mode: str, status: dict[str, Any], command: str
) -> None:
    (advice, *_) = [each for each in found(mode=mode, **status) if each.id != "EBB-308"]
    assert (advice.id, advice.command) == (number, command)


@pytest.mark.parametrize("health", [Health.NEEDS_CHECK, Health.READ_ONLY, Health.FAILED])
def test_a_sick_cache_is_a_fault_with_its_repair(health: Health) -> None:
    state = VolumeState(0, str(health), None, None, None, None, {}, CacheStatus(health))
    (advice, _) = advise(Facts(mapped_volume(), state, (device("dm-4"),)))
    assert (advice.id, advice.weight) == ("EBB-301", Weight.FAULT)
    assert "lvconvert --repair vg/data" in advice.command


def test_a_threshold_by_message_does_not_last() -> None:
    (advice,) = found(migration_threshold_sectors=1024)
    assert (advice.id, advice.command) == (
        "EBB-308",
        "lvchange --cachesettings migration_threshold=1024 vg/data",
    )
    state = VolumeState(0, "dirty", "writeback", 1, 2, 0.5, {}, cache_status())
    status = cache_status(migration_threshold_sectors=0)
    ours = Facts(mapped_volume(), state, (device("dm-4"),), held=frozenset({"migration_threshold"}))
    assert [a.id for a in advise(replace(ours, state=replace(state, dm=status)))] == [READS]


def test_what_lvm_sets_for_large_blocks_is_no_fault() -> None:
    """8 blocks of 1 MiB are LVM's own minimum: no command could go below."""
    large: dict[str, Any] = {"block_bytes": MIB, "migration_threshold_sectors": 8 * 2048}
    assert [advice.id for advice in found(**large)] == ["EBB-308"]
    above: dict[str, Any] = {"block_bytes": MIB, "migration_threshold_sectors": 9 * 2048}
    assert "migration_threshold=16384 vg/data" in found(**above)[0].command


def test_a_bare_stack_gets_no_command_of_lvm() -> None:
    (advice, _) = found(mapped_volume(uuid="", lvm_name=""), migration_threshold_sectors=40960)
    assert (advice.id, advice.command) == ("EBB-305", "")


def test_writecache_is_told_which_command_sets_it() -> None:
    status = WritecacheStatus(0, 1000, 400, 0, 4096)
    state = VolumeState(0, "dirty", "writeback", 1, 2, 0.5, {}, status)
    (advice,) = advise(Facts(mapped_volume(Kind.DM_WRITECACHE), state, (device("dm-4"),)))
    assert advice.id == "EBB-306"
    assert advice.command.startswith("lvchange --cachesettings 'high_watermark=")


@pytest.mark.parametrize("lvm", ["vg/data", ""])
def test_a_setting_of_the_old_policy_is_said_to_have_no_effect(lvm: str) -> None:
    table = CACHE_TABLE.replace("sequential_threshold 0", "sequential_threshold 512")
    (advice,) = found(mapped_volume(params=table, lvm_name=lvm))
    command = "lvchange --cachesettings 'sequential_threshold=default' vg/data" if lvm else ""
    assert (advice.id, advice.weight, advice.command) == ("EBB-309", Weight.NOTE, command)
    assert advice.change is None


def test_a_command_of_lvm_brings_the_one_that_takes_it_back() -> None:
    (advice, *_) = found(migration_threshold_sectors=40960)
    assert advice.change is not None
    assert " ".join(advice.change.argv) == advice.command
    assert advice.change.undo_argv == (
        *("lvchange", "--cachesettings", "migration_threshold=default", "vg/data"),
    )
    table = CACHE_TABLE.replace("mq 10", "mq 12") + " migration_threshold 40960"
    (own,) = found(mapped_volume(params=table), migration_threshold_sectors=40960)
    assert own.change is not None
    assert own.change.undo_argv[2] == "migration_threshold=40960"

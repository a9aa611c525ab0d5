# SPDX-License-Identifier: GPL-2.0-only
"""Advice for dm-cache and dm-writecache: each for its own reason, with a command of LVM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ebbgate.doctor.advice import advise
from ebbgate.doctor.model import Advice, DiskKind, Facts, Weight
from ebbgate.model.dm import CacheStatus, DmHealth, WritecacheStatus
from ebbgate.model.status import VolumeStatus
from ebbgate.model.status_json import status_from_json
from ebbgate.model.volume import Kind, Volume, VolumeState
from ebbgate.units import MIB
from tests.builders import cache_status, device, dm_volume
from tests.fake_dm import CACHE_TABLE
from tests.unit.doctor.test_advice import check_form

READS = "EBB-304"


def facts(
    line: CacheStatus | WritecacheStatus,
    volume: Volume | None = None,
    mode: str = "writeback",
    **parts: Any,
) -> Facts:
    state = VolumeState(0, "dirty", mode, 6 << 20, 908 << 20, 0.97, {}, line)
    return Facts(volume or dm_volume(), state, (device("dm-4"),), **parts)


def found(volume: Volume | None = None, mode: str = "writeback", **status: Any) -> list[Advice]:
    known = facts(cache_status(**status), volume, mode)
    return [each for each in advise(known) if each.id != READS]


def by_id(known: Facts, number: str) -> Advice:
    return next(each for each in advise(known) if each.id == number)


def test_a_sound_cache_gets_advice_on_streams_only() -> None:
    assert found() == []
    (note,) = advise(facts(cache_status()))
    assert (note.id, note.weight) == (READS, Weight.NOTE)
    for alternative in ("dm-writecache", "bcache", "larger cache blocks"):
        assert alternative in note.text


@pytest.mark.parametrize(
    ("number", "mode", "status", "command"),
    [
        ("EBB-202", "writethrough", {}, ""),
        ("EBB-302", "writeback", {"metadata_used": 1900}, "sudo lvconvert --splitcache vg/data"),
        ("EBB-303", "passthrough", {}, "sudo lvchange --cachemode writethrough vg/data"),
        (
            "EBB-305",
            "writeback",
            {"migration_threshold_sectors": 40960},
            "sudo lvchange --cachesettings migration_threshold=2048 vg/data",
        ),
        ("EBB-307", "writeback", {"policy": "cleaner"}, "sudo lvchange --refresh vg/data"),
    ],
)
def test_each_reason_has_its_number_and_command(
    number: str, mode: str, status: dict[str, Any], command: str
) -> None:
    (advice, *_) = [each for each in found(mode=mode, **status) if each.id != "EBB-308"]
    assert (advice.id, advice.command) == (number, command)
    check_form(advice)


@pytest.mark.parametrize("lvm", ["vg/data", ""])
def test_a_cleaner_that_lvm_has_itself_needs_another_policy_first(lvm: str) -> None:
    (advice,) = found(dm_volume(lvm_name=lvm), policy="cleaner")
    assert ("first run lvchange --cachepolicy smq vg/data." in advice.text) == bool(lvm)


def test_leaving_passthrough_can_be_undone() -> None:
    (advice, *_) = [each for each in found(mode="passthrough") if each.id == "EBB-303"]
    assert advice.undo == "sudo lvchange --cachemode passthrough vg/data"


THROUGH = CACHE_TABLE.replace("metadata2 writeback", "metadata2 writethrough")
REPAIR = "sudo lvchange -an vg/data && sudo lvconvert --repair vg/data"
DROP = "sudo lvchange -an vg/data && sudo lvconvert --uncache vg/data"


@pytest.mark.parametrize("health", [DmHealth.NEEDS_CHECK, DmHealth.READ_ONLY, DmHealth.FAILED])
@pytest.mark.parametrize(
    ("params", "cachevol", "command", "says"),
    [
        (CACHE_TABLE, False, REPAIR, "LVM can repair"),
        (CACHE_TABLE, True, "", "LVM cannot repair"),
        (CACHE_TABLE, None, "", "LVM cannot repair it if its cache is a cachevol"),
        (THROUGH, True, DROP, "the disk has all data"),
        (THROUGH, False, DROP, "the disk has all data"),
    ],
)
def test_a_sick_cache_is_a_fault_with_the_repair_that_it_can_have(
    health: DmHealth, params: str, cachevol: bool | None, command: str, says: str
) -> None:
    state = VolumeState(0, str(health), None, None, None, None, {}, CacheStatus(health))
    sick = Facts(dm_volume(params=params), state, (device("dm-4"),), cachevol=cachevol)
    advice = by_id(sick, "EBB-301")
    assert (advice.weight, advice.command) == (Weight.FAULT, command)
    assert says in advice.text
    if not command:
        assert "do not remove the cache" in advice.text
    assert ("lvchange -ay vg/data" in advice.text) == bool(command)
    check_form(advice)


def test_a_sick_cache_without_lvm_gets_no_command_of_lvm() -> None:
    status = CacheStatus(DmHealth.FAILED)
    state = VolumeState(0, "failed", None, None, None, None, {}, status)
    bare = Facts(dm_volume(uuid="", lvm_name=""), state, (device("dm-4"),))
    advice = by_id(bare, "EBB-301")
    assert (advice.command, "lvc" in advice.text) == ("", False)


@pytest.mark.parametrize("lvm", ["vg/data", ""])
def test_a_volume_without_a_disk_is_a_fault_that_names_the_dirty_data(lvm: str) -> None:
    known = facts(cache_status(), replace(dm_volume(lvm_name=lvm), diskless=True))
    advice = by_id(known, "EBB-310")
    assert (advice.weight, advice.command) == (Weight.FAULT, "")
    assert "Only the cache has 6 MiB of dirty data: do not remove it." in advice.text
    assert ("lvchange -ay vg/data" in advice.text) == bool(lvm)
    check_form(advice)


def test_a_threshold_by_message_does_not_last() -> None:
    (advice,) = found(migration_threshold_sectors=1024)
    assert (advice.id, advice.command) == (
        "EBB-308",
        "sudo lvchange --cachesettings migration_threshold=1024 vg/data",
    )
    status = cache_status(migration_threshold_sectors=0)
    ours = facts(status, owned=frozenset({"migration_threshold"}))
    assert [each.id for each in advise(ours)] == [READS]


@pytest.mark.parametrize("sectors", [0, 128, 1023])
def test_a_threshold_that_lvm_would_raise_gets_no_command(sectors: int) -> None:
    """8 blocks of 64 KiB are LVM's minimum: its command would change what it is to keep."""
    (advice,) = found(migration_threshold_sectors=sectors)
    assert (advice.id, advice.command, advice.change) == ("EBB-308", "", None)
    assert "LVM cannot keep yours: it sets at least 8 blocks, 1024 sectors" in advice.text
    check_form(advice)
    (bare,) = found(dm_volume(uuid="", lvm_name=""), migration_threshold_sectors=sectors)
    assert "put it into the table" in bare.text


def test_what_lvm_sets_for_large_blocks_is_no_fault() -> None:
    """8 blocks of 1 MiB are LVM's own minimum: no command could go below."""
    large: dict[str, Any] = {"block_bytes": MIB, "migration_threshold_sectors": 8 * 2048}
    assert [advice.id for advice in found(**large)] == ["EBB-308"]
    above: dict[str, Any] = {"block_bytes": MIB, "migration_threshold_sectors": 9 * 2048}
    assert "migration_threshold=16384 vg/data" in found(**above)[0].command


def test_the_threshold_of_a_gap_gets_no_advice() -> None:
    """ebbgate lets 32 blocks out at once where it knows when users return."""
    line = cache_status(block_bytes=MIB, migration_threshold_sectors=32 * 2048)
    ours = facts(line, owned=frozenset({"migration_threshold"}))
    assert [each.id for each in advise(ours)] == [READS]
    assert by_id(facts(line), "EBB-305").command


def test_a_bare_stack_gets_no_command_of_lvm() -> None:
    bare = found(dm_volume(uuid="", lvm_name=""), migration_threshold_sectors=40960)
    advice = next(each for each in bare if each.id == "EBB-305")
    assert advice.command == "sudo dmsetup message vg-data 0 migration_threshold 2048"
    assert advice.undo == "sudo dmsetup message vg-data 0 migration_threshold 40960"
    assert "Until the next boot or table reload" in advice.lasts
    assert advice.change is None
    for each in bare:
        check_form(each)


@pytest.mark.parametrize(
    ("mode", "status"),
    [
        ("passthrough", {}),
        ("writeback", {"metadata_used": 1900}),
        ("writeback", {"policy": "cleaner"}),
    ],
)
def test_without_a_command_no_effect_is_promised(mode: str, status: dict[str, Any]) -> None:
    bare = found(dm_volume(uuid="", lvm_name=""), mode, **status)
    assert [each.command for each in bare] == [""]
    for each in bare:
        check_form(each)


ARRAY = {"dm-4": DiskKind.ARRAY}
PATH = {"op": "read", "path": "hit", "ios": 1, "bytes": 512, "p99_ns": 5}


@pytest.mark.parametrize(
    ("kinds", "live", "weight"),
    [
        ({}, {}, Weight.NOTE),
        ({}, {"destage_bytes_per_s": 1e6, "paths": [PATH]}, Weight.ADVICE),
        ({}, {"destage_bytes_per_s": 0.0, "paths": [PATH]}, Weight.NOTE),
        (ARRAY, {"destage_bytes_per_s": 1e6, "paths": [PATH]}, Weight.NOTE),
    ],
)
def test_a_large_threshold_is_recommended_against_where_users_wait_on_one_disk(
    kinds: dict[str, DiskKind], live: dict[str, Any], weight: Weight
) -> None:
    line = cache_status(migration_threshold_sectors=40960)
    status = status_from_json(VolumeStatus, live)
    advice = by_id(facts(line, kinds=kinds, status=status), "EBB-305")
    assert advice.weight is weight
    assert ("several disks" in advice.text) == bool(kinds)


def test_writecache_gets_the_command_that_sets_it() -> None:
    status = WritecacheStatus(0, 1000, 400, 0, 4096)
    (advice,) = advise(facts(status, dm_volume(Kind.DM_WRITECACHE)))
    assert advice.id == "EBB-306"
    assert advice.command.startswith("sudo lvchange --cachesettings 'high_watermark=")
    check_form(advice)


@pytest.mark.parametrize(
    ("settings", "lowers"),
    [
        ("0", True),
        ("4 high_watermark 60 low_watermark 55", True),
        ("4 high_watermark 30 low_watermark 10", False),
        ("4 high_watermark 20 low_watermark 15", False),
        ("2 low_watermark 5", False),
    ],
)
def test_watermarks_that_are_low_are_not_raised(settings: str, lowers: bool) -> None:
    volume = dm_volume(Kind.DM_WRITECACHE, params=f"s 253:4 253:2 4096 {settings}")
    (advice,) = advise(facts(WritecacheStatus(0, 1000, 400, 0, 4096), volume))
    assert ("high_watermark=30 low_watermark=10" in advice.command) == lowers
    assert (advice.command == "sudo ebbgate clean vg/data") != lowers
    high, low = ("60", "55") if "60" in settings else ("50", "45")
    undo = f"sudo lvchange --cachesettings 'high_watermark={high} low_watermark={low}' vg/data"
    assert advice.undo == (undo if lowers else "")
    assert ("low already" in advice.text) != lowers
    check_form(advice)


@pytest.mark.parametrize("lvm", ["vg/data", ""])
def test_a_setting_of_the_old_policy_is_reported_as_without_effect(lvm: str) -> None:
    table = CACHE_TABLE.replace("sequential_threshold 0", "sequential_threshold 512")
    (advice,) = found(dm_volume(params=table, lvm_name=lvm))
    command = "sudo lvchange --cachesettings 'sequential_threshold=default' vg/data" if lvm else ""
    assert (advice.id, advice.weight, advice.command) == ("EBB-309", Weight.NOTE, command)
    assert advice.undo == command.replace("default", "512")
    assert advice.change is None


def test_a_command_of_lvm_brings_the_one_that_takes_it_back() -> None:
    (advice, *_) = found(migration_threshold_sectors=40960)
    assert advice.change is not None
    assert " ".join(("sudo", *advice.change.argv)) == advice.command
    assert advice.change.undo_argv == (
        *("lvchange", "--cachesettings", "migration_threshold=default", "vg/data"),
    )
    table = CACHE_TABLE.replace("mq 10", "mq 12") + " migration_threshold 40960"
    (own,) = found(dm_volume(params=table), migration_threshold_sectors=40960)
    assert own.change is not None
    assert own.change.undo_argv[2] == "migration_threshold=40960"

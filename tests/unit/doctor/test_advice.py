# SPDX-License-Identifier: GPL-2.0-only
"""Each advice appears for its own reason only, keeps its number, and a sound machine gets none."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from ebbgate.doctor import advice
from ebbgate.doctor.advice import advise
from ebbgate.doctor.advice_disks import depth_inside
from ebbgate.doctor.model import KNOB_CHANGES, SEVERITY, Advice, DiskKind, Facts, Weight, disk_kind
from ebbgate.knobs.settable import checked_value
from ebbgate.model.status import VolumeStatus
from ebbgate.model.volume import VolumeState
from ebbgate.signals.frame import NO_RECORD
from tests.builders import device, volume

SOUND = VolumeState(
    at_ns=0,
    state="clean",
    cache_mode="writeback",
    dirty_bytes=0,
    cache_bytes=1 << 30,
    in_use_ratio=0.4,
    knobs={"sequential_cutoff": "4194304", "writeback_percent": "10"},
)

CALM = {"congested_read_threshold_us": "0", "congested_write_threshold_us": "0"}


def facts(**parts: Any) -> Facts:
    known: dict[str, Any] = {"volume": volume(), "state": SOUND, "disks": (device("vda"),)}
    known["kinds"] = {"vda": DiskKind.SINGLE}
    return Facts(**{**known, **parts})


def state(**parts: Any) -> VolumeState:
    return replace(SOUND, **parts)


def disk(**parts: Any) -> tuple[Any, ...]:
    return (replace(device("vda"), **parts),)


def test_a_sound_machine_needs_no_advice() -> None:
    assert advise(facts()) == ()


@pytest.mark.parametrize(
    ("number", "parts"),
    [
        ("EBB-101", {"disks": disk(scheduler="none", nr_requests=32)}),
        ("EBB-102", {"disks": disk(rotational=False), "kinds": {"vda": DiskKind.VIRTUAL}}),
        ("EBB-103", {"disks": disk(queue_depth=128)}),
        ("EBB-104", {"disks": (device("sda"), device("sdb"))}),
        ("EBB-109", {"status": VolumeStatus(missing={"foreground": "boot with another setting"})}),
        ("EBB-111", {"cache_disks": disk()}),
        ("EBB-201", {"volume": volume(set_uuid="")}),
        ("EBB-202", {"state": state(cache_mode="writethrough")}),
        ("EBB-203", {"state": state(state="inconsistent")}),
        ("EBB-204", {"state": state(in_use_ratio=0.96)}),
        ("EBB-205", {"state": state(knobs={"congested_read_threshold_us": "2000"})}),
        ("EBB-206", {"state": state(knobs={"sequential_cutoff": "0"})}),
        ("EBB-207", {"discards": ("vdb",)}),
        ("EBB-208", {"io_errors": {"vda": 3, "vdb": 0}}),
        ("EBB-209", {"state": state(knobs={"writeback_percent": "40"})}),
        ("EBB-209", {"state": state(knobs={"writeback_percent": "25"})}),
        ("EBB-210", {"state": state(knobs={"writeback_percent": "0"})}),
        ("EBB-211", {"state": state(knobs={"writeback_percent": "1"})}),
        ("EBB-211", {"state": state(knobs={"writeback_percent": "4"})}),
        ("EBB-212", {"state": state(knobs={"writeback_rate_minimum": "16384"})}),
        ("EBB-213", {"state": state(knobs={"sequential_cutoff": "1"})}),
        ("EBB-213", {"state": state(knobs={"sequential_cutoff": "32768"})}),
        ("EBB-214", {"state": state(knobs=CALM)}),
    ],
)
def test_each_reason_has_its_number(number: str, parts: dict[str, Any]) -> None:
    (found,) = advise(facts(**parts))
    assert found.id == number
    assert found.about in found.text
    of_the_set = number in ("EBB-204", "EBB-205")
    assert found.about in found.command or not found.command or of_the_set
    check_form(found)


def test_dirty_data_from_before_is_named_in_a_mode_that_makes_none() -> None:
    left = state(cache_mode="writethrough", dirty_bytes=6 << 20)
    (found,) = advise(facts(state=left))
    assert found.id == "EBB-202"
    assert "6 MiB from before are still dirty" in found.text
    assert "no dirty data" not in found.text
    check_form(found)


@pytest.mark.parametrize(
    ("parts", "undo"),
    [
        ({"volume": volume(set_uuid="")}, "echo 1 | sudo tee /sys/block/bcache0/bcache/detach"),
        ({"discards": ("vdb",)}, "echo 1 | sudo tee /sys/class/block/vdb/bcache/discard"),
        (
            {"state": state(knobs={"writeback_rate_minimum": "16384"})},
            "echo 16384 | sudo tee /sys/block/bcache0/bcache/writeback_rate_minimum",
        ),
    ],
)
def test_a_command_that_only_a_person_runs_has_one_that_undoes_it(
    parts: dict[str, Any], undo: str
) -> None:
    (found,) = advise(facts(**parts))
    assert (found.undo, found.change) == (undo, None)


def test_a_volume_that_is_measured_soon_is_no_problem() -> None:
    assert advise(facts(status=VolumeStatus(missing={"foreground": NO_RECORD}))) == ()


def check_form(found: Advice) -> None:
    """What holds for every advice, of whichever kind of volume."""
    assert found.text.endswith(".")
    assert "\n" not in found.command
    # A shell opens `> file` as the person who types, and `sudo echo` changes nothing about that.
    assert ">" not in found.command
    assert not found.command or found.command.startswith(("sudo ", "echo "))
    assert re.search(r" \| sudo tee /(sys|etc)/", found.command) or found.command[:5] != "echo "
    without_command = ("EBB-105", "EBB-112", "EBB-309")
    assert bool(found.effect) == bool(found.command) or found.id in without_command
    assert not found.undo or found.change is None
    assert bool(found.lasts) == bool(found.command)
    assert bool(found.keep) == found.lasts.endswith(":")
    assert SEVERITY[found.weight] in ("Problem", "Recommended", "Info")
    if found.change is not None and found.change.knobs:
        assert KNOB_CHANGES[found.id] == found.change


def test_every_number_is_documented() -> None:
    assert advice.__doc__ is not None
    documented = re.findall(r"^(EBB-\d+)", advice.__doc__, re.MULTILINE)
    assert documented == sorted(set(documented))
    assert len(documented) == len(advice.RULES) + len(advice.DAEMON_RULES)


def test_faults_come_before_advice_before_notes() -> None:
    found = advise(
        facts(
            disks=disk(scheduler="none", queue_depth=64),
            state=state(state="inconsistent", cache_mode="writearound"),
        )
    )
    assert [each.weight for each in found] == [
        Weight.FAULT,
        Weight.ADVICE,
        Weight.ADVICE,
        Weight.NOTE,
    ]


@pytest.mark.parametrize(
    ("parts", "depth"),
    [
        ({"queue_depth": 31, "nr_requests": 256, "scheduler": "none"}, 31),
        ({"queue_depth": None, "nr_requests": 256, "scheduler": "none"}, 256),
        ({"queue_depth": None, "nr_requests": 256, "scheduler": "mq-deadline"}, None),
        ({"queue_depth": None, "nr_requests": None, "scheduler": None}, None),
    ],
)
def test_the_depth_inside_a_disk(parts: dict[str, Any], depth: int | None) -> None:
    assert depth_inside(disk(**parts)[0]) == depth


def test_a_solid_state_backing_device_may_have_no_scheduler_and_a_deep_queue() -> None:
    parts = disk(rotational=False, scheduler="none", queue_depth=1024)
    assert [each.id for each in advise(facts(disks=parts))] == ["EBB-102"]


def cached_by(**parts: Any) -> dict[str, Any]:
    """Facts of a volume on `vda` with its cache on `sdb1`."""
    cache = replace(device("sdb1"), **parts)
    kinds = {"vda": DiskKind.SINGLE, "sdb1": DiskKind.SINGLE}
    return {"cache_disks": (cache,), "whole_disks": {"sdb1": "sdb"}, "kinds": kinds}


def test_a_cache_that_rotates_may_be_an_ssd_that_says_so() -> None:
    disks = (device("vda"),)
    (found,) = advise(facts(disks=disks, **cached_by(rotational=True)))
    assert (found.id, found.weight, found.about) == ("EBB-111", Weight.NOTE, "sdb")
    assert found.command == "echo 0 | sudo tee /sys/block/sdb/queue/rotational"
    check_form(found)


def test_a_hard_disk_before_ssds_is_the_wrong_order() -> None:
    disks = (replace(device("vda"), rotational=False),)
    found = {each.id: each for each in advise(facts(disks=disks, **cached_by(rotational=True)))}
    swapped = found["EBB-111"]
    assert (swapped.weight, swapped.command) == (Weight.ADVICE, "")
    assert "what is behind it (vda) does not" in swapped.text
    check_form(swapped)


@pytest.mark.parametrize("kind", [DiskKind.ARRAY, DiskKind.UNKNOWN, DiskKind.VIRTUAL])
def test_what_others_than_drives_report_of_a_cache_says_nothing(kind: DiskKind) -> None:
    parts = {**cached_by(rotational=True), "kinds": {"vda": DiskKind.SINGLE, "sdb1": kind}}
    assert advise(facts(disks=(device("vda"),), **parts)) == ()


@pytest.mark.parametrize("rotational", [False, None])
def test_a_cache_that_does_not_rotate_needs_no_advice(rotational: bool | None) -> None:
    assert advise(facts(disks=(device("vda"),), **cached_by(rotational=rotational))) == ()


# ---- one disk, an array, a virtual disk ----------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "vendor", "model", "kind"),
    [
        ("sda", "ATA     ", "WDC WD40EFRX-68N", DiskKind.SINGLE),
        ("sda", "SEAGATE ", "ST4000NM0023", DiskKind.SINGLE),
        ("sda", "HITACHI ", "HUS156030VLS600", DiskKind.SINGLE),
        ("nvme0n1", None, "Samsung SSD 980", DiskKind.SINGLE),
        ("sda", "DELL    ", "PERC H730 Mini", DiskKind.ARRAY),
        ("sda", "HP      ", "LOGICAL VOLUME", DiskKind.ARRAY),
        ("sda", "AVAGO   ", "MR9361-8i", DiskKind.ARRAY),
        ("sda", "NETAPP  ", "LUN C-Mode", DiskKind.ARRAY),
        ("sda", "LIO-ORG ", "disk0", DiskKind.ARRAY),
        ("sda", "HITACHI ", "OPEN-V", DiskKind.ARRAY),
        ("sda", "SYNOLOGY", "iSCSI Storage", DiskKind.ARRAY),
        ("vda", "0x1af4", None, DiskKind.VIRTUAL),
        ("xvdb", None, None, DiskKind.VIRTUAL),
        ("sda", "QEMU    ", "QEMU HARDDISK", DiskKind.VIRTUAL),
        ("sda", "ATA     ", "QEMU HARDDISK", DiskKind.VIRTUAL),
        ("sda", "ATA     ", "VBOX HARDDISK", DiskKind.VIRTUAL),
        ("sda", "VMware  ", "Virtual disk", DiskKind.VIRTUAL),
        ("sda", "Msft    ", "Virtual Disk", DiskKind.VIRTUAL),
        ("nvme1n1", None, "Amazon Elastic Block Store", DiskKind.VIRTUAL),
        ("sda", "ACME    ", "Roadrunner", DiskKind.UNKNOWN),
        ("sda", None, None, DiskKind.UNKNOWN),
    ],
)
def test_disk_kind_follows_from_vendor_and_model(
    name: str, vendor: str | None, model: str | None, kind: DiskKind
) -> None:
    assert disk_kind(name, vendor, model) is kind


BARE = {"scheduler": "none", "nr_requests": 32, "queue_depth": 31}
DEEP = {"queue_depth": 256}
FLAT = {"rotational": False}


@pytest.mark.parametrize(
    ("parts", "kind", "weight", "command", "says"),
    [
        (BARE, DiskKind.SINGLE, Weight.ADVICE, "queue/scheduler", "wait behind all dirty data"),
        (BARE, DiskKind.VIRTUAL, Weight.ADVICE, "queue/scheduler", "wait behind all dirty data"),
        (BARE, DiskKind.ARRAY, Weight.NOTE, "queue/scheduler", "may gain nothing"),
        (BARE, DiskKind.UNKNOWN, Weight.NOTE, "queue/scheduler", "may be an array"),
        (FLAT, DiskKind.SINGLE, Weight.NOTE, "", "vda is an SSD"),
        (FLAT, DiskKind.VIRTUAL, Weight.NOTE, "queue/rotational", "if hard disks are behind it"),
        (FLAT, DiskKind.ARRAY, Weight.NOTE, "queue/rotational", "if hard disks are behind it"),
        (FLAT, DiskKind.UNKNOWN, Weight.NOTE, "queue/rotational", "if hard disks are behind it"),
        (DEEP, DiskKind.SINGLE, Weight.ADVICE, "queue_depth", "32 are enough for one disk"),
        (DEEP, DiskKind.VIRTUAL, Weight.NOTE, "", "depends on what is behind"),
        (DEEP, DiskKind.ARRAY, Weight.NOTE, "", "about 32 for each of its disks"),
        (DEEP, DiskKind.UNKNOWN, Weight.NOTE, "", "may be an array"),
    ],
)
def test_the_advice_fits_the_kind_of_disk(
    parts: dict[str, Any], kind: DiskKind, weight: Weight, command: str, says: str
) -> None:
    (found,) = advise(facts(disks=disk(**parts), kinds={"vda": kind}))
    assert found.weight is weight
    assert says in found.text
    assert bool(command) == bool(found.command)
    assert command in found.command
    check_form(found)
    if found.keep:
        value = found.command.split()[1]
        assert found.keep.startswith('ACTION=="add|change", KERNEL=="vda", ATTR{')
        assert found.keep.endswith(f'}}="{value}"')


def test_each_disk_of_an_md_array_is_advised_by_itself() -> None:
    two = tuple(replace(device(name), queue_depth=254) for name in ("sda", "sdb"))
    kinds = {"sda": DiskKind.SINGLE, "sdb": DiskKind.SINGLE}
    found = advise(facts(disks=two, kinds=kinds))
    assert [each.id for each in found] == ["EBB-103", "EBB-103", "EBB-104"]
    assert found[1].command == "echo 32 | sudo tee /sys/block/sdb/device/queue_depth"


def test_a_name_with_a_slash_is_safe_in_a_shell_and_known_to_udev() -> None:
    """The kernel writes `!` for a slash, as in AoE's disks; an interactive shell expands it."""
    name = "etherd!e1.0"
    aoe = (replace(device(name), scheduler="none", schedulers=("none", "mq-deadline")),)
    found = next(
        each for each in advise(facts(disks=aoe, kinds={name: DiskKind.SINGLE})) if each.keep
    )
    assert found.command == f"echo mq-deadline | sudo tee '/sys/block/{name}/queue/scheduler'"
    assert found.undo == f"echo none | sudo tee '/sys/block/{name}/queue/scheduler'"
    assert 'KERNEL=="etherd/e1.0"' in found.keep


def test_a_partition_has_the_queue_of_its_disk() -> None:
    part = (replace(device("sda3"), scheduler="none", nr_requests=32),)
    whole = facts(disks=part, kinds={"sda3": DiskKind.SINGLE}, whole_disks={"sda3": "sda"})
    found = next(each for each in advise(whole) if each.id == "EBB-101")
    assert found.command == "echo mq-deadline | sudo tee /sys/block/sda/queue/scheduler"
    assert 'KERNEL=="sda"' in found.keep


@pytest.mark.parametrize(
    ("kind", "thin"), [(DiskKind.SINGLE, False), (DiskKind.VIRTUAL, True), (DiskKind.ARRAY, False)]
)
def test_without_discard_an_ssd_needs_blank_space_and_fstrim_does_not_help(
    kind: DiskKind, thin: bool
) -> None:
    (found,) = advise(facts(discards=("vdb",), kinds={"vda": DiskKind.SINGLE, "vdb": kind}))
    assert "fstrim does not replace it" in found.text
    assert "blank space" in found.text
    assert ("virtual disk" in found.text) == thin
    assert "does the same" not in found.text
    assert "survives reboots" in found.lasts


@pytest.mark.parametrize(
    ("parts", "kind", "says"),
    [
        ({"scheduler": "none", "queue_depth": 31}, DiskKind.SINGLE, "vda ignores the class"),
        ({}, DiskKind.SINGLE, "disk has already taken"),
        ({}, DiskKind.ARRAY, "md has already taken"),
    ],
)
def test_the_use_of_the_idle_class_depends_on_the_disk(
    parts: dict[str, Any], kind: DiskKind, says: str
) -> None:
    knobs = {"writeback_percent": "0"}
    known = facts(state=state(knobs=knobs), disks=disk(**parts), kinds={"vda": kind})
    (found,) = [each for each in advise(known) if each.id == "EBB-210"]
    assert says in found.text


def test_unknown_facts_give_no_advice() -> None:
    nothing = VolumeState(0, None, None, None, None, None, {})
    unknown = disk(rotational=None, scheduler=None, queue_depth=None, nr_requests=None)
    assert advise(facts(state=nothing, disks=unknown)) == ()


def test_the_command_names_a_scheduler_that_the_kernel_has() -> None:
    (bfq,) = advise(facts(disks=disk(scheduler="none", schedulers=("none", "bfq"))))
    assert bfq.command == "echo bfq | sudo tee /sys/block/vda/queue/scheduler"
    (none,) = advise(facts(disks=disk(scheduler="none", schedulers=("none",))))
    assert (none.command, "load mq-deadline or bfq" in none.text) == ("", True)


def test_applicable_changes_are_within_bounds_and_documented() -> None:
    many = {
        "sequential_cutoff": "0",
        "congested_read_threshold_us": "2000",
        "writeback_percent": "40",
    }
    sick = facts(state=state(knobs=many, in_use_ratio=0.99), disks=disk(scheduler="none"))
    changes = {each.id: each.change for each in advise(sick)}
    assert changes["EBB-101"] is None
    assert changes["EBB-205"] is not None
    for change in changes.values():
        if change is not None:
            for knob, value in change.knobs:
                assert checked_value(volume(), knob, value) == value

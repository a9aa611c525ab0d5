# SPDX-License-Identifier: GPL-2.0-only
"""Each advice appears for its own reason only, keeps its number, and a sound machine gets none."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from ebbgate.doctor import advice
from ebbgate.doctor.advice import advise, depth_inside
from ebbgate.doctor.finding import Facts, Weight
from ebbgate.model.volume import VolumeState
from tests.builders import device, volume

SOUND = VolumeState(
    at_ns=0,
    state="clean",
    cache_mode="writeback",
    dirty_bytes=0,
    cache_bytes=1 << 30,
    in_use_ratio=0.4,
    knobs={
        "sequential_cutoff": "4194304",
        "congested_read_threshold_us": "0",
        "congested_write_threshold_us": "0",
    },
)


def facts(**parts: Any) -> Facts:
    known: dict[str, Any] = {"volume": volume(), "state": SOUND, "disks": (device("vda"),)}
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
        ("EBB-102", {"disks": disk(rotational=False)}),
        ("EBB-103", {"disks": disk(queue_depth=128)}),
        ("EBB-104", {"disks": (device("sda"), device("sdb"))}),
        ("EBB-201", {"volume": volume(set_uuid="")}),
        ("EBB-202", {"state": state(cache_mode="writethrough")}),
        ("EBB-203", {"state": state(state="inconsistent")}),
        ("EBB-204", {"state": state(in_use_ratio=0.96)}),
        ("EBB-205", {"state": state(knobs={"congested_read_threshold_us": "2000"})}),
        ("EBB-206", {"state": state(knobs={"sequential_cutoff": "0"})}),
        ("EBB-207", {"discards": ("vdb",)}),
        ("EBB-208", {"io_errors": {"vda": 3, "vdb": 0}}),
    ],
)
def test_each_reason_has_its_number(number: str, parts: dict[str, Any]) -> None:
    (found,) = advise(facts(**parts))
    assert found.id == number
    assert found.text
    assert found.about in found.command or not found.command or number == "EBB-204"


def test_every_number_is_documented() -> None:
    assert advice.__doc__ is not None
    documented = re.findall(r"^(EBB-\d+)", advice.__doc__, re.MULTILINE)
    assert documented == sorted(set(documented))
    assert len(documented) == len(advice._RULES)


def test_faults_come_before_advice_before_notes() -> None:
    found = advise(
        facts(
            disks=disk(scheduler="none", nr_requests=256, queue_depth=None),
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


def test_what_is_unknown_gives_no_advice() -> None:
    nothing = VolumeState(0, None, None, None, None, None, {})
    unknown = disk(rotational=None, scheduler=None, queue_depth=None, nr_requests=None)
    assert advise(facts(state=nothing, disks=unknown)) == ()


def test_the_command_names_a_scheduler_that_the_kernel_has() -> None:
    (bfq,) = advise(facts(disks=disk(scheduler="none", schedulers=("none", "bfq"))))
    assert bfq.command == "echo bfq > /sys/block/vda/queue/scheduler"
    (none,) = advise(facts(disks=disk(scheduler="none", schedulers=("none",))))
    assert (none.command, "load mq-deadline or bfq" in none.text) == ("", True)

# SPDX-License-Identifier: GPL-2.0-only
"""Each advice appears for its own reason only, keeps its number, and a sound machine gets none."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from ebbgate.actuators.asked import asked_value
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
    knobs={"sequential_cutoff": "4194304", "writeback_percent": "10"},
)

CALM = {"congested_read_threshold_us": "0", "congested_write_threshold_us": "0"}


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
    assert found.text
    of_the_set = number in ("EBB-204", "EBB-205")
    assert found.about in found.command or not found.command or of_the_set
    assert bool(found.effect) == bool(found.command)


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


# ---- folklore -----------------------------------------------------------------------------------
LIVE = {
    "run_bytes": {"read": [], "write": [*[0] * 12, 10.0, *[0] * 3, 90.0]},
    "bypass_bytes": {"congested": 3 << 20},
    "dirty_ratio": 0.36,
    "time_to_full_s": 12.0,
    "destage_bytes_per_s": 5.0 * (1 << 20),
    "paths": [{"p99_ns": 41_000_000}, {"p99_ns": None}],
}


@pytest.mark.parametrize(
    ("knobs", "evidence"),
    [
        (
            {"sequential_cutoff": "0"},
            "of late 90% of the bytes of writes were in runs beyond 4 MiB",
        ),
        (
            {"congested_read_threshold_us": "10000", "congested_write_threshold_us": "40000"},
            "3 MiB were sent past the cache for it in the last second",
        ),
        ({"writeback_percent": "40"}, "36% of the cache is dirty now, and full in 12 s"),
        (
            {"writeback_percent": "0"},
            "destage runs at 5 MiB/s now, and the p99 of users is 41 ms",
        ),
        ({"writeback_percent": "1"}, "destage runs at 5 MiB/s now, and the p99 of users is 41 ms"),
    ],
)
def test_folklore_is_met_with_what_was_measured_here(knobs: dict[str, str], evidence: str) -> None:
    (found,) = advise(facts(state=state(knobs=knobs), live=LIVE))
    assert found.evidence == evidence
    assert found.effect
    (without,) = advise(facts(state=state(knobs=knobs)))
    assert (without.id, without.evidence) == (found.id, "")
    (idle,) = advise(facts(state=state(knobs=knobs), live={"paths": [], "run_bytes": None}))
    assert idle.evidence == ""


def test_of_the_known_recipe_the_right_half_is_said_to_be_right() -> None:
    found = advise(facts(state=state(knobs={"sequential_cutoff": "0", **CALM})))
    assert [each.id for each in found] == ["EBB-206", "EBB-214"]
    assert "here they are right" in found[1].text
    assert found[1].change is None
    ours = facts(state=state(knobs=CALM), held=frozenset(CALM))
    assert advise(ours) == ()


def test_raised_thresholds_are_told_from_the_kernels_own() -> None:
    stock = {"congested_read_threshold_us": "2000", "congested_write_threshold_us": "20000"}
    guide = {"congested_read_threshold_us": "10000", "congested_write_threshold_us": "40000"}
    texts = [advise(facts(state=state(knobs=knobs)))[0].text for knobs in (stock, guide)]
    assert ["only make it rarer" in text for text in texts] == [False, True]


@pytest.mark.parametrize("knob", ["writeback_percent", "sequential_cutoff"])
@pytest.mark.parametrize("value", ["0", "1", "40"])
def test_what_ebbgate_itself_holds_is_no_folklore(knob: str, value: str) -> None:
    assert advise(facts(state=state(knobs={knob: value}), held=frozenset({knob}))) == ()


def test_what_may_be_applied_is_within_the_bounds_and_documented() -> None:
    many = {
        "sequential_cutoff": "0",
        "congested_read_threshold_us": "2000",
        "writeback_percent": "40",
    }
    sick = facts(state=state(knobs=many, in_use_ratio=0.99), disks=disk(scheduler="none"))
    changes = {each.id: each.change for each in advise(sick)}
    assert changes["EBB-101"] is None
    assert changes["EBB-205"] is not None
    for number, change in changes.items():
        if change is not None:
            assert number.removeprefix("EBB-") in (advice.__doc__ or "").split("ebbgate apply")[1]
            for knob, value in change.knobs:
                assert asked_value(volume(), knob, value) == value

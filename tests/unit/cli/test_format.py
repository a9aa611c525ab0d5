# SPDX-License-Identifier: GPL-2.0-only
"""Figures have units, and unknown ones are a dash."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ebbgate.cli import format
from ebbgate.model.decision import GateKind
from ebbgate.model.promotion import PromotionStatus
from ebbgate.model.status import GateStatus, KnobStatus, LayoutStatus
from ebbgate.model.volume import Device, Kind
from ebbgate.model.warm import JobState, JobStatus
from ebbgate.units import GIB, MIB, NS_PER_S


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("sequential_cutoff", "4194304", "4 MiB"),
        ("migration_threshold", "2048", "1 MiB"),
        ("writeback_rate", "8", "4 KiB/s"),
        ("writeback_rate", str((1 << 31) - 1), "unlimited"),
        ("writeback_rate", "1932735283", "unlimited"),
        ("writeback_rate_minimum", "2048", "1 MiB/s"),
        ("writeback_percent", "10", "10"),
        ("cache_mode", "writeback", "writeback"),
        ("writeback_delay", None, "-"),
        ("a_knob_of_tomorrow", "7", "7"),
    ],
)
def test_a_knob_reads_in_its_unit(name: str, value: str | None, text: str) -> None:
    assert format.knob_value(name, value) == text


def test_an_unknown_value_is_a_dash() -> None:
    unknown = [format.size(None), format.ratio(None), format.span(None)]
    assert {*unknown, format.seconds(None), format.load(None), format.gate(None)} == {"-"}


def test_infinity_is_shown_as_never() -> None:
    assert format.seconds(float("inf")) == "never"
    assert format.seconds(240.0) == "4 min"


@pytest.mark.parametrize(
    ("gate", "text"),
    [
        (GateStatus(GateKind.RELEASED), "kernel"),
        (GateStatus(GateKind.OPEN), "open"),
        (GateStatus(GateKind.OPEN, 8 << 20), "open, 8 MiB/s on average"),
        (GateStatus(GateKind.CLOSED, 512), "closed"),
        (GateStatus(GateKind.PACED, 1 << 20), "paced 1 MiB/s"),
        (GateStatus(GateKind.RESTING, 1 << 20), "resting"),
    ],
)
def test_the_gate_in_words(gate: GateStatus, text: str) -> None:
    assert format.gate(gate) == text


def test_the_bar_marks_level_and_limits() -> None:
    assert format.bar(0.2, (0.4, 0.7), cells=10) == "██··┆··┆··"
    assert format.bar(0.5, (0.4, 0.7), cells=10) == "█████··┆··"
    assert format.bar(1.3, (0.4, 0.7), cells=10) == "█" * 10
    assert format.bar(None, (0.4, 0.7), cells=10) == "-"


def test_limits_come_from_the_kernel_where_it_shows_them() -> None:
    for value, level in (("50", 0.5), (None, 0.4)):
        knobs = {"cutoff_writeback": KnobStatus(value)}
        assert format.limits(Kind.BCACHE, knobs) == (level, 0.7)
        assert format.limits(Kind.DM_CACHE, knobs) == (1.0, 1.0)


def test_a_device_in_words() -> None:
    known = Device("sda", (8, 0), 1 << 31, rotational=True, scheduler="bfq")
    assert format.device(known) == "sda (2 GiB, rotational, bfq)"
    assert format.device(replace(known, rotational=None, scheduler=None)) == "sda (2 GiB)"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (LayoutStatus(), "layout: being read"),
        (LayoutStatus(error="refused"), "layout: not known: refused"),
        (
            LayoutStatus(212, 15 * GIB, {}, 20 * NS_PER_S),
            "layout: 212 files, 15 GiB known, read 3 min ago",
        ),
        (
            LayoutStatus(
                2,
                4096,
                {"on another device": 1, "cannot be mapped": 3},
                199 * NS_PER_S,
                "x is on btrfs",
            ),
            "layout: 2 files, 4 KiB known, read 1 s ago; 1 file on another device;"
            " 3 files cannot be mapped (x is on btrfs)",
        ),
    ],
)
def test_what_is_known_of_files_is_one_line(status: LayoutStatus, expected: str) -> None:
    assert format.layout(status, 200 * NS_PER_S) == expected


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, "hot data: 0 B moved in 0 s of reads"),
        (
            {
                "moved_bytes": 212 * MIB,
                "busy_ns": 14 * NS_PER_S,
                "saved_ns": 96.0 * NS_PER_S,
                "saved_error_ns": 8.0 * NS_PER_S,
                "failed_bytes": MIB,
                "pending_bytes": 7 * MIB,
                "held_out_bytes": 2 * MIB,
                "time_share": 0.35,
            },
            "hot data: 212 MiB moved in 14 s of reads, which saved users 96 s of disk time"
            " (error 8 s); 1 MiB not taken by the cache; 7 MiB to move in at most 35% of the time;"
            " 2 MiB held out to compare",
        ),
        (
            {
                "moved_bytes": MIB,
                "busy_ns": NS_PER_S,
                "saved_ns": -2.0 * NS_PER_S,
                "saved_error_ns": 3.0 * NS_PER_S,
                "mover_why": "job 3 warms /srv/a",
                "other_promotions": 310,
                "promotion_holds": 2,
            },
            "hot data: 1 MiB moved in 1 s of reads, which cost users 2 s of disk time (error 3 s);"
            " users' misses brought in 310 blocks, and reads were stopped for it 2 times;"
            " waits: job 3 warms /srv/a",
        ),
    ],
)
def test_what_promote_hot_does_is_one_line(known: dict[str, Any], expected: str) -> None:
    assert format.promotion(PromotionStatus(**known)) == expected


@pytest.mark.parametrize(
    ("blocks", "holds", "expected"),
    [
        (None, 0, ""),
        (0, 0, ""),
        (1, 0, "; users' misses brought in 1 block"),
        (310, 1, "; users' misses brought in 310 blocks, and reads were stopped for it 1 time"),
    ],
)
def test_what_users_misses_brought_in_beside_a_job(
    blocks: int | None, holds: int, expected: str
) -> None:
    status = JobStatus(
        3, "/srv/a", JobState.DONE, "jo", other_promotions=blocks, promotion_holds=holds
    )
    assert format.job(status) == f"job 3, /srv/a (jo): done{expected}"

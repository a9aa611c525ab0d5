# SPDX-License-Identifier: GPL-2.0-only
"""Figures have units, and unknown ones are a dash."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebbgate.cli import format
from ebbgate.model.decision import GateKind
from ebbgate.model.status import GateStatus, KnobStatus, LayoutStatus
from ebbgate.model.volume import Device, Kind
from ebbgate.units import GIB, NS_PER_S


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("sequential_cutoff", "4194304", "4 MiB"),
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

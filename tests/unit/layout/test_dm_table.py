# SPDX-License-Identifier: GPL-2.0-only
"""Tables of device-mapper become segments; what cannot be mapped says why."""

from __future__ import annotations

import pytest

from ebbgate.kernel.device_mapper import Target
from ebbgate.layout.dm_table import segments
from ebbgate.layout.mapping import Below, Segment

MIB = 1 << 20
SECTORS = 2048


def read(kind: str, params: str, name: str = "vg-data") -> Segment:
    target = Target(0, SECTORS, kind, params)
    (found,) = segments(name, [target], lambda number: f"device {number}")
    return found


@pytest.mark.parametrize(
    ("kind", "params", "start_bytes"),
    [
        ("linear", "253:1 2048", MIB),
        ("snapshot-origin", "253:1", 0),
        ("crypt", "aes-xts-plain64 :64:logon:key 0 253:1 32768 1 allow_discards", 16 * MIB),
    ],
)
def test_one_device_below_is_a_linear_segment(kind: str, params: str, start_bytes: int) -> None:
    assert read(kind, params) == Segment(0, MIB, (Below("device 253:1", start_bytes),))


def test_stripes_are_read_in_their_order() -> None:
    below = (Below("device 253:1", 0), Below("device 253:2", MIB))
    assert read("striped", "2 128 253:1 0 253:2 2048") == Segment(0, MIB, below, 65536)


def test_each_target_is_a_segment() -> None:
    table = [Target(0, 2048, "linear", "8:1 0"), Target(2048, 2048, "linear", "8:2 0")]
    found = segments("vg-data", table, str)
    assert [(each.start_bytes, each.below) for each in found] == [
        (0, (Below("8:1", 0),)),
        (MIB, (Below("8:2", 0),)),
    ]


def test_a_move_by_pvmove_is_fatal_and_named() -> None:
    params = "core 3 1024 nosync block_on_error 2 253:1 0 253:2 0 1 handle_errors"
    found = read("mirror", params, "vg-pvmove0")
    assert found.fatal
    assert found.why.startswith("pvmove is moving its data (vg-pvmove0)")


@pytest.mark.parametrize("kind", ["thin", "mirror", "raid", "snapshot", "verity", "vdo"])
def test_another_type_is_named(kind: str) -> None:
    found = read(kind, "253:1 1")
    assert (found.fatal, found.below) == (False, ())
    assert found.why == f"below a device of type {kind} (vg-data)"


@pytest.mark.parametrize(
    ("kind", "params"), [("linear", "253:1 x"), ("striped", "2 128 253:1 0"), ("linear", "")]
)
def test_a_table_that_cannot_be_read_is_fatal(kind: str, params: str) -> None:
    assert read(kind, params).fatal

# SPDX-License-Identifier: GPL-2.0-only
"""Values of records at the ends of their ranges, and what only some probes have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ebbgate.model.records import Direction, Tick
from ebbgate.probes.protocol import BadRecord, parse_line
from tests.builders import probe_tick

HEAT = {"t": "heat", "ns": 9, "vol": "v", "since_ns": 1, "chunks": [], "left_out": 0, "dropped": 0}
ATTRIBUTION = {
    "t": "attribution",
    "ns": 9,
    "vol": "v",
    "since_ns": 1,
    "until_ns": 8,
    **{f"{what}s": [] for what in ("cgroup", "inode")},
    **{f"{what}s_{why}": 0 for what in ("cgroup", "inode") for why in ("left_out", "dropped")},
}
TIMES = ("ns", "since_ns", "until_ns", "last_ns")


@pytest.mark.parametrize("raw", [HEAT, ATTRIBUTION, probe_tick()], ids=lambda raw: raw["t"])
def test_records_are_read_however_long_the_machine_has_run(raw: dict[str, Any]) -> None:
    # Three years; after 104 days the clock is at 2^53 ns.
    uptime_ns = 3 * 365 * 86_400 * 10**9
    times = {name: raw[name] + uptime_ns for name in TIMES if name in raw}
    record = parse_line(json.dumps({**raw, **times}))
    assert record is not None
    assert record.at_ns > uptime_ns


@pytest.mark.parametrize(
    ("dev", "depth"),
    [
        ({"backing": {"depth": {"read": 0, "write": 0}}}, 0),
        ({"backing": {"read": {}, "write": {}}}, None),
        ({}, None),
    ],
)
def test_a_queue_that_the_kernel_does_not_count_is_unknown(
    dev: dict[str, Any], depth: int | None
) -> None:
    tick = parse_line(json.dumps({**probe_tick(), "dev": dev}))
    assert isinstance(tick, Tick)
    assert tick.backing_depth_ios == depth


def test_a_direction_that_a_newer_probe_has_is_left_out() -> None:
    flow = {"ios": 1, "bytes": 2, "lat": [1]}
    paths = {"read": {"hit": flow}, "trim": {"hit": flow}}
    tick = parse_line(json.dumps({**probe_tick(), "path": paths}))
    assert isinstance(tick, Tick)
    assert list(tick.paths) == [(Direction.READ, "hit")]


@pytest.mark.parametrize("wrong", [None, 7, [], {}])
@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("hello", "probe"),
        ("hello", "version"),
        ("hello", "boot_id"),
        ("warn", "what"),
        ("warn", "text"),
        ("untrack", "why"),
        ("error", "text"),
        ("error", "cmd"),
        ("bye", "why"),
    ],
)
def test_a_text_of_a_wrong_type_is_a_bad_record(kind: str, field: str, wrong: object) -> None:
    words = dict.fromkeys(("probe", "version", "boot_id", "what", "text", "why", "cmd"), "word")
    whole = {"t": kind, "ns": 1, "vol": "v", "protocol": 1, "signals": {}, **words}
    assert parse_line(json.dumps(whole)) is not None
    with pytest.raises(BadRecord):
        parse_line(json.dumps({**whole, field: wrong}))

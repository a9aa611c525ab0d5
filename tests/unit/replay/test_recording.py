# SPDX-License-Identifier: GPL-2.0-only
"""A recording gives the policy what the daemon's loop gave it."""

from __future__ import annotations

import json
import math

import pytest

from ebbgate.model.heat import ChunkMisses
from ebbgate.policy.engine import Policy
from ebbgate.probes.recording import Damaged, SysfsSnapshot, read_recording, sysfs_line
from ebbgate.replay.recording import steps
from ebbgate.units import NS_PER_MS, NS_PER_S
from tests.builders import probe_tick, volume_state


def test_misses_reach_the_frame() -> None:
    at_ns = 20 * NS_PER_S
    misses = {"since_ns": 0, "chunks": [7, 2, 0, 1], "left_out": 0, "dropped": 0}
    lines = [
        json.dumps({"t": "heat", "ns": at_ns, "vol": "bcache0", **misses}),
        json.dumps(probe_tick(ns=at_ns)),
        sysfs_line("bcache0", volume_state(at_ns=at_ns + NS_PER_MS)),
    ]
    *_, last = steps(read_recording(lines), Policy())
    frame = last.after.state.frame
    assert frame is not None
    assert frame.heat is not None
    assert frame.heat.chunks == (ChunkMisses(7, 2, 0, 1),)


SYSFS = json.loads(sysfs_line("bcache0", volume_state()))


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        json.dumps(probe_tick(fg={"read": {"ios": None}})),
        json.dumps({**SYSFS, "dirty_bytes": "420"}),
        json.dumps({**SYSFS, "cache_bytes": math.inf}),
        json.dumps({**SYSFS, "cache_bytes": 10**30}),
        json.dumps({**SYSFS, "in_use_ratio": 1e308}),
        json.dumps({**SYSFS, "in_use_ratio": True}),
        json.dumps({**SYSFS, "state": 7}),
        json.dumps({**SYSFS, "knobs": {"writeback_percent": 10}}),
        json.dumps({**SYSFS, "knobs": ["writeback_percent"]}),
        json.dumps({**SYSFS, "dm": {"target": "cache", "health": "ok", "promotions": "7"}}),
        json.dumps({**SYSFS, "ns": None}),
        json.dumps({**SYSFS, "ns": 10**400}),
        json.dumps({**SYSFS, "ns": -1}),
        json.dumps({**SYSFS, "vol": []}),
    ],
)
def test_a_line_with_a_value_of_a_wrong_type_is_named_by_its_number(line: str) -> None:
    good = json.dumps(probe_tick(ns=NS_PER_S))
    first, damaged, last = read_recording([good, line, good])
    assert first == last
    assert isinstance(damaged, Damaged)
    assert damaged.line == 2
    assert line[:40] in damaged.why
    assert len(list(steps([first, damaged, last], Policy()))) == 2


@pytest.mark.parametrize("known", [True, False])
def test_a_disks_write_cache_is_recorded(known: bool) -> None:
    state = volume_state(at_ns=NS_PER_MS, disk_write_cache=known)
    (seen,) = read_recording([sysfs_line("bcache0", state)])
    assert isinstance(seen, SysfsSnapshot)
    assert seen.state == state


@pytest.mark.parametrize("written", [None, 0, 7 << 40])
def test_what_was_written_to_the_cache_is_recorded_for_limits_of_it(written: int | None) -> None:
    state = volume_state(at_ns=20 * NS_PER_S, cache_written_bytes=written)
    lines = [json.dumps(probe_tick(ns=20 * NS_PER_S)), sysfs_line("bcache0", state)]
    *_, last = steps(read_recording(lines), Policy())
    assert last.after.state.frame is not None
    assert last.after.state.frame.cache_written_bytes == written

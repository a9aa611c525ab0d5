# SPDX-License-Identifier: GPL-2.0-only
"""A warm-up stands back for users, and says why a volume cannot be warmed."""

from __future__ import annotations

from typing import Any

import pytest

from ebbgate.model.frame import PathLatency
from ebbgate.model.records import Direction
from ebbgate.model.volume import Kind
from ebbgate.units import GIB, MIB, NS_PER_S
from ebbgate.warm.pace import (
    BURST_SHARE,
    STEP_BYTES,
    Pace,
    Speed,
    collection_rest_s,
    disk_requests,
    obstacle,
    pace,
)
from ebbgate.warm.plan import RUN_BYTES_MAX, RUN_BYTES_MIN
from tests.builders import busy_frame, idle_frame

CUTOFF = {"sequential_cutoff": "4.0M"}


@pytest.mark.parametrize(
    ("kind", "signals", "total", "text"),
    [
        (Kind.BCACHE, {"cache_mode": "none"}, MIB, "its cache mode is none"),
        (Kind.BCACHE, {"state": "no cache"}, MIB, "no cache is attached"),
        (Kind.BCACHE, {"dirty_ratio": 0.95}, MIB, "95% of the cache is dirty"),
        (Kind.BCACHE, {}, GIB, "1 GiB do not fit"),
        (
            Kind.BCACHE,
            {"cache_bytes": GIB, "dirty_bytes": 700 * MIB, "dirty_ratio": 0.68},
            300 * MIB,
            "300 MiB do not fit: the cache has 1 GiB, of which 90% may be warmed at once, less"
            " 700 MiB of dirty data",
        ),
        (Kind.BCACHE, {"knobs": {"sequential_cutoff": "32.0k"}}, MIB, "cutoff is 32 KiB"),
        (Kind.DM_CACHE, {"cache_mode": "passthrough"}, MIB, "its cache mode is passthrough"),
        (Kind.DM_WRITECACHE, {}, MIB, "dm-writecache caches no reads"),
    ],
)
def test_a_volume_that_cannot_be_warmed_says_why(
    kind: Kind, signals: dict[str, Any], total: int, text: str
) -> None:
    assert text in obstacle(kind, idle_frame(**signals), total)


def test_what_other_warm_ups_still_bring_needs_room_as_well() -> None:
    frame = idle_frame(cache_bytes=GIB, dirty_bytes=0, knobs=CUTOFF)
    assert obstacle(Kind.BCACHE, frame, 300 * MIB, 600 * MIB) == ""
    assert obstacle(Kind.BCACHE, frame, 400 * MIB, 600 * MIB) == (
        "1000 MiB do not fit, 600 MiB of which are of jobs that are not done yet: the cache has"
        " 1 GiB, of which 90% may be warmed at once"
    )


def test_what_takes_whole_blocks_needs_room_for_them() -> None:
    frame = idle_frame(cache_bytes=GIB, dirty_bytes=0, knobs=CUTOFF)
    assert obstacle(Kind.DM_CACHE, frame, 900 * MIB, 0, MIB) == ""
    assert obstacle(Kind.DM_CACHE, frame, 1000 * MIB, 0, 4 * MIB).startswith(
        "1000 MiB of whole cache blocks (4 MiB of data) do not fit: the cache has 1 GiB"
    )


@pytest.mark.parametrize("mode", ["writeback", "writethrough", "writearound"])
def test_every_mode_that_caches_reads_can_be_warmed(mode: str) -> None:
    assert obstacle(Kind.BCACHE, idle_frame(cache_mode=mode, knobs=CUTOFF), MIB) == ""


def paced(kind: Kind = Kind.BCACHE, **given: Any) -> Pace:
    frame = given.pop("frame", None) or idle_frame(knobs=CUTOFF)
    return pace(
        kind,
        frame,
        destages=given.get("destages", False),
        ticks_without_disk=given.get("ticks", 0),
        return_is_near=given.get("near", False),
    )


def test_it_reads_at_full_speed_while_users_are_idle_or_only_hit() -> None:
    assert paced().speed is Speed.GO
    assert paced(frame=busy_frame(knobs=CUTOFF), ticks=2).speed is Speed.GO


def test_it_reads_a_piece_at_times_while_users_need_the_disk() -> None:
    found = paced(frame=busy_frame(knobs=CUTOFF))
    why = "users need the disk: one read for 400 of theirs, or every 10 s"
    assert (found.speed, found.why) == (Speed.STEP, why)
    assert found.run_bytes == STEP_BYTES
    assert STEP_BYTES >= RUN_BYTES_MIN


@pytest.mark.parametrize(("per_s", "seconds"), [(0, 10), (10, 10), (100, 4), (5000, 0.25)])
def test_the_more_users_read_of_the_disk_the_more_reads_it_sends(
    per_s: int, seconds: float
) -> None:
    paths = {(Direction.READ, "miss"): PathLatency(2 * per_s, 4096, None, None)}
    frame = busy_frame(knobs=CUTOFF, paths=paths, window_ns=2 * NS_PER_S)
    assert paced(frame=frame).every_ns == seconds * NS_PER_S


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"near": True}, "users are likely to be back soon"),
        ({"destages": True}, "dirty data is written back first"),
        ({"frame": idle_frame(idle=None)}, "the load of users is unknown"),
        ({"frame": idle_frame(in_use_ratio=0.96)}, "over 95% of the cache is in use"),
        ({"frame": idle_frame(knobs={"sequential_cutoff": "0.5k"})}, "sequential_cutoff is 512 B"),
    ],
)
def test_it_waits_and_says_what_for(given: dict[str, Any], text: str) -> None:
    found = paced(**given)
    assert found.speed is Speed.HOLD
    assert text in found.why


def test_a_full_dm_cache_is_normal() -> None:
    assert paced(Kind.DM_CACHE, frame=idle_frame(in_use_ratio=1.0)).speed is Speed.GO


def test_reads_get_shorter_under_a_lower_cutoff() -> None:
    assert paced().run_bytes < RUN_BYTES_MAX
    assert paced(frame=idle_frame(knobs={"sequential_cutoff": "0"})).run_bytes == RUN_BYTES_MAX
    assert paced(frame=idle_frame(knobs={"sequential_cutoff": "1.0M"})).run_bytes < MIB


@pytest.mark.parametrize(
    ("path", "needs"), [("hit", False), ("writeback", False), ("miss", True), ("bypass", True)]
)
def test_only_some_paths_need_the_disk(path: str, needs: bool) -> None:
    frame = busy_frame(paths={(Direction.READ, path): PathLatency(3, 4096, None, None)})
    assert (disk_requests(frame) == 3) is needs


@pytest.mark.parametrize(
    ("longest_ms", "rest_s"),
    [(None, 2), (0, 2), (-1, 2), (15, 0.25), (100, 0.4), (2_500, 10), (60_000, 20)],
)
def test_it_rests_for_as_long_as_collections_take(longest_ms: int | None, rest_s: float) -> None:
    assert collection_rest_s(longest_ms) == pytest.approx(rest_s)


def test_a_burst_ends_before_the_kernel_collects_by_itself() -> None:
    assert BURST_SHARE < 1 / 16

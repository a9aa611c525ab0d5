# SPDX-License-Identifier: GPL-2.0-only
"""Absorb or bypass a stream: each mode with its reason, its cutoff, and how long it is held."""

from __future__ import annotations

from typing import Any

import pytest

from ebbgate.model.frame import Frame, Rates
from ebbgate.model.records import Direction
from ebbgate.policy.strategies import stream_bypass
from ebbgate.policy.strategies.stream_bypass import StreamMode, StreamParams, StreamState, load_of
from ebbgate.units import GIB, KIB, MIB, NS_PER_MS, NS_PER_S
from tests.builders import busy_frame

PARAMS = StreamParams()
READ, WRITE = Direction.READ, Direction.WRITE
LONG = (64 * MIB // 512).bit_length() - 1
"""The bucket of runs that have grown to 64 MiB."""


def runs(stream_mib: float = 0, random_ios: float = 0, bucket: int = LONG) -> tuple[int, ...]:
    """Bytes of one second: a long run, and requests of 4 KiB at random places."""
    counts = [0] * 32
    counts[3] = round(random_ios * 4 * KIB)
    counts[bucket] += round(stream_mib * MIB)
    return tuple(counts)


def load(at_ms: int = 1000, **parts: Any) -> Frame:
    """A frame with streams (MiB/s) and random requests (per second) of the last second."""
    deltas = {
        WRITE: runs(parts.pop("write", 0), parts.pop("random", 0), parts.pop("bucket", LONG)),
        READ: runs(parts.pop("read", 0), parts.pop("random_reads", 0)),
    }
    known: dict[str, Any] = {
        "window_ns": NS_PER_S,
        "foreground": {d: Rates(1, sum(deltas[d])) for d in Direction},
        "run_delta_bytes": deltas,
        "dirty_in_bytes_per_s": float(sum(deltas[WRITE])),
        "dirty_room_bytes": GIB // 2,
    }
    return busy_frame(at_ms, **{**known, **parts})


def after(*frames: Frame) -> StreamState:
    state = StreamState()
    for frame in frames:
        state = stream_bypass.on_frame(state, frame, PARAMS)
    return state


@pytest.mark.parametrize(
    ("frame", "mode", "why"),
    [
        (load(), StreamMode.REST, "no stream"),
        (load(write=3.9), StreamMode.REST, "no stream"),
        (load(random=5000, random_reads=5000), StreamMode.REST, "no stream"),
        # w3g: a lone sequential write into a clean cache is taken in at the cache's speed.
        (load(write=80), StreamMode.ABSORB, "a write stream of 80 MiB/s has no rivals"),
        (load(write=80, random_reads=500), StreamMode.ABSORB, "512 MiB of room"),
        (load(write=80, random=9), StreamMode.ABSORB, "has no rivals"),
        (load(write=80, random=100), StreamMode.BYPASS, "random writes of 400 KiB/s need"),
        (load(read=80), StreamMode.BYPASS, "a read stream of 80 MiB/s would evict hot data"),
        (load(read=80, write=10), StreamMode.BYPASS, "a read stream"),
        (load(write=80, read=10), StreamMode.ABSORB, "a write stream"),
        (
            load(write=80, dirty_room_bytes=40 * MIB),
            StreamMode.BYPASS,
            "only 40 MiB of room, 48.5 MiB is reserved",
        ),
        (load(write=80, dirty_room_bytes=60 * MIB), StreamMode.ABSORB, "60 MiB of room"),
        (load(write=80, dirty_room_bytes=0), StreamMode.BYPASS, "only 0 B of room"),
        (load(write=80, foreground=None), StreamMode.REST, "unknown"),
        (load(write=80, window_ns=0), StreamMode.REST, "unknown"),
        (load(write=80, dirty_room_bytes=None), StreamMode.REST, "unknown"),
        (load(write=80, cache_bytes=None), StreamMode.REST, "unknown"),
    ],
)
def test_modes(frame: Frame, mode: StreamMode, why: str) -> None:
    state = after(frame)
    assert state.mode is mode
    assert why in state.why


@pytest.mark.parametrize(
    ("frame", "cutoff_bytes"),
    [
        (load(), None),
        (load(write=80), PARAMS.cutoff_wide_bytes),
        (load(read=80), PARAMS.cutoff_ceiling_bytes),
        # Streams of 1 MiB are caught a little below their length.
        (load(write=80, random=100, bucket=11), MIB),
        (load(write=80, random=100, bucket=12), 2 * MIB),
    ],
)
def test_the_cutoff_of_each_stance(frame: Frame, cutoff_bytes: int | None) -> None:
    assert after(frame).cutoff_bytes == cutoff_bytes


def small_files(at_ms: int, large_mib: float = 0) -> Frame:
    """Files of 2 MiB are read in requests of 128 KiB, and maybe one that is larger."""
    counts = list(runs(large_mib))
    for end_kib in range(128, 2048 + 1, 128):
        counts[(end_kib * KIB // 512).bit_length() - 1] += 5 * MIB
    return load(at_ms, run_delta_bytes={READ: tuple(counts), WRITE: ()})


def test_a_stream_that_goes_on_with_smaller_files_is_still_kept_out() -> None:
    large = load(1000, read=80)
    assert after(large).cutoff_bytes == PARAMS.cutoff_ceiling_bytes
    later = after(large, small_files(1250))
    assert (later.mode, later.cutoff_bytes) == (StreamMode.BYPASS, PARAMS.cutoff_floor_bytes)
    # A large file again is kept out by that, too, so nothing flaps.
    assert after(large, small_files(1250), load(1500, read=80)).cutoff_bytes == later.cutoff_bytes


def test_a_few_small_files_beside_a_large_one_do_not_change_the_cutoff() -> None:
    mixed = small_files(1250, large_mib=400)
    assert after(load(1000, read=80), mixed).cutoff_bytes == PARAMS.cutoff_ceiling_bytes


def test_a_short_pause_of_the_stream_changes_nothing() -> None:
    state = after(load(1000, read=80), load(2000), load(3900))
    assert state.mode is StreamMode.BYPASS
    assert after(load(1000, write=80), load(2000), load(3900)).mode is StreamMode.ABSORB


def test_once_the_stream_is_gone_the_kernels_cutoff_comes_back() -> None:
    state = after(load(1000, read=80), load(4000))
    assert (state.mode, state.cutoff_bytes) == (StreamMode.REST, None)


def test_a_stream_is_not_absorbed_again_before_its_reason_has_been_gone_for_a_while() -> None:
    against = load(1000, write=80, random=100)
    assert after(against, load(2000, write=80)).mode is StreamMode.BYPASS
    assert after(against, load(3900, write=80)).mode is StreamMode.BYPASS
    assert after(against, load(4000, write=80)).mode is StreamMode.ABSORB


def test_a_stream_that_was_kept_out_comes_in_again_only_with_much_room() -> None:
    full = load(1000, write=80, dirty_room_bytes=0)
    some = load(9000, write=80, dirty_room_bytes=GIB // 5)
    much = load(9000, write=80, dirty_room_bytes=GIB // 3)
    assert after(load(1000, write=80, dirty_room_bytes=GIB // 5)).mode is StreamMode.ABSORB
    assert after(full, some).mode is StreamMode.BYPASS
    assert after(full, much).mode is StreamMode.ABSORB


def test_absorbing_ends_before_the_room_does() -> None:
    state = after(load(1000, write=80), load(1250, write=80, dirty_room_bytes=30 * MIB))
    assert state.mode is StreamMode.BYPASS
    assert state.cutoff_bytes == PARAMS.cutoff_ceiling_bytes


def test_an_unknown_load_gives_the_cutoff_back_at_once() -> None:
    state = after(load(1000, read=80), load(1250, read=80, foreground=None))
    assert (state.mode, state.cutoff_bytes) == (StreamMode.REST, None)


def test_the_same_load_again_keeps_mode_and_cutoff() -> None:
    once = after(load(1000, read=80))
    again = after(*(load(1000 + 250 * i, read=80, write=i) for i in range(40)))
    assert (again.mode, again.cutoff_bytes) == (once.mode, once.cutoff_bytes)


def test_the_load_is_counted_per_second_of_the_window() -> None:
    found = load_of(load(write=40, read=20, random=50, window_ns=500 * NS_PER_MS), PARAMS)
    assert found is not None
    assert found.write_bytes_per_s == 80 * MIB
    assert found.read_bytes_per_s == 40 * MIB
    assert found.random_write_bytes_per_s == pytest.approx(100 * 4 * KIB)


def test_a_run_of_middling_length_is_neither_stream_nor_random() -> None:
    found = load_of(load(write=40, bucket=9), PARAMS)
    assert found is not None
    assert (found.write_bytes_per_s, found.random_write_bytes_per_s) == (0, 0)


SPLIT = StreamParams(reads=False, by_size=True)


def split(*at_and_promotions: tuple[int, int | None]) -> StreamState:
    """A write stream among random writes on dm-cache, and how often a block was promoted."""
    state = StreamState()
    for at_ms, promotions in at_and_promotions:
        frame = load(at_ms, write=80, random=100, promotions=promotions)
        state = stream_bypass.on_frame(state, frame, SPLIT)
    return state


def test_dm_cache_splits_requests_while_that_is_cheap() -> None:
    assert split((1000, 50)).mode is StreamMode.BYPASS
    assert split((1000, 50), (1250, 90), (2000, 80), (3000, 110)).mode is StreamMode.BYPASS
    assert split((1000, None), (2000, None)).mode is StreamMode.BYPASS


def test_it_stops_where_split_writes_are_promoted_and_tries_again_in_a_minute() -> None:
    dear = ((1000, 50), (1500, 60), (2000, 100))
    assert split(*dear).mode is StreamMode.REST
    assert "50 promotions per second" in split(*dear).why
    assert split(*dear, (61_900, 100)).mode is StreamMode.REST
    assert split(*dear, (62_100, 100)).mode is StreamMode.BYPASS


@pytest.mark.parametrize("meanwhile", [{}, {"write": 80}])
def test_a_stream_that_is_not_split_for_now_is_told_why(meanwhile: dict[str, Any]) -> None:
    """The load of between is not the reason."""
    state = split((1000, 50), (1500, 60), (2000, 100))
    for frame in (load(6000, promotions=100, **meanwhile), load(12_000, write=80, random=100)):
        state = stream_bypass.on_frame(state, frame, SPLIT)
    assert state.mode is StreamMode.REST
    assert state.why == "split writes caused too many promotions; not split for another 50 s"


def test_read_streams_are_nothing_to_dm_cache() -> None:
    state = stream_bypass.on_frame(StreamState(), load(read=80), SPLIT)
    assert (state.mode, state.why) == (StreamMode.REST, "no stream")


@pytest.mark.parametrize(
    ("signals", "params", "cutoff"),
    [
        ({}, StreamParams(cutoff_wide_bytes=8 * MIB), 8 * MIB),
        (
            {"dirty_room_bytes": 0},
            StreamParams(cutoff_floor_bytes=64 * KIB, cutoff_ceiling_bytes=128 * KIB),
            128 * KIB,
        ),
        ({"dirty_room_bytes": 0}, StreamParams(cutoff_ceiling_bytes=16 * MIB), 4 * MIB),
    ],
)
def test_another_policy_bounds_the_cutoff_of_a_stream_that_goes_on(
    signals: dict[str, Any], params: StreamParams, cutoff: int
) -> None:
    state = stream_bypass.on_frame(StreamState(), load(write=80, **signals), PARAMS)
    state = stream_bypass.on_frame(state, load(1250, write=80, **signals), params)
    assert state.cutoff_bytes == cutoff

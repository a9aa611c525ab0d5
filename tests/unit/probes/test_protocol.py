# SPDX-License-Identifier: GPL-2.0-only
"""Each type of record is parsed; unknown fields are ignored, damaged lines are errors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbgate.errors import Unavailable
from ebbgate.model.attribution import AttributionPeriod, FileId, Misses
from ebbgate.model.heat import ChunkMisses, HeatPeriod
from ebbgate.model.records import (
    Arrivals,
    AttributionRecord,
    Bye,
    Direction,
    Edge,
    EdgeKind,
    Flow,
    HeatRecord,
    Hello,
    ProbeWarning,
    QueueSample,
    Record,
    ReuseSamples,
    SignalsChanged,
    Tick,
    TimedFlow,
    Tracked,
    TrackRefused,
    Untracked,
)
from ebbgate.probes.protocol import (
    CGROUPS_MAX,
    FILES_MAX,
    HEAT_CHUNKS_MAX,
    HISTOGRAM_BUCKETS_MAX,
    NOT_TRACKED,
    REFERENCES_MAX,
    BadRecord,
    parse_line,
)
from tests.builders import probe_tick

HELLO = {
    "t": "hello",
    "ns": 1,
    "protocol": 1,
    "probe": "ebpf",
    "version": "0.1.0",
    "boot_id": "b",
    "ncpu": 2,
    "signals": {"edges": "ok", "path": "missing: no bcache module"},
}
HEAT = {
    "t": "heat",
    "ns": 30,
    "vol": "v",
    "since_ns": 20,
    "chunks": [700, 5, 1, 0, 0, 3, 0, 2],
    "left_out": 4,
    "dropped": 1,
}
REUSE = {"t": "reuse", "ns": 3, "vol": "v", "refs": [316, 633]}
ATTRIBUTION = {
    "t": "attribution",
    "ns": 31,
    "vol": "v",
    "since_ns": 20,
    "until_ns": 30,
    "cgroups": [4294967999, 5, 1, 0, 2, 0],
    "cgroups_left_out": 1,
    "cgroups_dropped": 2,
    "inodes": [264241152, 18446744073709551615, 4, 0, 0, 0, 3, 1],
    "inodes_left_out": 3,
    "inodes_dropped": 4,
}
QUEUE = {
    "t": "queue",
    "ns": 7,
    "vol": "bcache0",
    "inflight": 3,
    "bytes": 12288,
    "done_ios": 10,
    "done_bytes": 40960,
}


@pytest.mark.parametrize(
    ("raw", "record"),
    [
        (HELLO, Hello(1, 1, "ebpf", "0.1.0", "b", HELLO["signals"])),  # type: ignore[arg-type]
        ({"t": "track", "ns": 2, "vol": "bcache0", "kind": "bcache"}, Tracked("bcache0", 2)),
        (REUSE, ReuseSamples("v", 3, (316, 633))),
        ({"t": "signals", "ns": 4, "signals": {"a": "ok"}}, SignalsChanged(4, {"a": "ok"})),
        (
            HEAT,
            HeatRecord(
                "v",
                30,
                HeatPeriod(20, 30, (ChunkMisses(700, 5, 1, 0), ChunkMisses(0, 3, 0, 2)), 4, 1),
            ),
        ),
        (
            ATTRIBUTION,
            AttributionRecord(
                "v",
                31,
                AttributionPeriod(
                    20,
                    30,
                    {4294967999: Misses(5, 1), 0: Misses(2, 0)},
                    {
                        FileId(252 << 20, (1 << 64) - 1): Misses(4, 0),
                        FileId(0, 0): Misses(3, 1),
                    },
                    cgroups_unlisted=3,
                    files_unlisted=7,
                ),
            ),
        ),
        ({**HEAT, "chunks": []}, HeatRecord("v", 30, HeatPeriod(20, 30, (), 4, 1))),
        ({"t": "track", "ns": 2, "vol": "v", "class": "ok, but coarse"}, Tracked("v", 2)),
        ({"t": "track", "ns": 2, "vol": "v", "class": "missing: why"}, Tracked("v", 2, "why")),
        (
            {"t": "untrack", "ns": 3, "vol": "bcache0", "why": "vanished"},
            Untracked("bcache0", 3, "vanished"),
        ),
        (
            {"t": "error", "ns": 4, "text": "unknown command", "cmd": "jump"},
            ProbeWarning(4, "refused", 1, "unknown command: jump"),
        ),
        (
            {"t": "error", "ns": 4, "text": "no such volume device", "cmd": "track v kind=disk"},
            TrackRefused("v", 4, "no such volume device"),
        ),
        (
            {"t": "error", "ns": 4, "text": "not tracked", "cmd": "wait v 300000000"},
            ProbeWarning(4, NOT_TRACKED, 1, "not tracked: wait v 300000000"),
        ),
        (
            {"t": "warn", "ns": 5, "what": "ring_lost", "n": 9, "text": "9 edges lost"},
            ProbeWarning(5, "ring_lost", 9, "9 edges lost"),
        ),
        ({"t": "bye", "ns": 6, "why": "quit"}, Bye(6, "quit")),
        (
            {"t": "edge", "ns": 8, "vol": "bcache0", "edge": "busy", "gap_ns": 2500},
            Edge("bcache0", 8, EdgeKind.BUSY, 2500),
        ),
        (
            {"t": "edge", "ns": 8, "vol": "bcache0", "edge": "idle", "idle_ns": 300},
            Edge("bcache0", 8, EdgeKind.IDLE, 300),
        ),
        (QUEUE, QueueSample("bcache0", 7, 3, 10, 40960)),
        (
            {**QUEUE, "held": 4},
            QueueSample("bcache0", 7, 3, 10, 40960, awaiting_write_ios=4),
        ),
        (
            {**QUEUE, "reads": 2, "fg": 1, "awaiting_write": 4},
            QueueSample("bcache0", 7, 3, 10, 40960, cache_reads_ios=2, awaiting_write_ios=4),
        ),
    ],
    ids=lambda value: value["t"] if isinstance(value, dict) else "",
)
def test_each_type_of_record(raw: dict[str, Any], record: Record) -> None:
    assert parse_line(json.dumps(raw)) == record
    assert parse_line(json.dumps(raw).encode() + b"\n") == record


@pytest.mark.parametrize(
    "raw", [HELLO, HEAT, ATTRIBUTION, QUEUE, probe_tick()], ids=lambda raw: str(raw["t"])
)
def test_unknown_fields_are_ignored(raw: dict[str, Any]) -> None:
    newer = {**raw, "new": {"of": ["a", "newer", "probe"]}}
    assert parse_line(json.dumps(newer)) == parse_line(json.dumps(raw))


def test_unknown_types_are_ignored() -> None:
    assert parse_line('{"t":"weather","ns":1,"sun":true}') is None


def test_a_tick_in_full() -> None:
    side = {"fg": {"ios": 1, "bytes": 2, "lat": [0, 1]}, "bg": {"ios": 3, "bytes": 4, "lat": [5]}}
    raw = probe_tick(
        ns=99,
        fg={
            "read": {"ios": 10, "bytes": 40960, "sync": 1, "meta": 2, "ahead": 3},
            "write": {"ios": 4, "bytes": 8192, "sync": 4, "meta": 0},
            "flush": 5,
            "discard": 6,
        },
        inflight={"read": 2, "write": 1},
        state="busy",
        last_ns=98,
        runs={"read": [0, 0, 0, 40960], "write": [8192]},
        gaps=[0, 7],
        gaps_ns=[0, 21],
        path={"read": {"miss": {"ios": 1, "bytes": 4096, "lat": [1]}}, "write": {}},
        bypass={"sequential": {"ios": 1, "bytes": 512}},
        dev={"backing": {"read": side, "write": {}, "depth": {"read": 3, "write": 4}}},
        destage={"queued_ios": 5, "queued_bytes": 50, "done_ios": 3, "done_bytes": 30},
        lost={"ring": 1, "streams": 2},
    )
    tick = parse_line(json.dumps(raw))
    assert isinstance(tick, Tick)
    assert tick.arrivals[Direction.READ] == Arrivals(10, 40960, 1)
    assert tick.arrivals[Direction.WRITE] == Arrivals(4, 8192, 4)
    assert tick.in_flight_ios == {Direction.READ: 2, Direction.WRITE: 1}
    assert (tick.idle, tick.last_activity_ns) == (False, 98)
    assert tick.run_bytes == {Direction.READ: (0, 0, 0, 40960), Direction.WRITE: (8192,)}
    assert (tick.gap_counts, tick.gap_sums_ns) == ((0, 7), (0, 21))
    assert tick.paths == {(Direction.READ, "miss"): TimedFlow(1, 4096, (1,))}
    assert tick.bypass == {"sequential": Flow(1, 512)}
    assert tick.backing_latency == {Direction.READ: (0, 1), Direction.WRITE: ()}
    assert tick.backing_depth_ios == 7
    assert (tick.destage_queued, tick.destage_done) == (Flow(5, 50), Flow(3, 30))
    assert tick.lost == {"ring": 1, "streams": 2}


def test_a_tick_needs_only_the_fields_of_every_probe() -> None:
    bare = {
        "t": "tick",
        "ns": 5,
        "vol": "bcache0",
        "fg": {},
        "inflight": {},
        "state": "idle",
        "last_ns": 1,
    }
    tick = parse_line(json.dumps(bare))
    assert isinstance(tick, Tick)
    assert tick.idle
    assert tick.arrivals[Direction.READ] == Arrivals()
    assert tick.paths == {}


@pytest.mark.parametrize("protocol", [0, 2, "1", None])
def test_another_protocol_version_is_refused_with_the_next_step(protocol: object) -> None:
    with pytest.raises(Unavailable, match="same release") as caught:
        parse_line(json.dumps({**HELLO, "protocol": protocol}))
    assert caught.value.exit_code == 69


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        '"tick"',
        "{}",
        '{"t":[]}',
        '{"t":"tick","ns":1}',
        '{"t":"tick","ns":1,"vol":"b","fg":[],"inflight":{},"state":"idle","last_ns":1}',
        '{"t":"edge","ns":1,"vol":"b","edge":"drowsy","gap_ns":1}',
        '{"t":"edge","ns":1,"vol":"b","edge":"busy","idle_ns":1}',
        '{"t":"queue","ns":1,"vol":"b"}',
        '{"t":"hello","ns":1}',
        json.dumps(QUEUE)[:40],
        '{"t":"reuse","ns":1,"vol":"b","refs":[1e999]}',
        json.dumps({**HEAT, "chunks": [700, 5, 1]}),
        json.dumps({**HEAT, "chunks": [700, 5, 1, -1]}),
        json.dumps({**HEAT, "chunks": [700, 5, 1, None]}),
        json.dumps({**HEAT, "chunks": [700, 5, 1, math.inf]}),
        json.dumps({**HEAT, "chunks": [1] * 4 * (HEAT_CHUNKS_MAX + 1)}),
        json.dumps({**HEAT, "chunks": 700}),
        json.dumps({**HEAT, "since_ns": 31}),
        json.dumps({**HEAT, "dropped": -1}),
        json.dumps({**HEAT, "left_out": []}),
        json.dumps({**ATTRIBUTION, "cgroups": [7, 5]}),
        json.dumps({**ATTRIBUTION, "cgroups": [7, 5, -1]}),
        json.dumps({**ATTRIBUTION, "cgroups": [7, 5, 1.0]}),
        json.dumps({**ATTRIBUTION, "cgroups": [7, True, 1]}),
        json.dumps({**ATTRIBUTION, "cgroups": [1 << 64, 5, 1]}),
        json.dumps({**REUSE, "refs": [2] * (REFERENCES_MAX + 1)}),
        json.dumps({**REUSE, "refs": "316"}),
        '{"t":"signals","ns":4,"signals":{"path":null}}',
        json.dumps({**ATTRIBUTION, "cgroups": [7, 5, 1] * (CGROUPS_MAX + 1)}),
        json.dumps({**ATTRIBUTION, "cgroups": {"7": 1}}),
        json.dumps({**ATTRIBUTION, "inodes": [1, 2, 3]}),
        json.dumps({**ATTRIBUTION, "inodes": [1 << 32, 2, 3, 4]}),
        json.dumps({**ATTRIBUTION, "inodes": [1, 2, 3, 4] * (FILES_MAX + 1)}),
        json.dumps({**ATTRIBUTION, "inodes": None}),
        json.dumps({**ATTRIBUTION, "since_ns": 31}),
        json.dumps({**ATTRIBUTION, "until_ns": 32}),
        json.dumps({**ATTRIBUTION, "inodes_dropped": -1}),
        json.dumps({**ATTRIBUTION, "cgroups_left_out": "1"}),
        json.dumps({**QUEUE, "inflight": None}),
        json.dumps({**QUEUE, "done_ios": "3"}),
        '{"t":"edge","ns":1,"vol":"b","edge":"busy","gap_ns":1.5}',
        '{"t":"warn","ns":1,"what":"ring","n":null}',
        '{"t":"bye","ns":"now","why":"quit"}',
        '{"t":"bye","ns":-1,"why":"quit"}',
        '{"t":' + "[" * 100_000,
        '{"t":"bye","ns":1,"why":' + '{"a":' * 100_000,
        '{"t":"bye","why":"quit"}',
        '{"t":"track","ns":1,"vol":["bcache0"]}',
        b"\xff\xfe",
    ],
)
def test_a_damaged_line_is_a_bad_record(line: str | bytes) -> None:
    with pytest.raises(BadRecord):
        parse_line(line)


WRONG: tuple[object, ...] = (None, "1", 1.0, -1, True, [1], {}, 1 << 64)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["ios", "bytes", "sync"])
def test_a_tick_with_a_count_of_a_wrong_type_is_a_bad_record(name: str, wrong: object) -> None:
    with pytest.raises(BadRecord):
        parse_line(json.dumps(probe_tick(fg={"read": {"ios": 0, "bytes": 0, name: wrong}})))


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(
    "fields",
    [
        lambda wrong: {"last_ns": wrong},
        lambda wrong: {"ns": wrong},
        lambda wrong: {"inflight": {"read": wrong}},
        lambda wrong: {"lost": {"ring": wrong}},
        lambda wrong: {"bypass": {"other": {"ios": wrong}}},
        lambda wrong: {"path": {"read": {"hit": {"bytes": wrong}}}},
        lambda wrong: {"path": {"read": {"hit": {"lat": [0, wrong]}}}},
        lambda wrong: {"runs": {"write": [0, wrong]}},
        lambda wrong: {"gaps": [wrong]},
        lambda wrong: {"gaps_ns": [wrong]},
        lambda wrong: {"destage": {"done_ios": wrong}},
        lambda wrong: {"destage": {"inflight_ios": wrong}},
        lambda wrong: {"dev": {"backing": {"depth": {"read": wrong}}}},
        lambda wrong: {"dev": {"backing": {"read": {"fg": {"lat": [wrong]}}}}},
        lambda wrong: {**REUSE, "refs": [316, wrong]},
        lambda wrong: {**HEAT, "chunks": [700, 5, wrong, 0]},
        lambda wrong: {**HEAT, "since_ns": wrong},
        lambda wrong: {**HEAT, "left_out": wrong},
        lambda wrong: {**HEAT, "dropped": wrong},
    ],
)
def test_a_record_with_a_wrong_number_is_a_bad_record(
    fields: Callable[[object], dict[str, Any]], wrong: object
) -> None:
    with pytest.raises(BadRecord):
        parse_line(json.dumps(probe_tick(**fields(wrong))))


@pytest.mark.parametrize("histogram", [None, 7, "07", {"0": 1}, [0] * (HISTOGRAM_BUCKETS_MAX + 1)])
def test_a_tick_with_a_wrong_histogram_is_a_bad_record(histogram: object) -> None:
    with pytest.raises(BadRecord):
        parse_line(json.dumps(probe_tick(gaps=histogram)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
TYPES = st.sampled_from(
    [
        "tick",
        "edge",
        "queue",
        "reuse",
        "heat",
        "attribution",
        "track",
        "untrack",
        "warn",
        "error",
        "bye",
    ]
)
FIELDS = st.sampled_from(sorted({**probe_tick(), **HEAT, **ATTRIBUTION, "refs": []}))


@settings(max_examples=30)
@given(TYPES, st.dictionaries(FIELDS, JSON))
def test_no_record_raises_another_error(kind: str, fields: dict[str, Any]) -> None:
    try:
        parse_line(json.dumps({**probe_tick(), **HEAT, **ATTRIBUTION, **fields, "t": kind}))
    except BadRecord as error:
        assert kind in str(error) or "in " in str(error)


@given(st.binary(max_size=60))
def test_no_bytes_raise_another_error(line: bytes) -> None:
    try:
        parse_line(line)
    except BadRecord:
        return

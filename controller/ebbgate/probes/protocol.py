# SPDX-License-Identifier: GPL-2.0-only
"""Parses the probe's JSON lines into records (protocol version 1, bpf/README.md).

Fields that nothing here uses and unknown record types are ignored, so an older controller reads a
newer probe of the same protocol; another protocol version is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from ebbgate.errors import Unavailable
from ebbgate.model.attribution import AttributionPeriod, FileId, Misses
from ebbgate.model.heat import ChunkMisses, HeatPeriod
from ebbgate.model.records import (
    PROTOCOL_VERSION,
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
    Tick,
    TimedFlow,
    Tracked,
    TrackRefused,
    Untracked,
)

Json = dict[str, Any]
_NOTHING: Json = {}
HEAT_CHUNKS_MAX: Final = 2048
"""A record of misses has at most this many chunks (bpf/records.c)."""
CGROUPS_MAX: Final = 64
FILES_MAX: Final = 256
"""A record of whose misses they were has at most this many of both (bpf/attribution_record.c)."""
_ID_MAX: Final = (1 << 64) - 1
_DEV_MAX: Final = (1 << 32) - 1
NOT_TRACKED: Final = "not_tracked"
"""A command for a volume whose `track` was refused, or that has just vanished."""


class BadRecord(ValueError):
    """A line that is not a record: logged and skipped, since counters are cumulative."""


def parse_line(line: str | bytes) -> Record | None:
    """Parse one record; None for a type that this version does not know.

    Raises BadRecord for a damaged line and Unavailable for another protocol version.
    """
    try:
        raw = json.loads(line)
        parser = _PARSERS.get(raw["t"])
        if not isinstance(raw["ns"], int) or not isinstance(raw.get("vol", ""), str):
            raise TypeError("ns is no number or vol no name")
        return parser(raw) if parser else None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise BadRecord(f"{type(error).__name__}: {error} in {line[:120]!r}") from error


def _hello(raw: Json) -> Hello:
    if raw["protocol"] != PROTOCOL_VERSION:
        raise Unavailable(
            f"the probe speaks protocol {raw['protocol']}, this controller {PROTOCOL_VERSION}",
            "install ebbgate-probe and ebbgate of the same release",
        )
    return Hello(
        raw["ns"], raw["protocol"], raw["probe"], raw["version"], raw["boot_id"], raw["signals"]
    )


def _flow(raw: Json) -> Flow:
    return Flow(raw.get("ios", 0), raw.get("bytes", 0))


def _timed(raw: Json) -> TimedFlow:
    return TimedFlow(raw.get("ios", 0), raw.get("bytes", 0), tuple(raw.get("lat", ())))


def _arrivals(raw: Json) -> Arrivals:
    return Arrivals(raw.get("ios", 0), raw.get("bytes", 0), raw.get("sync", 0))


def _tick(raw: Json) -> Tick:
    fg, destage = raw["fg"], raw.get("destage", _NOTHING)
    backing = raw.get("dev", _NOTHING).get("backing", _NOTHING)
    depth = backing.get("depth", _NOTHING)
    return Tick(
        volume=raw["vol"],
        at_ns=raw["ns"],
        arrivals={d: _arrivals(fg.get(d, _NOTHING)) for d in Direction},
        in_flight_ios={d: raw["inflight"].get(d, 0) for d in Direction},
        idle=raw["state"] == "idle",
        last_activity_ns=raw["last_ns"],
        run_bytes={d: tuple(raw.get("runs", _NOTHING).get(d, ())) for d in Direction},
        gap_counts=tuple(raw.get("gaps", ())),
        gap_sums_ns=tuple(raw.get("gaps_ns", ())),
        paths={
            (Direction(direction), path): _timed(flow)
            for direction, paths in raw.get("path", _NOTHING).items()
            for path, flow in paths.items()
        },
        bypass={why: _flow(flow) for why, flow in raw.get("bypass", _NOTHING).items()},
        backing_depth_ios=depth.get("read", 0) + depth.get("write", 0),
        backing_latency={
            d: tuple(backing.get(d, _NOTHING).get("fg", _NOTHING).get("lat", ())) for d in Direction
        },
        destage_queued=Flow(destage.get("queued_ios", 0), destage.get("queued_bytes", 0)),
        destage_done=Flow(destage.get("done_ios", 0), destage.get("done_bytes", 0)),
        lost=dict(raw.get("lost", _NOTHING)),
        destage_in_flight_ios=destage.get("inflight_ios"),
    )


def _edge(raw: Json) -> Edge:
    kind = EdgeKind(raw["edge"])
    length_ns = raw["gap_ns"] if kind is EdgeKind.BUSY else raw["idle_ns"]
    return Edge(raw["vol"], raw["ns"], kind, length_ns)


def _queue(raw: Json) -> QueueSample:
    return QueueSample(
        raw["vol"],
        raw["ns"],
        raw["inflight"],
        raw["done_ios"],
        raw["done_bytes"],
        raw.get("reads", 0),
        # Recordings of version 0.1 have `held`.
        raw["awaiting_write"] if "awaiting_write" in raw else raw.get("held", 0),
    )


def _heat(raw: Json) -> HeatRecord:
    started_ns, left_out, dropped = int(raw["since_ns"]), int(raw["left_out"]), int(raw["dropped"])
    numbers = tuple(map(int, raw["chunks"]))
    if len(numbers) > 4 * HEAT_CHUNKS_MAX or started_ns > raw["ns"]:
        raise ValueError("too many chunks, or a period that ends before it begins")
    if min(*numbers, started_ns, left_out, dropped) < 0:
        raise ValueError("a negative count")
    fields = iter(numbers)
    chunks = tuple(ChunkMisses(*each) for each in zip(fields, fields, fields, fields, strict=True))
    period = HeatPeriod(started_ns, raw["ns"], chunks, left_out, dropped)
    return HeatRecord(raw["vol"], raw["ns"], period)


def _attribution(raw: Json) -> AttributionRecord:
    since_ns, until_ns = _count(raw["since_ns"]), _count(raw["until_ns"])
    if not since_ns <= until_ns <= raw["ns"]:
        raise ValueError("a period that ends before it begins")
    cgroups = _rows(raw["cgroups"], 3, CGROUPS_MAX)
    files = _rows(raw["inodes"], 4, FILES_MAX)
    period = AttributionPeriod(
        since_ns,
        until_ns,
        {_count(id_, _ID_MAX): Misses(*map(_count, misses)) for id_, *misses in cgroups},
        {
            FileId(_count(dev, _DEV_MAX), _count(inode, _ID_MAX)): Misses(*map(_count, misses))
            for dev, inode, *misses in files
        },
        _count(raw["cgroups_left_out"]) + _count(raw["cgroups_dropped"]),
        _count(raw["inodes_left_out"]) + _count(raw["inodes_dropped"]),
    )
    return AttributionRecord(raw["vol"], raw["ns"], period)


def _rows(numbers: object, width: int, rows_max: int) -> list[tuple[object, ...]]:
    if not isinstance(numbers, list) or len(numbers) > width * rows_max:
        raise ValueError("no list of numbers, or too many")
    fields = iter(numbers)
    return list(zip(*[fields] * width, strict=True))


def _count(value: object, most: int = (1 << 53)) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"no count: {value!r:.40}")
    return value


def _error(raw: Json) -> Record:
    """Return a refused `track` with its volume, any other refused command as a warning."""
    text, command = raw["text"], raw.get("cmd", "")
    words = command.split()
    if words[:1] == ["track"] and len(words) > 1:
        return TrackRefused(words[1], raw["ns"], text)
    what = NOT_TRACKED if text == "not tracked" else "refused"
    return ProbeWarning(raw["ns"], what, 1, f"{text}: {command}")


def _missing(signal: str) -> str:
    """Return why a signal is missing; empty if it is not. `ok, but ...` is good enough."""
    return "" if signal.startswith("ok") else signal.removeprefix("missing: ")


_PARSERS: dict[str, Callable[[Json], Record]] = {
    "hello": _hello,
    "tick": _tick,
    "edge": _edge,
    "queue": _queue,
    "reuse": lambda raw: ReuseSamples(raw["vol"], raw["ns"], tuple(map(int, raw["refs"]))),
    "heat": _heat,
    "attribution": _attribution,
    "track": lambda raw: Tracked(raw["vol"], raw["ns"], _missing(raw.get("class", "ok"))),
    "untrack": lambda raw: Untracked(raw["vol"], raw["ns"], raw.get("why", "requested")),
    "warn": lambda raw: ProbeWarning(raw["ns"], raw["what"], raw.get("n", 0), raw.get("text", "")),
    "error": _error,
    "bye": lambda raw: Bye(raw["ns"], raw["why"]),
}

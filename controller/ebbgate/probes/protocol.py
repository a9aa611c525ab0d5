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
    SignalsChanged,
    Tick,
    TimedFlow,
    Tracked,
    TrackRefused,
    Untracked,
)

Json = dict[str, Any]
_NOTHING: Json = {}
_EMPTY: list[int] = []
HEAT_CHUNKS_MAX: Final = 2048
"""A record of misses has at most this many chunks (bpf/records.c)."""
REFERENCES_MAX: Final = 1024
"""A record of sampled references has at most this many (bpf/records.c)."""
CGROUPS_MAX: Final = 64
FILES_MAX: Final = 256
"""A record of whose misses they were has at most this many of both (bpf/attribution_record.c)."""
HISTOGRAM_BUCKETS_MAX: Final = 128
"""Of any histogram; those of the probe have 108 at most (bpf/hist.h)."""
U64_MAX: Final = (1 << 64) - 1
_DEV_MAX: Final = (1 << 32) - 1
REFUSED: Final = "refused"
NOT_TRACKED: Final = "not_tracked"
"""A command for a volume whose `track` was refused, or that has just vanished."""


class BadRecord(ValueError):
    """A line that is not a record: logged and skipped, since counters are cumulative."""


DAMAGE: Final = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading a damaged line raises; the last one is for brackets in brackets without end."""


def parse_line(line: str | bytes) -> Record | None:
    """Parse one record; None for a type that this version does not know.

    Raises BadRecord for a damaged line and Unavailable for another protocol version.
    """
    try:
        raw = json.loads(line)
        parser = _PARSERS.get(raw["t"])
        if not isinstance(raw.get("vol", ""), str):
            raise TypeError("vol is no name")
        _u64(raw["ns"])
        return parser(raw) if parser else None
    except DAMAGE as error:
        raise BadRecord(f"{type(error).__name__}: {error} in {line[:120]!r}") from error


def _hello(raw: Json) -> Hello:
    if raw["protocol"] != PROTOCOL_VERSION:
        raise Unavailable(
            f"the probe speaks protocol {raw['protocol']}, this controller {PROTOCOL_VERSION}",
            "install ebbgate-probe and ebbgate of the same release",
        )
    probe, version, boot_id = map(_text, (raw["probe"], raw["version"], raw["boot_id"]))
    signals = _signals(raw["signals"])
    return Hello(raw["ns"], raw["protocol"], probe, version, boot_id, signals)


def _signals(raw: Json) -> dict[str, str]:
    if not all(isinstance(word, str) for word in raw.values()):
        raise TypeError("a signal that is no text")
    return raw


def _flow(raw: Json) -> Flow:
    return Flow(_u64(raw.get("ios", 0)), _u64(raw.get("bytes", 0)))


def _timed(raw: Json) -> TimedFlow:
    latency = _counts(raw.get("lat", _EMPTY))
    return TimedFlow(_u64(raw.get("ios", 0)), _u64(raw.get("bytes", 0)), latency)


def _arrivals(raw: Json) -> Arrivals:
    return Arrivals(_u64(raw.get("ios", 0)), _u64(raw.get("bytes", 0)), _u64(raw.get("sync", 0)))


def _tick(raw: Json) -> Tick:
    fg, destage = raw["fg"], raw.get("destage", _NOTHING)
    backing = raw.get("dev", _NOTHING).get("backing", _NOTHING)
    return Tick(
        volume=raw["vol"],
        at_ns=raw["ns"],
        arrivals={d: _arrivals(fg.get(d, _NOTHING)) for d in Direction},
        in_flight_ios={d: _u64(raw["inflight"].get(d, 0)) for d in Direction},
        idle=raw["state"] == "idle",
        last_activity_ns=_u64(raw["last_ns"]),
        run_bytes={d: _counts(raw.get("runs", _NOTHING).get(d, _EMPTY)) for d in Direction},
        gap_counts=_counts(raw.get("gaps", _EMPTY)),
        gap_sums_ns=_counts(raw.get("gaps_ns", _EMPTY)),
        paths={
            (direction, path): _timed(flow)
            for direction in Direction
            for path, flow in raw.get("path", _NOTHING).get(direction, _NOTHING).items()
        },
        bypass={why: _flow(flow) for why, flow in raw.get("bypass", _NOTHING).items()},
        backing_depth_ios=_depth(backing["depth"]) if "depth" in backing else None,
        backing_latency={
            d: _counts(backing.get(d, _NOTHING).get("fg", _NOTHING).get("lat", _EMPTY))
            for d in Direction
        },
        destage_queued=_destage(destage, "queued"),
        destage_done=_destage(destage, "done"),
        lost={what: _u64(count) for what, count in raw.get("lost", _NOTHING).items()},
        # Old recordings have none.
        destage_in_flight_ios=_u64(destage["inflight_ios"]) if "inflight_ios" in destage else None,
    )


def _depth(raw: Json) -> int:
    return _u64(raw.get("read", 0)) + _u64(raw.get("write", 0))


def _destage(raw: Json, which: str) -> Flow:
    return Flow(_u64(raw.get(f"{which}_ios", 0)), _u64(raw.get(f"{which}_bytes", 0)))


def _edge(raw: Json) -> Edge:
    kind = EdgeKind(raw["edge"])
    length_ns = raw["gap_ns"] if kind is EdgeKind.BUSY else raw["idle_ns"]
    return Edge(raw["vol"], raw["ns"], kind, _u64(length_ns))


def _queue(raw: Json) -> QueueSample:
    return QueueSample(
        raw["vol"],
        raw["ns"],
        _u64(raw["inflight"]),
        _u64(raw["done_ios"]),
        _u64(raw["done_bytes"]),
        _u64(raw.get("reads", 0)),
        # Recordings of version 0.1 have `held`.
        _u64(raw["awaiting_write"] if "awaiting_write" in raw else raw.get("held", 0)),
    )


def _heat(raw: Json) -> HeatRecord:
    started_ns, left_out, dropped = map(_u64, (raw["since_ns"], raw["left_out"], raw["dropped"]))
    if started_ns > raw["ns"]:
        raise ValueError("a period that ends before it begins")
    fields = iter(_counts(raw["chunks"], 4 * HEAT_CHUNKS_MAX))
    chunks = tuple(ChunkMisses(*each) for each in zip(fields, fields, fields, fields, strict=True))
    period = HeatPeriod(started_ns, raw["ns"], chunks, left_out, dropped)
    return HeatRecord(raw["vol"], raw["ns"], period)


def _attribution(raw: Json) -> AttributionRecord:
    since_ns, until_ns = _u64(raw["since_ns"]), _u64(raw["until_ns"])
    if not since_ns <= until_ns <= raw["ns"]:
        raise ValueError("a period that ends before it begins")
    cgroups = _rows(raw["cgroups"], 3, CGROUPS_MAX)
    files = _rows(raw["inodes"], 4, FILES_MAX)
    period = AttributionPeriod(
        since_ns,
        until_ns,
        {_count(id_, U64_MAX): Misses(*map(_count, misses)) for id_, *misses in cgroups},
        {
            FileId(_count(dev, _DEV_MAX), _count(inode, U64_MAX)): Misses(*map(_count, misses))
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


def _u64(value: object) -> int:
    # As _count, without a second call: a tick has dozens.
    if type(value) is not int or not 0 <= value <= U64_MAX:
        raise ValueError(f"no count: {value!r:.40}")
    return value


def _counts(values: object, longest: int = HISTOGRAM_BUCKETS_MAX) -> tuple[int, ...]:
    """Check a list of counts, by default a histogram."""
    if not isinstance(values, list) or len(values) > longest:
        raise ValueError("no list of counts, or too many")
    # Looked at together, which is faster than one by one.
    if values and ({*map(type, values)} != {int} or min(values) < 0 or max(values) > U64_MAX):
        raise ValueError(f"no counts: {values!r:.40}")
    return tuple(values)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"no text: {value!r:.40}")
    return value


def _error(raw: Json) -> Record:
    """Return a refused `track` with its volume, any other refused command as a warning."""
    text, command = _text(raw["text"]), _text(raw.get("cmd", ""))
    words = command.split()
    if words[:1] == ["track"] and len(words) > 1:
        return TrackRefused(words[1], raw["ns"], text)
    what = NOT_TRACKED if text == "not tracked" else REFUSED
    return ProbeWarning(raw["ns"], what, 1, f"{text}: {command}")


def _missing(signal: str) -> str:
    """Return why a signal is missing; empty if it is not. `ok, but ...` is good enough."""
    return "" if signal.startswith("ok") else signal.removeprefix("missing: ")


_PARSERS: dict[str, Callable[[Json], Record]] = {
    "hello": _hello,
    "tick": _tick,
    "edge": _edge,
    "queue": _queue,
    "reuse": lambda raw: ReuseSamples(raw["vol"], raw["ns"], _counts(raw["refs"], REFERENCES_MAX)),
    "heat": _heat,
    "attribution": _attribution,
    "track": lambda raw: Tracked(raw["vol"], raw["ns"], _missing(raw.get("class", "ok"))),
    "untrack": lambda raw: Untracked(raw["vol"], raw["ns"], _text(raw.get("why", "requested"))),
    "warn": lambda raw: ProbeWarning(
        raw["ns"], _text(raw["what"]), _u64(raw.get("n", 0)), _text(raw.get("text", ""))
    ),
    "signals": lambda raw: SignalsChanged(raw["ns"], _signals(raw["signals"])),
    "error": _error,
    "bye": lambda raw: Bye(raw["ns"], _text(raw["why"])),
}

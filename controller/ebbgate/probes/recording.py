# SPDX-License-Identifier: GPL-2.0-only
"""Recordings: the probe's lines, and the state from sysfs between them. Pure.

A recording is the probe's own stream (bpf/README.md) with two more record types of the controller:

    origin  first line: what was recorded, where and when, in free text
    sysfs   the volume's state at one tick of the controller: dirty level, cache mode, knobs

A reader of the probe protocol ignores both, so a recording is also a valid probe stream; and the
bare output of `ebbgate-probe` is a valid recording, in which the dirty level is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from ebbgate.model.dm import CacheStatus, DmHealth, WritecacheStatus
from ebbgate.model.records import Record
from ebbgate.model.volume import STATE_LEVELS, Kind, VolumeState
from ebbgate.probes.protocol import DAMAGE, U64_MAX, BadRecord, parse_line

_WORDS: Final = ("state", "cache_mode")
"""The levels that are words; the others are numbers."""
_DM_WORDS: Final = ("health", "policy")
_DM_LISTS: Final = ("features", "policy_settings", "counters")
"""The same in a status line of device-mapper."""


@dataclass(frozen=True, slots=True)
class SysfsSnapshot:
    """The state of a volume, from sysfs."""

    volume: str
    state: VolumeState


@dataclass(frozen=True, slots=True)
class RecordingHeader:
    """Where a recording comes from, as free text."""

    text: str


@dataclass(frozen=True, slots=True)
class Damaged:
    """A line that is not a record, with its number (from 1)."""

    line: int
    why: str


Recorded = Record | SysfsSnapshot | RecordingHeader | Damaged


def recorded_at_ns(event: Recorded) -> int | None:
    """Return the time of an event; None for a line that has none."""
    if isinstance(event, Damaged | RecordingHeader):
        return None
    return event.state.at_ns if isinstance(event, SysfsSnapshot) else event.at_ns


def header_line(text: str) -> str:
    """Return the first line of a recording, without a line end."""
    return json.dumps({"t": "origin", "text": text})


def sysfs_line(volume: str, seen: VolumeState) -> str:
    """Return the line for the state at one tick, without a line end."""
    levels = {name: getattr(seen, name) for name in STATE_LEVELS}
    document = {"t": "sysfs", "ns": seen.at_ns, "vol": volume, **levels, "knobs": dict(seen.knobs)}
    if seen.disk_write_cache:
        document["disk_write_cache"] = True
    if seen.cache_written_bytes is not None:
        document["cache_written_bytes"] = seen.cache_written_bytes
    if seen.dm is not None:
        target = "cache" if isinstance(seen.dm, CacheStatus) else "writecache"
        document["dm"] = {"target": target, **asdict(seen.dm)}
    return json.dumps(document, separators=(",", ":"))


def read_recording(lines: Iterable[str]) -> Iterator[Recorded]:
    """Yield the records in order; types that this version does not know are left out.

    Raises Unavailable for a probe of another protocol version.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        record: Recorded | None
        try:
            record = _own(line) or parse_line(line)
        except BadRecord as error:
            record = Damaged(number, str(error))
        if record is not None:
            yield record


def recorded_kind(events: Iterable[Recorded]) -> Kind:
    """Return the kind of volume, from the first recorded state."""
    seen = next((event.state.dm for event in events if isinstance(event, SysfsSnapshot)), None)
    if seen is None:
        return Kind.BCACHE
    return Kind.DM_CACHE if isinstance(seen, CacheStatus) else Kind.DM_WRITECACHE


def _own(line: str) -> SysfsSnapshot | RecordingHeader | None:
    """Parse a record of the controller; None for any other line."""
    try:
        raw: Mapping[str, Any] = json.loads(line)
        kind = raw["t"]
        if kind == "origin":
            return RecordingHeader(str(raw["text"]))
        return _seen(raw) if kind == "sysfs" else None
    except DAMAGE as error:
        raise BadRecord(f"{type(error).__name__}: {error} in {line[:120]!r}") from error


def _seen(raw: Mapping[str, Any]) -> SysfsSnapshot:
    knobs = raw.get("knobs", {})
    if not isinstance(raw["vol"], str) or type(raw["ns"]) is not int or raw["ns"] < 0:
        raise TypeError("vol is no name or ns no time")
    _level("ns", raw["ns"])
    if not all(isinstance(value, str) for value in knobs.values()):
        raise TypeError("a knob that is no text")
    state = VolumeState(
        at_ns=raw["ns"],
        **{name: _level(name, raw.get(name)) for name in STATE_LEVELS},
        knobs=knobs,
        dm=_dm_status(raw["dm"]) if "dm" in raw else None,
        cache_written_bytes=_level("cache_written_bytes", raw.get("cache_written_bytes")),
        disk_write_cache=raw.get("disk_write_cache") is True,
    )
    return SysfsSnapshot(raw["vol"], state)


def _level(name: str, value: Any) -> Any:
    """Check a level: a word, a number that the kernel can have, or None where it is unknown."""
    if value is None or (name in _WORDS and isinstance(value, str)):
        return value
    if name in _WORDS or type(value) not in (int, float) or not abs(value) <= U64_MAX:
        raise TypeError(f"no {name}: {value!r:.40}")
    return value


def _dm_status(raw: Mapping[str, Any]) -> CacheStatus | WritecacheStatus:
    """Read a recorded status line; fields that this version does not know are left out."""
    made = CacheStatus if raw["target"] == "cache" else WritecacheStatus
    names = {field.name for field in fields(made)}
    known = {name: _dm_value(name, value) for name, value in raw.items() if name in names}
    if made is CacheStatus:
        known["health"] = DmHealth(known["health"])
    return made(**known)


def _dm_value(name: str, value: Any) -> Any:
    if name in _DM_LISTS:
        return _tuples(value)
    return value if name in _DM_WORDS else _level(name, value)


def _tuples(value: Any) -> Any:
    """Turn JSON's lists back into tuples."""
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value

# SPDX-License-Identifier: GPL-2.0-only
"""Emits the records of ebbgate-probe for the simulated volume. Pure: simulated time.

It knows only what the real one can see: requests at the volume and at the backing device, and the
pieces that the writeback thread has under way.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ebbgate.model.records import PROTOCOL_VERSION, Direction
from ebbgate.units import NS_PER_MS, NS_PER_US, SECTOR_BYTES
from tests.sim.clock import Clock
from tests.sim.writeback import Writeback

Counts = defaultdict[int, int]


def log2_bucket(value: int) -> int:
    """As bpf/hist.h: bucket i holds [2^i, 2^(i+1)), 0 counts as 1."""
    return max(1, value).bit_length() - 1


def latency_bucket(latency_us: int) -> int:
    """As bpf/hist.h: exact below 4 us, then four sub-buckets an octave."""
    if latency_us < 4:
        return latency_us
    octave = latency_us.bit_length() - 1
    return 4 * (octave - 1) + ((latency_us >> (octave - 2)) & 3)


RELAXED_PERIODS = 3
"""As in bpf/queue.c: one sample in this many periods while the queue is shallow."""


class _Flow:
    """Requests, bytes and latencies of one class."""

    def __init__(self) -> None:
        self.ios = self.bytes = 0
        self.latency: Counts = defaultdict(int)

    def add(self, length_bytes: int, latency_ns: int) -> None:
        self.ios += 1
        self.bytes += length_bytes
        self.latency[latency_bucket(latency_ns // NS_PER_US)] += 1

    def json(self) -> dict[str, Any]:
        return {"ios": self.ios, "bytes": self.bytes, "lat": _trimmed(self.latency)}


class Probe:
    """`emit` gets each line; `wait_ns` and `pace_period_ns` are set by commands, as on stdin."""

    def __init__(
        self, clock: Clock, volume: str, writeback: Writeback, emit: Callable[[str], None]
    ) -> None:
        self._clock = clock
        self._volume = volume
        self._writeback = writeback
        self._send_line = emit
        self.wait_ns = 300 * NS_PER_MS
        self.pace_period_ns = 0
        self._above: int | None = None
        self._sampled_ns = 0
        self.idle = False
        self._pace_run = 0
        self._in_flight = dict.fromkeys(Direction, 0)
        self._last_ns = 0
        self._arrived = {d: {"ios": 0, "bytes": 0, "sync": 0} for d in Direction}
        self._gaps: Counts = defaultdict(int)
        self._gap_sums_ns: Counts = defaultdict(int)
        self._runs: dict[Direction, Counts] = {d: defaultdict(int) for d in Direction}
        self._streams: dict[int, int] = {}
        self._paths: dict[tuple[Direction, str], _Flow] = defaultdict(_Flow)
        self._backing: dict[Direction, _Flow] = {d: _Flow() for d in Direction}
        self._backing_in_flight = dict.fromkeys(Direction, 0)

    # ---- requests -------------------------------------------------------------------------------
    def start(self, tick_ns: int) -> None:
        """Emit hello, follow the volume, tick."""
        self._emit(
            "hello",
            protocol=PROTOCOL_VERSION,
            probe="sim",
            version="1",
            boot_id="simulated",
            signals=dict.fromkeys(("volume", "edges", "path", "device"), "ok"),
        )
        self._emit("track", vol=self._volume)
        self._clock.every(tick_ns, self._tick)
        self._watch_idle()

    def arrives(self, direction: Direction, offset_bytes: int, length_bytes: int) -> None:
        """Handle a user's request at the volume."""
        idle_ns = self._clock.now_ns - self._last_ns
        if not any(self._in_flight.values()) and idle_ns >= NS_PER_MS:
            self._gaps[log2_bucket(idle_ns // NS_PER_US)] += 1
            self._gap_sums_ns[log2_bucket(idle_ns // NS_PER_US)] += idle_ns
        if self.idle:
            self.idle = False
            self._emit("edge", vol=self._volume, edge="busy", gap_ns=idle_ns)
        self._in_flight[direction] += 1
        self._last_ns = self._clock.now_ns
        arrived = self._arrived[direction]
        arrived["ios"] += 1
        arrived["sync"] += 1
        arrived["bytes"] += length_bytes
        run = self._streams.pop(offset_bytes, 0) + length_bytes
        self._streams[offset_bytes + length_bytes] = run
        self._runs[direction][log2_bucket(run // SECTOR_BYTES)] += length_bytes

    def reaches_backing(self, direction: Direction) -> None:
        """Handle a request that goes on to the backing device."""
        self._backing_in_flight[direction] += 1

    def completes(
        self, direction: Direction, path: str, length_bytes: int, latency_ns: int
    ) -> None:
        """Handle a completion; all but hits and cached writes used the backing device."""
        self._in_flight[direction] -= 1
        self._last_ns = self._clock.now_ns
        self._paths[direction, path].add(length_bytes, latency_ns)
        if path not in ("hit", "writeback"):
            self._backing_in_flight[direction] -= 1
            self._backing[direction].add(length_bytes, latency_ns)
        self._watch_idle()

    # ---- commands -------------------------------------------------------------------------------
    def command(self, line: str) -> None:
        """Handle a line of stdin."""
        verb, _, value, *above = line.split()
        if verb == "wait":
            self.wait_ns = int(value)
            self._watch_idle()
        elif verb == "pace":
            began = not self.pace_period_ns
            self.pace_period_ns = int(value)
            self._above = int(above[0]) if above else None
            if began or not self.pace_period_ns:
                self._pace_run += 1
            if began and self.pace_period_ns:
                self._sample_queue(self._pace_run)
        else:
            raise ValueError(f"no such command: {line}")

    # ---- records --------------------------------------------------------------------------------
    def _watch_idle(self) -> None:
        self._clock.at(self._last_ns + self.wait_ns, self._maybe_idle)

    def _maybe_idle(self) -> None:
        """Emit an idle edge if no arrival or longer wait came after the timer was set."""
        if self.idle or any(self._in_flight.values()) or self._idle_ns() < self.wait_ns:
            return
        self.idle = True
        self._emit("edge", vol=self._volume, edge="idle", idle_ns=self._idle_ns())

    def _idle_ns(self) -> int:
        return self._clock.now_ns - self._last_ns

    def _sample_queue(self, run: int) -> None:
        if run != self._pace_run:
            return
        self._clock.after(self.pace_period_ns, lambda: self._sample_queue(run))
        thread, now_ns = self._writeback, self._clock.now_ns
        in_flight = thread.writing_ios + thread.reading_ios
        shallow = self._above is not None and in_flight <= self._above
        if shallow and now_ns < self._sampled_ns + RELAXED_PERIODS * self.pace_period_ns:
            return
        self._sampled_ns = now_ns
        self._emit(
            "queue",
            vol=self._volume,
            inflight=thread.writing_ios,
            bytes=thread.writing_bytes,
            done_ios=thread.done_ios,
            done_bytes=thread.done_bytes,
            reads=thread.reading_ios,
            fg=sum(self._in_flight.values()),
        )

    def _tick(self) -> None:
        paths: dict[str, dict[str, Any]] = {}
        for (direction, path), flow in self._paths.items():
            paths.setdefault(direction, {})[path] = flow.json()
        self._emit(
            "tick",
            vol=self._volume,
            fg=self._arrived,
            inflight=self._in_flight,
            state="idle" if self.idle else "busy",
            last_ns=self._last_ns,
            runs={d: _trimmed(runs) for d, runs in self._runs.items()},
            gaps=_trimmed(self._gaps),
            gaps_ns=_trimmed(self._gap_sums_ns),
            path=paths,
            dev={"backing": self._backing_json()},
            destage=self._destage_json(),
        )

    def _backing_json(self) -> dict[str, Any]:
        thread = self._writeback
        depth = self._backing_in_flight
        return {
            **{d: {"fg": flow.json()} for d, flow in self._backing.items()},
            "depth": {
                "read": depth[Direction.READ],
                "write": depth[Direction.WRITE] + thread.writing_ios,
            },
        }

    def _destage_json(self) -> dict[str, int]:
        thread = self._writeback
        return {
            "queued_ios": thread.done_ios + thread.writing_ios,
            "queued_bytes": thread.done_bytes + thread.writing_bytes,
            "done_ios": thread.done_ios,
            "done_bytes": thread.done_bytes,
        }

    def _emit(self, kind: str, **fields: Any) -> None:
        record = {"t": kind, "ns": self._clock.now_ns, **fields}
        self._send_line(json.dumps(record, separators=(",", ":")))


def _trimmed(counts: Counts) -> list[int]:
    return [counts.get(bucket, 0) for bucket in range(max(counts, default=-1) + 1)]

# SPDX-License-Identifier: GPL-2.0-only
"""A history as the real store keeps it, made of a recording. I/O: files."""

from __future__ import annotations

from pathlib import Path

from ebbgate.model.records import Edge
from ebbgate.model.volume import Kind
from ebbgate.policy.defaults import default_policy
from ebbgate.probes.recording import Recorded, SysfsSnapshot, read_recording
from ebbgate.replay.recording import steps
from ebbgate.store.db import Store
from ebbgate.units import NS_PER_S

FOLDER = Path(__file__).parent / "replay"
START_NS = 1_700_000_000 * NS_PER_S
"""When the recording begins: a Tuesday, 22:13:20 UTC."""


def recorded(name: str) -> list[Recorded]:
    with (FOLDER / f"{name}.jsonl").open() as lines:
        return list(read_recording(lines))


def keep(path: Path, events: list[Recorded], kind: Kind, times: int = 1) -> tuple[int, int]:
    """Write samples and edges of a recording, repeated this many times.

    Returns from when to when (Unix ns).
    """
    found = list(steps(events, default_policy(kind)))
    first = min(at_ns(step.event) for step in found)
    length = max(at_ns(step.event) for step in found) - first + NS_PER_S
    store = Store.open(path)
    with store.batch():
        for time in range(times):
            base, sampled = START_NS + time * length - first, 0
            for step in found:
                if isinstance(step.event, Edge):
                    store.add_edge(step.event, 0, base + step.event.at_ns)
                frame = step.after.state.frame
                if (
                    isinstance(step.event, SysfsSnapshot)
                    and frame
                    and frame.at_ns - sampled >= NS_PER_S
                ):
                    sampled = frame.at_ns
                    store.add_samples([(frame, base + frame.at_ns)], "enforce")
    store.close()
    return START_NS, START_NS + times * length


def at_ns(event: Recorded) -> int:
    """Return when a record or a snapshot was made; 0 for what has no time."""
    return event.state.at_ns if isinstance(event, SysfsSnapshot) else getattr(event, "at_ns", 0)

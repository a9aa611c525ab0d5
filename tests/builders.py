# SPDX-License-Identifier: GPL-2.0-only
"""One line for every noun that a test needs; what is not said is ordinary and valid. Pure."""

from __future__ import annotations

from typing import Any

from ebbgate.model.decision import Action, Condition, Decision, JournalEntry, Proposal
from ebbgate.model.frame import Frame
from ebbgate.model.volume import Device, Kind, Volume
from ebbgate.units import GIB, MIB
from tests.fake_sysfs import SET_UUID


def device(name: str = "vda", *, rotational: bool | None = True) -> Device:
    """A disk of 2 GiB."""
    return Device(
        name=name,
        devno=(254, 0),
        size_bytes=2 * GIB,
        rotational=rotational,
        scheduler="mq-deadline",
        schedulers=("mq-deadline", "none"),
        nr_requests=64,
        queue_depth=32,
    )


def volume(name: str = "bcache0", *, set_uuid: str = SET_UUID) -> Volume:
    """The volume that `fake_bcache` builds."""
    return Volume(
        name=name,
        kind=Kind.BCACHE,
        devno=(252, 0),
        size_bytes=2 * GIB,
        backing=device("vda"),
        caches=(device("vdb", rotational=False),) if set_uuid else (),
        set_uuid=set_uuid,
    )


def frame(name: str = "bcache0", **signals: Any) -> Frame:
    """A frame in which only the given signals are known."""
    known: dict[str, Any] = {
        "at_ns": 1_000_000_000,
        "probed_at_ns": None,
        "window_ns": 1_000_000_000,
        "idle": None,
        "quiet_ns": None,
        "foreground": None,
        "in_flight_ios": None,
    }
    return Frame(volume=name, **{**known, **signals})


def proposal(strategy: str = "idle_destage", **wishes: Any) -> Proposal:
    """A proposal with one condition that holds."""
    known: dict[str, Any] = {
        "reason": "idle 410 ms >= wait 300 ms",
        "conditions": (Condition("idle", "410 ms", ">=", "300 ms", holds=True),),
    }
    return Proposal(strategy, **{**known, **wishes})


def decision(*proposals: Proposal, volume: str = "bcache0", **parts: Any) -> Decision:
    """A decision out of these proposals."""
    return Decision(volume=volume, at_ns=1_000_000_000, proposals=proposals, **parts)


def action(knob: str = "writeback_percent", old: str | None = "10", new: str = "40") -> Action:
    """One knob to write."""
    return Action("bcache0", knob, old, new, "idle_destage", "idle 410 ms >= wait 300 ms")


def journal_entry(
    knob: str = "writeback_percent", *, volume: str = "bcache0", **parts: Any
) -> JournalEntry:
    """An original of this boot."""
    known: dict[str, Any] = {
        "path": f"/sys/block/{volume}/bcache/{knob}",
        "original": "10",
        "last_written": "40",
        "boot_id": "this boot",
        "at_unix_ns": 1,
        "by": "idle_destage",
        "why": "idle 410 ms >= wait 300 ms",
    }
    return JournalEntry(volume=volume, knob=knob, **{**known, **parts})


def live_document(**parts: Any) -> dict[str, Any]:
    """What the daemon says once a second of a volume that it tunes."""
    rates = {
        "read": {"iops": 120.0, "bytes_per_s": 1.2 * MIB},
        "write": {"iops": 0.0, "bytes_per_s": 0.0},
    }
    hit = {
        "op": "read",
        "path": "hit",
        "ios": 100,
        "bytes": 409600,
        "p50_ns": 60_000,
        "p99_ns": 90_000,
    }
    known: dict[str, Any] = {
        "volume": "bcache0",
        "kind": "bcache",
        "mode": "enforce",
        "held": False,
        "now": "holds 420 MiB dirty back until 300 ms of quiet",
        "regime": "gap",
        "gate": {"kind": "paced", "rate_bytes_per_s": 40 * MIB, "state": "destage", "since_ns": 1},
        "dirty_bytes": 420 * MIB,
        "cache_bytes": GIB,
        "in_use_ratio": 0.42,
        "time_to_full_s": 240.0,
        "time_to_clean_s": 12.0,
        "wait_ns": 300_000_000,
        "foreground": rates,
        "paths": [hit],
        "knobs": {
            "writeback_percent": {"value": "40", "original": "10", "owner": "ebbgate"},
            "sequential_cutoff": {"value": "4194304", "original": None, "owner": "kernel"},
        },
        "proposals": [],
        "missing": {},
        "lost": {"streams": 3, "ring": 0},
    }
    return {**known, **parts}


def probe_tick(**fields: Any) -> dict[str, Any]:
    """A `tick` record as the probe prints it: nothing happened."""
    nothing = {"ios": 0, "bytes": 0}
    side = {"fg": nothing, "bg": nothing}
    device_stats = {"read": side, "write": side, "depth": {"read": 0, "write": 0}}
    known: dict[str, Any] = {
        "t": "tick",
        "ns": 1,
        "vol": "bcache0",
        "fg": {"read": nothing, "write": nothing, "flush": 0, "discard": 0},
        "inflight": {"read": 0, "write": 0},
        "state": "idle",
        "last_ns": 0,
        "runs": {"read": [], "write": []},
        "gaps": [],
        "gaps_ns": [],
        "path": {"read": {"hit": nothing}, "write": {"writeback": nothing}},
        "bypass": {"sequential": nothing, "congested": nothing, "other": nothing},
        "dev": {"cache": device_stats, "backing": device_stats},
        "destage": {"queued_ios": 0, "queued_bytes": 0, "done_ios": 0, "done_bytes": 0},
        "lost": {"ring": 0, "unmatched": 0, "streams": 0, "table": 0},
    }
    return {**known, **fields}

# SPDX-License-Identifier: GPL-2.0-only
"""Builds valid objects for tests, one line each; unnamed fields have ordinary values. Pure."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

from ebbgate.model.decision import Action, Condition, Decision, JournalEntry, Proposal
from ebbgate.model.dm import CacheStatus, DmHealth, DmMapping
from ebbgate.model.frame import Frame, Rates
from ebbgate.model.records import Direction, Edge, EdgeKind, QueueSample, Tick
from ebbgate.model.status import VolumeStatus
from ebbgate.model.status_json import status_from_json
from ebbgate.model.volume import Device, Kind, Volume, VolumeState
from ebbgate.probes.protocol import parse_line
from ebbgate.units import GIB, KIB, MIB, NS_PER_MS, NS_PER_S
from tests.fake_dm import CACHE_TABLE, CACHE_UUID, LENGTH_SECTORS
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
        max_sectors_kb=1280,
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
        disks=(device("vda"),),
    )


def dm_volume(kind: Kind = Kind.DM_CACHE, **parts: Any) -> Volume:
    """LVM's vg/data with blocks of 64 KiB, as `fake_dm` has it."""
    target = "cache" if kind is Kind.DM_CACHE else "writecache"
    known: dict[str, Any] = {
        "dm_name": "vg-data",
        "uuid": CACHE_UUID,
        "lvm_name": "vg/data",
        "target": target,
        "params": CACHE_TABLE,
        "length_sectors": LENGTH_SECTORS,
        "block_sectors": 128,
    }
    mapping = DmMapping(**{**known, **parts})
    return Volume(
        name="vg-data",
        kind=kind,
        devno=(253, 0),
        size_bytes=LENGTH_SECTORS * 512,
        backing=replace(device("dm-4"), devno=(253, 4)),
        caches=(replace(device("dm-2", rotational=False), devno=(253, 2)),),
        set_uuid="",
        sys_name="dm-0",
        mapping=mapping,
        metadata=replace(device("dm-3", rotational=False), devno=(253, 3)),
    )


def cache_status(**parts: Any) -> CacheStatus:
    """A healthy dm-cache with 6 MiB dirty."""
    known: dict[str, Any] = {
        "metadata_used": 40,
        "metadata_total": 2048,
        "block_bytes": 64 * KIB,
        "used": 8211,
        "total": 14528,
        "dirty": 96,
        "promotions": 8211,
        "features": ("metadata2", "writeback"),
        "migration_threshold_sectors": 2048,
        "policy": "mq",
    }
    return CacheStatus(DmHealth.OK, **{**known, **parts})


def frame(name: str = "bcache0", **signals: Any) -> Frame:
    """A frame in which only the given signals are known."""
    known: dict[str, Any] = {
        "at_ns": 1_000_000_000,
        "probed_at_ns": None,
        "window_ns": 1_000_000_000,
        "idle": None,
        "idle_ns": None,
        "foreground": None,
        "in_flight_ios": None,
    }
    return Frame(volume=name, **{**known, **signals})


def proposal(strategy: str = "idle_destage", **parts: Any) -> Proposal:
    """A proposal with one condition that holds."""
    known: dict[str, Any] = {
        "reason": "idle for 410 ms (needs 300)",
        "conditions": (Condition("idle", "410 ms", ">=", "300 ms", holds=True),),
    }
    return Proposal(strategy, **{**known, **parts})


def decision(*proposals: Proposal, volume: str = "bcache0", **parts: Any) -> Decision:
    """A decision from these proposals."""
    return Decision(volume=volume, at_ns=1_000_000_000, proposals=proposals, **parts)


def action(knob: str = "writeback_percent", old: str | None = "10", new: str = "40") -> Action:
    """An action that writes one knob."""
    return Action("bcache0", knob, old, new, "idle_destage", "idle for 410 ms (needs 300)")


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
        "why": "idle for 410 ms (needs 300)",
    }
    return JournalEntry(volume=volume, knob=knob, **{**known, **parts})


PROMOTION: Final[dict[str, Any]] = {
    "phase": "moves",
    "reason": "moves: 12 of 19 MiB are moved, 1 held out to compare",
    "mover": "moving",
    "mover_why": "",
    "moved_bytes": 212 * MIB,
    "failed_bytes": 3 * MIB,
    "busy_ns": 14 * NS_PER_S,
    "time_share": 0.35,
    "pending_bytes": 7 * MIB,
    "held_out_bytes": MIB,
    "saved_ns": 96.0 * NS_PER_S,
    "saved_error_ns": 8.0 * NS_PER_S,
    "cost_ns": 21.0 * NS_PER_S,
    "write_budget_left_bytes": 3.0 * GIB,
    "other_promotions": 310,
    "promotion_holds": 2,
    "groups": [{"name": "/srv/db/big", "chunks": 19}],
    "chunks": [{"chunk": 40, "state": "held out", "miss_iops": 2.5, "group": "/srv/db/big"}],
}
"""The status of promote_hot in a document."""


ATTRIBUTION: Final[dict[str, Any]] = {
    "why": "",
    "observed_ns": 120 * NS_PER_S,
    "cgroups": [
        {"name": "/system.slice/postgresql.service", "reads": 3000, "writes": 200},
        {"name": "/user.slice", "reads": 700, "writes": 0},
    ],
    "cgroups_others": 110,
    "files": [
        {"name": "/srv/db/big", "reads": 2400, "writes": 200},
        {"name": "inode 131 on 252:0", "reads": 1000, "writes": 0},
        {"name": "", "reads": 300, "writes": 0},
    ],
    "files_others": 110,
}
HEAT: Final[dict[str, Any]] = {
    "why": "",
    "observed_ns": 170 * NS_PER_S,
    "misses": 4100,
    "unlisted": 90,
    "bin_bytes": 8 * MIB,
    "bins": [0, 310, 3700],
    "moved": [0, 0, 5],
    "pending": [0, 0, 1],
    "held_out": [],
    "chunks": [{"chunk": 17, "misses": 900, "group": "/srv/db/big", "state": "pending"}],
    "groups": [
        {
            "name": "/srv/db/big",
            "misses": 3700,
            "chunks": 19,
            "moved": 5,
            "pending": 1,
            "held_out": 0,
        },
        {"name": "", "misses": 310, "chunks": None, "moved": 0, "pending": 0, "held_out": 0},
    ],
}
"""Where users missed the cache, in a document."""


def live_document(**parts: Any) -> dict[str, Any]:
    """A status document of a volume that is tuned."""
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
        "policy": "adaptive",
        "overlay": None,
        "frozen": False,
        "now": "Holding 420 MiB of dirty data until idle for 300 ms",
        "kernel_sleep": None,
        "regime": "gap",
        "gate": {"kind": "paced", "rate_bytes_per_s": 40 * MIB, "state": "destage", "since_ns": 1},
        "dirty_bytes": 420 * MIB,
        "cache_bytes": GIB,
        "in_use_ratio": 0.42,
        "time_to_full_s": 240.0,
        "time_to_clean_s": 12.0,
        "wait_ns": 300_000_000,
        "disturbance_ns": 3_000_000,
        "foreground": rates,
        "paths": [hit],
        "miss_ratio": {
            "observed_ns": 7200 * NS_PER_S,
            "sampled_reads": 9000,
            "reads_min": 256,
            "sizes_bytes": [GIB // 16 << octave for octave in range(9)],
            "miss_ratios": [0.9, 0.8, 0.7, 0.6, 0.5, 0.25, 0.125, 0.1, 0.1],
        },
        "heat": HEAT,
        "attribution": ATTRIBUTION,
        "promotion": PROMOTION,
        "knobs": {
            "writeback_percent": {"value": "40", "original": "10", "owner": "ebbgate"},
            "sequential_cutoff": {"value": "4194304", "original": None, "owner": "kernel"},
        },
        "proposals": [],
        "missing": {},
        "lost": {"streams": 3, "ring": 0},
    }
    return {**known, **parts}


def live_status(**parts: Any) -> VolumeStatus:
    """The status in such a document."""
    return status_from_json(VolumeStatus, live_document(**parts))


def probe_tick(**fields: Any) -> dict[str, Any]:
    """A `tick` record without activity, as the probe prints it."""
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


def tick(**fields: Any) -> Tick:
    """The same, parsed."""
    record = parse_line(json.dumps(probe_tick(**fields)))
    assert isinstance(record, Tick)
    return record


def idle_edge(at_ms: int, quiet_ms: int = 300, name: str = "bcache0") -> Edge:
    """An edge to idle."""
    return Edge(name, at_ms * NS_PER_MS, EdgeKind.IDLE, quiet_ms * NS_PER_MS)


def busy_edge(at_ms: int, gap_ms: int = 2500, name: str = "bcache0") -> Edge:
    """An edge to busy: the first request after a gap."""
    return Edge(name, at_ms * NS_PER_MS, EdgeKind.BUSY, gap_ms * NS_PER_MS)


def queue_sample(at_ms: float, in_flight_ios: int, done_ios: int = 0, **parts: Any) -> QueueSample:
    """A sample of the backing device's queue, in pieces of 64 KiB."""
    parts.setdefault("done_bytes", done_ios * 64 * KIB)
    return QueueSample("bcache0", round(at_ms * NS_PER_MS), in_flight_ios, done_ios, **parts)


def volume_state(**parts: Any) -> VolumeState:
    """The state in sysfs of a cache of 1 GiB with 420 MiB of dirty data."""
    known: dict[str, Any] = {
        "at_ns": NS_PER_S,
        "state": "dirty",
        "cache_mode": "writeback",
        "dirty_bytes": 420 * MIB,
        "cache_bytes": GIB,
        "in_use_ratio": 0.42,
        "knobs": {"writeback_percent": "10", "sequential_cutoff": "4194304"},
    }
    return VolumeState(**{**known, **parts})


def busy_frame(at_ms: int = 1000, **signals: Any) -> Frame:
    """A frame with all signals: users keep the disk busy, 420 MiB of 1 GiB are dirty."""
    known: dict[str, Any] = {
        "at_ns": at_ms * NS_PER_MS,
        "probed_at_ns": at_ms * NS_PER_MS,
        "idle": False,
        "idle_ns": 0,
        "foreground": {Direction.READ: Rates(100, 4e5), Direction.WRITE: Rates(0, 0)},
        "in_flight_ios": 1,
        "backing_busy_foreground_ratio": 0.9,
        "destage_bytes_per_s": 0.0,
        "dirty_in_bytes_per_s": 0.0,
        "dirty_bytes": 420 * MIB,
        "cache_bytes": GIB,
        "dirty_ratio": 420 / 1024,
        "in_use_ratio": 0.42,
        "dirty_room_bytes": round(0.28 * GIB),
        "cache_mode": "writeback",
        "state": "dirty",
    }
    return frame(**{**known, **signals})


def idle_frame(at_ms: int = 1000, **signals: Any) -> Frame:
    """The same volume in a gap of half a second."""
    return busy_frame(
        at_ms, **{"idle": True, "idle_ns": NS_PER_S // 2, "in_flight_ios": 0, **signals}
    )

# SPDX-License-Identifier: GPL-2.0-only
"""One line for every noun that a test needs; what is not said is ordinary and valid.

I/O: `FakeSysfs` builds a tree of files and links below a folder, shaped as the kernel shapes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ebbgate.model.decision import Action, Condition, Decision, JournalEntry, Proposal
from ebbgate.model.frame import Frame
from ebbgate.model.volume import Device, Kind, Volume
from ebbgate.sysfs import Sysfs
from ebbgate.units import GIB, MIB, SECTOR_BYTES

SET_UUID = "11111111-2222-3333-4444-555555555555"

# As a stock 6.1 kernel prints them right after `make-bcache --writeback`.
BACKING_FILES: Mapping[str, str] = {
    "state": "dirty",
    "running": "1",
    "dirty_data": "420.0M",
    "cache_mode": "writethrough [writeback] writearound none",
    "readahead_cache_policy": "[all] meta-only",
    "stop_when_cache_set_failed": "[auto] always",
    "sequential_cutoff": "4.0M",
    "writeback_percent": "10",
    "writeback_rate": "4.0k",
    "writeback_rate_minimum": "8",
    "writeback_rate_update_seconds": "5",
    "writeback_rate_p_term_inverse": "40",
    "writeback_rate_i_term_inverse": "10000",
    "writeback_consider_fragment": "1",
    "writeback_delay": "30",
    "writeback_running": "1",
    "writeback_metadata": "1",
}
SET_FILES: Mapping[str, str] = {
    "cache_available_percent": "58",
    "bucket_size": "512.0k",
    "congested_read_threshold_us": "2000",
    "congested_write_threshold_us": "20000",
    "journal_delay_ms": "100",
    "internal/idle_max_writeback_rate": "1",
    "internal/gc_after_writeback": "0",
    "internal/cutoff_writeback": "40",
    "internal/cutoff_writeback_sync": "70",
}


class FakeSysfs:
    """A sysfs tree to which a test adds disks and volumes, and from which it takes files away."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sysfs = Sysfs(root)
        (root / "block").mkdir(parents=True, exist_ok=True)
        (root / "class/block").mkdir(parents=True, exist_ok=True)
        (root / "dev/block").mkdir(parents=True, exist_ok=True)

    def write(self, path: str, text: str) -> None:
        """A file below `/sys`, with the line end that the kernel adds."""
        where = self.sysfs.locate(path)
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(text + "\n")

    def read(self, path: str) -> str:
        """What the file holds now."""
        return self.sysfs.locate(path).read_text().strip()

    def remove(self, path: str) -> None:
        """Take the file away, as a kernel that never had it."""
        self.sysfs.locate(path).unlink()

    def disk(
        self,
        name: str,
        devno: str,
        *,
        size_bytes: int = 2 * GIB,
        rotational: bool = True,
        scheduler: str = "[mq-deadline] none",
        nr_requests: int = 64,
        queue_depth: int | None = 32,
    ) -> str:
        """A whole disk with its queue; returns its folder."""
        real = f"/sys/devices/pci0/{name}/block/{name}"
        self.write(f"{real}/dev", devno)
        self.write(f"{real}/size", str(size_bytes // SECTOR_BYTES))
        self.write(f"{real}/queue/rotational", "1" if rotational else "0")
        self.write(f"{real}/queue/scheduler", scheduler)
        self.write(f"{real}/queue/nr_requests", str(nr_requests))
        if queue_depth is not None:
            self.write(f"{real}/device/queue_depth", str(queue_depth))
        self._links(name, real, devno)
        return real

    def partition(self, disk: str, name: str, devno: str, *, size_bytes: int = GIB) -> str:
        """A partition: a folder inside the disk's, without a queue; returns it."""
        real = f"/sys/devices/pci0/{disk}/block/{disk}/{name}"
        self.write(f"{real}/dev", devno)
        self.write(f"{real}/size", str(size_bytes // SECTOR_BYTES))
        self._link(f"/sys/class/block/{name}", real)
        self._link(f"/sys/dev/block/{devno}", real)
        return real

    def bcache(
        self,
        name: str = "bcache0",
        *,
        backing: str = "vda",
        cache: str | None = "vdb",
        devno: str = "252:0",
        set_uuid: str = SET_UUID,
        files: Mapping[str, str] | None = None,
        set_files: Mapping[str, str] | None = None,
    ) -> None:
        """A volume on devices that exist already; `cache=None`: none is attached."""
        below = self.sysfs.real(f"/sys/class/block/{backing}")
        assert below is not None, f"add the disk {backing} first"
        real = f"/sys/devices/virtual/block/{name}"
        self.write(f"{real}/dev", devno)
        self.write(f"{real}/size", str(2 * GIB // SECTOR_BYTES))
        self._links(name, real, devno)
        for file, text in {**BACKING_FILES, **(files or {})}.items():
            self.write(f"{below}/bcache/{file}", text)
        self._link(f"{real}/bcache", f"{below}/bcache")
        if cache is not None:
            self._attach(f"{below}/bcache", cache, set_uuid, set_files or {})

    def _attach(self, bcache: str, cache: str, uuid: str, files: Mapping[str, str]) -> None:
        own = self.sysfs.real(f"/sys/class/block/{cache}")
        where = f"/sys/fs/bcache/{uuid}"
        for file, text in {**SET_FILES, **files}.items():
            self.write(f"{where}/{file}", text)
        self.write(f"{own}/bcache/nbuckets", "2048")
        self._link(f"{where}/cache0", f"{own}/bcache")
        self._link(f"{bcache}/cache", where)

    def _links(self, name: str, real: str, devno: str) -> None:
        for link in (f"/sys/block/{name}", f"/sys/class/block/{name}", f"/sys/dev/block/{devno}"):
            self._link(link, real)

    def _link(self, link: str, target: str) -> None:
        where = self.sysfs.locate(link)
        where.parent.mkdir(parents=True, exist_ok=True)
        where.symlink_to(self.sysfs.locate(target))


def fake_bcache(root: Path) -> FakeSysfs:
    """The ordinary machine: bcache0 from the hard disk vda and the SSD vdb."""
    fake = FakeSysfs(root)
    fake.disk("vda", "254:0")
    fake.disk("vdb", "254:16", size_bytes=GIB, rotational=False, scheduler="[none] mq-deadline")
    fake.bcache()
    return fake


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

# SPDX-License-Identifier: GPL-2.0-only
"""A fake sysfs tree below a folder of the test. I/O: files and links."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ebbgate.kernel.device_mapper import DeviceMapper
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.knobs.knob import ValueForm, parse_value
from ebbgate.units import GIB, SECTOR_BYTES

# The machine that runs the tests may have dm volumes of its own.
NO_DM = DeviceMapper(Path("/dev/null/no-control"))
SET_UUID = "11111111-2222-3333-4444-555555555555"

# As a stock 6.1 kernel prints them right after `make-bcache --writeback`.
BACKING_FILES: Mapping[str, str] = {
    "state": "dirty",
    "backing_dev_uuid": "0b1e5000-0000-4000-8000-000000000001",
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
    """A sysfs tree in which a test adds disks and volumes, and removes files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sysfs = Sysfs(root, NO_DM)
        (root / "block").mkdir(parents=True, exist_ok=True)
        (root / "class/block").mkdir(parents=True, exist_ok=True)
        (root / "dev/block").mkdir(parents=True, exist_ok=True)

    def write(self, path: str, text: str) -> None:
        """Write a file below `/sys`, with the line end that the kernel adds."""
        where = self.sysfs.locate(path)
        try:
            where.write_text(text + "\n")
        except FileNotFoundError:
            # Rare: create folders only when needed, since the tests make a thousand of these trees.
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_text(text + "\n")

    def read(self, path: str) -> str:
        """Return the file's text."""
        return self.sysfs.locate(path).read_text().strip()

    def remove(self, path: str) -> None:
        """Remove the file, as if the kernel lacked it."""
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
        """Add a whole disk with its queue; return its folder."""
        real = f"/sys/devices/pci0/{name}/block/{name}"
        self.write(f"{real}/dev", devno)
        self.write(f"{real}/size", str(size_bytes // SECTOR_BYTES))
        self.write(f"{real}/stat", "0 0 0 0 0 0 2048 0 0 0 0")
        self.write(f"{real}/queue/rotational", "1" if rotational else "0")
        self.write(f"{real}/queue/scheduler", scheduler)
        self.write(f"{real}/queue/nr_requests", str(nr_requests))
        self.write(f"{real}/queue/max_sectors_kb", "1280")
        self.write(f"{real}/queue/wbt_lat_usec", "75000")
        if queue_depth is not None:
            self.write(f"{real}/device/queue_depth", str(queue_depth))
        self.links(name, real, devno)
        return real

    def partition(self, disk: str, name: str, devno: str, *, size_bytes: int = GIB) -> str:
        """Add a partition: a folder inside the disk's, without a queue; return it."""
        real = f"/sys/devices/pci0/{disk}/block/{disk}/{name}"
        self.write(f"{real}/dev", devno)
        self.write(f"{real}/size", str(size_bytes // SECTOR_BYTES))
        self.write(f"{real}/partition", "1")
        self.link(f"/sys/class/block/{name}", real)
        self.link(f"/sys/dev/block/{devno}", real)
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
        """Add a volume on existing devices; `cache=None`: none is attached."""
        below = self.sysfs.real(f"/sys/class/block/{backing}")
        assert below is not None, f"add the disk {backing} first"
        real = f"/sys/devices/virtual/block/{name}"
        self.write(f"{real}/dev", devno)
        self.write(f"{real}/size", str(2 * GIB // SECTOR_BYTES))
        self.links(name, real, devno)
        for file, text in {**BACKING_FILES, **(files or {})}.items():
            self.write(f"{below}/bcache/{file}", text)
        self.link(f"{real}/bcache", f"{below}/bcache")
        if cache is not None:
            self._attach(f"{below}/bcache", cache, set_uuid, set_files or {})

    def _attach(self, bcache: str, cache: str, uuid: str, files: Mapping[str, str]) -> None:
        own = self.sysfs.real(f"/sys/class/block/{cache}")
        where = f"/sys/fs/bcache/{uuid}"
        for file, text in {**SET_FILES, **files}.items():
            self.write(f"{where}/{file}", text)
        self.write(f"{own}/bcache/nbuckets", "2048")
        self.link(f"{where}/cache0", f"{own}/bcache")
        self.link(f"{bcache}/cache", where)

    def links(self, name: str, real: str, devno: str) -> None:
        for link in (f"/sys/block/{name}", f"/sys/class/block/{name}", f"/sys/dev/block/{devno}"):
            self.link(link, real)

    def link(self, link: str, target: str) -> None:
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


def two_on_a_disk(root: Path) -> FakeSysfs:
    """bcache0 and bcache1 from two partitions of the hard disk sda, each with an SSD."""
    fake = FakeSysfs(root)
    fake.disk("sda", "8:0", scheduler="mq-deadline [bfq] none")
    for number, ssd in enumerate(("sdb", "sdc")):
        part, devno = f"sda{number + 1}", number + 1
        fake.partition("sda", part, f"8:{devno}")
        fake.disk(ssd, f"8:{16 * devno}", rotational=False)
        uuid = SET_UUID.replace("5", str(devno))
        name = f"bcache{number}"
        fake.bcache(name, backing=part, cache=ssd, devno=f"252:{number}", set_uuid=uuid)
    return fake


def two_on_a_cache(root: Path) -> FakeSysfs:
    """The ordinary machine, and bcache1 from the hard disk vdc on the same cache set."""
    fake = fake_bcache(root)
    fake.disk("vdc", "254:32")
    fake.bcache("bcache1", backing="vdc", cache=None, devno="252:16")
    below = fake.sysfs.real("/sys/class/block/vdc")
    fake.link(f"{below}/bcache/cache", f"/sys/fs/bcache/{SET_UUID}")
    return fake


def fake_multipath(root: Path, scheduler: str = "[mq-deadline] bfq none") -> FakeSysfs:
    """The multipath device dm-0 with the paths sda and sdb, and the SSD sdc; no volume."""
    fake = FakeSysfs(root)
    fake.disk("dm-0", "253:0", scheduler=scheduler, nr_requests=256, queue_depth=None)
    fake.write("/sys/block/dm-0/dm/uuid", "mpath-35000c500a1b2c3d4")
    for name, devno in (("sda", "8:0"), ("sdb", "8:16")):
        fake.disk(name, devno, scheduler="mq-deadline [bfq] none")
        fake.link(f"/sys/class/block/dm-0/slaves/{name}", f"/sys/block/{name}")
    fake.disk("sdc", "8:32", rotational=False)
    return fake


def failing(number: int) -> Callable[[], None]:
    """Return a hook of `WatchedSysfs` that raises this error of the kernel."""

    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return fail


def switch_resets_length(
    fake: FakeSysfs, sysfs: WatchedSysfs, disk: str, depth: int | None = None
) -> None:
    """Have each switch of the disk's scheduler give its queue the length that Linux gives it.

    `depth`: what the disk takes, where it does not tell.
    """
    folder = f"/sys/block/{disk}/queue"
    depth = depth or int(fake.read(f"/sys/block/{disk}/device/queue_depth"))
    words = [parse_value(ValueForm.CHOICE, fake.read(f"{folder}/scheduler"))]

    def reset() -> None:
        words.append(fake.read(f"{folder}/scheduler"))
        if words[-1] != words[-2]:
            length = depth if words[-1] == "none" else 2 * min(depth, 128)
            fake.write(f"{folder}/nr_requests", str(length))

    sysfs.after["scheduler"] = reset


IOSCHED: Final[Mapping[str, Mapping[str, str]]] = {
    "mq-deadline": {"fifo_batch": "16", "read_expire": "500", "writes_starved": "2"},
    "bfq": {"low_latency": "1", "slice_idle": "8"},
    "kyber": {"read_lat_nsec": "2000000"},
    "none": {},
}
"""What Linux sets each I/O scheduler to, in part."""


def switch_resets_settings(fake: FakeSysfs, sysfs: WatchedSysfs, disk: str) -> str:
    """Have each switch of the disk's scheduler replace its settings; return their folder."""
    folder = f"/sys/block/{disk}/queue"
    words: list[str] = []
    other = sysfs.after.get("scheduler", lambda: None)

    def reset() -> None:
        words.append(parse_value(ValueForm.CHOICE, fake.read(f"{folder}/scheduler")))
        if words[-1:] != words[-2:-1]:
            for name in fake.sysfs.names(f"{folder}/iosched"):
                fake.remove(f"{folder}/iosched/{name}")
            for name, value in IOSCHED[words[-1]].items():
                fake.write(f"{folder}/iosched/{name}", value)

    def both() -> None:
        other()
        reset()

    reset()
    sysfs.after["scheduler"] = both
    return f"{folder}/iosched"


@dataclass(frozen=True, slots=True)
class WatchedSysfs(Sysfs):
    """Takes writes as the kernel does: the whole value at once, and never a new file.

    `log`: every write that came through, by knob; `before`: called before a write to that knob, to
    refuse it (raise OSError), to let it hang, or to look around; `after`: after it, to undo it;
    `reading`: called before a read of it, which may be refused, too.
    """

    log: list[tuple[str, str]] = field(default_factory=list)
    before: dict[str, Callable[[], object]] = field(default_factory=dict)
    after: dict[str, Callable[[], object]] = field(default_factory=dict)
    reading: dict[str, Callable[[], object]] = field(default_factory=dict)

    def _read(self, path: Path | str) -> str:
        call = self.reading.get(Path(path).name)
        if call is not None:
            call()
        return super(WatchedSysfs, self)._read(path)

    def write_text(self, path: Path | str, value: str) -> None:
        if str(path).startswith("dm:"):
            return Sysfs.write_text(self, path, value)
        knob = Path(path).name
        if not self.exists(path):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        if knob in self.before:
            self.before[knob]()
        # The rate is taken in sectors and shown in bytes.
        shown = int(value) * SECTOR_BYTES if knob == "writeback_rate" else value
        whole = self.locate(path)
        new = whole.with_name(f".{whole.name}.new")
        new.write_text(f"{shown}\n")
        new.replace(whole)
        self.log.append((knob, value))
        if knob in self.after:
            self.after[knob]()

# SPDX-License-Identifier: GPL-2.0-only
"""Volumes of dm-cache and dm-writecache in a guest.

I/O: through a Session: LVM's tools, dmsetup, cache_check.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypedDict, Unpack

from tests.lab import dm_parts, knobs
from tests.lab.dm_parts import MIB, Made
from tests.lab.dm_status import CacheStatus, WritecacheStatus, cache_status, writecache_status
from tests.lab.session import Session
from tests.lab.stack import Stack

_QUEUES = (
    knobs.QUEUE_DEPTH,
    *(
        f"{device}:queue/{name}"
        for device in ("volume", "hdd", "ssd")
        for name in ("scheduler", "nr_requests", "max_sectors_kb", "read_ahead_kb", "wbt_lat_usec")
    ),
)


class Options(TypedDict, total=False):
    """How a stack may be made; every one has a default."""

    hdd: str
    ssd: str
    """Names of the lab; by default hdd0 and ssd0."""
    lvm: bool
    """Through LVM (default), as volume VG/data; else bare device-mapper, under the same dm name,
    with the whole hard disk as its origin."""
    vg: str
    """Name of the volume group, default vg."""
    cache_bytes: int
    """Default 512 MiB, of which LVM takes 8 for the metadata of a cachevol."""
    scheduler: str
    """Of the backing device: mq-deadline (default, what Debian gives a SATA disk), none, bfq."""
    settings: Mapping[str, str | int]
    """Knobs set before the originals are noted, i.e. those of an administrator."""


class DmStack(Stack):
    """A volume of device-mapper.

    On leaving, a device-mapper device that was not there before and metadata that cache_check
    rejects are findings, too.
    """

    target = ""
    """device-mapper's name of what it is."""
    modules: tuple[str, ...] = ()

    def __init__(self, session: Session, **options: Unpack[Options]) -> None:
        super().__init__(
            session,
            hdd=options.get("hdd", "hdd0"),
            ssd=options.get("ssd", "ssd0"),
            scheduler=options.get("scheduler", "mq-deadline"),
            settings=options.get("settings"),
        )
        self.lvm = options.get("lvm", True)
        self.vg = options.get("vg", "vg")
        self.name = f"{self.vg.replace('-', '--')}-data"
        """As `dmsetup` has it, e.g. vg-data."""
        self.lvm_name = f"{self.vg}/data" if self.lvm else ""
        """As LVM has it, empty for a bare volume."""
        self.device = f"/dev/mapper/{self.name}"
        self._cache_bytes = options.get("cache_bytes", 512 * MIB)
        self._made = Made()

    def dev_t(self, which: str) -> str:
        """MAJ:MIN of volume, origin, cache, metadata (what the volume's table names), hdd, ssd.

        A dm-writecache keeps its metadata on the cache device.
        """
        return self._made.dev_ts.get(which) or super().dev_t(which)

    def works(self) -> bool:
        """Whether the kernel has not given it up."""
        return not {"Fail", "Error"} & set(self.status_line().split())

    def status_line(self) -> str:
        """What `dmsetup status` says, without the commit of metadata that it would cause."""
        return self.session.check(["dmsetup", "status", "--noflush", self.name]).strip()

    def message(self, *words: str | int) -> None:
        """Send the target a message."""
        self.session.check(["dmsetup", "message", self.name, "0", *map(str, words)])

    def is_clean(self) -> bool:
        return self.dirty_bytes() == 0

    def knob(self, name: str) -> str:
        """A watched knob's value; KeyError if it does not exist (any more)."""
        return self.knob_values()[name]

    def set_knob(self, name: str, value: str | int) -> None:
        """Set a knob of a queue, e.g. volume:queue/max_sectors_kb, or of the target."""
        if ":" in name:
            super().set_knob(name, value)
        else:
            self.message(name, value)

    def knob_values(self) -> dict[str, str]:
        values = self._read_knobs(_QUEUES) | self._read_tunables()
        table = self.session.run(["dmsetup", "table", self.name])
        if table.rc == 0 and table.stdout.split()[2] == self.target and self.works():
            values |= self.target_values(table.stdout)
        if self.lvm:
            values |= dm_parts.lvm_values(self.session, self.lvm_name)
        return values

    @abstractmethod
    def target_values(self, table: str) -> dict[str, str]:
        """The target's own knobs."""

    def _volume_findings(self) -> list[str]:
        names = dm_parts.names_above(self.session, self.hdd, self.ssd)
        if "devices" not in self._may_differ and (new := names - self._made.names):
            return [f"left over: {', '.join(sorted(new))}"]
        return []

    def _load_modules(self) -> None:
        dm_parts.prepare(self.session, self.modules)

    def _make(self) -> None:
        self._join()
        self._find_parts()

    def _assemble(self) -> None:
        """Bring up a volume of LVM."""
        self.session.check(["vgchange", "-qq", "-ay", self.vg])
        self._find_parts()

    def _find_parts(self) -> None:
        self._made = dm_parts.find(self.session, self.name, self.hdd, self.ssd)
        self.volume = self._made.kernel_names["volume"]

    @abstractmethod
    def _join(self) -> None:
        """Make the device-mapper devices."""

    def _tear_down(self) -> None:
        dm_parts.remove(self.session, self.hdd, self.ssd)
        dm_parts.forget(self.session, self.vg, self.hdd, self.ssd)


class DmCacheStack(DmStack):
    """A dm-cache (smq). Knobs: mode, policy, migration_threshold, the queues, LVM's settings."""

    target = "cache"
    modules = ("dm-cache", "dm-cache-smq")

    def __init__(
        self,
        session: Session,
        *,
        cache_mode: str = "writeback",
        block_bytes: int = 65536,
        cachepool: bool = False,
        metadata_bytes: int = 8 * MIB,
        **options: Unpack[Options],
    ) -> None:
        """Describe it.

        cachepool: LVM keeps data and metadata as two LVs of a pool, else in one cachevol.
        metadata_bytes: of a bare volume; LVM chooses for itself.
        """
        super().__init__(session, **options)
        self._cache_mode = cache_mode
        self.block_bytes = block_bytes
        self._cachepool = cachepool
        self._metadata_bytes = metadata_bytes

    def status(self) -> CacheStatus:
        """The status line, by its counts."""
        return cache_status(self.status_line())

    def dirty_bytes(self) -> int:
        return self.status().dirty_bytes

    @property
    def threshold(self) -> int:
        """migration_threshold as it is in force, in sectors."""
        return self.status().core["migration_threshold"]

    @threshold.setter
    def threshold(self, sectors: int) -> None:
        self.message("migration_threshold", sectors)

    def drain(self, timeout_s: float = 300) -> None:
        """Let the kernel's own idle writeback run at full width, which needs an idle second."""
        before, self.threshold = self.threshold, 1 << 20
        try:
            self.wait_clean(timeout_s)
        finally:
            self.threshold = before

    def target_values(self, table: str) -> dict[str, str]:
        status = self.status()
        flags = {"ro": str(status.read_only), "needs_check": str(status.needs_check)}
        core = {name: str(value) for name, value in status.core.items()}
        return {"mode": status.mode, "policy": status.policy, **core, **flags}

    def _join(self) -> None:
        kilobytes, mode = f"{self.block_bytes // 1024}k", self._cache_mode
        if not self.lvm:
            sizes = self._metadata_bytes, self._cache_bytes
            meta, data = dm_parts.cut(self.session, self.vg, self.ssd, *sizes)
            block = self.block_bytes // 512
            line = f"cache {meta} {data} /dev/{self.hdd} {block} 2 metadata2 {mode} smq 0"
            dm_parts.create(self.session, self.name, self.hdd, line)
            return
        dm_parts.make_vg(self.session, self.vg, self.hdd, self.ssd)
        size = ["-L", f"{self._cache_bytes}b", self.vg, f"/dev/{self.ssd}"]
        pool = ["--type", "cache-pool", "--chunksize", kilobytes] if self._cachepool else []
        self.session.check(["lvcreate", "-qq", "-y", *pool, "-n", "fast", *size])
        fast = ["--cachepool", "fast"] if self._cachepool else ["--cachevol", "fast"]
        chunk = [] if self._cachepool else ["--chunksize", kilobytes]
        options = ["--type", "cache", *fast, *chunk, "--cachemode", mode]
        self.session.check(["lvconvert", "-qq", "-y", *options, self.lvm_name])

    def break_metadata(self, *, reads: bool) -> None:
        """Fail every write to a bare volume's metadata, and optionally every read.

        A kernel that can still read goes back to the last commit and asks for a check; one that
        cannot gives the cache up. What is wrong stays: expect_changed("metadata", "kernel").
        """
        name = f"{self.vg}-cmeta"
        _, sectors, _, below, start = self.session.check(["dmsetup", "table", name]).split()
        # Never up; without a feature it fails all requests, and is still found on its disk.
        feature = "" if reads else " 1 error_writes"
        table = f"0 {sectors} flakey {below} {start} 0 60{feature}"
        self.session.check(["modprobe", "dm-flakey"])
        self._load(name, table)

    @contextmanager
    def without_promotions(self) -> Iterator[None]:
        """Take nothing in for a while; afterwards smq does not know any more what was read often.

        What is in the cache stays there, and what is dirty is written back.
        """
        threshold = self.threshold
        table = self.session.check(["dmsetup", "table", self.name]).strip()
        # smq may have the name of the policy that it replaced.
        self._load(self.name, re.sub(r" s?mq \d.*", " cleaner 0", table))
        try:
            yield
        finally:
            self._load(self.name, table)
            self.threshold = threshold

    def _load(self, name: str, table: str) -> None:
        self.session.check(["dmsetup", "load", name, "--table", table])
        self.session.check(["dmsetup", "suspend", name])
        self.session.check(["dmsetup", "resume", "--noudevsync", "--noudevrules", name])

    def _metadata_findings(self) -> list[str]:
        if "metadata" in self._may_differ or not self._made.metadata:
            return []
        # Nobody may use the metadata while it is checked.
        dm_parts.remove(self.session, self.hdd, self.ssd)
        said = dm_parts.cache_check(self.session, self._made.metadata)
        return [f"cache_check: {said}"] if said else []


class DmWritecacheStack(DmStack):
    """A dm-writecache on an SSD. Knobs: its table, the queues."""

    target = "writecache"
    modules = ("dm-writecache",)
    block_bytes = 4096

    def status(self) -> WritecacheStatus:
        """The status line, field by field."""
        return writecache_status(self.status_line())

    def dirty_bytes(self) -> int:
        status = self.status()
        return (status.blocks - status.free) * self.block_bytes

    def drain(self, timeout_s: float = 300) -> None:
        self.message("flush")
        self.wait_clean(timeout_s)

    def target_values(self, table: str) -> dict[str, str]:
        return {"table": " ".join(table.split()[2:])}

    def _join(self) -> None:
        if not self.lvm:
            _, data = dm_parts.cut(self.session, self.vg, self.ssd, 8 * MIB, self._cache_bytes)
            line = f"writecache s /dev/{self.hdd} {data} {self.block_bytes} 0"
            dm_parts.create(self.session, self.name, self.hdd, line)
            return
        dm_parts.make_vg(self.session, self.vg, self.hdd, self.ssd)
        size = ["-L", f"{self._cache_bytes}b", self.vg, f"/dev/{self.ssd}"]
        self.session.check(["lvcreate", "-qq", "-y", "-n", "fast", *size])
        # LVM attaches no LV that it would have to take out of use.
        self.session.check(["lvchange", "-qq", "-an", f"{self.vg}/fast"])
        options = ["--type", "writecache", "--cachevol", "fast"]
        self.session.check(["lvconvert", "-qq", "-y", *options, self.lvm_name], timeout_s=120)

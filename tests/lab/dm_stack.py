# SPDX-License-Identifier: GPL-2.0-only
"""Volumes of dm-cache and dm-writecache in a guest, as BcacheStack is for bcache.

I/O: through a Session: LVM's tools, dmsetup, cache_check.
"""

from __future__ import annotations

from typing import Unpack

from tests.lab import dm_parts
from tests.lab.dm_base import DmStack, Options
from tests.lab.dm_parts import MIB
from tests.lab.dm_status import CacheStatus, WritecacheStatus, cache_status, writecache_status
from tests.lab.session import Session

__all__ = ["DmCacheStack", "DmStack", "DmWritecacheStack", "Options"]


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
        """Let the kernel's own idle writeback run at full width: it wants an idle second."""
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
        """Fail every write to a bare volume's metadata, and every read if told so.

        A kernel that can still read goes back to the last commit and asks for a check; one that
        cannot gives the cache up. What is wrong stays: expect_changed("metadata", "kernel").
        """
        name = f"{self.vg}-cmeta"
        _, sectors, _, below, start = self.session.check(["dmsetup", "table", name]).split()
        # Never up; without a feature it fails all, and still stands on its disk to be found there.
        feature = "" if reads else " 1 error_writes"
        table = f"0 {sectors} flakey {below} {start} 0 60{feature}"
        self.session.check(["modprobe", "dm-flakey"])
        self.session.check(["dmsetup", "load", name, "--table", table])
        self.session.check(["dmsetup", "suspend", name])
        self.session.check(["dmsetup", "resume", "--noudevsync", "--noudevrules", name])

    def _metadata_findings(self) -> list[str]:
        if "metadata" in self._may_differ or not self._made.metadata:
            return []
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

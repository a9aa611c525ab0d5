# SPDX-License-Identifier: GPL-2.0-only
"""A cached volume of device-mapper: its table and its status line. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MODES = ("writeback", "writethrough", "passthrough")
CLEANER: Final = "cleaner"
"""dm-cache's policy that writes everything back, whatever the load, and promotes nothing."""


class DmHealth(StrEnum):
    """The end of dm-cache's status line (dm-cache-target.c, cache_status).

    - `needs_check`: the metadata must be checked before it is written again.
    - `read_only`: the metadata cannot be written.
    - `failed`: no I/O at all.
    """

    OK = "ok"
    NEEDS_CHECK = "needs_check"
    READ_ONLY = "read-only"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CacheStatus:
    """dm-cache's status line. Counters are 32 bits wide and wrap.

    - `metadata_*`: in blocks of `metadata_block_bytes`.
    - `used`, `total`, `dirty`: in cache blocks of `block_bytes`.
    - `promotions`, `demotions`: since the table was loaded.
    """

    health: DmHealth
    metadata_block_bytes: int = 0
    metadata_used: int = 0
    metadata_total: int = 0
    block_bytes: int = 0
    used: int = 0
    total: int = 0
    read_hits: int = 0
    read_misses: int = 0
    write_hits: int = 0
    write_misses: int = 0
    demotions: int = 0
    promotions: int = 0
    dirty: int = 0
    features: tuple[str, ...] = ()
    migration_threshold_sectors: int | None = None
    policy: str = ""
    policy_settings: tuple[tuple[str, str], ...] = ()

    @property
    def cache_mode(self) -> str | None:
        """`writeback`, `writethrough` or `passthrough`."""
        return next((word for word in self.features if word in MODES), None)

    @property
    def metadata_ratio(self) -> float | None:
        """The share of the metadata device that is used (0..1)."""
        return self.metadata_used / self.metadata_total if self.metadata_total else None


@dataclass(frozen=True, slots=True)
class WritecacheStatus:
    """dm-writecache's status line, in blocks of `block_bytes`; before 5.15 only four figures."""

    errors: int
    total: int
    free: int
    under_writeback: int
    block_bytes: int
    counters: tuple[tuple[str, int], ...] = ()

    @property
    def dirty(self) -> int:
        """Blocks that hold data; a block is freed once it is written back."""
        return self.total - self.free


@dataclass(frozen=True, slots=True)
class DmMapping:
    """The table of a cached volume.

    - `target`: `cache` or `writecache`; `params`: those of its constructor.
    - `lvm_name`: `vg/lv` if LVM created it, else empty.
    """

    dm_name: str
    uuid: str
    lvm_name: str
    target: str
    params: str
    length_sectors: int
    block_sectors: int

# SPDX-License-Identifier: GPL-2.0-only
"""What the processes that read into a cache must know about it. I/O: sysfs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ebbgate.kernel.sysfs import Sysfs
from ebbgate.model.volume import Kind, Volume
from ebbgate.units import KIB, SECTOR_BYTES, parse_hprint, sectors_to_bytes
from ebbgate.warm.pace import BURST_SHARE
from ebbgate.warm.pinning import Need, need, need_of_blocks, step_bytes
from ebbgate.warm.plan import blocks_max

_BUCKET_BYTES: Final = 512 * KIB
"""What make-bcache chooses."""


@dataclass(frozen=True, slots=True)
class CacheFacts:
    """`unit_bytes`: smaller requests are not cached. `block_bytes`: of dm-cache, else 0.

    `bucket_bytes`: of bcache, else 0.
    """

    unit_bytes: int
    block_bytes: int
    cache_bytes: int
    bucket_bytes: int = 0

    def command(self, name: str, volume: Volume, *, collects: bool = True) -> dict[str, object]:
        """Return the command that lets a worker begin.

        `collects`: the kernel may be asked to collect garbage.
        """
        collects = collects and volume.kind is Kind.BCACHE
        burst = int(self.cache_bytes * BURST_SHARE) if collects else 0
        return {
            "command": name,
            "kind": str(volume.kind),
            "unit": self.unit_bytes,
            "block": self.block_bytes,
            "volume": ":".join(map(str, volume.devno)),
            "backing": ":".join(map(str, volume.backing.devno)),
            "burst": burst,
        }

    def taken_bytes(self, opened: Mapping[str, Any]) -> int:
        """Return how much of the cache a file takes that a worker has opened.

        dm-cache caches whole blocks, of which many small pieces take many.
        """
        return self._blocks(opened) * self.block_bytes if self.block_bytes else opened["bytes"]

    def need(self, opened: Mapping[str, Any]) -> Need:
        """Return what a file takes that a worker has opened, if it is pinned."""
        size = opened["bytes"]
        if self.block_bytes:
            return need_of_blocks(size, self._blocks(opened), self.block_bytes)
        return need(size, step_bytes(self.bucket_bytes, 0))

    def _blocks(self, opened: Mapping[str, Any]) -> int:
        """Return how many blocks it touches: at most, where the worker was not asked."""
        most = blocks_max(opened["bytes"], opened["pieces"], self.block_bytes)
        return int(opened.get("blocks", {}).get(str(self.block_bytes), most))


def block_sizes(volumes: Iterable[Volume]) -> dict[str, list[int]]:
    """Return the sizes of the cache blocks of these volumes, as a request to a worker has them."""
    mappings = (volume.mapping for volume in volumes if volume.kind is Kind.DM_CACHE)
    found = {sectors_to_bytes(mapping.block_sectors) for mapping in mappings if mapping}
    return {"block_sizes": sorted(found)} if found else {}


def read_cache_facts(sysfs: Sysfs, volume: Volume) -> CacheFacts:
    """Read them."""
    queue = f"/sys/dev/block/{volume.devno[0]}:{volume.devno[1]}/queue"
    logical = sysfs.read_int(f"{queue}/logical_block_size") or SECTOR_BYTES
    cache_bytes = sum(device.size_bytes for device in volume.caches)
    if volume.kind is Kind.BCACHE:
        folder = f"/sys/fs/bcache/{volume.set_uuid}"
        block = parse_hprint(sysfs.read_text(f"{folder}/block_size") or str(SECTOR_BYTES))
        bucket = parse_hprint(sysfs.read_text(f"{folder}/bucket_size") or str(_BUCKET_BYTES))
        return CacheFacts(max(logical, block), 0, cache_bytes, bucket)
    sectors = volume.mapping.block_sectors if volume.mapping else 0
    return CacheFacts(logical, sectors_to_bytes(sectors), cache_bytes)

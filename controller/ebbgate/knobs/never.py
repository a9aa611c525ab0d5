# SPDX-License-Identifier: GPL-2.0-only
"""Files and messages that ebbgate never writes and that are no settings. Pure.

bcache: drivers/md/bcache/sysfs.c and super.c; dm-cache: dm-cache-target.c.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

WITHOUT_ROW: Final[Mapping[str, str]] = {
    "attach": "puts a cache under a volume that is in use",
    "detach": "discards all cached data",
    "stop": "ends the volume or the cache set",
    "unregister": "ends the cache set",
    "flash_vol_create": "turns cache space into a volume",
    "io_disable": "makes every request fail",
    "synchronous": "makes the cache start empty when it is 0, without its dirty data",
    "errors": "may halt the machine at a cache error",
    "io_error_limit": "ends the cache set at its first error when it is 0",
    "io_error_halflife": "decides when errors end the cache set",
    "discard": "stalls writers at every freed bucket, and persists",
    "copy_gc_enabled": "copies buckets on the SSD without need",
    "cache_replacement_policy": "persists in the superblock of the SSD",
    "label": "writes the superblock of the disk",
    "running": "starts a volume without its cache",
    "clear_stats": "resets counters that others read",
    "cache_copy_throttle": "slows every dm-cache device of the machine",
    "invalidate_cblocks": "discards cached data",
}
"""Name -> why it is never written. They have no row in the catalogue."""

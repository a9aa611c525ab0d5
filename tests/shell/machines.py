# SPDX-License-Identifier: GPL-2.0-only
"""States of machines for tests/shell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.shell.recorded import UUID

# From lvm2 2.03.16 and a 6.1 kernel in the lab; the policy is `mq` with ten arguments.
VOL_LVS = (
    "data|cache|active|data_cache_cvol|4194304|0|writeback|smq|65536||data_corig(0)\n"
    "data_cache_cvol|linear|active||4194304|0|||||/dev/sdb(0)\n"
    "data_corig|linear|active||4194304|0|||||/dev/sda(0)\n"
)
POOL_LVS = (
    "data|cache|active|fast_cpool|4194304|0|writethrough|smq|131072||data_corig(0)\n"
    "fast_cpool|cache,pool|active||4194304|0|writethrough|smq|131072||fast_cpool_cdata(0)\n"
    "fast_cpool_cdata|linear|active||4194304|0|||||/dev/sdb(16)\n"
    "fast_cpool_cmeta|linear|active||4194304|0|||||/dev/sdc(8)\n"
    "data_corig|linear|active||4194304|0|||||/dev/sda(0)\n"
)
RAID_POOL_LVS = (
    "data|cache|active|fast_cpool|4194304|0|writeback|smq|131072||data_corig(0)\n"
    "fast_cpool|cache,pool|active||4194304|0|writeback|smq|131072||fast_cpool_cdata(0)\n"
    + "".join(
        f"fast_cpool_{part}|raid,raid1|active||4194304|0|||||"
        f"fast_cpool_{part}_rimage_0(0),fast_cpool_{part}_rimage_1(0)\n"
        f"fast_cpool_{part}_rimage_0|linear|active||4194304|0|||||/dev/sdb({at})\n"
        f"fast_cpool_{part}_rimage_1|linear|active||4194304|0|||||/dev/sdc({at})\n"
        for part, at in (("cdata", 16), ("cmeta", 8))
    )
    + "data_corig|linear|active||4194304|0|||||/dev/sda(0)\n"
)
"""A mirrored cache pool, as lvmcache(7) recommends for writeback."""
WRITECACHE_LVS = (
    "data|writecache|active|wc_cvol|4194304|0||||high_watermark=60,cleaner=0|data_wcorig(0)\n"
    "wc_cvol|linear|active||4194304|0|||||/dev/sdb(0)\n"
    "data_wcorig|linear|active||4194304|0|||||/dev/sda(0)\n"
)
MQ = (
    "mq 10 random_threshold 0 sequential_threshold 0 discard_promote_adjustment 0 "
    "read_promote_adjustment 0 write_promote_adjustment 0"
)
STATUS = "0 1048576 cache 8 43/2048 128 500/3968 7 3 20 9 1 512 480 "
WRITEBACK = f"{STATUS}2 metadata2 writeback 2 migration_threshold 2048 {MQ} rw -\n"
THROUGH = f"{STATUS}2 metadata2 writethrough 2 migration_threshold 2048 smq 0 rw -\n"
CORE = "2 migration_threshold 2048"
BROKEN = f"{STATUS}3 metadata2 writeback no_discard_passdown {CORE} {MQ} ro needs_check\n"
WRITECACHE = "0 1048576 writecache 0 65280 57280 12 10 4 8000 5 6 7 8000 0 1 0\n"
TABLE = "vg-data: 0 1048576 cache 253:3 253:2 253:4 128 2 metadata2 writeback mq 0\n"
PARTITION = {
    "dev/block/8:17": "-> /block/sdb/sdb1",
    "block/sdb/sdb1/partition": "1\n",
    "block/sdb/sdb1/dev": "8:17\n",
}
SUPERBLOCK = "0x1018,bcache\n"
BACKING_SUPERBLOCK = (
    "sb.version\t\t1 [backing device]\ndev.sectors_per_block\t8\n"
    "dev.data.cache_mode\t1 [writeback]\ndev.data.cache_state\t0 [detached]\n"
)
CACHE_SUPERBLOCK = f"sb.version\t\t3 [cache device]\ncset.uuid\t\t{UUID}\n"
_KNOBS = {
    "state": "dirty",
    "dirty_data": "63.9M",
    "cache_mode": "writethrough [writeback] writearound none",
    "writeback_percent": "10",
    "writeback_delay": "30",
    "writeback_running": "1",
}
_BACKING = "block/sda/bcache"
SET = f"fs/bcache/{UUID}"
INDEX = f"kernel/debug/bcache/bcache-{UUID}"
# /dev/sda as bcache0, cached by /dev/sdb; from a 6.1 kernel in the lab.
BCACHE_TREE = {
    **{f"{_BACKING}/{name}": f"{text}\n" for name, text in _KNOBS.items()},
    **{f"{_BACKING}/{name}": "" for name in ("attach", "detach", "stop")},
    f"{_BACKING}/cache": f"-> /{SET}",
    f"{_BACKING}/dev": "-> /block/bcache0",
    "block/bcache0/bcache": f"-> /{_BACKING}",
    "block/sdb/bcache/set": f"-> /{SET}",
    f"{SET}/unregister": "",
    f"{SET}/block_size": "0.5k\n",
    f"{SET}/cache0": "-> /block/sdb/bcache",
    f"{SET}/bdev0": f"-> /{_BACKING}",
    INDEX: "0:16 len 512 -> [0:46080 gen 1] dirty\n0:528 len 8 -> [0:47104 gen 1]\n",
}
BCACHE: dict[str, Any] = {
    "sysfs": BCACHE_TREE,
    "signatures": {"sda": SUPERBLOCK, "sdb": SUPERBLOCK},
    "superblocks": {
        "sda": BACKING_SUPERBLOCK.replace("0 [detached]", "2 [dirty]"),
        "sdb": CACHE_SUPERBLOCK,
    },
}
# /dev/sda as bcache0 without a cache.
NO_CACHE: dict[str, Any] = {
    "sysfs": {
        f"{_BACKING}/state": "no cache\n",
        f"{_BACKING}/cache_mode": "[writethrough] writeback writearound none\n",
        **{f"{_BACKING}/{name}": "" for name in ("attach", "detach", "stop")},
        f"{_BACKING}/dev": "-> /block/bcache0",
        "block/bcache0/bcache": f"-> /{_BACKING}",
    },
    "signatures": {"sda": SUPERBLOCK},
    "superblocks": {"sda": BACKING_SUPERBLOCK},
}

DM_TREE = {
    f"class/block/dm-{number}/dm/name": f"{name}\n"
    for number, name in enumerate(
        ("vg-data", "vg-fast_cvol", "vg-fast_cvol-cdata", "vg-fast_cvol-cmeta", "vg-data_corig")
    )
} | {
    "class/block/dm-4/slaves/sda/x": "",
    "class/block/dm-2/slaves/dm-1/x": "",
    "class/block/dm-3/slaves/dm-1/x": "",
    "class/block/dm-1/slaves/sdb/x": "",
    **{f"dev/block/253:{number}": f"-> dm-{number}" for number in range(5)},
}
NAMES = "vg|data\nvg|[fast_cvol]\nvg|[data_corig]\n"
STACK: dict[str, Any] = {"dm_table": TABLE, "lvs": NAMES, "sysfs": DM_TREE}


@dataclass(frozen=True)
class Scenario:
    """One script that succeeds on one machine."""

    argv: tuple[str, ...]
    machine: Mapping[str, Any] = field(default_factory=dict)


def scenario(command: str, **machine: Any) -> Scenario:
    """Return a scenario; `machine`: the fields in which the machine differs."""
    return Scenario(tuple(command.split()), machine)


_OTHER_ON_SSD = "other|linear|active||4194304|0|||||/dev/sdb(500)\n"
SSD_PV = "8|16|vg|4194304|25599|0\n"
SSD_UNUSED = "fast|linear|||4194304|0|||||/dev/sdb(0)\n"
PLAIN = "data|linear|active||4194304|0|||||/dev/sda(0)\n"
WRITECACHE_TABLE = "0 1048576 writecache s 253:2 253:1 4096 2 high_watermark 60\n"
_TWO_SIGNATURES = {"sdb": "0x1fe,dos\n0x438,ext4\n"}
_PV_SIGNATURE = {"sdb": "0x218,LVM2_member\n"}
_ATTACHED: dict[str, Any] = {"pvs": "8|16|vg|4194304|25599|100\n", "signatures": _PV_SIGNATURE}
_WRITECACHE: dict[str, Any] = {
    **_ATTACHED,
    "lvs": WRITECACHE_LVS,
    "dm_status": WRITECACHE,
    "dm_table": WRITECACHE_TABLE,
}
_DMCACHE: dict[str, Any] = {
    **_ATTACHED,
    "lvs": VOL_LVS,
    "dm_status": WRITEBACK,
    "dm_table": TABLE.removeprefix("vg-data: "),
}
_POOL = {**_DMCACHE, "lvs": POOL_LVS, "dm_status": THROUGH}
_SHARED = {**_DMCACHE, "lvs": VOL_LVS + _OTHER_ON_SSD}
_ATTACH = "lvmcache-attach --yes --mode writeback"
_ADDED_USER = {**BCACHE_TREE, f"{SET}/bdev1": "-> /block/sdc/bcache", "block/sdc/bcache/x": ""}

SCENARIOS: Mapping[str, Scenario] = {
    "lvmcache-attach": scenario(f"{_ATTACH} vg/data /dev/sdb"),
    "lvmcache-attach-force": scenario(
        f"{_ATTACH} --force vg/data /dev/sdb", signatures=_TWO_SIGNATURES
    ),
    "lvmcache-attach-pool": scenario(
        f"{_ATTACH} --cachepool --size 20g vg/data /dev/sdb", pvs=SSD_PV, signatures=_PV_SIGNATURE
    ),
    "lvmcache-attach-again": scenario(f"{_ATTACH} --cache-lv fast vg/data", lvs=PLAIN + SSD_UNUSED),
    "lvmcache-detach": scenario("lvmcache-detach --yes vg/data", **_POOL),
    "lvmcache-detach-free": scenario("lvmcache-detach --yes --free vg/data", **_DMCACHE),
    "lvmcache-detach-shared": scenario("lvmcache-detach --yes --free vg/data", **_SHARED),
    "writecache-attach": scenario(
        "writecache-attach --yes --setting high_watermark=60 vg/data /dev/sdb"
    ),
    "writecache-attach-force": scenario(
        "writecache-attach --yes --force vg/data /dev/sdb", signatures=_TWO_SIGNATURES
    ),
    "writecache-detach-free": scenario("writecache-detach --yes --free vg/data", **_WRITECACHE),
    "bcache-attach": scenario("bcache-attach --yes --mode writeback /dev/sda /dev/sdb"),
    "bcache-attach-force": scenario(
        "bcache-attach --yes --force /dev/sda /dev/sdb",
        signatures={"sda": "0x0,xfs\n", **_TWO_SIGNATURES},
    ),
    "bcache-attach-running": scenario(
        "bcache-attach --yes --mode writearound /dev/sda /dev/sdb", **NO_CACHE
    ),
    "bcache-attach-made": scenario(
        "bcache-attach --yes /dev/sda /dev/sdb",
        signatures={"sda": SUPERBLOCK},
        superblocks={"sda": BACKING_SUPERBLOCK},
    ),
    "bcache-detach": scenario("bcache-detach --yes bcache0", **BCACHE),
    "bcache-detach-free": scenario("bcache-detach --yes --free /dev/sda", **BCACHE),
    "bcache-detach-shared": scenario(
        "bcache-detach --yes --free bcache0", **{**BCACHE, "sysfs": _ADDED_USER}
    ),
}

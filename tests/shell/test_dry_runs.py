# SPDX-License-Identifier: GPL-2.0-only
"""What the scripts print before they change anything: commands, refusals, state."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.shell.recorded import GIB, REPO, UUID, Machine

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("EBBGATE_UPDATE_GOLDEN", "") not in ("", "0")
SCRIPTS = (
    *("lvmcache-attach", "lvmcache-detach", "writecache-attach", "writecache-detach"),
    *("bcache-attach", "bcache-detach", "stack-status"),
)

# As lvm2 2.03.16 and a 6.1 kernel gave them in the lab; the policy is `mq` with ten arguments.
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
BCACHE = {
    f"block/bcache0/bcache/{name}": f"{text}\n"
    for name, text in {
        "state": "dirty",
        "dirty_data": "63.9M",
        "cache_mode": "writethrough [writeback] writearound none",
        "writeback_percent": "10",
        "writeback_delay": "30",
        "writeback_running": "1",
        "cache/cache0/x": "",
    }.items()
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
STACK = {"dm_table": TABLE, "lvs": NAMES, "sysfs": DM_TREE}

CASES: Mapping[str, tuple[list[str], dict[str, Any]]] = {
    "lvmcache-attach": (["lvmcache-attach", "-n", "vg/data", "/dev/sdb"], {}),
    "lvmcache-attach-large": (
        ["lvmcache-attach", "-n", "--mode", "writeback", "vg/data", "/dev/sdb"],
        {"ssd_bytes": 1024 * GIB},
    ),
    "lvmcache-attach-pool-on-a-pv": (
        ["lvmcache-attach", "-n", "--cachepool", "--size", "20g", "vg/data", "/dev/sdb"],
        {"pvs": "vg|4194304|25599|0\n"},
    ),
    "lvmcache-attach-force": (
        ["lvmcache-attach", "-n", "--force", "vg/data", "/dev/sdb"],
        {"signatures": "# TYPE\nxfs\n"},
    ),
    "lvmcache-attach-signature": (
        ["lvmcache-attach", "-n", "vg/data", "/dev/sdb"],
        {"signatures": "# TYPE\nxfs\n"},
    ),
    "lvmcache-attach-mounted": (
        ["lvmcache-attach", "-n", "--force", "vg/data", "/dev/sdb"],
        {"mounts": "/srv\n"},
    ),
    "lvmcache-attach-held": (
        ["lvmcache-attach", "-n", "--force", "vg/data", "/dev/sdb"],
        {"sysfs": {"class/block/sdb/sdb1/holders/md0": "", "class/block/sdb/sdb1/bcache": ""}},
    ),
    "lvmcache-attach-foreign-pv": (
        ["lvmcache-attach", "-n", "--force", "vg/data", "/dev/sdb"],
        {"pvs": "other|4194304|25599|100\n"},
    ),
    "lvmcache-attach-chunks": (
        ["lvmcache-attach", "-n", "--chunk", "64k", "vg/data", "/dev/sdb"],
        {"ssd_bytes": 1024 * GIB},
    ),
    "lvmcache-attach-twice": (
        ["lvmcache-attach", "-n", "vg/data", "/dev/sdb"],
        {"lvs": VOL_LVS},
    ),
    "lvmcache-attach-no-volume": (["lvmcache-attach", "-n", "vg/nix", "/dev/sdb"], {}),
    "lvmcache-attach-no-device": (["lvmcache-attach", "-n", "vg/data", "/dev/nothing"], {}),
    "lvmcache-attach-unconfirmed": (["lvmcache-attach", "vg/data", "/dev/sdb"], {}),
    "lvmcache-attach-missing-pv": (
        ["lvmcache-attach", "-n", "vg/data", "/dev/sdb"],
        {"lvs": "data|linear|active||4194304|1|||||/dev/sda(0)\n"},
    ),
    "lvmcache-attach-again": (
        ["lvmcache-attach", "-n", "--cache-lv", "fast", "vg/data"],
        {
            "lvs": "data|linear|active||4194304|0|||||/dev/sda(0)\n"
            "fast|linear|||4194304|0|||||/dev/sdb(0)\n"
        },
    ),
    "lvmcache-detach-free": (
        ["lvmcache-detach", "-n", "--free", "vg/data"],
        {"lvs": VOL_LVS, "dm_status": WRITEBACK},
    ),
    "lvmcache-detach-pool": (
        ["lvmcache-detach", "-n", "vg/data"],
        {"lvs": POOL_LVS, "dm_status": THROUGH},
    ),
    "lvmcache-detach-needs-check": (
        ["lvmcache-detach", "-n", "vg/data"],
        {"lvs": VOL_LVS, "dm_status": BROKEN},
    ),
    "lvmcache-detach-fail": (
        ["lvmcache-detach", "-n", "vg/data"],
        {"lvs": VOL_LVS, "dm_status": "0 1048576 cache Fail\n"},
    ),
    "lvmcache-detach-no-cache": (["lvmcache-detach", "-n", "vg/data"], {}),
    "writecache-attach": (["writecache-attach", "-n", "vg/data", "/dev/sdb"], {}),
    "writecache-attach-sectors": (
        ["writecache-attach", "-n", "--setting", "high_watermark=60", "vg/data", "/dev/sdb"],
        {"blkid": "512\n"},
    ),
    "writecache-attach-memory": (
        ["writecache-attach", "-n", "--block-size", "512", "--size", "90g", "vg/data", "/dev/sdb"],
        {},
    ),
    "writecache-attach-unknown": (
        ["writecache-attach", "-n", "vg/data", "/dev/sdb"],
        {"blkid": ""},
    ),
    "writecache-detach": (
        ["writecache-detach", "-n", "--remove", "vg/data"],
        {
            "lvs": WRITECACHE_LVS,
            "dm_status": WRITECACHE,
            "dm_table": "0 1048576 writecache s 253:2 253:1 4096 2 high_watermark 60\n",
        },
    ),
    "bcache-attach": (["bcache-attach", "-n", "/dev/sda", "/dev/sdb"], {}),
    "bcache-attach-erase-block": (
        [
            "bcache-attach",
            "-n",
            "--erase-block",
            "2m",
            "--mode",
            "writeback",
            "/dev/sda",
            "/dev/sdb",
        ],
        {},
    ),
    "bcache-attach-small": (
        ["bcache-attach", "-n", "/dev/sda", "/dev/sdb"],
        {"ssd_bytes": GIB // 4},
    ),
    "bcache-attach-buckets": (
        ["bcache-attach", "-n", "--bucket", "1m", "/dev/sda", "/dev/sdb"],
        {"ssd_bytes": GIB // 4},
    ),
    "bcache-attach-to-running": (
        ["bcache-attach", "-n", "/dev/sda", "/dev/sdb"],
        {
            "sysfs": {"class/block/sda/bcache/state": "no cache\n"},
            "superblock": "dev.sectors_per_block\t8\n",
        },
    ),
    "bcache-attach-file-system": (
        ["bcache-attach", "-n", "/dev/sda", "/dev/sdb"],
        {"signatures": "# TYPE\next4\n"},
    ),
    "bcache-detach-no-volume": (["bcache-detach", "-n", "/dev/sda"], {}),
    "stack-status": (["stack-status"], {"dm_status": WRITEBACK, **STACK}),
    "stack-status-needs-check": (
        ["stack-status"],
        {"dm_status": BROKEN, **STACK},
    ),
    "stack-status-fail-json": (
        ["stack-status", "--json"],
        {"dm_status": "0 1048576 cache Fail\n", **STACK},
    ),
    "stack-status-none": (["stack-status", "vg/nix"], {"lvs": ""}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_printed_is_as_it_was_reviewed(name: str, tmp_path: Path) -> None:
    argv, differs = CASES[name]
    text = Machine(tmp_path, **differs).run(*argv)
    golden = GOLDEN / f"{name}.golden"
    if UPDATE:
        golden.write_text(text)
    assert text == golden.read_text(), "review the change, then make test-shell UPDATE=1"


def test_every_golden_text_has_its_case() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(CASES)


def test_bcache_knobs_are_borrowed_and_given_back(tmp_path: Path) -> None:
    machine = Machine(tmp_path, sysfs=BCACHE)
    backing = tmp_path / "sys/block/sda/bcache"
    machine.file("sys/block/bcache0/bcache/state", "dirty\n").parent.parent.rename(
        tmp_path / "sys/block/sda"
    )
    machine.sysfs = {
        path.replace("bcache0", "sda").replace("cache/cache0/x", "state2"): text
        for path, text in BCACHE.items()
    }
    cache = machine.file(f"sys/fs/bcache/{UUID}/x", "").parent
    (tmp_path / "sys/block/sdb/bcache").mkdir(parents=True)
    (cache / "cache0").symlink_to(tmp_path / "sys/block/sdb/bcache")
    backing.mkdir(parents=True, exist_ok=True)
    (backing / "cache").symlink_to(cache)
    volume = tmp_path / "sys/class/block/bcache0"
    volume.mkdir(parents=True)
    (volume / "bcache").symlink_to(backing)
    lines = machine.run("bcache-detach", "-n", "--free", "/dev/bcache0").splitlines()
    knobs = "/sys/block/sda/bcache"
    assert lines[1:] == [
        f"echo writethrough > {knobs}/cache_mode",
        f"echo 0 > {knobs}/writeback_delay",
        f"echo 0 > {knobs}/writeback_percent",
        f"echo 1 > {knobs}/writeback_running",
        f"# wait: {knobs}/state: until it is clean",
        f"echo 1 > {knobs}/detach",
        f"# wait: {knobs}/state: until it is 'no cache'",
        f"echo writeback > {knobs}/cache_mode",
        f"echo 30 > {knobs}/writeback_delay",
        f"echo 10 > {knobs}/writeback_percent",
        f"echo 1 > /sys/fs/bcache/{UUID}/unregister",
        "wipefs --all /dev/sdb",
        "# to undo: lvm-scripts/bcache-attach --yes --mode writeback /dev/sda /dev/sdb",
        "exit 0",
    ]


@pytest.mark.parametrize("script", ["lvmcache-attach", "lvmcache-detach", "writecache-attach"])
def test_a_lock_that_lvm_does_not_let_go_is_named(script: str, tmp_path: Path) -> None:
    with (tmp_path / "V_vg").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        device = ["/dev/sdb"] if "attach" in script else []
        text = Machine(tmp_path).run(script, "-n", "vg/data", *device)
    assert f"another command of LVM holds the lock of vg\n  fuser -v {lock.name} names it" in text
    assert text.endswith("exit 69\n")


@pytest.mark.parametrize(
    ("argv", "program", "package"),
    [
        (("lvmcache-attach", "-n", "vg/data", "/dev/sdb"), "dmsetup", "dmsetup"),
        (("lvmcache-attach", "-n", "vg/data", "/dev/sdb"), "lvconvert", "lvm2"),
        (("lvmcache-detach", "-n", "vg/data"), "dmsetup", "dmsetup"),
        (("lvmcache-detach", "-n", "vg/data"), "cache_check", "thin-provisioning-tools"),
        (("writecache-attach", "-n", "vg/data", "/dev/sdb"), "dmsetup", "dmsetup"),
        (("writecache-detach", "-n", "vg/data"), "lvs", "lvm2"),
        (("bcache-attach", "-n", "/dev/sda", "/dev/sdb"), "make-bcache", "bcache-tools"),
        (("bcache-detach", "-n", "bcache0"), "bcache-super-show", "bcache-tools"),
    ],
)
def test_a_program_that_is_missing_is_named_with_its_package(
    argv: tuple[str, ...], program: str, package: str, tmp_path: Path
) -> None:
    text = Machine(tmp_path, without=program).run(*argv)
    assert f"{program} is not installed\n  install the package {package}\nexit 69\n" in text


@pytest.mark.parametrize(("device", "code"), [("dm-0", 69), ("sda", 0)])
def test_the_state_of_mapped_volumes_is_not_left_out_in_silence(
    device: str, code: int, tmp_path: Path
) -> None:
    text = Machine(tmp_path, without="dmsetup", sysfs={f"block/{device}/size": "8\n"}).run(
        "stack-status"
    )
    assert text.endswith(f"exit {code}\n")
    assert ("dmsetup is not installed" in text) is (code == 69)


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_names_every_option(script: str, tmp_path: Path) -> None:
    source = (REPO / "lvm-scripts" / script).read_text()
    text = Machine(tmp_path).run(script, "--help")
    options = {
        word.strip()
        for line in source.splitlines()
        if line.strip().startswith("--") and ") " in line
        for word in line.split(")")[0].split("|")
    }
    assert "exit 0" in text
    assert [option for option in options if option not in text] == []


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_unknown_option_is_a_wrong_command_line(script: str, tmp_path: Path) -> None:
    assert "exit 64" in Machine(tmp_path).run(script, "--nonsense")

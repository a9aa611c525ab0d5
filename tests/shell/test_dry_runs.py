# SPDX-License-Identifier: GPL-2.0-only
"""Output of dry runs, refusals and stack-status."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.shell.machines import (
    BCACHE,
    BROKEN,
    NO_CACHE,
    POOL_LVS,
    STACK,
    THROUGH,
    VOL_LVS,
    WRITEBACK,
    WRITECACHE,
    WRITECACHE_LVS,
)
from tests.shell.recorded import GIB, REPO, UUID, Machine

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("EBBGATE_UPDATE_GOLDEN", "") not in ("", "0")
SCRIPTS = (
    *("lvmcache-attach", "lvmcache-detach", "writecache-attach", "writecache-detach"),
    *("bcache-attach", "bcache-detach", "stack-status"),
)

CASES: Mapping[str, tuple[list[str], dict[str, Any]]] = {
    "lvmcache-attach": (["lvmcache-attach", "-n", "vg/data", "/dev/sdb"], {}),
    "lvmcache-attach-large": (
        ["lvmcache-attach", "-n", "--mode", "writeback", "vg/data", "/dev/sdb"],
        {"ssd_bytes": 1024 * GIB},
    ),
    "lvmcache-attach-pool-on-a-pv": (
        ["lvmcache-attach", "-n", "--cachepool", "--size", "20g", "vg/data", "/dev/sdb"],
        {"pvs": "8|16|vg|4194304|25599|0\n"},
    ),
    "lvmcache-attach-force": (
        ["lvmcache-attach", "-n", "--force", "vg/data", "/dev/sdb"],
        {"signatures": {"sdb": "0x0,xfs\n"}},
    ),
    "lvmcache-attach-signature": (
        ["lvmcache-attach", "-n", "vg/data", "/dev/sdb"],
        {"signatures": {"sdb": "0x0,xfs\n"}},
    ),
    "lvmcache-attach-mounted": (
        ["lvmcache-attach", "-n", "--force", "vg/data", "/dev/sdb"],
        {"mounts": {"8:16": "/srv"}},
    ),
    "lvmcache-attach-held": (
        ["lvmcache-attach", "-n", "--force", "vg/data", "/dev/sdb"],
        {
            "sysfs": {
                "block/sdb/sdb1/dev": "8:17\n",
                "block/sdb/sdb1/holders/md0": "",
                "block/sdb/sdb1/bcache": "",
            }
        },
    ),
    "lvmcache-attach-foreign-pv": (
        ["lvmcache-attach", "-n", "--force", "vg/data", "/dev/sdb"],
        {"pvs": "8|16|other|4194304|25599|100\n"},
    ),
    "lvmcache-attach-chunks": (
        ["lvmcache-attach", "-n", "--chunk", "64k", "vg/data", "/dev/sdb"],
        {"ssd_bytes": 1024 * GIB},
    ),
    "lvmcache-attach-twice": (["lvmcache-attach", "-n", "vg/data", "/dev/sdb"], {"lvs": VOL_LVS}),
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
    "bcache-attach-to-running": (["bcache-attach", "-n", "/dev/sda", "/dev/sdb"], NO_CACHE),
    "bcache-attach-file-system": (
        ["bcache-attach", "-n", "/dev/sda", "/dev/sdb"],
        {"signatures": {"sda": "0x438,ext4\n"}},
    ),
    "bcache-detach-no-volume": (["bcache-detach", "-n", "/dev/sda"], {}),
    "stack-status": (["stack-status"], {"dm_status": WRITEBACK, **STACK}),
    "stack-status-needs-check": (["stack-status"], {"dm_status": BROKEN, **STACK}),
    "stack-status-fail-json": (
        ["stack-status", "--json"],
        {"dm_status": "0 1048576 cache Fail\n", **STACK},
    ),
    "stack-status-none": (["stack-status", "vg/nix"], {"lvs": ""}),
}


@pytest.mark.parametrize("name", CASES)
def test_output_equals_the_golden_text(name: str, tmp_path: Path) -> None:
    argv, differs = CASES[name]
    text = Machine(tmp_path, **differs).run(*argv)
    golden = GOLDEN / f"{name}.golden"
    if UPDATE:
        golden.write_text(text)
    assert text == golden.read_text(), "review the change, then make test-shell UPDATE=1"


def test_every_golden_text_has_a_case() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(CASES)


def test_bcache_detach_restores_the_knobs_that_it_sets(tmp_path: Path) -> None:
    machine = Machine(tmp_path, **BCACHE)
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
        "wipefs --offset 0x1018 --types bcache /dev/sdb",
        "# to undo: lvm-scripts/bcache-attach --yes --mode writeback /dev/sda /dev/sdb",
        "exit 0",
    ]


@pytest.mark.parametrize("script", ["lvmcache-attach", "lvmcache-detach", "writecache-attach"])
def test_a_script_names_the_lvm_lock_that_it_cannot_get(script: str, tmp_path: Path) -> None:
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
def test_a_missing_program_is_named_with_its_package(
    argv: tuple[str, ...], program: str, package: str, tmp_path: Path
) -> None:
    text = Machine(tmp_path, without=program).run(*argv)
    assert f"{program} is not installed\n  install the package {package}\nexit 69\n" in text


@pytest.mark.parametrize(("device", "code"), [("dm-0", 69), ("sda", 0)])
def test_stack_status_needs_dmsetup_only_if_there_are_dm_volumes(
    device: str, code: int, tmp_path: Path
) -> None:
    text = Machine(tmp_path, without="dmsetup", sysfs={f"block/{device}/size": "8\n"}).run(
        "stack-status"
    )
    assert text.endswith(f"exit {code}\n")
    assert ("dmsetup is not installed" in text) is (code == 69)


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_lists_every_option(script: str, tmp_path: Path) -> None:
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

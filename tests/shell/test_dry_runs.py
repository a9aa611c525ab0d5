# SPDX-License-Identifier: GPL-2.0-only
"""Output of dry runs, refusals and stack-status."""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.golden import check_golden
from tests.shell.machines import (
    BCACHE,
    BROKEN,
    NO_CACHE,
    PLAIN,
    POOL_LVS,
    SSD_PV,
    SSD_UNUSED,
    STACK,
    THROUGH,
    VOL_LVS,
    WRITEBACK,
    WRITECACHE,
    WRITECACHE_LVS,
    WRITECACHE_TABLE,
    Scenario,
    scenario,
)
from tests.shell.recorded import GIB, REPO, UUID, Machine

GOLDEN = Path(__file__).parent / "golden"
SCRIPTS = (
    *("lvmcache-attach", "lvmcache-detach", "writecache-attach", "writecache-detach"),
    *("bcache-attach", "bcache-detach", "stack-status"),
)

ATTACH = "lvmcache-attach -n vg/data /dev/sdb"
FORCE = "lvmcache-attach -n --force vg/data /dev/sdb"
BCACHE_ATTACH = "bcache-attach -n /dev/sda /dev/sdb"
FAILED = "0 1048576 cache Fail\n"
HELD = {
    "block/sdb/sdb1/dev": "8:17\n",
    "block/sdb/sdb1/holders/md0": "",
    "block/sdb/sdb1/bcache": "",
}

CASES: Mapping[str, Scenario] = {
    "lvmcache-attach": scenario(ATTACH),
    "lvmcache-attach-large": scenario(
        "lvmcache-attach -n --mode writeback vg/data /dev/sdb", ssd_bytes=1024 * GIB
    ),
    "lvmcache-attach-pool-on-a-pv": scenario(
        "lvmcache-attach -n --cachepool --size 20g vg/data /dev/sdb", pvs=SSD_PV
    ),
    "lvmcache-attach-force": scenario(FORCE, signatures={"sdb": "0x0,xfs\n"}),
    "lvmcache-attach-signature": scenario(ATTACH, signatures={"sdb": "0x0,xfs\n"}),
    "lvmcache-attach-mounted": scenario(FORCE, mounts={"8:16": "/srv"}),
    "lvmcache-attach-held": scenario(FORCE, sysfs=HELD),
    "lvmcache-attach-foreign-pv": scenario(FORCE, pvs="8|16|other|4194304|25599|100\n"),
    "lvmcache-attach-chunks": scenario(
        "lvmcache-attach -n --chunk 64k vg/data /dev/sdb", ssd_bytes=1024 * GIB
    ),
    "lvmcache-attach-twice": scenario(ATTACH, lvs=VOL_LVS),
    "lvmcache-attach-no-volume": scenario("lvmcache-attach -n vg/nix /dev/sdb"),
    "lvmcache-attach-no-device": scenario("lvmcache-attach -n vg/data /dev/nothing"),
    "lvmcache-attach-unconfirmed": scenario("lvmcache-attach vg/data /dev/sdb"),
    "lvmcache-attach-missing-pv": scenario(ATTACH, lvs=PLAIN.replace("4194304|0", "4194304|1")),
    "lvmcache-attach-again": scenario(
        "lvmcache-attach -n --cache-lv fast vg/data", lvs=PLAIN + SSD_UNUSED
    ),
    "lvmcache-detach-free": scenario(
        "lvmcache-detach -n --free vg/data", lvs=VOL_LVS, dm_status=WRITEBACK
    ),
    "lvmcache-detach-pool": scenario("lvmcache-detach -n vg/data", lvs=POOL_LVS, dm_status=THROUGH),
    "lvmcache-detach-needs-check": scenario(
        "lvmcache-detach -n vg/data", lvs=VOL_LVS, dm_status=BROKEN
    ),
    "lvmcache-detach-fail": scenario("lvmcache-detach -n vg/data", lvs=VOL_LVS, dm_status=FAILED),
    "lvmcache-detach-no-cache": scenario("lvmcache-detach -n vg/data"),
    "writecache-attach": scenario("writecache-attach -n vg/data /dev/sdb"),
    "writecache-attach-sectors": scenario(
        "writecache-attach -n --setting high_watermark=60 vg/data /dev/sdb", blkid="512\n"
    ),
    "writecache-attach-memory": scenario(
        "writecache-attach -n --block-size 512 --size 90g vg/data /dev/sdb"
    ),
    "writecache-attach-unknown": scenario("writecache-attach -n vg/data /dev/sdb", blkid=""),
    "writecache-detach": scenario(
        "writecache-detach -n --remove vg/data",
        lvs=WRITECACHE_LVS,
        dm_status=WRITECACHE,
        dm_table=WRITECACHE_TABLE,
    ),
    "bcache-attach": scenario(BCACHE_ATTACH),
    "bcache-attach-erase-block": scenario(
        "bcache-attach -n --erase-block 2m --mode writeback /dev/sda /dev/sdb"
    ),
    "bcache-attach-small": scenario(BCACHE_ATTACH, ssd_bytes=GIB // 4),
    "bcache-attach-buckets": scenario(
        "bcache-attach -n --bucket 1m /dev/sda /dev/sdb", ssd_bytes=GIB // 4
    ),
    "bcache-attach-to-running": scenario(BCACHE_ATTACH, **NO_CACHE),
    "bcache-attach-file-system": scenario(BCACHE_ATTACH, signatures={"sda": "0x438,ext4\n"}),
    "bcache-detach-no-volume": scenario("bcache-detach -n /dev/sda"),
    "stack-status": scenario("stack-status", dm_status=WRITEBACK, **STACK),
    "stack-status-needs-check": scenario("stack-status", dm_status=BROKEN, **STACK),
    "stack-status-fail-json": scenario("stack-status --json", dm_status=FAILED, **STACK),
    "stack-status-none": scenario("stack-status vg/nix", lvs=""),
}


@pytest.mark.parametrize("name", CASES)
def test_output_equals_the_golden_text(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    text = Machine(tmp_path, **case.machine).run(*case.argv)
    check_golden(GOLDEN / f"{name}.golden", text, "make test-shell UPDATE=1")


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
        "# to undo: lvm-scripts/bcache-attach --yes --mode writeback --block 512 /dev/sda /dev/sdb",
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
    ("command", "program", "package"),
    [
        (ATTACH, "dmsetup", "dmsetup"),
        (ATTACH, "lvconvert", "lvm2"),
        ("lvmcache-detach -n vg/data", "dmsetup", "dmsetup"),
        ("lvmcache-detach -n vg/data", "cache_check", "thin-provisioning-tools"),
        ("writecache-attach -n vg/data /dev/sdb", "dmsetup", "dmsetup"),
        ("writecache-detach -n vg/data", "lvs", "lvm2"),
        (BCACHE_ATTACH, "make-bcache", "bcache-tools"),
        ("bcache-detach -n bcache0", "bcache-super-show", "bcache-tools"),
    ],
)
def test_a_missing_program_is_named_with_its_package(
    command: str, program: str, package: str, tmp_path: Path
) -> None:
    text = Machine(tmp_path, without=program).run(*command.split())
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

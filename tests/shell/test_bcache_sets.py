# SPDX-License-Identifier: GPL-2.0-only
"""Cache sets of bcache that are absent, or whose blocks do not fit."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.shell.machines import (
    BACKING_SUPERBLOCK,
    BCACHE,
    BCACHE_TREE,
    NO_CACHE,
    SET,
    SUPERBLOCK,
)
from tests.shell.recorded import UUID, Machine, refused

ATTACH = ("bcache-attach", "--yes", "/dev/sda", "/dev/sdb")
RUNNING = {
    "block/sdb/bcache/set": f"-> /{SET}",
    f"{SET}/block_size": "4.0k\n",
    f"{SET}/unregister": "",
    f"{SET}/cache0": "-> /block/sdb/bcache",
}


# ---- the set is absent: its cache device failed, or is registered later -------------------------


def without_its_set(tmp_path: Path, state: str) -> Machine:
    """Return a machine with a backing device that is registered, and not its cache device."""
    gone = (SET, "block/sdb", "kernel", "block/sda/bcache/cache")
    tree = {path: text for path, text in BCACHE_TREE.items() if not path.startswith(gone)}
    tree["block/sda/bcache/cache_mode"] = "writethrough [writeback] writearound none\n"
    tree["block/sda/bcache/state"] = f"{state}\n"
    superblock = BACKING_SUPERBLOCK.replace("0 [detached]", f"1 [{state}]")
    return Machine(
        tmp_path, sysfs=tree, signatures={"sda": SUPERBLOCK}, superblocks={"sda": superblock}
    )


@pytest.mark.parametrize("state", ["clean", "dirty"])
def test_nothing_is_detached_from_a_set_that_is_not_registered(state: str, tmp_path: Path) -> None:
    """The kernel would ignore the detach, and the dirty data would never get less."""
    machine = without_its_set(tmp_path, state)
    argv = ("bcache-detach", "--yes", "--timeout", "1", "/dev/sda")
    refused(machine, argv, "the cache set of /dev/sda is not registered; nothing was changed", 69)


@pytest.mark.parametrize("state", ["clean", "dirty", "inconsistent"])
def test_an_attach_names_the_set_that_is_not_registered(state: str, tmp_path: Path) -> None:
    text = "the cache set of /dev/sda is not registered; nothing was changed\n  register its cache"
    machine = without_its_set(tmp_path, state)
    refused(machine, ATTACH, text, 69)
    replaced = "echo 1 > /sys/block/sda/bcache/stop; then bcache-attach /dev/sda NEW_CACHE"
    assert (replaced in machine.run(*ATTACH)) == (state == "clean")


# ---- blocks --------------------------------------------------------------------------------------


def test_a_new_backing_device_gets_blocks_as_large_as_those_of_the_set(tmp_path: Path) -> None:
    """The kernel refuses smaller ones: "block size less than set's block size"."""
    machine = Machine(tmp_path, sysfs=RUNNING, signatures={"sdb": SUPERBLOCK})
    assert machine.run(*ATTACH).endswith("exit 0\n")
    assert machine.steps()[0] == "make-bcache --bdev --block 4k /dev/sda"


def test_blocks_smaller_than_those_of_the_set_are_refused_before_anything_is_lost(
    tmp_path: Path,
) -> None:
    signatures = {"sda": "0x438,ext4\n", "sdb": SUPERBLOCK}
    machine = Machine(tmp_path, sysfs=RUNNING, signatures=signatures)
    argv = (*ATTACH[:2], "--force", "--block", "512", *ATTACH[2:])
    refused(machine, argv, "/dev/sda would have blocks of 512 B, and the set has blocks of 4 KiB")


def test_a_backing_device_with_blocks_smaller_than_those_of_the_set_is_refused(
    tmp_path: Path,
) -> None:
    machine = Machine(
        tmp_path,
        sysfs={**NO_CACHE["sysfs"], **RUNNING},
        signatures={"sda": SUPERBLOCK, "sdb": SUPERBLOCK},
        superblocks={"sda": BACKING_SUPERBLOCK.replace("block\t8", "block\t1")},
    )
    refused(machine, ATTACH, "/dev/sda would have blocks of 512 B")


@pytest.mark.parametrize("size", ["", "???\n", "0.0k\n"])
def test_a_set_whose_block_size_cannot_be_read_is_refused(size: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, sysfs={**RUNNING, f"{SET}/block_size": size})
    refused(machine, ATTACH, f"a check failed: /sys/fs/bcache/{UUID}/block_size is", 69)


@pytest.mark.parametrize("block", ["3k", "256k", "64k", "1536"])
def test_blocks_that_the_kernel_refuses_are_refused_before_the_first_step(
    block: str, tmp_path: Path
) -> None:
    machine = Machine(tmp_path)
    machine.install()
    tool = machine.file("bin/getconf", "#!/bin/sh\necho 4096\n")
    tool.chmod(0o755)
    argv = (*ATTACH[:2], "--block", block, *ATTACH[2:])
    refused(machine, argv, "are not possible\n  use a power of two from 512 to 4k")


def test_blocks_smaller_than_a_sector_are_refused(tmp_path: Path) -> None:
    argv = (*ATTACH[:2], "--block", "256", *ATTACH[2:])
    refused(Machine(tmp_path), argv, "blocks of 256 B are smaller than the sectors of a device")


# ---- what undoes a detach ------------------------------------------------------------------------
POLICY = "block/sdb/bcache/cache_replacement_policy"
MODE = "block/sda/bcache/cache_mode"
TUNED = {f"{SET}/bucket_size": "2.0M\n", POLICY: "lru [fifo] random\n"}


def undo_of_detach(tmp_path: Path, tree: dict[str, str], *options: str) -> tuple[Machine, str]:
    """Detach a cache; return the machine and the output of the command that undoes it."""
    machine = Machine(tmp_path, **{**BCACHE, "sysfs": {**BCACHE_TREE, **tree}})
    text = machine.run("bcache-detach", "--yes", *options, "bcache0")
    (undo,) = (line for line in text.splitlines() if line.startswith("# to undo: "))
    words = shlex.split(undo.removeprefix("# to undo: "))
    again = machine.run(Path(words[0]).name, *words[1:])
    assert again.endswith("exit 0\n"), again
    return machine, text


def test_the_undo_of_a_detach_makes_a_set_like_the_one_that_was_freed(tmp_path: Path) -> None:
    machine, _ = undo_of_detach(tmp_path, TUNED, "--free")
    (made,) = (step for step in machine.steps() if step.startswith("make-bcache"))
    assert "--bucket 2m --block 512 " in made
    assert "--cache_replacement_policy fifo" in made


def test_the_undo_names_a_policy_that_the_attach_does_not_make(tmp_path: Path) -> None:
    tree = {**TUNED, POLICY: "lru fifo [random]\n"}
    _, text = undo_of_detach(tmp_path, tree, "--free")
    assert "the undo makes a cache with the policy lru; it was random" in text


def test_the_undo_of_a_detach_in_mode_none_works(tmp_path: Path) -> None:
    tree = {MODE: "writethrough writeback writearound [none]\n"}
    machine, text = undo_of_detach(tmp_path, tree)
    assert "the undo makes a cache in writethrough; it was in none" in text
    assert machine.state()[f"sys/{MODE}"].startswith("[writethrough]")

# SPDX-License-Identifier: GPL-2.0-only
"""Fills and users' writes on this machine's kernel: the real programs and a stand-in for bcache.

Large direct writes stand for those of bcache: in their `bi_private` is a struct whose flags tell
whether somebody waits, and such a write counts as a fill.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.bpf_host.live import (
    LiveProbe,
    LoopDisk,
    dev_t,
    fio,
    kernel_address,
    probe_with,
    skip_unless_possible,
    unavailable,
)
from tests.probe_records import of_type

MIB = 1 << 20
REQUEST_KIB = 256
TRIES = 3
"""The kernel skips a program, and counts that, where an interrupt ends requests while it runs."""
INSERT_ENDS, PART_ENDS = "blkdev_bio_end_io", "bio_chain_endio"
FLAGS_OFFSET, IS_SYNC = 16, 1 << 33
"""In struct blkdev_dio: the word that ends with its flags, and DIO_IS_SYNC."""


def _why_not() -> str | None:
    if shutil.which("cc") is None:
        return "not installed: cc"
    reason = unavailable()
    if reason is not None:
        return reason
    hidden = [name for name in (INSERT_ENDS, PART_ENDS) if kernel_address(name) == 0]
    return f"this kernel has no function {hidden[0]}" if hidden else None


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The probe with stand_in/bcache.c in place of what needs bcache."""
    skip_unless_possible(_why_not())
    out = tmp_path_factory.mktemp("program") / "probe"
    return probe_with("bcache.c", {"bcache_programs", "endio"}, out)


@pytest.fixture
def loops(tmp_path: Path) -> Iterator[list[str]]:
    """A volume, its cache and its backing device."""
    with ExitStack() as stack:
        names = [tmp_path / f"disk{number}" for number in range(3)]
        yield [stack.enter_context(LoopDisk(name, 8 * MIB)).path for name in names]


def test_signals_are_told_again_once_they_are_others(program: Path, loops: list[str]) -> None:
    """As where bcache is loaded after the probe."""
    volume, cache, backing = loops
    devices = f"volume={dev_t(volume)} cache={dev_t(cache)} backing={dev_t(backing)}"
    with LiveProbe("--tick-ms", "50", program=program) as probe:
        before = probe.wait_for("hello")["signals"]
        for name in ("one", "two"):
            probe.send(f"track {name} kind=bcache {devices}")
            probe.wait_for("track", vol=name)
            probe.send(f"untrack {name}")
        (told,) = of_type(probe.records, "signals")
    assert told["signals"] == {**before, "path": "ok, by a stand-in"}
    kinds = [record["t"] for record in probe.records]
    assert kinds.index("signals") < kinds.index("track")


@pytest.mark.parametrize(("engine", "kind"), [("psync", "bg"), ("libaio", "fg")])
def test_all_parts_of_a_split_write_are_of_one_kind(
    program: Path, loops: list[str], engine: str, kind: str
) -> None:
    volume, cache, backing = loops
    insert = [kernel_address(INSERT_ENDS), kernel_address(PART_ENDS), FLAGS_OFFSET, IS_SYNC]
    env = {"EBBGATE_TEST_INSERT": " ".join(f"{number:x}" for number in insert)}
    Path(f"/sys/block/{Path(cache).name}/queue/max_sectors_kb").write_text(str(REQUEST_KIB))
    for _ in range(TRIES):
        with LiveProbe("--tick-ms", "50", program=program, env=env) as probe:
            devices = f"volume={dev_t(volume)} cache={dev_t(cache)} backing={dev_t(backing)}"
            probe.send(f"track v kind=bcache {devices}")
            probe.wait_for("track", vol="v")
            fio(cache, "--rw=write", "--bs=2m", "--size=8m", f"--ioengine={engine}")
            tick = probe.next_tick("v")
        if tick["lost"]["missed"] == 0:
            break
    write = tick["dev"]["cache"]["write"]
    counted = {each: flow["bytes"] for each, flow in write.items()}
    assert counted == {"fg": 0, "bg": 0, kind: 8 * MIB}
    # Memory that is not contiguous makes more parts.
    assert write[kind]["ios"] >= 8 * 1024 // REQUEST_KIB

# SPDX-License-Identifier: GPL-2.0-only
"""Sampled references on this machine's kernel: one block of each MiB, in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.mrc import is_sampled
from tests.bpf_host.live import LiveProbe, LoopDisk, fio, skip_unless_possible, unavailable
from tests.probe_records import of_type

MIB = 1 << 20
CHUNKS = 32
BLOCKS = CHUNKS * 256
SAMPLED = [block for block in range(BLOCKS) if is_sampled(block, 256)]


@pytest.fixture
def probe(tmp_path: Path) -> Iterator[tuple[LiveProbe, str]]:
    """The probe on a disk."""
    skip_unless_possible(unavailable())
    with LoopDisk(tmp_path / "disk", CHUNKS * MIB) as disk, LiveProbe() as found:
        found.track_disk(disk.path)
        yield found, disk.path


def references(probe: LiveProbe) -> list[int]:
    """All references so far."""
    probe.next_tick()
    return [ref for record in of_type(probe.records, "reuse", vol="disk") for ref in record["refs"]]


@pytest.mark.parametrize("size", ["4k", "64k", "1m"])
def test_a_pass_over_a_disk_refers_to_each_sampled_block_once(
    probe: tuple[LiveProbe, str], size: str
) -> None:
    live, path = probe
    before = len(references(live))
    fio(path, "--rw=read", f"--bs={size}")
    fio(path, "--rw=write", f"--bs={size}")
    expected = [2 * block for block in SAMPLED] + [2 * block + 1 for block in SAMPLED]
    assert references(live)[before:] == expected
    assert live.next_tick()["lost"]["reuse"] == 0


def test_more_references_than_the_ring_holds_are_counted_as_lost(
    probe: tuple[LiveProbe, str],
) -> None:
    live, path = probe
    live.send("tick 1000000000")
    before = len(references(live))
    passes = 64
    fio(path, "--rw=read", "--bs=1m", f"--loops={passes}")
    taken = len(references(live)) - before
    assert live.next_tick()["lost"]["reuse"] + taken == passes * CHUNKS

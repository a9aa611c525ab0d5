# SPDX-License-Identifier: GPL-2.0-only
"""Plain disks on this machine's kernel: refused requests, and roles of untracked volumes."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.bpf_host.live import (
    PROBE,
    HeldDisk,
    LiveProbe,
    LoopDisk,
    ZramDisk,
    dev_t,
    fio,
    run,
    skip_unless_possible,
    unavailable,
)
from tests.probe_records import Record

MIB = 1 << 20
WAIT_NS = 50_000_000
RARE_TICKS = ("--tick-ms", "30000")
"""A tick corrects wrong counts in flight; none comes while a test runs."""


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    skip_unless_possible(unavailable())


@pytest.fixture(params=["loop", "zram"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A device with requests, and one without."""
    if request.param == "loop":
        with LoopDisk(tmp_path / "disk", 64 * MIB) as loop:
            yield loop.path
        return
    if not ZramDisk.CONTROL.exists():
        pytest.skip("this kernel has no zram")
    with ZramDisk(64 * MIB) as zram:
        yield zram.path


@pytest.fixture
def loops(tmp_path: Path) -> Iterator[list[str]]:
    """Five small disks."""
    with ExitStack() as stack:
        names = [tmp_path / f"disk{number}" for number in range(5)]
        yield [stack.enter_context(LoopDisk(name, 4 * MIB)).path for name in names]


def goes_idle_after(probe: LiveProbe, seen: int) -> bool:
    """Whether the volume became busy and idle again."""
    return [edge["edge"] for edge in probe.edges()][seen:] == ["busy", "idle"]


def test_a_volume_is_idle_again_after_write_zeroes(disk: str) -> None:
    limit = Path(f"/sys/block/{Path(disk).name}/queue/write_zeroes_max_bytes")
    if limit.read_text().strip() == "0":
        pytest.skip(f"{disk} has no command that writes zeroes")
    with LiveProbe(*RARE_TICKS) as probe:
        probe.track_disk(disk)
        probe.send(f"wait disk {WAIT_NS}")
        probe.wait_until(probe.edges, "idle edge")
        run(["blkdiscard", "--zeroout", "--length", str(MIB), disk])
        probe.wait_until(lambda: goes_idle_after(probe, 1), "the volume to be idle again")


@contextmanager
def shallow_disk(folder: Path) -> Iterator[HeldDisk]:
    """A disk whose queue is full with four requests."""
    with HeldDisk(folder).made() as disk:
        Path(f"/sys/block/{Path(disk.path).name}/queue/nr_requests").write_text("4")
        yield disk


def test_a_volume_is_idle_again_after_refused_requests(tmp_path: Path) -> None:
    with shallow_disk(tmp_path) as disk, LiveProbe(*RARE_TICKS) as probe:
        probe.track_disk(disk.path)
        probe.send(f"wait disk {WAIT_NS}")
        probe.wait_until(probe.edges, "idle edge")
        with disk.writing(probe, 4):
            assert refused_writes(disk.path, 8) == 8
        probe.wait_until(lambda: goes_idle_after(probe, 1), "the volume to be idle again")


def test_requests_that_are_refused_and_sent_again_count_once(tmp_path: Path) -> None:
    with shallow_disk(tmp_path) as disk, LiveProbe("--tick-ms", "50") as probe:
        probe.track_disk(disk.path)
        before = probe.next_tick()["fg"]["write"]
        with disk.writing(probe, 4):
            assert refused_writes(disk.path, 8) == 8
            probe.next_tick()
        after = probe.next_tick()["fg"]["write"]
        assert (after["ios"] - before["ios"], after["bytes"] - before["bytes"]) == (4, 16384)


def refused_writes(device: str, count: int) -> int:
    """Send this many writes that must not wait; return how many were refused."""
    refused = 0
    with mmap.mmap(-1, 4096) as page:
        descriptor = os.open(device, os.O_WRONLY | os.O_DIRECT)
        try:
            for number in range(count):
                try:
                    os.pwritev(descriptor, [page], MIB + number * 4096, os.RWF_NOWAIT)
                except BlockingIOError:
                    refused += 1
        finally:
            os.close(descriptor)
    return refused


def test_an_arrival_while_the_output_is_blocked_is_a_busy_edge_with_its_gap(tmp_path: Path) -> None:
    with LoopDisk(tmp_path / "disk", 64 * MIB) as loop, slow_reader() as (probe, records):
        assert probe.stdin is not None
        number = dev_t(loop.path)
        commands = f"tick 60000000000\ntrack v kind=disk volume={number}\nwait v {WAIT_NS}\n"
        probe.stdin.write(commands.encode())
        idle = next(record for record in records if record.get("edge") == "idle")
        # The answers fill the pipe while these are carried out.
        probe.stdin.write(b"jump\n" * 200)
        time.sleep(0.2)
        arrived_ns = time.monotonic_ns()
        with Path(loop.path).open("rb", buffering=0) as device:
            os.pread(device.fileno(), 4096, 8 * MIB)
        # An idle volume is looked at once a second.
        time.sleep(1.1)
        busy = next(record for record in records if record.get("edge") == "busy")
    assert arrived_ns <= busy["ns"] < arrived_ns + 500_000_000
    assert busy["gap_ns"] >= arrived_ns - idle["ns"]


@contextmanager
def slow_reader() -> Iterator[tuple[subprocess.Popen[bytes], Iterator[Record]]]:
    """Start a probe whose output, of a page at most, is read only as its records are taken."""
    with subprocess.Popen(
        [PROBE], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as probe:
        assert probe.stdin is not None
        assert probe.stdout is not None
        fcntl.fcntl(probe.stdout, fcntl.F_SETPIPE_SZ, mmap.PAGESIZE)
        yield probe, map(json.loads, iter(probe.stdout.readline, b""))
        probe.stdin.close()
        probe.stdout.read()


def test_a_device_loses_the_role_of_an_untracked_volume(loops: list[str]) -> None:
    first, second, third, shared, last = loops
    with LiveProbe("--tick-ms", "50") as probe:
        numbers = {path: dev_t(path) for path in loops}
        probe.send(f"track one kind=disk volume={numbers[first]} backing={numbers[shared]}")
        probe.send(f"track two kind=disk volume={numbers[second]} cache={numbers[shared]}")
        probe.send("untrack one")
        probe.wait_for("untrack", vol="one")
        fio(shared, "--rw=write", "--size=64k")
        assert probe.next_tick("two")["dev"]["cache"]["write"]["fg"]["ios"] == 16
        probe.send("untrack two")
        # It gets the slot of the shared device in the table of counters.
        probe.send(f"track three kind=disk volume={numbers[third]} backing={numbers[last]}")
        probe.wait_for("track", vol="three")
        fio(shared, "--rw=write", "--size=64k")
        assert probe.next_tick("three")["dev"]["backing"]["write"]["fg"]["ios"] == 0
        fio(last, "--rw=write", "--size=32k")
        assert probe.next_tick("three")["dev"]["backing"]["write"]["fg"]["ios"] == 8


@pytest.mark.parametrize("iostats", ["1", "0"])
def test_requests_to_a_device_that_is_a_partition_count_for_it(
    loops: list[str], iostats: str
) -> None:
    volume, disk = loops[:2]
    run(["addpart", disk, "1", "2048", "4096"])
    part = Path(f"{disk}p1")
    Path(f"/sys/block/{Path(disk).name}/queue/iostats").write_text(iostats)
    with LiveProbe("--tick-ms", "50") as probe:
        probe.wait_until(part.exists, "partition")
        probe.send(f"track v kind=disk volume={dev_t(volume)} backing={dev_t(str(part))}")
        probe.wait_for("track", vol="v")
        fio(str(part), "--rw=write", "--size=64k", "--end_fsync=1")
        # The disk itself has no role.
        fio(disk, "--rw=write", "--size=32k")
        flow = probe.next_tick("v")["dev"]["backing"]["write"]["fg"]
    assert (flow["ios"], flow["bytes"]) == (16, 64 << 10)


def test_a_program_is_attached_only_while_it_is_needed(disk: str) -> None:
    # A bio that is refused ends on its own on any disk; the others end in requests, if it has any.
    needed = 2 if "loop" in disk else 1
    with LiveProbe("--tick-ms", "50") as probe:
        before = links(probe)
        for round_ in range(2):
            probe.track_disk(disk, name=f"v{round_}")
            assert links(probe) == before + needed
            probe.send(f"untrack v{round_}")
            probe.wait_for("untrack", vol=f"v{round_}")
            probe.wait_until(lambda: links(probe) == before, "the program to be detached")


def links(probe: LiveProbe) -> int:
    """Return how many programs are attached."""
    targets = (str(each.readlink()) for each in Path(f"/proc/{probe.process.pid}/fd").iterdir())
    return sum("bpf_link" in target or "bpf-link" in target for target in targets)


def checked_with_processors(possible: Path, numbers: str) -> subprocess.CompletedProcess[str]:
    """Run the probe's check where these processors are possible."""
    possible.write_text(f"{numbers}\n")
    script = f"mount --bind {possible} /sys/devices/system/cpu/possible && exec {PROBE} --check"
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("numbers", ["0,11", "0-3,8-11", "11"])
def test_processors_whose_numbers_have_gaps_all_have_counters(tmp_path: Path, numbers: str) -> None:
    done = checked_with_processors(tmp_path / "possible", numbers)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ncpu"] == 12


def test_a_machine_with_more_processors_than_supported_is_refused(tmp_path: Path) -> None:
    done = checked_with_processors(tmp_path / "possible", "0-1199")
    assert done.returncode == 69, done.stderr
    assert "1200 processors; up to 1024 are supported" in done.stderr
    assert done.stdout == ""

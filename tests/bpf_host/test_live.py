# SPDX-License-Identifier: GPL-2.0-only
"""The probe on this machine's kernel and a loop device: exact counts, edges, life and death."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bpf_host.live import (
    PROBE,
    LiveProbe,
    LoopDisk,
    dev_t,
    fio,
    run,
    skip_unless_possible,
    unavailable,
)
from tests.probe_records import Record, bytes_by_run, of_type

MIB = 1 << 20
WAIT_NS = 50_000_000


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    skip_unless_possible(unavailable())


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[LoopDisk]:
    with LoopDisk(tmp_path / "disk", 64 * MIB) as loop:
        yield loop


@pytest.fixture
def probe() -> Iterator[LiveProbe]:
    with LiveProbe("--tick-ms", "50") as live:
        yield live


def foreground(tick: Record) -> tuple[int, ...]:
    fg = tick["fg"]
    return tuple(fg[way][what] for way in ("read", "write") for what in ("ios", "bytes"))


def test_requests_and_bytes_equal_those_of_fio(probe: LiveProbe, disk: LoopDisk) -> None:
    probe.track_disk(disk.path)
    before = foreground(probe.next_tick())
    job = fio(disk.path, "--rw=randrw", "--io_size=8m", "--bsrange=512-128k", "--blockalign=512")
    tick = probe.next_tick()
    want = [job[way][what] for way in ("read", "write") for what in ("total_ios", "io_bytes")]
    got = [after - start for after, start in zip(foreground(tick), before, strict=True)]
    # fio looks at the device's size and first sectors before it starts.
    assert got[2:] == want[2:]
    assert 0 <= got[0] - want[0] <= 8
    flows = tick["dev"]["backing"]["write"]["fg"]
    assert flows["ios"] == sum(flows["lat"]) == want[2]
    assert tick["inflight"] == {"read": 0, "write": 0}


def test_a_stream_is_counted_by_its_run_length(probe: LiveProbe, disk: LoopDisk) -> None:
    probe.track_disk(disk.path)
    fio(disk.path, "--rw=write", "--bs=64k", "--size=4m", "--offset=8m")
    assert probe.next_tick()["runs"]["write"] == bytes_by_run([64 * 1024] * 64)


def test_interleaved_streams_are_counted_apart(probe: LiveProbe, disk: LoopDisk) -> None:
    probe.track_disk(disk.path)
    jobs = ["--rw=write", "--bs=16k", "--size=512k", "--numjobs=16", "--offset_increment=2m"]
    fio(disk.path, *jobs, "--offset=8m", "--group_reporting")
    one = bytes_by_run([16 * 1024] * 32)
    assert probe.next_tick()["runs"]["write"] == [16 * count for count in one]


def test_kinds_of_requests_are_counted_apart(probe: LiveProbe, disk: LoopDisk) -> None:
    probe.track_disk(disk.path)
    before = probe.next_tick()["fg"]
    with Path(disk.path).open("r+b", buffering=0) as device:
        os.fsync(device.fileno())
        os.posix_fadvise(device.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        device.read(MIB)
    run(["blkdiscard", "--offset", "8388608", "--length", "1048576", disk.path])
    fg = probe.next_tick()["fg"]
    assert fg["flush"] - before["flush"] == 1
    assert fg["discard"] - before["discard"] == 1
    assert fg["read"]["ahead"] > before["read"]["ahead"]
    assert fg["write"] == before["write"]


def test_requests_to_a_partition_count_for_its_disk(probe: LiveProbe, disk: LoopDisk) -> None:
    probe.track_disk(disk.path)
    run(["addpart", disk.path, "1", "2048", "32768"])
    part = Path(f"{disk.path}p1")
    probe.wait_until(part.exists, "partition")
    # The loader looks for new partitions once a second.
    time.sleep(1.2)
    before = foreground(probe.next_tick())
    job = fio(str(part), "--rw=randwrite", "--io_size=1m", "--size=8m")
    after = foreground(probe.next_tick())
    assert after[2] - before[2] == job["write"]["total_ios"] == 256


def test_edges_alternate_and_come_in_time(probe: LiveProbe, disk: LoopDisk) -> None:
    probe.track_disk(disk.path)
    probe.send(f"wait disk {WAIT_NS}")
    for _ in range(4):
        probe.wait_until(lambda: [e["edge"] for e in probe.edges()][-1:] == ["idle"], "idle edge")
        seen = len(probe.edges())
        fio(disk.path, "--rw=randread", "--io_size=64k")
        probe.wait_until(lambda n=seen: len(probe.edges()) > n, "busy edge")  # type: ignore[misc]
    edges = probe.edges()
    assert all(a["edge"] != b["edge"] for a, b in itertools.pairwise(edges))
    idle = [edge for edge in edges if edge["edge"] == "idle"]
    busy = [edge for edge in edges if edge["edge"] == "busy"]
    # A busy host may wake the loader late; the median shows what the loader itself does.
    assert sorted(edge["idle_ns"] for edge in idle[1:])[1] <= WAIT_NS + 30_000_000
    assert all(edge["idle_ns"] >= WAIT_NS for edge in idle)
    assert all(edge["gap_ns"] >= WAIT_NS for edge in busy)
    assert sorted(edge["came_ns"] - edge["ns"] for edge in busy)[1] <= 20_000_000


def test_gaps_are_counted_with_their_length(probe: LiveProbe, disk: LoopDisk) -> None:
    probe.track_disk(disk.path)
    probe.next_tick()
    with Path(disk.path).open("rb", buffering=0) as device:
        for number in range(6):
            os.posix_fadvise(device.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            os.pread(device.fileno(), 4096, (8 + number) * MIB)
            time.sleep(0.07)
    tick = probe.next_tick()
    # Each gap is 70 ms or, on a busy host, a little more: bucket 16 is 65 to 131 ms.
    assert sum(tick["gaps"][16:18]) >= 5
    assert tick["gaps_ns"][16] >= tick["gaps"][16] * 65_536_000


def test_volumes_can_be_tracked_and_untracked_at_any_time(probe: LiveProbe, disk: LoopDisk) -> None:
    probe.track_disk(disk.path, name="one")
    fio(disk.path, "--rw=randwrite", "--io_size=64k")
    assert probe.next_tick("one")["fg"]["write"]["ios"] == 16
    probe.send("untrack one")
    assert probe.wait_for("untrack", vol="one")["why"] == "requested"
    fio(disk.path, "--rw=randwrite", "--io_size=64k")
    probe.track_disk(disk.path, name="two")
    assert probe.next_tick("two")["fg"]["write"]["ios"] == 0
    fio(disk.path, "--rw=randwrite", "--io_size=32k")
    assert probe.next_tick("two")["fg"]["write"]["ios"] == 8
    assert of_type(probe.records, "tick", vol="one")[-1]["ns"] < probe.next_tick("two")["ns"]


def test_a_wrong_command_is_answered_with_an_error(probe: LiveProbe, disk: LoopDisk) -> None:
    probe.track_disk(disk.path)
    wrong = [
        "track disk kind=disk volume=1:1",
        f"track again kind=disk volume={dev_t(disk.path)}",
        "track gone kind=disk volume=4000:1",
        "wait nobody 1000000000",
        "make coffee",
        'track b kind=disk volume=1:"1',
    ]
    for line in wrong:
        probe.send(line)
        probe.wait_for("error", cmd=line)
    probe.next_tick()


def test_no_part_of_a_line_that_is_too_long_is_a_command(probe: LiveProbe, disk: LoopDisk) -> None:
    probe.track_disk(disk.path)
    probe.send("x" * 4096 + "untrack disk")
    probe.send("x" * 10_000 + "untrack disk")
    probe.send("make coffee")
    probe.wait_for("error", cmd="make coffee")
    assert len(of_type(probe.records, "error", text="line too long")) == 2
    assert not of_type(probe.records, "untrack")


def test_a_17th_volume_is_refused(probe: LiveProbe, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        loops = [stack.enter_context(LoopDisk(tmp_path / str(number), MIB)) for number in range(17)]
        for loop in loops[:16]:
            probe.track_disk(loop.path, name=loop.path.removeprefix("/dev/"))
        last = f"track more kind=disk volume={dev_t(loops[16].path)}"
        probe.send(last)
        assert "16 volumes" in probe.wait_for("error", cmd=last)["text"]


def test_a_device_that_vanishes_is_untracked(probe: LiveProbe, tmp_path: Path) -> None:
    with LoopDisk(tmp_path / "short", MIB) as loop:
        probe.track_disk(loop.path)
    assert probe.wait_for("untrack", vol="disk")["why"] == "vanished"
    probe.send("wait disk 1000000000")
    probe.wait_for("error", text="not tracked")


def test_the_end_of_stdin_ends_the_probe_with_bye() -> None:
    with LiveProbe() as live:
        assert live.end() == 0
        assert live.records[-1]["t"] == "bye"
        assert live.records[-1]["why"] == "stdin closed"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_probe_with_bye(number: signal.Signals) -> None:
    with LiveProbe() as live:
        live.process.send_signal(number)
        assert live.wait_for("bye")["why"] == "signal"
        assert live.end() == 0


@pytest.mark.parametrize("commands", [b"", b"jump\n" * 200])
def test_a_signal_ends_a_probe_whose_reader_does_not_read(commands: bytes) -> None:
    """Its output may be full before the signal, or only with `bye`."""
    with subprocess.Popen(
        [PROBE], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, mmap.PAGESIZE)
        try:
            assert b'"hello"' in process.stdout.readline()
            fill(process)
            process.stdin.write(commands)
            process.terminate()
            assert process.wait(10) == 0
        finally:
            process.kill()


def fill(process: subprocess.Popen[bytes]) -> None:
    """Leave no room in the pipe that a probe writes to."""
    descriptor = os.open(f"/proc/{process.pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(descriptor, bytes(mmap.PAGESIZE))
    os.close(descriptor)


def test_the_probe_ends_when_its_parent_dies() -> None:
    script = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(PROBE)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    # Another holder of the pipe's writing end keeps stdin open: only the signal can tell.
    assert '"hello"' in parent.stdout.readline()
    child = int(run(["pgrep", "-P", str(parent.pid)]))
    stdin = os.open(f"/proc/{child}/fd/0", os.O_WRONLY)
    try:
        parent.kill()
        parent.wait()
        rest = parent.stdout.read()
        assert '"parent died"' in rest.splitlines()[-1]
    finally:
        os.close(stdin)
        parent.stdout.close()


def test_a_closed_stdout_ends_the_probe_at_once() -> None:
    process = subprocess.Popen(
        [PROBE, "--tick-ms", "10", "--track", f"d kind=disk volume={dev_t('/dev/loop0')}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(10) == 0
    assert process.stdin is not None
    process.stdin.close()


def test_privileges_are_dropped() -> None:
    with LiveProbe() as live:
        status = Path(f"/proc/{live.process.pid}/status").read_text()
    fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    allowed = 1 << 21 | 1 << 34 | 1 << 38 | 1 << 39  # SYS_ADMIN SYSLOG PERFMON BPF
    if Path("/sys/module/bcache").exists() and Path("/sys/module/dm_mod").exists():
        allowed = 1 << 34 | 1 << 39  # addresses of a module that is loaded again; attach programs
    assert int(fields["CapEff"], 16) & 1 << 39
    assert int(fields["CapEff"], 16) | allowed == allowed
    assert int(fields["CapPrm"], 16) | allowed == allowed
    assert fields["NoNewPrivs"] == "1"


def test_without_privilege_the_probe_exits_with_77() -> None:
    done = subprocess.run([PROBE], user=65534, capture_output=True, text=True, check=False)
    assert done.returncode == 77
    assert "run it as root" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["syslog", "perfmon", "sys_admin", "bpf"])
def test_root_without_a_capability_is_told_which_one(name: str) -> None:
    argv = ["setpriv", f"--bounding-set=-{name}", f"--inh-caps=-{name}", str(PROBE), "--check"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 77
    assert f"lacks CAP_{name.upper()}: run it as root" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--nonsense"], ["--tick-ms", "1"], ["--track", "d kind=disk"], ["extra"], ["--track"]),
        # Cut off where there is no more room, it would name the device 1:1.
        ["--check", "--track", "d kind=disk".ljust(495) + "volume=1:123"],
    ],
)
def test_wrong_usage_is_refused(arguments: list[str]) -> None:
    done = subprocess.run([PROBE, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 64
    assert done.stderr


def test_check_prints_hello_and_exits() -> None:
    done = subprocess.run([PROBE, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    (line,) = done.stdout.splitlines()
    assert '"t":"hello"' in line
    assert '"volume":"ok"' in line


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_a_question_to_the_program_starts_no_probe(option: str) -> None:
    done = subprocess.run([PROBE, option], capture_output=True, text=True, timeout=30, check=True)
    assert "ebbgate-probe" in done.stdout
    assert (done.stderr, '"hello"' in done.stdout) == ("", False)

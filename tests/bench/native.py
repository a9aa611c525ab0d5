# SPDX-License-Identifier: GPL-2.0-only
"""What a probe costs on this machine itself: IOPS with it against IOPS without it, in one fio.

I/O: root; a loop device over tmpfs and a zram device, fio, the probe or a peer in turns.

Speed on a shared machine swings by a factor of two within minutes, so a tool is switched on and off
within one running fio, and each slice with it is compared with the slices around it.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from statistics import median

from ebbgate.doctor import cost
from tests.lab import host

PROC = Path("/proc")
PROBE = Path(__file__).resolve().parents[2] / "build" / "ebbgate-probe"
SIZE_MIB = 256
SLICE_S = 0.3
SETTLE_S = 1.0
"""A tool that has just been started and attached slows the machine down for longer than 0.1 s, also
where it looks at another disk. What it costs from then on is measured.
"""

Tool = Callable[[str], AbstractContextManager[object]]
"""Runs a tool on the block device of this name."""


@contextmanager
def loop_device() -> Iterator[str]:
    """A loop device over a file in memory: about 30 us a request."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        file = Path(folder) / "disk"
        host.run(["fallocate", "-l", f"{SIZE_MIB}M", file])
        device = host.run(["losetup", "--find", "--show", "--direct-io=off", file]).strip()
        try:
            yield device.removeprefix("/dev/")
        finally:
            host.run(["losetup", "--detach", device])


@contextmanager
def zram_device() -> Iterator[str]:
    """A zram device full of data: about 1.5 us a request, so the upper bound of any cost."""
    device = host.run(["zramctl", "--find", "--size", f"{SIZE_MIB}M"]).strip()
    try:
        fill = ["--rw=write", "--bs=1M", "--direct=1", "--buffer_compress_percentage=50"]
        host.run(["fio", "--name=fill", f"--filename={device}", *fill])
        yield device.removeprefix("/dev/")
    finally:
        host.run(["zramctl", "--reset", device])


DEVICES = {"loop": loop_device, "zram": zram_device}


@contextmanager
def probed(device: str) -> Iterator[int]:
    """All signals of a plain disk: arrivals, runs, gaps, latency, depth; yields the probe's pid."""
    number = Path(f"/sys/block/{device}/dev").read_text().strip()
    track = f"d kind=disk volume={number} backing={number}"
    argv = [str(PROBE), "--track", track]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        # Its answer to the first command: attached, and counting.
        next(line for line in process.stdout if '"track"' in line)
        try:
            yield process.pid
        finally:
            process.stdin.close()
            process.stdout.read()


@contextmanager
def biolatency(_device: str) -> Iterator[None]:
    """The peer: libbpf-tools' histogram of request latencies, of all devices."""
    argv = ["stdbuf", "-oL", host.find("biolatency") or "biolatency"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        # It prints its first line once it is attached.
        process.stdout.readline()
        try:
            yield
        finally:
            process.terminate()


def none(_device: str) -> AbstractContextManager[None]:
    """No tool: how far its ratio is from 1 is the error of the others."""
    return nullcontext()


TOOLS: dict[str, Tool] = {"ebbgate": probed, "biolatency": biolatency, "none": none}


@contextmanager
def reads(device: str, jobs: int) -> Iterator[None]:
    """Random 4 KiB reads until the end of the context."""
    argv = ["fio", "--name=r", f"--filename=/dev/{device}", "--rw=randread", "--bs=4k"]
    argv += ["--direct=1", "--ioengine=psync", f"--numjobs={jobs}", "--thread", "--time_based"]
    argv += ["--runtime=3600", "--gtod_reduce=1"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        time.sleep(1)
        try:
            yield
        finally:
            process.kill()


def iops(device: str) -> float:
    """Reads per second over one slice, by the kernel's own count."""

    def done() -> int:
        return int(Path(f"/sys/block/{device}/stat").read_text().split()[0])

    time.sleep(SETTLE_S)
    start_s, start = time.monotonic(), done()
    time.sleep(SLICE_S)
    return (done() - start) / (time.monotonic() - start_s)


def iops_ratio(device: str, tool: Tool, slices: int) -> float:
    """Median over slices with the tool, each against the mean of its two neighbours without."""
    ratios = []
    before = iops(device)
    for _ in range(slices):
        with tool(device):
            during = iops(device)
        after = iops(device)
        ratios.append(during / ((before + after) / 2))
        before = after
    return median(ratios)


def ns_per_event(device: str) -> float:
    """Mean run time of the probe's programs under one reader, less that of an empty program."""
    with reads(device, 1), probed(device):
        found = cost.measure(PROC, 2.0)
    assert found.ns_per_run is not None, found.why
    return found.ns_per_run - cost.EMPTY_RUN_NS

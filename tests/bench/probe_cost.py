# SPDX-License-Identifier: GPL-2.0-only
"""probe-cost: what the probe adds to a request, beside two peers in the same run.

Instructions are counted in a guest whose clock is its instruction count (`-icount`), on a null
block device and on a bcache of two: the same work takes the same instructions, to the resolution of
fio's millisecond. Nanoseconds and IOPS are of this machine itself.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench import native
from tests.bench.context import Context, Scenario
from tests.bench.report import Report
from tests.lab import fio
from tests.lab.guest import Guest
from tests.lab.probe import GuestProbe
from tests.lab.session import Session
from tests.lab.wait import wait_until

DISK = "nullb0"
REQUESTS = 40_000
"""Per figure: fio's millisecond is then worth 25 instructions."""
JOBS = (1, 2, 4)
SLICES = 15
BLKTRACE = f"exec blktrace -d /dev/{DISK} -o - >/dev/null"
PEERS = {
    "biolatency": (["stdbuf", "-oL", "biolatency"], "true"),
    "blktrace": (["sh", "-c", BLKTRACE], f"test -e /sys/kernel/debug/block/{DISK}/trace0"),
}
"""By name, how it is started, and a command that succeeds in the guest once it is attached."""


def instructions(guest: Session, disk: str) -> float:
    """Instructions of the guest per random 4 KiB read; the first run warms the kernel up."""
    found = 0.0
    for ios in (2_000, REQUESTS):
        options: dict[str, str | int] = {"number_ios": ios, "size": "200m", "norandommap": 1}
        job = fio.Job(f"/dev/{disk}", "randread", "4k", options={**options, "gtod_reduce": 1})
        done = fio.run(guest, job, seed=1, timeout_s=300).only.read
        found = done.runtime_ms * 1e6 / done.ios
    return found


@contextmanager
def null_disk(guest: Session) -> Iterator[str]:
    """A disk that completes each request at once."""
    guest.check("modprobe null_blk nr_devices=1 submit_queues=1 irqmode=0")
    try:
        yield DISK
    finally:
        guest.check("modprobe -r null_blk")


def of_the_probe(guest: Session, disk: str) -> tuple[float, float]:
    """Instructions per read of a plain disk: without and with the probe."""
    without = instructions(guest, disk)
    number = guest.read(f"/sys/block/{disk}/dev")
    with GuestProbe(guest) as probe:
        probe.send(f"track d kind=disk volume={number} backing={number}")
        probe.wait_for("track", vol="d")
        return without, instructions(guest, disk)


def of_a_peer(guest: Session, disk: str, name: str) -> float:
    """Instructions per read with a peer attached."""
    argv, attached = PEERS[name]
    peer = guest.spawn(argv)

    def runs() -> bool:
        said = name != "biolatency" or "Tracing" in peer.stdout()
        return said and guest.run(attached).rc == 0

    try:
        wait_until(runs, 60, f"{name} to be attached")
        return instructions(guest, disk)
    finally:
        peer.kill(signal.SIGINT)
        peer.wait(30)


def counted(context: Context) -> dict[str, dict[str, float]]:
    """By arm, instructions per request above nothing."""
    with Guest([], icount=True) as guest, null_disk(guest) as disk:
        context.say("instructions: the probe on a null disk")
        without, ours = of_the_probe(guest, disk)
        found = {"none": {"instr": without}, "ebbgate": {"added_instr": ours - without}}
        for name in PEERS:
            context.say(f"instructions: {name}")
            found[name] = {"added_instr": of_a_peer(guest, disk, name) - without}
    return found


def wall(context: Context) -> dict[str, dict[str, float]]:
    """By tool, IOPS ratios on this machine, and the probe's ns per event."""
    found: dict[str, dict[str, float]] = {name: {} for name in native.TOOLS}
    for kind, make in native.DEVICES.items():
        with make() as device:
            context.say(f"nanoseconds per event on {kind}")
            found["ebbgate"][f"{kind}_ns_per_event"] = native.ns_per_event(device)
            for jobs in JOBS:
                with native.reads(device, jobs):
                    for name, tool in native.TOOLS.items():
                        ratio = native.iops_ratio(device, tool, SLICES)
                        context.say(f"{kind}, {jobs} jobs, {name}: IOPS ratio {ratio:.3f}")
                        found[name][f"{kind}_{jobs}_jobs_iops_ratio"] = ratio
    return found


def run(context: Context) -> Report:
    """Counted in the guest, then by the clock of this machine."""
    runs: dict[str, list[dict[str, float]]] = {}
    for _ in range(context.repetitions):
        found = counted(context)
        for name, figures in wall(context).items():
            found[name].update(figures)
        for name, figures in found.items():
            runs.setdefault(name, []).append(figures)
    report = Report("probe-cost", runs, {}, {})
    ours = report.document({})["arms"]["ebbgate"]
    ratios = {"added_instr": ours["added_instr"]}
    goals = {"added_instr": "<= 700"}
    for name, value in ours.items():
        if name.endswith("iops_ratio"):
            ratios[name] = value
            goals[name] = ">= 0.98" if name.startswith("loop") else ">= 0.92"
    return Report("probe-cost", runs, ratios, goals)


SCENARIO = Scenario("probe-cost", "the probe adds at most 700 instructions to a request", 6, run)

# SPDX-License-Identifier: GPL-2.0-only
"""probe-cost: what the probe adds to a request, beside two peers in the same run.

Instructions are counted in a guest (counted.py); nanoseconds and IOPS are of this machine itself.
"""

from __future__ import annotations

import signal

from tests.bench import counted, native
from tests.bench.context import Context, Scenario
from tests.bench.report import Report
from tests.lab.session import Session
from tests.lab.wait import wait_until

DISK = counted.PLAIN
REQUESTS = 40_000
"""Per figure: fio's millisecond is then worth 25 instructions."""
PAIRS = 3
JOBS = (1, 2, 4)
SLICES = 15
BLKTRACE = f"exec blktrace -d /dev/{DISK} -o - >/dev/null"
PEERS = {
    "biolatency": (["stdbuf", "-oL", "biolatency"], "true"),
    "blktrace": (["sh", "-c", BLKTRACE], f"test -e /sys/kernel/debug/block/{DISK}/trace0"),
}
"""By name, how it is started, and a command that succeeds in the guest once it is attached."""


def of_a_peer(guest: Session, name: str) -> float:
    """Instructions per read of the plain disk with a peer attached."""
    argv, attached = PEERS[name]
    peer = guest.spawn(argv)

    def runs() -> bool:
        said = name != "biolatency" or "Tracing" in peer.stdout()
        return said and guest.run(attached).rc == 0

    try:
        wait_until(runs, 60, f"{name} to be attached")
        return counted.plain(guest, REQUESTS)
    finally:
        peer.kill(signal.SIGINT)
        peer.wait(30)


def instructions(context: Context) -> dict[str, dict[str, float]]:
    """By arm, instructions per request: without a probe, and how many the probe or a peer adds."""
    with counted.null_guest() as guest:
        context.say("instructions: the probe on a plain disk")
        cost = counted.plain_cost(guest, REQUESTS)
        found: dict[str, dict[str, float]] = {"none": {}, "ebbgate": {}}
        _note(found, "plain", cost)
        for name in PEERS:
            context.say(f"instructions: {name} on a plain disk")
            found[name] = {"plain_added_instr": of_a_peer(guest, name) - cost.without}
        for name, path in counted.PATHS.items():
            context.say(f"instructions: {name}")
            _note(found, name, counted.path_cost(guest, path, REQUESTS, PAIRS))
    return found


def _note(found: dict[str, dict[str, float]], name: str, cost: counted.Cost) -> None:
    found["none"][f"{name}_instr"] = cost.without
    found["ebbgate"][f"{name}_added_instr"] = cost.added
    found["ebbgate"][f"{name}_added_share"] = cost.added / cost.without


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
        found = instructions(context)
        for name, figures in wall(context).items():
            found[name].update(figures)
        for name, figures in found.items():
            runs.setdefault(name, []).append(figures)
    report = Report("probe-cost", runs, {}, {})
    ours = report.document({})["arms"]["ebbgate"]
    added_max = {name: path.added_max for name, path in counted.PATHS.items()}
    goals = {
        f"{name}_added_instr": f"<= {most}"
        for name, most in {"plain": counted.PLAIN_ADDED_MAX, **added_max}.items()
    }
    ratios = {name: ours[name] for name in goals}
    for name, value in ours.items():
        if name.endswith("iops_ratio"):
            ratios[name] = value
            goals[name] = ">= 0.98" if name.startswith("loop") else ">= 0.92"
    return Report("probe-cost", runs, ratios, goals)


SCENARIO = Scenario("probe-cost", "the probe adds few instructions to a request", 16, run)

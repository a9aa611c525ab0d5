# SPDX-License-Identifier: GPL-2.0-only
"""footprint: CPU and memory of daemon and probe with one volume, idle and under load.

Memory is the guest's own figure. CPU time in the guest is emulated and several times too high: it
is reported as it is, beside `emulation`, how many times slower the same Python loop runs there.
What an idle volume costs without an emulator is measured without one: the daemon with the knobs of
a volume in files and a probe that tells of an idle one, and the real probe on an idle loop device.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.bench.context import Context, Scenario
from tests.bench.faults import reader
from tests.bench.kill_files import FileMachine
from tests.bench.native import loop_device, probed
from tests.bench.product import PYTHON, Product
from tests.bench.report import Report
from tests.lab import host
from tests.lab.bcache_stack import BcacheStack
from tests.lab.guest import Guest
from tests.lab.session import Session
from tests.lab.wait import wait_until

SECONDS = 30
LOOPS = 9
LOOP = (
    "import time;t=time.process_time();sum(i*i for i in range(10**6));print(time.process_time()-t)"
)


def cpu_seconds(session: Session, pid: int) -> float:
    """User and system time of a process so far."""
    fields = session.read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mib(session: Session, pid: int) -> float:
    """Resident memory of a process."""
    text = session.read(f"/proc/{pid}/status")
    return (
        int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024
    )


def measure(guest: Guest) -> dict[str, float]:
    """An idle volume, then one with 200 random reads a second."""
    found: dict[str, float] = {}
    with BcacheStack(guest) as stack:
        stack.expect_changed("writeback_rate")
        with Product(guest) as product:
            daemon = int(guest.check("pgrep -f -o ebbgate.daemon.main"))
            probe = int(guest.check("pgrep -x ebbgate-probe"))
            for load in ("idle", "reads"):
                users = reader(guest, stack.device) if load == "reads" else None
                # Half a minute of steady state is what is measured, not waited for.
                before = {pid: cpu_seconds(guest, pid) for pid in (daemon, probe)}
                time.sleep(SECONDS)
                used = [cpu_seconds(guest, pid) - before[pid] for pid in (daemon, probe)]
                found[f"{load}_daemon_cpu"] = used[0] / SECONDS
                found[f"{load}_probe_cpu"] = used[1] / SECONDS
                if users:
                    users.kill()
            found["daemon_rss_mib"] = rss_mib(guest, daemon)
            found["probe_rss_mib"] = rss_mib(guest, probe)
            assert product.daemon is not None
    found["emulation"] = emulation(guest)
    return found


def emulation(guest: Guest) -> float:
    """How many times slower the loop runs in the guest; by medians, since one run of it takes the
    host 60 ms, more or less by half.
    """
    argv = [PYTHON, "-c", LOOP]
    pairs = [(float(guest.check(argv)), float(host.run(argv))) for _ in range(LOOPS)]
    return median(slow for slow, _ in pairs) / median(fast for _, fast in pairs)


def native() -> dict[str, float]:
    """The same half a minute on this machine itself."""
    with tempfile.TemporaryDirectory() as name:
        machine = FileMachine(Path(name), idle=True)
        daemon = machine.start()
        try:
            wait_until(lambda: "normal: nothing is dirty" in machine.log.read_text(), 60, "a tick")
            daemon_s = used_s(daemon.pid)
        finally:
            host.stop(daemon)
    with loop_device() as device, probed(device) as probe:
        return {
            "native_daemon_cpu": daemon_s / SECONDS,
            "native_probe_cpu": used_s(probe) / SECONDS,
        }


def used_s(pid: int) -> float:
    """CPU time of a process of this machine in the seconds that are measured."""
    before_s = host.cpu_seconds(pid)
    time.sleep(SECONDS)
    return host.cpu_seconds(pid) - before_s


def run(context: Context) -> Report:
    """CPU as a share of one core."""
    runs: dict[str, list[dict[str, float]]] = {"ebbgate": []}
    with Guest() as guest:
        for _ in range(context.repetitions):
            runs["ebbgate"].append(measure(guest) | native())
            context.say(json.dumps(runs["ebbgate"][-1]))
    each = runs["ebbgate"]
    ratios = {
        "idle_cpu": median(f["native_daemon_cpu"] + f["native_probe_cpu"] for f in each),
        "idle_cpu_guest": median(f["idle_daemon_cpu"] + f["idle_probe_cpu"] for f in each),
        "rss_mib": max(f["daemon_rss_mib"] + f["probe_rss_mib"] for f in each),
    }
    return Report("footprint", runs, ratios, {"idle_cpu": "<= 0.01", "rss_mib": "<= 60"})


SCENARIO = Scenario("footprint", "daemon and probe use less than 1 % of a core and 60 MiB", 2, run)

# SPDX-License-Identifier: GPL-2.0-only
"""write-throttling: users' reads beside a file that is copied to a SATA disk, with the kernel's own
throttling of writes (`queue/wbt_lat_usec`) and without.

It holds back the write-back of dm-cache, too: 12 requests at once, which no scheduler can sort.
What users lose without it says when ebbgate may turn it off.
"""

from __future__ import annotations

from contextlib import ExitStack

from tests.bench.context import Context, Scenario
from tests.bench.faults import keep, load
from tests.bench.gap_drain import DISKS, SSDS, disk_of
from tests.bench.report import Report, ratio
from tests.lab import fio
from tests.lab.guest import Guest
from tests.lab.session import Session

ARMS = {"kernel": "75000", "off": "0"}
"""The kernel's own value for a hard disk, microseconds."""
GOALS = {"read_iops": "<= 0.8", "read_p99_ms": ">= 1.25"}
"""Without it users lose so much at least; else ebbgate need not leave it on."""
READ_S = 25
SCHEDULERS = ("mq-deadline", "none")
VARIANTS = tuple(f"{scheduler}/{disk}" for scheduler in SCHEDULERS for disk in DISKS)


def run(context: Context) -> Report:
    """Run one variant, arms interleaved; figures are against the kernel's own throttling."""
    variant = context.variant or "mq-deadline/ahci"
    scheduler = variant.partition("/")[0]
    with Guest((disk_of(variant), *SSDS)) as guest:
        runs = context.interleaved(ARMS, lambda arm, _: measure(guest, scheduler, arm))
    ratios = {
        f"{variant} {figure}": ratio(runs, "off", "kernel", figure)
        for figure in ("read_iops", "read_p99_ms", "write_mib_per_s")
    }
    goals = {f"{variant} {figure}": goal for figure, goal in GOALS.items()}
    return Report("write-throttling", runs, ratios, goals)


def measure(guest: Session, scheduler: str, arm: str) -> dict[str, float]:
    """Measure one arm on the bare disk; the kernel's value is back afterwards."""
    name = guest.device("hdd0")
    queue, device = f"/sys/block/{name}/queue", f"/dev/{name}"
    guest.check(f"echo {scheduler} > {queue}/scheduler; echo {ARMS[arm]} > {queue}/wbt_lat_usec")
    try:
        with ExitStack() as exits:
            written = _written_bytes(guest, name)
            copied: dict[str, str | int] = {"direct": 0, "offset": "4g", "size": "4g"}
            keep(load(guest, device, "write", "1m", **copied), exits)
            options: dict[str, str | int] = {"size": "3g", "time_based": 1, "runtime": READ_S}
            found = fio.run(guest, fio.Job(device, "randread", "4k", options=options), seed=1)
            written = _written_bytes(guest, name) - written
        reads = found.only.read
        return {
            "read_iops": reads.iops,
            "read_p99_ms": reads.p99_ns / 1e6,
            "write_mib_per_s": written / 2**20 / READ_S,
        }
    finally:
        guest.check(f"sync; echo {ARMS['kernel']} > {queue}/wbt_lat_usec", timeout_s=120)


def _written_bytes(guest: Session, disk: str) -> int:
    # Documentation/block/stat.rst: the seventh number is sectors written.
    return int(guest.read(f"/sys/block/{disk}/stat").split()[6]) * 512


SCENARIO = Scenario(
    "write-throttling",
    "what the kernel's own throttling of writes is worth to users' reads",
    3,
    run,
    VARIANTS,
)

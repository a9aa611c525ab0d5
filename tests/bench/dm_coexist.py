# SPDX-License-Identifier: GPL-2.0-only
"""lvm-coexist: an administrator's LVM commands work while ebbgate enforces, and nothing of ebbgate
is left in LVM's or the kernel's settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from ebbgate.units import NS_PER_S
from tests.bench.context import Context, Scenario
from tests.bench.dm_gap_drain import CACHE_BYTES
from tests.bench.gap_drain import Pieces, fill_job
from tests.bench.product import Product
from tests.bench.report import Report
from tests.lab import fio
from tests.lab.dm_stack import DmCacheStack
from tests.lab.guest import Guest
from tests.lab.session import Process, Session

SETTINGS = "lvs --noheadings -o kernel_cache_settings,cache_settings,cache_mode,cache_policy {}"
COMMANDS = (
    "lvs -a -o +devices,kernel_cache_settings",
    "lvchange --cachesettings migration_threshold=4096 {}",
    "lvchange --cachesettings migration_threshold=default {}",
    "lvcreate -y -s -n snap -L 32m {}",
    "lvs -a",
    "lvremove -y vg/snap",
    "lvchange -y --cachemode writethrough {}",
    "lvchange -y --cachemode writeback {}",
    "lvchange --refresh {}",
)


@contextmanager
def users(session: Session, device: str) -> Iterator[Process]:
    """Random reads and writes with pauses, so that the gate opens and closes all the time."""
    options: dict[str, str | int] = {
        "size": "400M",
        "rate_iops": 60,
        "thinktime": "700ms",
        "thinktime_blocks": 40,
        "time_based": 1,
        "runtime": 300,
        "thread": 1,
    }
    job = fio.Job(device, "randrw", "64k", "users", options)
    process = session.spawn(["fio", *job.arguments(seed=4)])
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


def measure(guest: Session, seed: int) -> tuple[dict[str, float], list[str]]:
    """All commands under load; what failed, what differs, and what they said."""
    said = []
    # A cachepool: of a volume with a cachevol this LVM takes no snapshot, with or without ebbgate
    # ("Check of pool vg/fast_cvol failed").
    with DmCacheStack(guest, cache_bytes=CACHE_BYTES, cachepool=True) as stack:
        fio.run(guest, fill_job(stack.device, Pieces(64, 100, 400)), seed=seed)
        settings = SETTINGS.format(stack.lvm_name)
        before = guest.check(settings).strip()
        with Product(guest) as running, users(guest, stack.device) as load:
            for command in COMMANDS:
                done = guest.run(command.format(stack.lvm_name), timeout_s=120)
                if done.rc:
                    said.append(f"{command}: exit {done.rc}: {done.stderr.strip()[-300:]}")
                goes_on(running, stack.lvm_name, command)
            alive = load.poll() is None
        after = guest.check(settings).strip()
        if after != before:
            said.append(f"before: {before}; after: {after}")
        with Product(guest):
            gone = guest.run(f"lvconvert -y --uncache {stack.lvm_name}", timeout_s=180)
        if gone.rc:
            said.append(f"lvconvert --uncache: exit {gone.rc}: {gone.stderr.strip()[-300:]}")
        stack.expect_changed("devices", "metadata", *stack.originals)
    found = {
        "failed": float(len(said)),
        "settings_differ": float(after != before),
        "users_failed": float(not alive),
    }
    return found, said


def goes_on(running: Product, title: str, command: str) -> None:
    """Wait until the daemon has looked at the volume for two seconds more: it has seen what the
    command did. By LVM's name: under a snapshot device-mapper calls the cached part vg-data-real.
    """

    def looked_at_ns() -> int:
        documents = [json.loads(text) for (text,) in running.rows("SELECT document FROM live")]
        return max((d["at_ns"] for d in documents if d.get("title") == title), default=0)

    why = f"the daemon to follow {title} after {command}"
    before_ns = running.wait_until(looked_at_ns, 60, why)
    running.wait_until(lambda: looked_at_ns() >= before_ns + 2 * NS_PER_S or None, 60, why)


def run(context: Context) -> Report:
    """Once: a command works or it does not."""
    runs: dict[str, list[dict[str, float]]] = {"ebbgate": []}
    with Guest() as guest:
        for repetition in range(context.repetitions):
            found, said = measure(guest, context.seed + repetition)
            runs["ebbgate"].append(found)
            context.say("  " + json.dumps(found))
            for line in said:
                context.say("  " + line)
    ratios = {name: max(r[name] for r in runs["ebbgate"]) for name in runs["ebbgate"][0]}
    return Report("lvm-coexist", runs, ratios, dict.fromkeys(ratios, "== 0"))


SCENARIO = Scenario(
    "lvm-coexist", "LVM commands work while ebbgate tunes, and keep their settings", 3, run
)

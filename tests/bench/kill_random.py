# SPDX-License-Identifier: GPL-2.0-only
"""kill9-random: the daemon is killed at random moments of a load with a gap every other second.

In the lab it has a SATA disk, and a policy that gives it bfq and, in gaps, a shallow queue.

Every other time the originals come back by `ebbgate restore`, else by the next daemon, which is
then stopped. Each time the knobs are compared with the originals, the history is checked, and each
decision that the daemon had logged a second or more before its death is looked for in it. A kill
takes half a minute on the real kernel in the lab; the variant `files` needs no lab (kill_files.py).
"""

from __future__ import annotations

import re
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from random import Random

from tests.bench.context import Context, Scenario
from tests.bench.faults import keep
from tests.bench.gap_drain import QUEUE_DEPTHS, shallow_policy
from tests.bench.kill_files import FileMachine
from tests.bench.product import STATE_DIR, Product
from tests.bench.report import Report
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.devices import Ssd, as_sold
from tests.lab.guest import Guest
from tests.lab.knobs import QUEUE_DEPTH
from tests.lab.session import Process, Session

FILES = "files"
KILLS = {"200": 200, "20": 20, FILES: 200}
LONGEST_S = 4.0
# What may be lost, and by how much a log line may differ from the row of its decision.
LOST_MS, APART_MS = 1000.0, 400.0
KEPT = "SELECT at_unix_ns FROM decisions"
NOTES = (
    "without a guest: the knobs are files and the probe plays a recording; the daemon, its journal,"
    " its history and `ebbgate restore` are real",
)
_LINE = re.compile(r"^(\S+ \S+),(\d+) \S+: idle_destage: ", re.M)


def bursts(guest: Session, device: str) -> Process:
    """A second of writes, a second of nothing, over and over."""
    options: dict[str, str | int] = {
        "size": "256M",
        "time_based": 1,
        "runtime": 6 * 3600,
        "thread": 1,
        "thinktime": "1s",
        "thinktime_blocks": 60,
    }
    words = fio.Job(device, "randwrite", "64k", options=options).arguments(seed=7)
    return guest.spawn(["fio", *words])


def one(guest: Session, stack: BcacheStack, random: Random, *, restart: bool) -> dict[str, float]:
    """A daemon's life from its start to what is left after its death."""
    product = Product(guest)
    product.start()
    # The moment is what is random; there is nothing to wait for.
    time.sleep(random.uniform(0.0, LONGEST_S))
    changed = stack.changed_knobs()
    killed_ms = float(guest.check(["date", "+%s%3N"]))
    log = product.stop(signal.SIGKILL)
    found = {
        "damaged": float(product.rows("PRAGMA integrity_check") != [("ok",)]),
        "lost": float(lost(product.rows(KEPT), log, killed_ms)),
    }
    if restart:
        product.start()
        product.stop(signal.SIGTERM)
    else:
        product.cli("restore")
    left = set(stack.changed_knobs()) - {"writeback_rate"}
    return {
        "touched": float(len(changed)),
        "shallow": float(QUEUE_DEPTH in changed),
        "left": float(len(left)),
        **found,
    }


def lost(rows: Sequence[tuple[int]], log: str, killed_ms: float) -> int:
    """Logged decisions, older than a second at the kill, that are not in `rows` (of KEPT)."""
    kept_ms = [at_ns / 1e6 for (at_ns,) in rows]
    logged_ms = [
        datetime.fromisoformat(at).timestamp() * 1000 + float(thousandths)
        for at, thousandths in _LINE.findall(log)
    ]
    due = [at_ms for at_ms in logged_ms if at_ms < killed_ms - LOST_MS]
    return sum(all(abs(at_ms - other) > APART_MS for other in kept_ms) for at_ms in due)


def in_lab(context: Context, restarts: Sequence[bool]) -> Iterator[dict[str, float]]:
    """On one real volume under one load."""
    random = Random(context.seed)
    devices = as_sold("hdd0"), Ssd("ssd0")
    with Guest(devices) as guest, BcacheStack(guest) as stack, ExitStack() as exits:
        stack.expect_changed("writeback_rate")
        guest.run(["rm", "-rf", STATE_DIR])
        exits.enter_context(shallow_policy(guest, QUEUE_DEPTHS["bfq"], "bfq"))
        keep(bursts(guest, stack.device), exits)
        for restart in restarts:
            yield one(guest, stack, random, restart=restart)


def on_files(context: Context, restarts: Sequence[bool]) -> Iterator[dict[str, float]]:
    """On one machine of files."""
    random = Random(context.seed)
    with tempfile.TemporaryDirectory() as name:
        machine = FileMachine(Path(name))
        for restart in restarts:
            found, log, killed_ms = machine.life(random, restart=restart)
            yield {**found, "lost": float(lost(machine.rows(KEPT), log, killed_ms))}


def run(context: Context) -> Report:
    """Two hundred times, or twenty."""
    variant = context.variant or "200"
    arms = [("restore", "restart")[n % 2] for n in range(KILLS[variant] * context.repetitions)]
    runs: dict[str, list[dict[str, float]]] = {"restore": [], "restart": []}
    lives = (on_files if variant == FILES else in_lab)(context, [a == "restart" for a in arms])
    for number, (arm, found) in enumerate(zip(arms, lives, strict=True)):
        runs[arm].append(found)
        context.say(f"kill {number + 1}: {found}")
    every = [found for each in runs.values() for found in each]
    ratios = {name: max(found[name] for found in every) for name in ("left", "damaged", "lost")}
    ratios["kills"] = float(len(every))
    # A kill that found nothing tuned proves nothing about knobs.
    ratios["tuned_share"] = sum(found["touched"] > 0 for found in every) / len(every)
    goals = {"left": "== 0", "damaged": "== 0", "lost": "== 0", "tuned_share": ">= 0.5"}
    goals["kills"] = f">= {KILLS[variant]}"
    if variant != FILES:
        ratios["shallow_share"] = sum(found["shallow"] for found in every) / len(every)
        goals["shallow_share"] = ">= 0.1"
    return Report("kill9-random", runs, ratios, goals, NOTES if variant == FILES else ())


SCENARIO = Scenario(
    "kill9-random",
    "killed at any moment: every knob restored, history intact, no decision lost",
    60,
    run,
    tuple(KILLS),
)

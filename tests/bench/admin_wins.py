# SPDX-License-Identifier: GPL-2.0-only
"""`admin-wins`: somebody else writes a knob that ebbgate controls, on a real bcache under load.

Each round: the write, until the daemon says whose knob it is now; two seconds in which it must
stay as it was written; `ebbgate release`, until the knob is tuned again. Times are the guest's own.
"""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from datetime import datetime

from tests.bench.context import Context, Scenario
from tests.bench.faults import keep, load
from tests.bench.product import Product
from tests.bench.report import Report
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.guest import Guest
from tests.lab.session import Session

ROUNDS = 10
KNOB = "writeback_percent"
THEIRS = "17"
TICK_MS = 250.0
RESPECT_S = 2.0
_SAID = re.compile(rf"^(\S+ \S+),(\d+) \S+: {KNOB} was changed by somebody else to {THEIRS}:", re.M)


def one_round(guest: Session, stack: BcacheStack, product: Product) -> dict[str, float]:
    """Return when the write was detected (ms), whether it was kept, and when tuned again (s)."""
    product.wait_until(lambda: stack.knob(KNOB) == "40", 30, "the knob to be ebbgate's")
    seen = len(_SAID.findall(product.log()))
    path = stack.knob_path(KNOB)
    written_ms = float(guest.check(f"echo {THEIRS} > {path}; date +%s%3N"))
    product.wait_until(lambda: len(_SAID.findall(product.log())) > seen, 30, "it to be seen")
    notice_ms = logged_ms(product.log()) - written_ms
    # Respect is a time in which nothing happens.
    time.sleep(RESPECT_S)
    respected = float(stack.knob(KNOB) == THEIRS)
    product.cli("release", stack.volume)
    began = time.monotonic()
    product.wait_until(lambda: stack.knob(KNOB) == "40", 30, "the knob to be taken back")
    return {
        "notice_ms": max(0.0, notice_ms),
        "respected": respected,
        "back_s": time.monotonic() - began,
    }


def logged_ms(log: str) -> float:
    """Return when the daemon last logged it: Unix time in ms, by the guest's clock."""
    at, thousandths = _SAID.findall(log)[-1]
    return datetime.fromisoformat(at).timestamp() * 1000 + float(thousandths)


def run(context: Context) -> Report:
    """One arm; rounds are its repetitions."""
    runs: list[dict[str, float]] = []
    with Guest() as guest, BcacheStack(guest) as stack, ExitStack() as exits:
        # What a person left in a knob that is released is its original from then on.
        stack.expect_changed("writeback_rate", KNOB)
        # Users without a pause: no gap opens the gate, so that the knob stays where it is.
        options: dict[str, str | int] = {"offset": "1G", "size": "900M", "rate_iops": 100}
        keep(load(guest, stack.device, "randread", "4k", **options), exits)
        with Product(guest, tick_ms=int(TICK_MS)) as product:
            dirty = {"size": "128m", "io_size": "32m"}
            fio.run(guest, fio.Job(stack.device, "randwrite", "64k", options=dirty), seed=1)
            for number in range(ROUNDS * context.repetitions):
                runs.append(one_round(guest, stack, product))
                context.say(f"round {number + 1}: {runs[-1]}")
    worst_ms = max(found["notice_ms"] for found in runs)
    ratios = {
        "notice_ticks_max": worst_ms / TICK_MS,
        "respected": min(found["respected"] for found in runs),
        "back_s_max": max(found["back_s"] for found in runs),
    }
    goals = {"notice_ticks_max": "<= 2", "respected": "== 1", "back_s_max": "<= 5"}
    return Report("admin-wins", {"admin": runs}, ratios, goals)


SCENARIO = Scenario(
    "admin-wins", "a value that somebody else writes is detected within two ticks and kept", 2, run
)

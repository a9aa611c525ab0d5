# SPDX-License-Identifier: GPL-2.0-only
"""kill9: the daemon dies in each state of the destage machine; knobs and data must survive it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import ExitStack

from tests.bench.context import Context, Scenario
from tests.bench.product import STATE_DIR, Product
from tests.bench.report import Report
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.devices import Hdd, Ssd
from tests.lab.guest import Guest
from tests.lab.session import Process, Session
from tests.lab.wait import wait_until

MIB = 1 << 20
DATA_MIB = 64
STATES = ("normal", "wait", "destage", "pressure")


def data_job(
    device: str, *, verify_only: bool, offset_mib: int = 0, mib: int = DATA_MIB
) -> fio.Job:
    """Random writes with checksums, or the check of what they wrote."""
    options: dict[str, str | int] = {
        "offset": f"{offset_mib}M",
        "size": f"{mib}M",
        "verify": "crc32c",
        "do_verify": int(verify_only),
        "verify_fatal": 1,
        "ioengine": "libaio",
        "iodepth": 8,
    }
    if verify_only:
        options["verify_only"] = 1
    return fio.Job(device, "randwrite", "16k", options=options)


def reader(session: Session, device: str) -> Process:
    """Random reads, some at a time: users who leave no gap, and who keep the disk busy however slow
    the guest is (else the machine drains beside them, since they would not feel it)."""
    return load(session, device, "randread", "4k", ioengine="libaio", iodepth=4)


def writer(session: Session, device: str) -> Process:
    """Random writes behind the checked data, fast enough to fill the small cache in seconds."""
    return load(session, device, "randwrite", "64k", ioengine="psync", offset="512M", size="1G")


def load(session: Session, device: str, rw: str, bs: str, **options: str | int) -> Process:
    """A load that lasts for longer than any state takes to be reached.

    In fio's own process: its children leave the process group and would survive it.
    """
    forever: dict[str, str | int] = {"thread": 1, "time_based": 1, "runtime": 300, **options}
    words = fio.Job(device, rw, bs, options=forever).arguments(seed=6)
    return session.spawn(["fio", *words])


def reach(stack: BcacheStack, product: Product, state: str, exits: ExitStack) -> None:
    """Bring the destage machine into `state`; the load that keeps it there ends with `exits`."""
    if state == "pressure":
        keep(writer(stack.session, stack.device), exits)
    elif state != "normal":
        users = keep(reader(stack.session, stack.device), exits)
        fio.run(stack.session, data_job(stack.device, verify_only=False), seed=5)
        if state == "destage":
            end(users)
    product.wait_until(lambda: phase(product) == state, 60, f"the destage machine to be in {state}")


def keep(process: Process, exits: ExitStack) -> Process:
    """Return the process and end it with `exits`: a volume in use cannot be taken down."""
    exits.callback(end, process)
    return process


def end(process: Process) -> None:
    """Kill it and wait for its end: a zombie is still found by its name."""
    process.kill(signal.SIGKILL)
    process.wait_at_most(10)


def phase(product: Product) -> str:
    """Return the state of the destage machine, from the daemon's last log line about it."""
    line = product.last_decision()
    return line.split(": idle_destage: ")[1].split(":")[0] if line else ""


def one(guest: Session, state: str, say: Callable[[str], None]) -> dict[str, float]:
    """Kill in one state, restore, compare, verify."""
    with BcacheStack(guest) as stack:
        stack.expect_changed("writeback_rate")
        guest.run(["rm", "-rf", STATE_DIR])
        product = Product(guest)
        with ExitStack() as exits:
            exits.callback(product.stop, signal.SIGKILL)
            product.start()
            reach(stack, product, state, exits)
            touched = len(stack.changed_knobs())
            # While its users go on: they end after it.
            product.stop(signal.SIGKILL)
        # The probe must end with its parent, without a command.
        wait_until(lambda: guest.run("pgrep -x ebbgate-probe").rc != 0, 10, "the probe to die")
        say(f"  {state}: {touched} knobs stood changed")
        product.cli("restore")
        left = {k: v for k, v in stack.changed_knobs().items() if k != "writeback_rate"}
        say(f"  {state}: left after restore: {left or 'none'}")
        bad = 0.0
        if state in ("wait", "destage"):
            check = fio.run(guest, data_job(stack.device, verify_only=True), seed=5)
            bad = float(check.only.read.bytes < DATA_MIB * MIB)
    return {"touched": float(touched), "left": float(len(left)), "bad_data": bad}


def run(context: Context) -> Report:
    """All states, on a cache that is small enough to come under pressure in seconds."""
    wanted = [s for s in STATES if context.variant in ("", s)]
    runs: dict[str, list[dict[str, float]]] = {state: [] for state in wanted}
    devices = (Hdd("hdd0"), Ssd("ssd0", size_bytes=256 * MIB))
    with Guest(devices) as guest:
        for repetition in range(context.repetitions):
            for state in wanted:
                context.say(f"kill -9 in {state}, repetition {repetition + 1}")
                runs[state].append(one(guest, state, context.say))
    every = [found for repetitions in runs.values() for found in repetitions]
    ratios = {
        "knobs_left": max(found["left"] for found in every),
        "bad_data": max(found["bad_data"] for found in every),
        "touched_min": min(found["touched"] for found in every),
    }
    goals = {"knobs_left": "== 0", "bad_data": "== 0", "touched_min": ">= 1"}
    return Report("kill9", runs, ratios, goals)


SCENARIO = Scenario(
    "kill9", "after kill -9, every knob is restored and no data is lost", 3, run, STATES
)

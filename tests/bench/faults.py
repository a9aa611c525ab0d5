# SPDX-License-Identifier: GPL-2.0-only
"""kill9: the daemon dies in each state of the destage machine; knobs and data must survive it."""

from __future__ import annotations

import signal
from collections.abc import Callable

from tests.bench.context import Context, Scenario
from tests.bench.product import PYTHON, Product
from tests.bench.report import Report
from tests.lab import fio
from tests.lab.devices import Hdd, Ssd
from tests.lab.guest import Guest
from tests.lab.session import Process, Session
from tests.lab.stack import BcacheStack
from tests.lab.wait import wait_until

MIB = 1 << 20
DATA_MIB = 64
READER = "import os,sys,time,random,mmap\n" + (
    "h=os.open(sys.argv[1],os.O_RDONLY|os.O_DIRECT);b=mmap.mmap(-1,4096)\n"
    "while True:\n os.preadv(h,[b],random.randrange(0,1<<18)*4096);time.sleep(0.005)\n"
)
STATES = ("normal", "wait", "destage", "pressure")


def data_job(device: str, *, verify_only: bool) -> fio.Job:
    """Random writes with checksums, or the check of what they wrote."""
    options: dict[str, str | int] = {
        "size": f"{DATA_MIB}M",
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
    """Random reads, 5 ms apart: users who never leave a gap."""
    return session.spawn([PYTHON, "-c", READER, device])


def writer(session: Session, device: str) -> Process:
    """Random writes behind the checked data, fast enough to fill the small cache in seconds."""
    words = ["fio", "--name=w", f"--filename={device}", "--rw=randwrite", "--bs=64k", "--direct=1"]
    words += ["--offset=512M", "--size=1G", "--time_based", "--runtime=60", "--ioengine=psync"]
    return session.spawn(words)


def reach(stack: BcacheStack, product: Product, state: str) -> list[Process]:
    """Bring the machine into `state`; returns what must go on until the daemon is dead."""
    session, load = stack.session, list[Process]()
    if state == "pressure":
        load.append(writer(session, stack.device))
    elif state != "normal":
        load.append(reader(session, stack.device))
        fio.run(session, data_job(stack.device, verify_only=False), seed=5)
        if state == "destage":
            load.pop().kill(signal.SIGKILL)
    wait_until(lambda: phase(product) == state, 60, f"the destage machine to be in {state}")
    return load


def phase(product: Product) -> str:
    """The machine's state, from the daemon's last line about it."""
    line = product.last_decision()
    return line.split(": idle_destage: ")[1].split(":")[0] if line else ""


def one(guest: Session, state: str, say: Callable[[str], None]) -> dict[str, float]:
    """Kill in one state, restore, compare, verify."""
    with BcacheStack(guest) as stack:
        stack.expect_changed("writeback_rate")
        guest.run(["rm", "-rf", "/run/ebbgate-state"])
        product = Product(guest)
        product.start()
        load = reach(stack, product, state)
        touched = set(stack.changed_knobs())
        product.stop(signal.SIGKILL)
        for process in load:
            process.kill(signal.SIGKILL)
        # The probe must go with its parent, without being told.
        wait_until(lambda: guest.run("pgrep -x ebbgate-probe").rc != 0, 10, "the probe to die")
        say(f"  {state}: {len(touched)} knobs stood changed")
        product.cli("restore")
        left = {k: v for k, v in stack.changed_knobs().items() if k != "writeback_rate"}
        say(f"  {state}: left after restore: {left or 'none'}")
        bad = 0.0
        if state in ("wait", "destage"):
            check = fio.run(guest, data_job(stack.device, verify_only=True), seed=5)
            bad = float(check.only.read.bytes < DATA_MIB * MIB)
    return {"touched": float(len(touched)), "left": float(len(left)), "bad_data": bad}


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


SCENARIO = Scenario("kill9", "a killed daemon leaves no knob and no data behind", 3, run, STATES)

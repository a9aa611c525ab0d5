# SPDX-License-Identifier: GPL-2.0-only
"""Runs in the guest: disturbs lives of the actuators on a real volume, one after another.

Arguments: `kill` or `errno`, the volume, how many, a seed, a folder. The disturbances are spread
evenly over the system calls of an undisturbed life. `kill`: the life is killed; beside every other
kill an administrator writes a knob. `errno`: the call fails, with one errno after the other. Then
`restore` runs in this process, which outlives them all, so that Python starts once. Says one JSON
object a line.

I/O: knobs of the kernel, children of this process.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ebbgate.model.decision import OutcomeKind
from tests.errno_harness import ERRNOS, ErrnoHarness
from tests.real_machine import RealMachine
from tests.stop_harness import others


def kills(machine: RealMachine, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """What each kill found."""
    calls = machine.calls()
    if machine.wrong():
        raise SystemExit(f"an undisturbed life leaves {machine.wrong()}")
    writable = others(machine.volume)
    for number in range(count):
        place = (number * len(calls) // count + seed - 1) % len(calls)
        by = writable[number // 2 % len(writable)] if number % 2 else ""
        began_s = time.monotonic()
        machine.reset()
        call = machine.stop_at(place, by)
        outcomes = machine.home.put_back()
        yield {
            "call": f"{call.name} {call.path}" if call else "",
            "touched": machine.touched,
            "by": by,
            "wrong": machine.wrong(by),
            "failed": [o.error for o in outcomes if o.kind is OutcomeKind.FAILED],
            "left": machine.home.left(),
            "seconds": round(time.monotonic() - began_s, 2),
        }
        machine.reset()


def faults(machine: RealMachine, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """What each call that failed has led to."""
    bench = ErrnoHarness(machine)
    for number in range(count):
        place = (number * len(bench.calls) // count + seed - 1) % len(bench.calls)
        found = bench.fails(place, ERRNOS[number % len(ERRNOS)])
        yield {
            "call": f"{found.call.name} {found.call.path}" if found.call else "",
            "errno": found.number,
            "broken": list(found.broken),
        }
    machine.reset()


def main() -> None:
    """All of them."""
    what, volume, count, seed, folder = sys.argv[1:]
    machine = RealMachine.of(volume, Path(folder))
    disturb = kills if what == "kill" else faults
    for found in disturb(machine, int(count), int(seed)):
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-only
"""Runs in the guest: kills lives of the actuators on a real volume, one after another.

Arguments: the volume, the number of kills, the first of them, a folder. The kills are spread evenly
over the system calls of an undisturbed life; beside every other kill an administrator writes a
knob. After each one `restore` runs in this process, which outlives them all, so that Python starts
once. Says one JSON object a line: first how many calls a life makes, then each kill.

I/O: knobs of the kernel, children of this process.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ebbgate.model.decision import OutcomeKind
from ebbgate.probes.knobs import knob_path
from ebbgate.probes.topology import find
from ebbgate.sysfs import Sysfs
from tests.knob_life import BY_ADMINISTRATOR, Home, knobs, wrong
from tests.syscalls import Child

BY_KERNEL = ("writeback_rate",)
"""The kernel's own loop writes it every few seconds: a new value tells nothing."""


def kills(home: Home, volume_name: str, count: int, first: int) -> Iterator[dict[str, Any]]:
    """What each kill found."""
    volume = find(home.sysfs, volume_name)
    writable = [knob for knob in knobs(volume) if knob in BY_ADMINISTRATOR]
    originals = steady(home.values(volume))
    below = (home.folder, "/sys/", "/dev/mapper/control")

    def child() -> Child:
        return Child(lambda: home.live(volume), below)

    renew(home)
    with child() as undisturbed:
        calls = list(undisturbed.calls())
    if undisturbed.exit_code or wrong(originals, home.values(volume)):
        raise SystemExit(f"a life ends with {undisturbed.exit_code}: {home.values(volume)}")
    yield {"calls": len(calls), "originals": originals}
    for number in range(first, first + count):
        place = number * len(calls) // count % len(calls)
        by = writable[number // 2 % len(writable)] if number % 2 else ""
        began_s = time.monotonic()
        renew(home)
        with child() as victim:
            for _ in range(place + 1):
                call = victim.next_call()
            before = home.values(volume)
            if by:
                home.administrator_writes(volume, by)
        outcomes = home.put_back()
        now = steady(home.values(volume))
        yield {
            "call": f"{call.name} {call.path}" if call else "",
            "touched": sorted(wrong(originals, steady(before))),
            "by": by,
            "wrong": wrong(originals, now, by),
            "failed": [o.error for o in outcomes if o.kind is OutcomeKind.FAILED],
            "left": home.left(),
            "seconds": round(time.monotonic() - began_s, 2),
        }
        for knob in wrong(originals, now):
            path = knob_path(volume, knob)
            assert path is not None
            home.sysfs.write_text(path, originals[knob])


def renew(home: Home) -> None:
    """An empty journal: each life makes the same calls, and finds no rest of the one before."""
    shutil.rmtree(home.folder, ignore_errors=True)
    home.folder.mkdir(parents=True)
    if home.left():
        raise SystemExit("a new journal is not empty")


def steady(values: dict[str, str]) -> dict[str, str]:
    """Those that only people and ebbgate write."""
    return {knob: value for knob, value in values.items() if knob not in BY_KERNEL}


def main() -> None:
    """All of them."""
    volume, count, first, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for found in kills(Home(Sysfs(), Path(folder), boot_id), volume, count, first):
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()

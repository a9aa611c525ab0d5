# SPDX-License-Identifier: GPL-2.0-only
"""errno-everywhere: each call on knobs, device-mapper and journal fails once, or hangs.

A child takes the knobs of a volume over, drives its gate and gives them back, through the real
KnobWriter and the real journal. One of its system calls returns EACCES, ENOMEM, EINTR, EIO or
ENOSPC (ptrace), and it goes on. In the end no original may be lost: a knob that is not back is
still in the journal, the failure is named, and named once, and a `restore` without a fault brings
all of it back. Variant `files`: every call with every errno on machines of files, the same for
`restore`, and calls of the journal's thread that hang. Variants `bcache` and `dm-cache`: a hundred
calls on the real kernel, the ioctls of device-mapper among them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from ebbgate.model.volume import Kind
from tests.bench.context import Context, Scenario
from tests.bench.disturbed import BCACHE, DM_CACHE, FILES, Found, by_variant, driven
from tests.bench.report import Report
from tests.errno_harness import ERRNOS, ErrnoHarness, FaultResult
from tests.lab.session import Session
from tests.stop_harness import Machine

FAULTS = 100


def on_files(context: Context) -> Iterator[Found]:
    """Every call of both kinds of volume."""
    with tempfile.TemporaryDirectory() as name:
        for made, part in ((Machine.bcache, "b"), (Machine.dm_cache, "d")):
            folder = Path(name, part)
            folder.mkdir()
            machine = made(folder / "machine")
            harness = ErrnoHarness(machine)
            title = machine.volume.name
            context.say(f"{title}: {len(harness.calls)} calls, {len(ERRNOS)} errnos")
            for place in range(len(harness.calls)):
                for number in ERRNOS:
                    yield _found(context, harness.fails(place, number))
            context.say(f"{title}: restore")
            yield from _restores(context, harness)
            context.say(f"{title}: hangs of the journal's disk")
            for place in range(0, len(harness.calls), 3):
                found = harness.hangs(place)
                if found.call is not None:
                    yield _found(context, found)


def _restores(context: Context, harness: ErrnoHarness) -> Iterator[Found]:
    moments = harness.machine.moments()
    held, place, ended = moments[len(moments) // 2][1], 0, False
    while not ended:
        for number in ERRNOS:
            found = harness.restore_fails(held, place, number)
            ended = found.call is None
            yield _found(context, found)
        place += 1


def _found(context: Context, found: FaultResult) -> Found:
    for text in found.broken:
        context.say(f"  {found.call} {found.number}: {text}")
    return {"broken": float(bool(found.broken))}


def in_lab(context: Context, guest: Session, kind: Kind) -> Iterator[Found]:
    """A hundred faults on a real volume."""
    for said in driven(guest, kind, "errno", FAULTS, context.seed):
        if said["broken"]:
            context.say(f"{kind}: {said}")
        yield {"broken": float(bool(said["broken"]))}


def run(context: Context) -> Report:
    """The variant, or all of them."""
    runs = by_variant(context, on_files, in_lab)
    ratios: dict[str, float] = {}
    goals: dict[str, str] = {}
    for variant, each in runs.items():
        ratios[f"{variant} broken"] = sum(found["broken"] for found in each)
        ratios[f"{variant} faults"] = float(len(each))
        goals |= {f"{variant} broken": "== 0", f"{variant} faults": f">= {FAULTS}"}
    return Report("errno-everywhere", runs, ratios, goals)


SCENARIO = Scenario(
    "errno-everywhere",
    "a system call on knobs or journal fails or hangs: no original lost, one report each",
    12,
    run,
    (FILES, BCACHE, DM_CACHE),
)

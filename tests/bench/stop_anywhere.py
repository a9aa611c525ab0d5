# SPDX-License-Identifier: GPL-2.0-only
"""stop-anywhere: kill the actuators at any system call; no original is lost or overwritten.

A child takes the knobs of a volume over, drives its gate and gives them back, through the real
KnobWriter and the real journal. It is killed before one of its system calls on knobs or journal
(ptrace), and `restore` runs in another process. Variant `files`: every call, on machines of files,
alone and with an administrator's write to each knob at that moment; then `restore` itself is killed
at each of its calls, and runs again. Variants `bcache` and `dm-cache`: 100 kills each on the real
kernel, spread over all calls, with an administrator's write beside every other one.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ebbgate.model.volume import Kind
from tests.bench.context import Context, Scenario
from tests.bench.disturbed import BCACHE, DM_CACHE, FILES, Found, by_variant, driven
from tests.bench.report import Report
from tests.lab.session import Session
from tests.stop_harness import Machine, others

KILLS = 100


def on_files(context: Context) -> Iterator[Found]:
    """Every call of both kinds of volume."""
    with tempfile.TemporaryDirectory() as name:
        for machine in (Machine.bcache(Path(name, "b")), Machine.dm_cache(Path(name, "d"))):
            calls = len(machine.moments())
            for by in ("", *others(machine.volume)):
                context.say(f"{machine.volume.name}: {calls} calls, {by or 'nobody'} beside them")
                for number in range(calls):
                    yield _one(machine, number, by)
            yield from _restores(machine, calls)


def _one(machine: Machine, number: int, by: str) -> Found:
    machine.reset()
    machine.stop_at(number, by)
    machine.home.put_back()
    return _found(machine.wrong(by), by, machine.home.left(), touched=bool(machine.touched))


def _restores(machine: Machine, calls: int) -> Iterator[Found]:
    """`restore` is killed at each of its calls, from three states of the knobs."""
    for middle in (calls // 3, calls // 2, calls * 2 // 3):
        number, ended = 0, False
        while not ended:
            machine.reset()
            machine.stop_at(middle)
            ended = machine.stop_at(number, work=machine.home.put_back) is None
            machine.home.put_back()
            yield _found(machine.wrong(), "", machine.home.left(), touched=bool(machine.touched))
            number += 1


def _found(wrong: dict[str, str], by: str, left: list[str], *, touched: bool) -> Found:
    return {
        "originals_lost": float(len(wrong.keys() - {by})),
        "overwritten": float(by in wrong),
        "left": float(len(left)),
        "touched": float(touched),
        "by_administrator": float(bool(by)),
    }


def in_lab(context: Context, guest: Session, kind: Kind) -> Iterator[Found]:
    """A hundred kills on a real volume."""
    for number, said in enumerate(driven(guest, kind, "kill", KILLS, context.seed), 1):
        wrong = said["wrong"]
        if wrong or said["left"] or said["failed"] or number % 10 == 0:
            context.say(f"{kind} kill {number}: {json.dumps(said)}")
        found = _found(wrong, said["by"], said["left"], touched=bool(said["touched"]))
        yield {**found, "seconds": said["seconds"]}


def run(context: Context) -> Report:
    """The variant, or all of them."""
    runs = by_variant(context, on_files, in_lab)
    ratios, goals = {}, {}
    for variant, found in runs.items():
        context.say(f"{variant}: {len(found)} kills")
        for name in ("originals_lost", "overwritten", "left"):
            ratios[f"{variant} {name}"] = sum(each[name] for each in found)
            goals[f"{variant} {name}"] = "== 0"
        ratios[f"{variant} kills"] = float(len(found))
        goals[f"{variant} kills"] = f">= {KILLS}"
        # A kill that found every knob untouched proves little.
        touched = [each["touched"] for each in found]
        ratios[f"{variant} touched_share"] = sum(touched) / len(touched)
        goals[f"{variant} touched_share"] = ">= 0.3"
    return Report("stop-anywhere", runs, ratios, goals)


SCENARIO = Scenario(
    "stop-anywhere",
    "killed at any system call: no original lost, no administrator's value overwritten",
    8,
    run,
    (FILES, BCACHE, DM_CACHE),
)

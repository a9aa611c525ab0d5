# SPDX-License-Identifier: GPL-2.0-only
"""A probe that plays recordings.

    python -m tests.fake_machine.fake_probe [--played NAME...] [--idle]

I/O: speaks the probe's protocol (bpf/README.md) on standard input and output. Recordings of real
caches (without names: two) are played in their own time, one after the other and over again, to
the first volume that is to be tracked; its counters go on, as those of a probe that saw it all.
With --idle it is the first tick of the first one alone, over and over: nobody uses the volume.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import FileIO
from itertools import cycle, zip_longest
from pathlib import Path
from typing import Any

from ebbgate.model.records import PROTOCOL_VERSION
from ebbgate.units import NS_PER_S

Record = dict[str, Any]
PLAYED = ("lab-mixed-stream", "lab-dm-gap-drain")
TICK_S = 0.25
_REFERENCES = [2 * (number % 200) for number in range(600)]
"""Sampled reads, of 200 blocks again and again; the recordings are older than this record."""
_MISSES = {"since_ns": 0, "chunks": [300, 40, 2, 0, 12, 5, 30, 7], "left_out": 3, "dropped": 0}
"""Misses of two chunks."""
_FOLDER = Path(__file__).parent.parent / "replay"
_COUNTED = {
    "tick": ("fg", "runs", "gaps", "gaps_ns", "path", "bypass", "destage", "lost"),
    "queue": ("done_ios", "done_bytes"),
    "edge": (),
}
_STAMPS = ("ns", "last_ns")


def main() -> None:
    """Until standard input ends or says `quit`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--played", nargs="+", default=PLAYED)
    parser.add_argument("--idle", action="store_true")
    wanted = parser.parse_args()
    # As the real probe does: a record must not wait for a processor behind other programs.
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    hello = {"t": "hello", "protocol": PROTOCOL_VERSION, "probe": "ebpf", "version": "recorded"}
    say({**hello, "ns": time.monotonic_ns(), "boot_id": "recorded", "signals": {}})
    # Unbuffered: a command must not wait behind another where `select` does not see it.
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as commands:
        for line in commands:
            words = line.decode().split()
            if words[0] in ("quit", "track"):
                break
        else:
            return
        if words[0] == "track":
            if wanted.idle:
                rest(words[1], wanted.played[0], commands)
            else:
                play(words[1], wanted.played, commands)


def play(volume: str, names: Sequence[str], commands: FileIO) -> None:
    """Play all recordings, endlessly."""
    say({"t": "track", "ns": time.monotonic_ns(), "vol": volume})
    say({"t": "reuse", "ns": time.monotonic_ns(), "vol": volume, "refs": _REFERENCES})
    say({"t": "heat", "ns": time.monotonic_ns(), "vol": volume, **_MISSES})
    before: Record = {}
    for name in cycle(names):
        records = list(read(name))
        shift_ns = time.monotonic_ns() - records[0]["ns"]
        last: Record = {}
        for record in records:
            moved = {key: record[key] + shift_ns for key in _STAMPS if key in record}
            if asked_to_end(commands, (moved["ns"] - time.monotonic_ns()) / NS_PER_S):
                return
            so_far = {key: record[key] for key in _COUNTED[record["t"]]}
            known = {key: so_far[key] for key in so_far if key in before}
            total = plus({key: before[key] for key in known}, known)
            say({**record, **so_far, **total, **moved, "vol": volume})
            last |= so_far
        before = plus(before, last)


def plus(one: Any, other: Any) -> Any:
    """Add numbers, and those of lists and objects with the same keys; keep the rest."""
    if isinstance(one, dict):
        return {**one, **other, **{key: plus(one[key], other[key]) for key in one if key in other}}
    if isinstance(one, list):
        return [plus(*pair) for pair in zip_longest(one, other, fillvalue=0)]
    return one + other


def rest(volume: str, name: str, commands: FileIO) -> None:
    """Repeat the first tick each quarter of a second, endlessly."""
    say({"t": "track", "ns": time.monotonic_ns(), "vol": volume})
    first = next(record for record in read(name) if record["t"] == "tick")
    shift_ns = time.monotonic_ns() - first["ns"]
    moved = {key: first[key] + shift_ns for key in _STAMPS if key in first}
    while not asked_to_end(commands, TICK_S):
        say({**first, **moved, "ns": time.monotonic_ns(), "vol": volume})


def read(name: str) -> Iterator[Record]:
    """Yield the records of one recording."""
    for line in (_FOLDER / f"{name}.jsonl").read_text().splitlines():
        record: Record = json.loads(line)
        if record["t"] in ("tick", "edge", "queue"):
            yield record


def asked_to_end(commands: FileIO, within_s: float) -> bool:
    """Wait `within_s` at most for `quit` or the end of the commands; ignore others."""
    due_s = time.monotonic() + within_s
    while (left_s := due_s - time.monotonic()) > 0:
        ready, _, _ = select.select([commands], [], [], left_s)
        if ready and commands.readline() in (b"", b"quit\n"):
            return True
    return False


def say(record: Record) -> None:
    """Print a line at once."""
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()

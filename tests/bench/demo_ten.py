# SPDX-License-Identifier: GPL-2.0-only
"""demo-10: `make demo` ten times in a row, as a person runs it, each in a temporary folder of its
own, which must be empty afterwards; and no process that it started may be left.

I/O: processes of this machine; each run boots a guest.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.context import Context, Scenario
from tests.bench.report import Report
from tests.lab import host

REPO = Path(__file__).resolve().parents[2]
RUNS = {"10": 10, "1": 1}
RUN_S = 900.0
END_S = 15.0
GOALS = {"failed": "== 0", "tracebacks": "== 0", "processes_left": "== 0", "files_left": "== 0"}
NOTES = ("each run is `make demo`, the first command of the README, with its output in a file",)
# What the demo's last lines are: one row of its table for each figure.
_TABLE_ROW = re.compile(
    r"^(foreground read|first request|drained|still dirty|stream|time to clean)"
)
_TABLE_ROWS = 8


def one(context: Context, folder: Path) -> dict[str, float]:
    """One run; `folder`: its temporary folder, by which its processes are found."""
    log = folder.with_suffix(".log")
    began_s = time.monotonic()
    code = demo(folder, log)
    seconds = time.monotonic() - began_s
    text = host.text_of(log)
    rows = sum(bool(_TABLE_ROW.match(line)) for line in text.splitlines())
    left = processes_left(folder)
    failed = code != 0 or rows != _TABLE_ROWS
    if failed:
        context.say(f"exit {code}, {rows} rows; it said last:")
        context.say("\n".join(text.splitlines()[-5:]))
    return {
        "failed": float(failed),
        "tracebacks": float(text.count("Traceback (most recent call last)")),
        "processes_left": float(len(left)),
        "files_left": float(len(list(folder.iterdir()))),
        "seconds": seconds,
    }


def demo(folder: Path, log: Path) -> int:
    """Run `make demo` to its end; the exit code, 124 where it had to be ended."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["make", "--no-print-directory", "demo"],
            cwd=REPO,
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(RUN_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return 124


def processes_left(folder: Path) -> list[int]:
    """Those that still name the folder a while after the end; the kernel takes them down."""
    deadline_s = time.monotonic() + END_S
    while (found := list(naming(folder))) and time.monotonic() < deadline_s:
        time.sleep(0.2)
    return found


def naming(folder: Path) -> Iterator[int]:
    """Processes with the folder in their command line or environment."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            except OSError:
                continue  # it has ended, or is another user's
            if str(folder).encode() in words:
                yield int(process.name)


def run(context: Context) -> Report:
    """Ten runs, or one."""
    variant = context.variant or "10"
    runs: dict[str, list[dict[str, float]]] = {"demo": []}
    with tempfile.TemporaryDirectory(prefix="ebbgate-demo-") as name:
        for number in range(RUNS[variant] * context.repetitions):
            folder = Path(name) / str(number)
            folder.mkdir()
            runs["demo"].append(one(context, folder))
            context.say(f"run {number + 1}: {runs['demo'][-1]}")
    ratios = {name: sum(found[name] for found in runs["demo"]) for name in GOALS}
    ratios["runs"] = float(len(runs["demo"]))
    ratios["seconds_max"] = max(found["seconds"] for found in runs["demo"])
    return Report("demo-10", runs, ratios, {**GOALS, "runs": f">= {RUNS[variant]}"}, NOTES)


SCENARIO = Scenario(
    "demo-10",
    "`make demo` works ten times in a row and leaves nothing behind",
    35,
    run,
    tuple(RUNS),
)

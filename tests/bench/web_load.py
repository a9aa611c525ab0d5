# SPDX-License-Identifier: GPL-2.0-only
"""`web-load`: what two hundred readers of the dashboard cost the daemon; needs no lab.

The real daemon and the real ebbgate-web, each a process of its own, over one day's history of 64
volumes that the daemon goes on writing. A machine without bcache has no such volumes: its /sys is
one of files, and its probe plays recordings (web_machine.py); what is measured is neither.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ebbgate.units import NS_PER_MS, NS_PER_S
from tests.bench.context import Context, Scenario
from tests.bench.report import Report, percentile, ratio
from tests.lab import host
from tests.lab.wait import wait_until
from tests.programs import ENVIRONMENT, REPO, web_words

UI = REPO / "build" / "webui"
VOLUMES, HOURS = 64, 24
ARM_S = 60
READERS, STREAMS, SLOW = 200, 50, 5
SETTLE_S = 10
TICK_NS = NS_PER_S // 4
_WEB_NICE, _READER_NICE = 10, 19
"""Of ebbgate-web as in its unit; of readers, which sit at other machines."""
_START_S = 1200.0
NOTES = (
    "without a guest: the daemon's /sys is made of files and its probe plays recordings; loop,"
    " decisions, history and ebbgate-web are real; it follows the 42 bcache volumes of 64",
    "readers ran on the same machine at low priority; each requests one route every 5 s",
    "web_cpu_s_per_1000: CPU time of ebbgate-web for 1000 answers and the event streams meanwhile",
    "jitter: difference between the time between two ticks and the period",
)


@dataclass(frozen=True, slots=True)
class Site:
    """All that runs. `port`: of ebbgate-web, which has the built pages."""

    folder: Path
    daemon: host.Running
    web: host.Running
    port: int


@contextmanager
def site(context: Context) -> Iterator[Site]:
    """From an empty folder; each process is ended by its own id."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as ended:
        folder = Path(name)
        context.say(f"a history of {HOURS} h of {VOLUMES} volumes")
        history = ["--volumes", str(VOLUMES), "--hours", str(HOURS)]
        _run(["-m", "tests.web_history", folder / "state", *history])
        daemon = _start(["-m", "tests.bench.web_machine", folder], folder / "daemon.log")
        ended.callback(host.stop, daemon, 30)
        wait_until(lambda: len(ticks(folder)) > 1, 60, "the first ticks")
        words = web_words(folder / "state", folder / "run", folder / "policies", UI)
        web = _start(words, folder / "web.log", _WEB_NICE)
        ended.callback(host.stop, web)
        wait_until(lambda: bool(_port(folder)), 60, "ebbgate-web")
        yield Site(folder, daemon, web, int(_port(folder)))


def _port(folder: Path) -> str:
    found = re.search(r"http://127\.0\.0\.1:(\d+)/", (folder / "web.log").read_text())
    return found[1] if found else ""


def _start(words: Sequence[str | Path], log: Path, niceness: int = 0) -> host.Running:
    return host.start(["env", ENVIRONMENT, sys.executable, *words], log, niceness=niceness)


def _run(words: Sequence[str | Path]) -> str:
    nice: list[str | Path] = ["nice", "-n", str(_READER_NICE), "env", ENVIRONMENT, sys.executable]
    return host.run([*nice, *words], timeout_s=_START_S)


def ticks(folder: Path) -> list[int]:
    """When the daemon's ticks began, CLOCK_MONOTONIC in ns."""
    with suppress(FileNotFoundError):
        lines = (folder / "ticks").read_text().splitlines(keepends=True)
        return [int(line) for line in lines if line.endswith("\n")]
    return []


def jitter_ms(at_ns: Sequence[int]) -> list[float]:
    """How far each time between two ticks is from the period."""
    return [abs(b - a - TICK_NS) / NS_PER_MS for a, b in itertools.pairwise(at_ns)]


def arm(running: Site, context: Context, seed: int, *, readers: bool) -> dict[str, float]:
    """One minute with or without them."""
    context.say("with readers" if readers else "without readers")
    time.sleep(SETTLE_S)
    began_ns, cpu_s = time.monotonic_ns(), host.cpu_seconds(running.daemon.pid)
    web_cpu_s = host.cpu_seconds(running.web.pid)
    found: dict[str, float] = {}
    if readers:
        load = [running.port, ARM_S, READERS, STREAMS, SLOW, seed]
        told = json.loads(_run(["-m", "tests.bench.web_readers", *map(str, load)]))
        found = dict(told["metrics"])
        if told["errors"]:
            context.say(f"errors: {told['errors']}")
        asked = found["requests_per_s"] * ARM_S
        found["web_cpu_s_per_1000"] = (host.cpu_seconds(running.web.pid) - web_cpu_s) / asked * 1000
        found["web_rss_mib_max"] = rss_max_kib(running.web.pid) / 1024
    else:
        time.sleep(ARM_S)
    ended_ns = time.monotonic_ns()
    spent_s = host.cpu_seconds(running.daemon.pid) - cpu_s
    seen = jitter_ms([each for each in ticks(running.folder) if began_ns <= each <= ended_ns])
    return found | {
        "jitter_ms_p50": median(seen),
        "jitter_ms_p99": percentile(seen, 0.99),
        "jitter_ms_max": max(seen),
        "ticks": len(seen),
        "daemon_cpu": spent_s / (ended_ns - began_ns) * NS_PER_S,
    }


def rss_max_kib(pid: int) -> int:
    """The most that was ever resident."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])  # type: ignore[index]


def run(context: Context) -> Report:
    """Both arms in turns, in one run of both processes."""
    runs: dict[str, list[dict[str, float]]] = {"without readers": [], "with readers": []}
    with site(context) as running:
        for number in range(context.repetitions):
            for name, found in runs.items():
                seed = context.seed + number
                found.append(arm(running, context, seed, readers=name == "with readers"))
    busy = runs["with readers"]
    ratios = {
        "jitter_p50": ratio(runs, "with readers", "without readers", "jitter_ms_p50", 0.1),
        "jitter_p99_more_ms": median(
            b["jitter_ms_p99"] - a["jitter_ms_p99"]
            for a, b in zip(runs["without readers"], busy, strict=True)
        ),
        "web_rss_mib_max": max(each["web_rss_mib_max"] for each in busy),
        "errors": sum(each["errors"] for each in busy),
        "slow_dropped": min(each["slow_dropped"] for each in busy),
    }
    goals = {
        # Of less than a millisecond: that is the scheduler's. A tenth of the period is reserved.
        "jitter_p50": "<= 2.0",
        "jitter_p99_more_ms": "<= 25",
        "web_rss_mib_max": "<= 150",
        "errors": "== 0",
        "slow_dropped": f"== {SLOW}",
    }
    return Report("web-load", runs, ratios, goals, NOTES)


SCENARIO = Scenario(
    "web-load", "200 readers and 50 event streams do not delay the daemon's ticks", 4, run
)

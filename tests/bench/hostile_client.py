# SPDX-License-Identifier: GPL-2.0-only
"""hostile-client: attack root's daemon with the web user's rights for ten minutes.

The daemon, its files, its socket and `ebbgate restore` are the real ones, on a machine of files to
which recordings of real caches are played (tests/fake_machine). Beside it: the attacker
(hostile_attacker.py), which also keeps the disk with the daemon's files busy, and two honest
clients, one of them root. Every few seconds `ebbgate restore` runs, with the daemon and, in the
first half, also after it was killed.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ebbgate.units import NS_PER_MS
from tests.bench.context import Context, Scenario
from tests.bench.edges import CLOSED_QUERY
from tests.bench.hostile_attacker import COUNTED
from tests.bench.hostile_machine import ATTACKER_UID, GID, HONEST_UID, HostileMachine
from tests.bench.report import Report, percentile
from tests.lab import host
from tests.lab.errors import NoLab

SECONDS: Final = {"10min": 600.0, "short": 60.0, "20s": 20.0}
TMPFS: Final = "/dev/shm"
DISK: Final = "/var/tmp"
"""For the daemon's state: /tmp may be in memory, where an fsync costs nothing."""
COMPARED_FROM_S: Final = 60.0
"""A shorter run has no measurement without the attacker to compare with."""
QUIET_S_MAX: Final = 15.0
RESTORE_EVERY_S: Final = 8.0
"""At most; a short run has time for three."""
KILL_EVERY: Final = 2
"""Each second restore of the first half, from the first on, is one without a daemon."""
_LOOK_S: Final = 1.0
_NAP_S: Final = 0.05
_NAPS: Final = 5
GOALS: Final = {
    "daemon_died": "== 0",
    "silence_ms_max": "<= 100",
    "close_p99_ms": "<= 20",
    "rss_mib_max": "<= 120",
    "restore_failed": "== 0",
    "honest_failed": "== 0",
    "honest_ms_max": "<= 1000",
    "outcome_ms_max": "<= 5000",
    "files_touched": "== 0",
    "root_files_opened": "== 0",
    "attacks_failed": "== 0",
    "attacks_missing": "== 0",
}
LEAST_A_MINUTE: Final = {
    "tried": 500.0,
    "locks": 100.0,
    "closed": 5.0,
    "restores": 3.0,
    "restores_alone": 0.5,
    "honest": 40.0,
    "syncs": 300.0,
}
"""Minimum amount of activity per minute for a valid result."""
NOTES: Final = (
    "without a guest: the knobs are files of a tmpfs and the probe plays recordings; the daemon,"
    " its socket, its history and `ebbgate restore` are real",
    "a test group stands for the group ebbgate; attacker and honest clients run at nice 10,"
    " as ebbgate-web does",
    "syncs: of small files that two processes of the attacker write and fsync all the time on the"
    " file system of the daemon's state and history",
    "honest_ms: from connecting until accepted or refused; outcome_ms: until the outcome, which"
    " includes the knob write and up to half a second while locks block the history; the command"
    " line waits up to 5 s",
    "quiet: the same measurement without the attacker; starved_ms_max: the time within 200 ms in"
    " which the daemon's loop was ready to run but had no core",
)
_ROOTS_OWN: Final = ("journal.db", "overrides.db", "ebbgated.lock")


def run(context: Context) -> Report:
    """Ten minutes, or less."""
    if os.geteuid() != 0:
        raise NoLab("no result: the daemon is root's here, and the attacker is not: run it as root")
    seconds = SECONDS[context.variant or "10min"]
    runs: dict[str, list[dict[str, float]]] = {"quiet": [], "attacked": []}
    for repetition in range(context.repetitions):
        with (
            tempfile.TemporaryDirectory(prefix="ebbgate-hostile-", dir=DISK) as name,
            tempfile.TemporaryDirectory(prefix="ebbgate-hostile-sys-", dir=TMPFS) as memory,
        ):
            machine = HostileMachine(Path(name), Path(memory))
            machine.begin()
            try:
                if seconds >= COMPARED_FROM_S:
                    runs["quiet"].append(quiet(machine, min(QUIET_S_MAX, seconds / 4)))
                    # A new one, whose longest silence is of the attack.
                    machine.end()
                    machine.begin()
                    context.say(f"without the attacker: {runs['quiet'][-1]}")
                seed = context.seed + repetition
                runs["attacked"].append(attacked(context, machine, seconds, seed))
            finally:
                machine.end()
        context.say(f"attacked: {runs['attacked'][-1]}")
    ratios = {name: max(found[name] for found in runs["attacked"]) for name in GOALS}
    ratios["starved_ms_max"] = max(found["starved_ms_max"] for found in runs["attacked"])
    minutes = seconds / 60
    more = {name: least * minutes for name, least in LEAST_A_MINUTE.items()}
    ratios |= {name: min(found[name] for found in runs["attacked"]) for name in more}
    goals = {**GOALS, **{name: f">= {least:g}" for name, least in more.items()}}
    return Report("hostile-client", runs, ratios, goals, NOTES)


def quiet(machine: HostileMachine, seconds: float) -> dict[str, float]:
    """Measure with the honest clients alone."""
    began_ns = time.time_ns()
    silence = Silence(machine)
    clients = honest(machine, seconds, 0)
    watch(machine, silence, seconds)
    found = answered([finished(machine, client, name) for name, client in clients.items()])
    return {**found, **closes(machine, began_ns), **silence.figures()}


def attacked(
    context: Context, machine: HostileMachine, seconds: float, seed: int
) -> dict[str, float]:
    """Measure with the attacker, and restore over and over."""
    began_ns = time.time_ns()
    silence = Silence(machine)
    until_s = time.monotonic() + seconds
    log = machine.folder / "attacker.log"
    words = (seconds, seed, ATTACKER_UID, GID)
    attacker = machine.helper("tests.bench.hostile_attacker", log, *words)
    clients = honest(machine, seconds, seed)
    restores, alone, failed, longest_s = 0, 0, 0, 0.0
    every_s = min(RESTORE_EVERY_S, seconds / 4)
    while (left_s := until_s - time.monotonic()) > every_s:
        watch(machine, silence, every_s)
        restores += 1
        without = left_s > seconds / 2 and restores % KILL_EVERY == 1
        works, took_s = (restore_alone if without else restore_beside)(machine)
        alone += without
        failed += not works
        longest_s = max(longest_s, took_s)
        how = "without a daemon" if without else "beside the daemon"
        context.say(f"restore {how}: {'ok' if works else 'FAILED'} in {took_s:.1f} s")
    watch(machine, silence, max(0.0, left_s))
    tried = finished(machine, attacker, "attacker")
    told = [finished(machine, client, name) for name, client in clients.items()]
    machine.look()
    context.say(f"the attacker: {tried}")
    return {
        **answered(told),
        **closes(machine, began_ns),
        "daemon_died": float(machine.died),
        **silence.figures(),
        "rss_mib_max": machine.rss_kib_max / 1024,
        "restores": float(restores),
        "restores_alone": float(alone),
        "restore_failed": float(failed),
        "restore_s_max": longest_s,
        "files_touched": float(tried.get("files_touched", 0)),
        "root_files_opened": float(sum(tried.get(f"opened {name}", 0) for name in _ROOTS_OWN)),
        "attacks_failed": float(tried["attacks_failed"]),
        "attacks_missing": float(sum(tried.get(name, 0) == 0 for name in COUNTED)),
        "locks": float(tried.get("locks", 0)),
        "syncs": float(tried.get("syncs", 0)),
        "tried": float(sum(tried.get(name, 0) for name in ("bad_lines", "flooded", "deaf_lines"))),
    }


def watch(machine: HostileMachine, silence: Silence, seconds: float) -> None:
    """Watch the machine for this time."""
    until_s = time.monotonic() + seconds
    next_s = 0.0
    while (now_s := time.monotonic()) < until_s:
        if now_s >= next_s:
            next_s = now_s + _LOOK_S
            machine.look()
            silence.look()
        time.sleep(_NAP_S)
        silence.look_at_cores()


def restore_beside(machine: HostileMachine) -> tuple[bool, float]:
    """By the running daemon; an honest client has it tune again right after, so that what it
    left is not compared.
    """
    with machine.alone():
        return machine.restores()


def restore_alone(machine: HostileMachine) -> tuple[bool, float]:
    """After a crash, with the attacker's locks on whatever it could open."""
    with machine.alone():
        machine.kill()
        found = machine.restores()
        machine.begin()
    return found


class Silence:
    """The daemon's own account of its event loop, over all daemons of a run."""

    def __init__(self, machine: HostileMachine) -> None:
        self._machine = machine
        self.ms_max = float("nan")
        self.log_mib_max = 0.0
        self.starved_ms_max = 0.0
        self._waited_ns: deque[int] = deque(maxlen=_NAPS)
        self._pid = 0

    def look_at_cores(self) -> None:
        """How long the event loop's thread was ready to run, of the last fifth of a second, and
        had no core: no silence of its own making.
        """
        pid, waited_ns = self._machine.waited_ns()
        if pid != self._pid:
            # Another daemon: what the one before waited says nothing of it.
            self._pid = pid
            self._waited_ns.clear()
        self._waited_ns.append(waited_ns)
        starved_ns = waited_ns - self._waited_ns[0]
        self.starved_ms_max = max(self.starved_ms_max, starved_ns / NS_PER_MS)

    def figures(self) -> dict[str, float]:
        """The worst of each."""
        return {
            "silence_ms_max": self.ms_max,
            "log_mib_max": self.log_mib_max,
            "starved_ms_max": self.starved_ms_max,
        }

    def look(self) -> None:
        """Keep the worst so far; NaN until a daemon has said it."""
        silence_ns = (self._machine.daemon_status().get("loop_silence") or {}).get("max_ns")
        if silence_ns is not None:
            ms = silence_ns / NS_PER_MS
            self.ms_max = ms if self.ms_max != self.ms_max else max(self.ms_max, ms)
        with suppress(FileNotFoundError):
            size_bytes = (self._machine.folder / "state/history.db-wal").stat().st_size
            self.log_mib_max = max(self.log_mib_max, size_bytes / 2**20)


def honest(machine: HostileMachine, seconds: float, seed: int) -> dict[str, host.Running]:
    """Root, and another user of the group."""
    found = {}
    for name, uid in (("root", 0), ("member", HONEST_UID)):
        log = machine.folder / f"{name}.log"
        log.unlink(missing_ok=True)
        words = (seconds, seed, uid, GID)
        found[name] = machine.helper("tests.bench.hostile_honest", log, *words)
    return found


def finished(machine: HostileMachine, process: host.Running, name: str) -> Any:
    """Return the JSON document in the last line of a helper's output."""
    process.wait(60)
    lines = host.text_of(machine.folder / f"{name}.log").splitlines()
    for line in lines[:-1][:20]:
        print(f"  {name}: {line}", flush=True)
    return json.loads(lines[-1])


def answered(told: Sequence[list[dict[str, Any]]]) -> dict[str, float]:
    """Return how long honest clients waited until accepted, and until the outcome."""
    served = [one for each in told for one in each]
    answers, outcomes = ([one[name] for one in served] for name in ("answered_ms", "outcome_ms"))
    return {
        "honest": float(len(served)),
        "honest_failed": float(sum(bool(one["why"]) for one in served)),
        "honest_ms_p50": percentile(answers, 0.5),
        "honest_ms_max": max(answers),
        "outcome_ms_p50": percentile(outcomes, 0.5),
        "outcome_ms_max": max(outcomes),
    }


def closes(machine: HostileMachine, since_ns: int) -> dict[str, float]:
    """How long after a returning request its gate was closed, of all since then."""
    rows = machine.rows(f"{CLOSED_QUERY} AND at_unix_ns >= {since_ns}")
    latencies_ms = [row[0] / NS_PER_MS for row in rows] or [float("nan")]
    return {
        "closed": float(len(rows)),
        "close_p99_ms": percentile(latencies_ms, 0.99),
        "close_ms_max": max(latencies_ms),
    }


SCENARIO = Scenario(
    "hostile-client",
    "a client with the web user's rights cannot harm root's daemon",
    11,
    run,
    tuple(SECONDS),
)

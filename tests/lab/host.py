# SPDX-License-Identifier: GPL-2.0-only
"""Run programs on the host: the only door to `subprocess` in the lab's host side.

I/O: starts processes.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab.errors import CommandFailed, NoLab
from tests.programs import ENDS_WITH_STARTER

# A program of `start` that runs.
Running = subprocess.Popen[bytes]


def need(*programs: str) -> None:
    """Raise NoLab unless every program is installed."""
    missing = [p for p in programs if find(p) is None]
    if missing:
        raise NoLab(f"no lab here: {', '.join(missing)} not installed (see tests/lab/README.md)")


def find(program: str) -> str | None:
    """Path of a program; the sbin folders count, since a user's PATH may lack them."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 300,
) -> str:
    """Run a program to its end and return its stdout; CommandFailed if it fails."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandFailed(f"{shlex.join(words)}: {error}") from error
    if done.returncode != 0:
        raise CommandFailed(f"{shlex.join(words)}: exit {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def start(
    argv: Sequence[str | Path],
    log: Path,
    *,
    cwd: Path | None = None,
    niceness: int = 0,
    outlive: bool = False,
) -> Running:
    """Start a long-running program with its output appended to `log`; the caller ends it.

    niceness: -20..19; a negative one is granted to root only, others go without.
    outlive: it may run on after us; any other is ended by the kernel even if we are killed.
    """
    prefix: list[str] = [] if outlive else [*ENDS_WITH_STARTER]
    if niceness and os.geteuid() == 0:
        prefix += ["nice", "-n", str(niceness)]
    with log.open("ab") as out:
        process = subprocess.Popen(
            [*prefix, *(str(word) for word in argv)],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    if niceness:
        _set_session_niceness(process.pid, niceness)
    return process


def _set_session_niceness(pid: int, niceness: int) -> None:
    """Where the kernel weighs sessions (sched(7), autogroup), a process's own niceness is one
    within its session only.
    """
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(f"{niceness}\n")


def stop(process: Running, grace_s: float = 5) -> None:
    """End a program of `start`: politely, then by force; returns once it is gone."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(grace_s)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def cpu_seconds(pid: int) -> float:
    """What a process and its threads have spent (proc(5), stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def scheduled_ns(pid: int) -> dict[int, tuple[int, int]]:
    """What the threads of a process had of the cores (sched-stats.rst, `/proc/PID/schedstat`): how
    long each was on one, and how long it was ready to run and had none.
    """
    found = {}
    # Threads end while they are listed, and the process may have ended as a whole.
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found[int(thread.name)] = thread_scheduled_ns(pid, int(thread.name))
    return found


def thread_scheduled_ns(pid: int, thread: int) -> tuple[int, int]:
    """The same of one thread. Raises OSError if it has ended."""
    text = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text()
    ran, waited = text.split()[:2]
    return int(ran), int(waited)


def text_of(path: Path) -> str:
    """What a file holds that may not be there yet, or no more: empty without one."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""

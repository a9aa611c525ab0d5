# SPDX-License-Identifier: GPL-2.0-only
"""Programs that a test starts, asks and ends. I/O: processes, HTTP on the loopback.

What was started is ended by its process id.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

REPO = Path(__file__).resolve().parent.parent
PATIENCE_S = 150.0
ENVIRONMENT = f"PYTHONPATH={REPO / 'controller'}:{REPO}"
"""What `env` needs to run a program of this repository."""
ENDS_WITH_STARTER = ("setpriv", "--pdeathsig", "KILL")
"""Before a command: the kernel kills it when the thread that started it ends, even by SIGKILL."""
_END_S = 15.0
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
Found = TypeVar("Found")


def get(url: str, **headers: str) -> str:
    """What a server answers. Raises OSError where it does not."""
    request = urllib.request.Request(url, headers=headers)
    with _OPENER.open(request, timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def until(what: str, look: Callable[[], Found | None], patience_s: float = PATIENCE_S) -> Found:
    """The first answer that is one; a server that is not there yet has none."""
    deadline_s, pause_s, why = time.monotonic() + patience_s, 0.02, "nothing"
    while time.monotonic() < deadline_s:
        try:
            found = look()
        except OSError as error:
            found, why = None, str(error)
        if found:
            return found
        time.sleep(pause_s)
        pause_s = min(0.5, pause_s * 1.5)
    raise AssertionError(f"{what} did not come true in {patience_s:g} s; last: {why}")


@dataclass(slots=True)
class Program:
    """One process; `log`: what it wrote to standard output and error."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self, pattern: str) -> str | None:
        """Return the first group of the first match in its log.

        Raises AssertionError if it ended without one.
        """
        ended = self.process.poll() is not None
        # Read after the look at the process, which may write its last line and end meanwhile.
        text = self.log.read_text()
        match = re.search(pattern, text)
        assert match or not ended, f"ended: {text[-2000:]}"
        return match[1] if match else None

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """By its id; with SIGKILL where it does not hear."""
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def environment() -> dict[str, str]:
    """That of a program of this repository."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPO / "controller"), str(REPO)])}


def command(argv: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(argv, env=environment(), capture_output=True, text=True, check=False)


@contextmanager
def running(folder: Path, name: str, argv: Sequence[str | Path]) -> Iterator[Program]:
    """Run a program while the body does."""
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*ENDS_WITH_STARTER, *argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment(),
            cwd=folder,
        )
    program = Program(process, log)
    try:
        yield program
    finally:
        program.end()


def web_words(
    state: Path, runtime: Path, policies: Path, pages: Path, port: int = 0
) -> list[str | Path]:
    """Return the module and the options of ebbgate-web on a port of the loopback."""
    words: list[str | Path] = ["-m", "ebbgate.web", "--listen", f"127.0.0.1:{port}"]
    words += ["--state-dir", state, "--runtime-dir", runtime, "--policy-dir", policies]
    return [*words, "--ui", pages, *(["--as-root"] if os.geteuid() == 0 else [])]


def free_port() -> int:
    """A port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port

# SPDX-License-Identifier: GPL-2.0-only
"""ebbgate itself in the guest: the real daemon on the real volume.

I/O: compiles the package on the host, starts and stops the daemon in the guest.
"""

from __future__ import annotations

import compileall
import contextlib
import functools
import json
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self, TypeVar

from tests.lab.errors import CommandFailed, LabError
from tests.lab.session import Process, Session
from tests.lab.sync_tree import mirror
from tests.lab.wait import wait_until

REPO = Path(__file__).resolve().parents[2]
SITE = REPO / "build" / "site"
PROBE = REPO / "build" / "ebbgate-probe"
STATE_DIR = "/run/ebbgate-state"
RUNTIME_DIR = "/run/ebbgate-runtime"
POLICIES = "/etc/ebbgate/policies.d"
FOLDERS = ("--state-dir", STATE_DIR, "--runtime-dir", RUNTIME_DIR)
PYTHON = "/usr/bin/python3"

_LIVE = "SELECT document FROM live WHERE volume <> ''"

T = TypeVar("T")


@functools.cache
def stage() -> Path:
    """A compiled copy of the package: under emulation compiling at import takes many seconds.

    Once for all daemons of a run, which so run the same code even if it is edited meanwhile.
    """
    target = SITE / "ebbgate"
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(REPO / "policies", SITE / "policies")
    if (REPO / "build" / "webui").is_dir():
        shutil.copytree(REPO / "build" / "webui", SITE / "webui")
    shutil.copytree(
        REPO / "controller" / "ebbgate", target, ignore=shutil.ignore_patterns("__pycache__")
    )
    with compiled_files_beside_sources():
        if not compileall.compile_dir(target, quiet=1):
            raise RuntimeError("the package does not compile")
    return SITE


@contextlib.contextmanager
def compiled_files_beside_sources() -> Iterator[None]:
    """Ignore PYTHONPYCACHEPREFIX: the guest reads what lies in the copy, and nothing else."""
    prefix, sys.pycache_prefix = sys.pycache_prefix, None
    try:
        yield
    finally:
        sys.pycache_prefix = prefix


def stage_in_guest(session: Session) -> Path:
    """The same, as a guest sees it."""
    site = stage()
    mirror(session, site)
    return site


class Product:
    """The daemon, as a context manager. Leaving it is a SIGTERM: every knob must be back."""

    def __init__(self, session: Session, *, mode: str = "enforce", tick_ms: int = 250) -> None:
        self.session = session
        self._mode = mode
        self._tick_ms = tick_ms
        self.site = stage_in_guest(session)
        self.daemon: Process | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the daemon; returns once it acts on frames of its own probe."""
        argv = [PYTHON, "-m", "ebbgate.daemon.main", *FOLDERS, "--probe", str(PROBE)]
        argv += ["--mode", self._mode, "--tick-ms", str(self._tick_ms)]
        self.daemon = self.session.spawn(argv, env={"PYTHONPATH": str(self.site)})
        self.wait_until(self._ready, 60, "the daemon to see the volume through its probe")

    def stop(self, number: int = signal.SIGTERM) -> str:
        """End the daemon; returns its log."""
        daemon, self.daemon = self.daemon, None
        if daemon is None:
            return ""
        daemon.kill(number)
        daemon.wait(30)
        return daemon.stderr()

    @property
    def pid(self) -> int:
        """Of the daemon that runs."""
        assert self.daemon is not None
        return self.daemon.pid

    def log(self) -> str:
        """What the daemon has logged so far."""
        return self.daemon.stderr() if self.daemon else ""

    def wait_until(self, condition: Callable[[], T | None], timeout_s: float, what: str) -> T:
        """As wait.wait_until; a failure shows the end of the daemon's log."""
        try:
            return wait_until(condition, timeout_s, what)
        except LabError as error:
            error.add_note("the daemon's log ends:\n" + "\n".join(self.log().splitlines()[-20:]))
            raise

    def cli(self, *words: str, timeout_s: float = 60) -> str:
        """Run a command of the CLI in the guest; returns its output."""
        # On a slow hour of the host the emulated daemon takes seconds for what takes it none.
        argv = [PYTHON, "-m", "ebbgate", *FOLDERS, "--patience", "40", *words]
        env = {"PYTHONPATH": str(self.site), "EBBGATE_PROBE": str(PROBE)}
        done = self.session.run(argv, env=env, timeout_s=timeout_s)
        return done.check().stdout

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Rows of the history (the daemon may be running or dead); CommandFailed without one."""
        return self.session.query(f"{STATE_DIR}/history.db", query)

    def live(self, volume: str) -> dict[str, Any]:
        """The live document of a volume."""
        rows = self.rows(f"SELECT document FROM live WHERE volume = '{volume}'")
        return dict(json.loads(rows[0][0])) if rows else {}

    def last_decision(self) -> str:
        """The last line about the destage machine."""
        lines = [line for line in self.log().splitlines() if ": idle_destage: " in line]
        return lines[-1] if lines else ""

    def _ready(self) -> bool:
        if self.daemon is not None and self.daemon.poll() is not None:
            raise RuntimeError(f"the daemon ended:\n{self.daemon.stderr()[-2000:]}")
        if self._mode == "observe":
            # Nothing is decided then: what it sees is all there is to see.
            return self._sees()
        return bool(self.last_decision()) and "unknown" not in self.last_decision()

    def _sees(self) -> bool:
        # One that is just starting has the file, but not yet its tables.
        with contextlib.suppress(CommandFailed):
            return any(json.loads(text).get("foreground") for (text,) in self.rows(_LIVE))
        return False

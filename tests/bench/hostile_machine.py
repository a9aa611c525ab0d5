# SPDX-License-Identifier: GPL-2.0-only
"""The machine of files that the hostile client attacks: a daemon of root's whose folders and socket
belong to a group, as the installed ones do, and clients of that group.

I/O: processes, files and their owners; needs root.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tests.bench.hostile_attacker import SCRATCH, SOCKET
from tests.bench.hostile_honest import TURN
from tests.bench.kill_files import FileMachine
from tests.bench.raw_control_client import RawControlClient
from tests.lab import host
from tests.lab.errors import CommandFailed
from tests.lab.wait import wait_until
from tests.programs import ENVIRONMENT

ATTACKER_UID: Final = 64990
HONEST_UID: Final = 64991
GID: Final = 64990
"""Stands for the group ebbgate, which a machine of a test need not have."""
NICE: Final = 10
"""As in ebbgate-web.service: clients must not slow the daemon down."""


class HostileMachine(FileMachine):
    """One folder, one daemon at a time, and the unprivileged processes beside it."""

    def __init__(self, folder: Path, memory: Path) -> None:
        """`memory`: an empty folder of a tmpfs, for what is in memory on a real machine, too.

        That is /sys, /run, and the log, which goes to a socket. A write to them waits for no disk;
        one to ext4 waits for its journal while other programs write.
        """
        for path in (folder, memory):
            path.chmod(0o755)
        for name in ("sys", "run"):
            (memory / name).mkdir()
            (folder / name).symlink_to(memory / name)
        super().__init__(folder)
        scratch = folder / SCRATCH
        scratch.mkdir(mode=0o700)
        os.chown(scratch, ATTACKER_UID, GID)
        self.log = memory / "log"
        self.socket = folder / SOCKET
        self.daemon: host.Running | None = None
        self.died = 0
        """How often a daemon ended unexpectedly."""
        self.rss_kib_max = 0
        self._turn = folder / TURN
        self._turn.touch(mode=0o600)

    def begin(self) -> None:
        """Start a daemon; return once it decides, and the group may reach it."""
        self.daemon = self.start()
        wait_until(self._greets, 60, "the control socket")
        self.share()
        self.wait_for_decision()

    def _greets(self) -> bool:
        """Whether the socket is that of the daemon that was started last."""
        assert self.daemon is not None
        with suppress(OSError, ValueError), RawControlClient(self.socket) as line:
            return bool(line.receive().get("pid") == self.daemon.pid)
        return False

    def share(self) -> None:
        """Grant this group what the daemon grants the group ebbgate."""
        for path in (self.socket.parent, self.folder / "state"):
            path.chmod(0o2750)
            os.chown(path, 0, GID)
        for path in (self.folder / "state").glob("history.db*"):
            # The log comes and goes; SQLite gives it the owner of its file.
            with suppress(FileNotFoundError):
                os.chown(path, 0, GID)
        os.chown(self.socket, 0, GID)
        self.socket.chmod(0o660)

    def look(self) -> None:
        """Count and replace a daemon that ended by itself; note its memory."""
        assert self.daemon is not None
        if self.daemon.poll() is not None:
            self.died += 1
            self.begin()
            return
        for line in host.text_of(Path(f"/proc/{self.daemon.pid}/status")).splitlines():
            if line.startswith("VmHWM:"):
                self.rss_kib_max = max(self.rss_kib_max, int(line.split()[1]))

    def waited_ns(self) -> tuple[int, int]:
        """Return the daemon's pid and how long its main thread has waited for a core so far."""
        assert self.daemon is not None
        _ran, waited = host.scheduled_ns(self.daemon.pid).get(self.daemon.pid, (0, 0))
        return self.daemon.pid, waited

    def kill(self) -> None:
        """End the daemon as a crash would."""
        assert self.daemon is not None
        self.look()
        self.daemon.kill()
        self.daemon.wait()

    def end(self) -> None:
        """Stop the daemon as systemd does."""
        if self.daemon is not None:
            host.stop(self.daemon, 30)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Run the body while no request of an honest client is in progress."""
        with self._turn.open("wb") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            yield

    def restores(self) -> tuple[bool, float]:
        """Run `ebbgate restore`; return whether it restored every knob, and its duration."""
        began_s = time.monotonic()
        try:
            host.run(self.argv("restore"), timeout_s=60)
        except CommandFailed as error:
            print(f"restore: {error}", file=sys.stderr)
            return False, time.monotonic() - began_s
        took_s = time.monotonic() - began_s
        if left := self.changed():
            print(f"restore: left changed: {left}", file=sys.stderr)
        return not left, took_s

    def daemon_status(self) -> dict[str, Any]:
        """Return the daemon's newest status document; empty where it cannot be read."""
        path = self.folder / "state/history.db"
        with (
            suppress(sqlite3.Error),
            closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=5)) as history,
        ):
            for (text,) in history.execute("SELECT document FROM live WHERE volume = ''"):
                found: dict[str, Any] = json.loads(text)
                return found
        return {}

    def helper(self, module: str, log: Path, *words: str | int | float) -> host.Running:
        """Start a module of this repository, which drops root itself, at low priority."""
        argv: list[str | Path] = ["env", ENVIRONMENT, sys.executable, "-m", module, self.folder]
        return host.start([*argv, *map(str, words)], log, niceness=NICE)

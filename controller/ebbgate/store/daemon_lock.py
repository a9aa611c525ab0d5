# SPDX-License-Identifier: GPL-2.0-only
"""Lets one process write knobs: a daemon or an `ebbgate restore`. I/O: one file, /proc.

Only root may open the file, which names the holder: process id, start time and role. The kernel
drops the lock when the holder dies. What counts is whether the named process lives, not the lock
alone: a lock held by another process (a child that hangs in the kernel, or another program) stops
no restore.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from ebbgate.errors import AlreadyRunning, PermissionDenied, Unavailable

_LOOK_EVERY_S: Final = 0.02
_SETTLE_S: Final = 0.1
"""Between replacing the file and checking whether another process did the same."""
_ROOT_ONLY: Final = 0o600
_LINE_BYTES: Final = 256
_WORDS: Final = 3
_PROC: Final = Path("/proc")
_START: Final = 19
"""Index of the start time in /proc/PID/stat, counted from the state."""
_DEAD: Final = ("Z", "X")


class LockRole(StrEnum):
    """What the holder of the lock is."""

    DAEMON = "ebbgated"
    RESTORE = "ebbgate restore"


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that has the lock. `start`: in kernel ticks, since process ids are reused."""

    pid: int
    start: str
    role: LockRole


class LockHeld(AlreadyRunning):
    """A living process of ebbgate has the lock."""

    def __init__(self, holder: Holder) -> None:
        hints = {
            # Two would write the same knobs, and restore each other's, whatever folders they have.
            LockRole.DAEMON: "stop it with `systemctl stop ebbgated`",
            LockRole.RESTORE: "it takes seconds: try again",
        }
        super().__init__(f"another {holder.role} runs here (pid {holder.pid})", hints[holder.role])
        self.holder = holder


class DaemonLock:
    """The lock, for as long as the context lasts.

    `patience_s`: how long to wait for another holder, such as a restore or a dying process.
    """

    def __init__(
        self,
        path: Path,
        role: LockRole = LockRole.DAEMON,
        *,
        patience_s: float = 1.0,
        proc: Path = _PROC,
    ) -> None:
        self._path = path
        self._role = role
        self._patience_s = patience_s
        self._proc = proc
        self._handle = -1

    def __enter__(self) -> None:
        """Raises LockHeld, PermissionDenied and Unavailable."""
        until_s = time.monotonic() + self._patience_s
        try:
            while not self._locked():
                holder = living_holder(self._path, self._proc)
                if time.monotonic() < until_s:
                    time.sleep(_LOOK_EVERY_S)
                elif holder is not None:
                    raise LockHeld(holder)
                elif self._replaced_file():
                    return
        except PermissionError as error:
            raise PermissionDenied(f"no access to {self._path}", "run this as root") from error
        except OSError as error:
            why = f"{self._path} cannot be used: {error.strerror}"
            raise Unavailable(why, "check that its folder can be written") from error

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)
        self._handle = -1

    def _locked(self) -> bool:
        """Raises OSError."""
        handle = _open(self._path)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is(self._path, handle):
                # The file was replaced meanwhile.
                raise BlockingIOError
        except BlockingIOError:
            os.close(handle)
            return False
        self._keep(handle)
        return True

    def _replaced_file(self) -> bool:
        """Replace a file whose lock is not held by the process that it names."""
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        new.unlink(missing_ok=True)
        handle = _open(new)
        fcntl.flock(handle, fcntl.LOCK_EX)
        _name(handle, self._role, self._proc)
        new.rename(self._path)
        # Of several processes that do this at once, only the last one's file remains.
        time.sleep(_SETTLE_S)
        if _is(self._path, handle):
            self._handle = handle
            return True
        os.close(handle)
        return False

    def _keep(self, handle: int) -> None:
        _name(handle, self._role, self._proc)
        self._handle = handle


def living_holder(path: Path, proc: Path = _PROC) -> Holder | None:
    """Return the process that the lock names, if it lives. Raises PermissionError and OSError."""
    try:
        with path.open("rb") as file:
            words = file.read(_LINE_BYTES).decode(errors="replace").strip().split(" ", _WORDS - 1)
    except FileNotFoundError:
        return None
    if len(words) != _WORDS or not words[0].isdigit():
        return None
    with suppress(ValueError):
        holder = Holder(int(words[0]), words[1], LockRole(words[2]))
        return holder if holder.start == _started(holder.pid, proc) else None
    return None


def _started(pid: int, proc: Path) -> str | None:
    """Return the start time of a process; None for one that is dead.

    A zombie whose last thread hangs in the kernel counts as dead: it will do nothing more.
    """
    try:
        text = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()
    return None if state in _DEAD else rest[_START - 1]


def _name(handle: int, role: LockRole, proc: Path) -> None:
    """Write the holder in one write, so that readers see the old line or the new one."""
    pid = os.getpid()
    line = f"{pid} {_started(pid, proc) or 0} {role}\n".ljust(_LINE_BYTES)
    os.pwrite(handle, line.encode(), 0)


def _open(path: Path) -> int:
    """Raises OSError."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _ROOT_ONLY)
    found = os.fstat(handle)
    if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != _ROOT_ONLY:
        os.fchmod(handle, _ROOT_ONLY)
    return handle


def _is(path: Path, handle: int) -> bool:
    """Return whether the open file is the one at the path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False

# SPDX-License-Identifier: GPL-2.0-only
"""The lock of whoever writes knobs: one daemon, or one `ebbgate restore`. I/O: one file, /proc.

The file is root's alone, in a folder that only root writes, and names its holder: process number,
start time and role. The kernel drops the lock when the holder dies. Who may go on is decided by
whether that process lives, not by the lock alone: a lock that is held by nobody who is named (a
child that hangs in the kernel, or somebody else's program) stops no restore.
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
"""Between taking a file's place and looking whether somebody else did the same."""
_ROOT_ONLY: Final = 0o600
_LINE_BYTES: Final = 256
_WORDS: Final = 3
_PROC: Final = Path("/proc")
_START: Final = 19
"""Of /proc/PID/stat, counted from the state, which is the first field behind the name."""
_DEAD: Final = ("Z", "X")


class LockRole(StrEnum):
    """What the holder is."""

    DAEMON = "ebbgated"
    RESTORE = "ebbgate restore"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has the lock. `start`: when it began, in the kernel's ticks: numbers are used again."""

    pid: int
    start: str
    role: LockRole


class LockHeld(AlreadyRunning):
    """A living process of ebbgate has the lock."""

    def __init__(self, holder: Holder) -> None:
        hints = {
            LockRole.DAEMON: "stop it with `systemctl stop ebbgated`, or use another --runtime-dir",
            LockRole.RESTORE: "it takes seconds: try again",
        }
        super().__init__(f"another {holder.role} runs here (pid {holder.pid})", hints[holder.role])
        self.holder = holder


class DaemonLock:
    """The lock, for as long as the context lasts.

    `patience_s`: so long somebody else's is waited for: a restore takes a moment, and a process
    that was killed may take one to die.
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
        """Raises Held, PermissionDenied and Unavailable."""
        until_s = time.monotonic() + self._patience_s
        try:
            while not self._took():
                holder = living_holder(self._path, self._proc)
                if time.monotonic() < until_s:
                    time.sleep(_LOOK_EVERY_S)
                elif holder is not None:
                    raise LockHeld(holder)
                elif self._took_the_place():
                    return
        except PermissionError as error:
            raise PermissionDenied(f"no access to {self._path}", "run this as root") from error
        except OSError as error:
            why = f"{self._path} cannot be used: {error.strerror}"
            raise Unavailable(why, "see that its folder can be written") from error

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)
        self._handle = -1

    def _took(self) -> bool:
        """Raises OSError."""
        handle = _open(self._path)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is(self._path, handle):
                # Another file has come to its place meanwhile.
                raise BlockingIOError
        except BlockingIOError:
            os.close(handle)
            return False
        self._keep(handle)
        return True

    def _took_the_place(self) -> bool:
        """Put a file of our own in the place of one whose lock is held by nobody who is named."""
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        new.unlink(missing_ok=True)
        handle = _open(new)
        fcntl.flock(handle, fcntl.LOCK_EX)
        _name(handle, self._role, self._proc)
        new.rename(self._path)
        # Whoever did the same at the same time has a file that is not in its place any more.
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
    """The process that the lock names, if it lives. Raises PermissionError and OSError."""
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
    """When a process began; None for one that does not live. A dead one whose last thread hangs in
    the kernel does not: it does nothing more after the call in which it hangs.
    """
    try:
        text = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()
    return None if state in _DEAD else rest[_START - 1]


def _name(handle: int, role: LockRole, proc: Path) -> None:
    """Write who holds the lock. One write: whoever reads sees the old line or the new one."""
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
    """Is the open file the one of that name?"""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False

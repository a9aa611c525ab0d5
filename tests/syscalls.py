# SPDX-License-Identifier: GPL-2.0-only
"""Runs a function in a child process and stops it before each system call on certain files.

At such a point the child can be killed, the call can be made to fail with an errno, or the thread
that makes it can be left hanging while the others go on. So faults come where real ones come, also
inside SQLite, and no code under test knows of it.

I/O: ptrace(2) on children of this process; x86-64 only. A tracer must be left before another child
of the same process group is waited for.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

# ptrace(2), sys/ptrace.h, sys/user.h.
_CONT, _SYSCALL, _POKEUSER, _SEIZE, _GET_SYSCALL_INFO = 7, 24, 6, 0x4206, 0x420E
_OPTIONS: Final = 0x1 | 0x2 | 0x4 | 0x8 | 0x100000
"""Mark stops at system calls, follow new processes and threads, end all with this process."""
_SYSCALL_STOP: Final = signal.SIGTRAP | 0x80
_ENTRY, _EXIT = 1, 2
_INFO: Final = struct.Struct("=BxxxIQQQ6Q")
_RETURNED, _NUMBER = 10 * 8, 15 * 8
"""Offsets of rax and orig_rax in struct user."""
_NO_CALL: Final = (1 << 64) - 1
_WALL: Final = 0x40000000
_PATH_BYTES_MAX: Final = 4096
_STILL_S: Final = 1.0
_CRASHED: Final = 70

BY_HANDLE: Final = {
    0: "read",
    1: "write",
    16: "ioctl",
    17: "pread64",
    18: "pwrite64",
    74: "fsync",
    75: "fdatasync",
    77: "ftruncate",
    285: "fallocate",
}
"""Calls that name a file by the handle in their first argument."""
BY_PATH: Final = {82: 0, 87: 0, 257: 1}
"""Calls that name a file by a path, and in which argument: rename, unlink, openat."""
_PATH_NAMES: Final = {82: "rename", 87: "unlink", 257: "openat"}


@dataclass(frozen=True, slots=True)
class Call:
    """A system call that is about to be made. `thread`: the kernel's id of the thread."""

    name: str
    path: str
    thread: int


_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class Child:
    """A child that runs `work`; use it as a context manager, which ends the child.

    `below`: only calls on files whose path starts with one of these are stopped at. `exit_code`:
    once it has ended; minus the number of the signal that ended it.
    """

    def __init__(self, work: Callable[[], object], below: Iterable[str | Path]) -> None:
        self._below = tuple(str(each) for each in below)
        self._held: set[int] = set()
        self._pending: Call | None = None
        self.exit_code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _run(work)
        os.waitpid(self.pid, os.WUNTRACED)
        _ptrace(_SEIZE, self.pid, 0, _OPTIONS)
        os.kill(self.pid, signal.SIGCONT)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def calls(self) -> Iterator[Call]:
        """Every call on the watched files, before it is made, until the child ends.

        The child goes on when the next one is asked for.
        """
        while (call := self.next_call()) is not None:
            yield call

    def next_call(self, timeout_s: float | None = None) -> Call | None:
        """Go on to the next call; None once the child has ended. All earlier calls are made then.

        Raises TimeoutError where the child makes no such call for `timeout_s`, as it does not where
        a thread is left hanging for which all others wait.
        """
        if self._pending is not None:
            self._make(self._pending)
        while self.exit_code is None and self._pending is None:
            self._pending = self._next_stop(*self._wait(timeout_s))
        return self._pending

    def _make(self, call: Call) -> None:
        """Return when the pending call is made: a call of another thread may already wait, and
        what is done at that stop would come before this call on a busy machine.
        """
        _ptrace(_SYSCALL, call.thread, 0, 0)
        self._pending = self._next_stop(*os.waitpid(call.thread, _WALL))

    def _next_stop(self, thread: int, status: int) -> Call | None:
        """The call that a thread has stopped at, if it is a watched one."""
        if os.WIFSTOPPED(status):
            return self._stopped(thread, status)
        if thread == self.pid:
            self.exit_code = os.waitstatus_to_exitcode(status)
        return None

    def fail(self, number: int) -> None:
        """The pending call is not made and returns the error."""
        assert self._pending is not None
        thread, self._pending = self._pending.thread, None
        _ptrace(_POKEUSER, thread, _NUMBER, _NO_CALL)
        _ptrace(_SYSCALL, thread, 0, 0)
        os.waitpid(thread, _WALL)
        _ptrace(_POKEUSER, thread, _RETURNED, (1 << 64) - number)
        _ptrace(_SYSCALL, thread, 0, 0)

    def hang(self) -> None:
        """The thread of the pending call goes no further; the others do."""
        assert self._pending is not None
        self._held.add(self._pending.thread)
        self._pending = None

    def kill(self) -> None:
        """SIGKILL; returns when nothing of the child is left."""
        self._pending = None
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        while True:
            try:
                thread, status = os.waitpid(-self.pid, _WALL)
            except ChildProcessError:
                return
            if os.WIFSTOPPED(status):
                with suppress(ProcessLookupError):
                    _ptrace(_CONT, thread, 0, 0)
            elif thread == self.pid:
                self.exit_code = os.waitstatus_to_exitcode(status)

    def _wait(self, timeout_s: float | None) -> tuple[int, int]:
        if timeout_s is None:
            return os.waitpid(-self.pid, _WALL)
        until_s = time.monotonic() + timeout_s
        while True:
            thread, status = os.waitpid(-self.pid, _WALL | os.WNOHANG)
            if thread:
                return thread, status
            if time.monotonic() > until_s:
                raise TimeoutError(f"no call on the watched files for {timeout_s:g} s")
            time.sleep(0.002)

    def _stopped(self, thread: int, status: int) -> Call | None:
        """What a stop is about; one that is no call on a watched file goes on at once."""
        number, event = os.WSTOPSIG(status), status >> 16
        if number == _SYSCALL_STOP:
            call = self._watched(thread)
            if call is not None:
                return call
            number = 0
        elif event or number in (signal.SIGTRAP, signal.SIGSTOP, signal.SIGCONT):
            number = 0
        # It may be gone: another thread has ended the process.
        with suppress(ProcessLookupError):
            _ptrace(_SYSCALL, thread, 0, number)
        return None

    def _watched(self, thread: int) -> Call | None:
        info = ctypes.create_string_buffer(_INFO.size + 16)
        try:
            _ptrace(_GET_SYSCALL_INFO, thread, len(info), ctypes.addressof(info))
        except ProcessLookupError:
            return None
        kind, _, _, _, number, *arguments = _INFO.unpack_from(info.raw)
        if kind != _ENTRY:
            return None
        try:
            if number in BY_HANDLE:
                path = str(Path(f"/proc/{thread}/fd/{arguments[0]}").readlink())
                name = BY_HANDLE[number]
            elif number in BY_PATH:
                path = _text(thread, arguments[BY_PATH[number]])
                name = _PATH_NAMES[number]
            else:
                return None
        except OSError:
            return None
        if name == "ioctl" and not path.startswith("/dev/"):
            # Python asks whether a file that it opens is a terminal.
            return None
        return Call(name, path, thread) if path.startswith(self._below) else None


def possible() -> bool:
    """May this process trace its children, on a processor that is known here?"""
    if os.uname().machine != "x86_64":
        return False
    try:
        with Child(lambda: None, ["/nowhere"]) as child:
            return child.next_call() is None and child.exit_code == 0
    except OSError:
        return False


def _run(work: Callable[[], object]) -> NoReturn:
    """The child. A process group of its own, so that its threads alone are waited for."""
    code = _CRASHED
    try:
        os.setpgid(0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _text(thread: int, address: int) -> str:
    """A string of the child, read up to the end of its page at most."""
    page_end = (address // _PATH_BYTES_MAX + 1) * _PATH_BYTES_MAX
    with Path(f"/proc/{thread}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        found = memory.read(page_end - address)
        if b"\0" not in found:
            found += memory.read(_PATH_BYTES_MAX)
    return found.split(b"\0", 1)[0].decode(errors="replace")


def _ptrace(request: int, thread: int, address: int, data: int) -> None:
    if _libc.ptrace(request, thread, address, data) < 0:
        number = ctypes.get_errno()
        if number == errno.ESRCH:
            raise ProcessLookupError(number, os.strerror(number))
        raise OSError(number, os.strerror(number))

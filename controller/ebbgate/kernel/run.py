# SPDX-License-Identifier: GPL-2.0-only
"""Runs other programs: no shell, a minimal environment, no stdin. I/O: processes."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from ebbgate.errors import Unavailable

_INTERRUPT_S = 5.0
"""How long a program may take to end after SIGINT, before it is left alone."""
_GIVES_UP_AT = 2
"""The interrupt that leaves the program to itself: the first one only asks it to end."""
_POLL_S = 0.05
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a program."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str


def run(
    argv: Sequence[str],
    *,
    timeout_s: float = 30.0,
    check: bool = True,
    stdout: int = subprocess.PIPE,
    inherited: Sequence[int] = (),
) -> Completed:
    """Run a program.

    `stdout`: an open file that gets the output instead of the result. `inherited`: files that stay
    open in the program. Bytes that are no UTF-8 become U+FFFD. Raises Unavailable when it cannot
    be started, does not end within `timeout_s`, or, with `check`, fails.
    """
    command = shlex.join(argv)
    try:
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            pass_fds=inherited,
            text=True,
            # A guest may have written what a program quotes.
            errors="replace",
            timeout=timeout_s,
            check=False,
            env=_environment(),
        )
    except OSError as error:
        raise _not_started(argv, error) from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"not finished after {timeout_s:g} s: {command}") from error
    if check and done.returncode != 0:
        raise Unavailable(f"exit code {done.returncode}: {command}", done.stderr.strip())
    return Completed(tuple(argv), done.returncode, done.stdout or "", done.stderr)


def run_unkilled(argv: Sequence[str], *, timeout_s: float) -> Completed:
    """Run a program that must never be killed: LVM would leave a volume suspended, and all its I/O.

    An interrupt and the end of the time are passed on to it as SIGINT, which LVM delays until it
    can stop. Raises KeyboardInterrupt if that has ended it, and Unavailable as `run`, also where it
    goes on.
    """
    # Files: a program that goes on must be able to write.
    with (
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
        _held_interrupts() as interrupts,
    ):
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                # The terminal's signals reach this process alone.
                start_new_session=True,
                env=_environment(),
            )
        except OSError as error:
            raise _not_started(argv, error) from error
        late = _wait(process, timeout_s, interrupts)
        if process.poll() is None:
            # Only so that somebody waits for it.
            threading.Thread(target=process.wait, daemon=True).start()
            raise Unavailable(f"not finished yet, and it goes on: {shlex.join(argv)}", "see: ps")
        texts = (_text(file) for file in (output, errors))
        done = Completed(tuple(argv), process.returncode, *texts)
    return _checked(done, bool(interrupts), f"not finished after {timeout_s:g} s" if late else "")


def _checked(done: Completed, interrupted: bool, late: str) -> Completed:
    """Raise for a program that failed or was stopped; `late`: its time was over."""
    if done.exit_code == 0:
        return done
    if interrupted:
        raise KeyboardInterrupt
    why = late or f"exit code {done.exit_code}"
    raise Unavailable(f"{why}: {shlex.join(done.argv)}", done.stderr.strip())


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


@contextmanager
def _held_interrupts() -> Iterator[list[int]]:
    """Collect interrupts: a KeyboardInterrupt could come before anybody waits for the program."""
    held: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or before in (signal.SIG_IGN, None):
        yield held
        return
    signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield held
    finally:
        signal.signal(signal.SIGINT, before)


def _wait(process: subprocess.Popen[bytes], timeout_s: float, interrupts: Sequence[int]) -> bool:
    """Wait for the end, at most until a second interrupt; return whether it was late."""
    end_s = time.monotonic() + timeout_s
    asked = late = False
    while process.poll() is None and len(interrupts) < _GIVES_UP_AT:
        if time.monotonic() >= end_s:
            if late:
                break
            late = True
            end_s += _INTERRUPT_S
        if (interrupts or late) and not asked:
            asked = True
            process.send_signal(signal.SIGINT)
        time.sleep(_POLL_S)
    return late


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", _PATH), "LC_ALL": "C"}


def _not_started(argv: Sequence[str], error: OSError) -> Unavailable:
    """Of a folder in PATH that this user may not enter, too, the kernel says that it is denied."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Unavailable(f"{argv[0]} is not installed", f"needed for: {shlex.join(argv)}")
    why = f"{argv[0]} cannot be run: {error.strerror}"
    return Unavailable(why, f"see whether it is in PATH; needed for: {shlex.join(argv)}")

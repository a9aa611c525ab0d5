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
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from ebbgate.errors import Unavailable

_INTERRUPT_S = 5.0
"""How long a program may take to end after SIGINT, before it is left alone."""
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
    open in the program. Bytes that are no UTF-8 become U+FFFD. Raises Unavailable when it is
    missing, does not end within `timeout_s`, or, with `check`, fails.
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
    except FileNotFoundError as error:
        raise _not_installed(argv) from error
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
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
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
        except FileNotFoundError as error:
            raise _not_installed(argv) from error
        interrupted, late = _wait(process, timeout_s)
        if process.poll() is None:
            # Only so that somebody waits for it.
            threading.Thread(target=process.wait, daemon=True).start()
            raise Unavailable(f"not finished yet, and it goes on: {shlex.join(argv)}", "see: ps")
        texts = (_text(file) for file in (output, errors))
        done = Completed(tuple(argv), process.returncode, *texts)
    return _checked(done, interrupted, f"not finished after {timeout_s:g} s" if late else "")


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


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[bool, bool]:
    """Wait for the end; return whether somebody has interrupted it, and whether it was late."""
    interrupted = late = False
    until_s = time.monotonic() + timeout_s
    while process.poll() is None:
        try:
            process.wait(max(0.0, until_s - time.monotonic()))
        except KeyboardInterrupt:
            if interrupted:
                return interrupted, late
            interrupted = True
            process.send_signal(signal.SIGINT)
        except subprocess.TimeoutExpired:
            late = True
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_INTERRUPT_S)
            return interrupted, late
    return interrupted, late


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", _PATH), "LC_ALL": "C"}


def _not_installed(argv: Sequence[str]) -> Unavailable:
    return Unavailable(f"{argv[0]} is not installed", f"needed for: {shlex.join(argv)}")

# SPDX-License-Identifier: GPL-2.0-only
"""Runs other programs: no shell, a minimal environment, no stdin. I/O: processes."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from ebbgate.errors import Unavailable

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
            env={"PATH": os.environ.get("PATH", _PATH), "LC_ALL": "C"},
        )
    except FileNotFoundError as error:
        raise Unavailable(f"{argv[0]} is not installed", f"needed for: {command}") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"not finished after {timeout_s:g} s: {command}") from error
    if check and done.returncode != 0:
        raise Unavailable(f"exit code {done.returncode}: {command}", done.stderr.strip())
    return Completed(tuple(argv), done.returncode, done.stdout or "", done.stderr)

# SPDX-License-Identifier: GPL-2.0-only
"""Names the other processes that hold SQLite's locks on a database. I/O: reads /proc."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_LINE: Final = re.compile(
    r"\d+: (?:POSIX|OFDLCK) +\S+ +(?:READ|WRITE) +(-?\d+) [0-9a-f:]+:(\d+) (\d+) (\d+|EOF)"
)
"""proc_locks(5): type, mode, access, PID (-1: not known), device and inode, first and last byte."""
_FIRST_BYTE: Final = 120
_LAST_BYTE: Final = 127
"""Of the index of the log (-shm): the locks of a writer, a checkpoint, a recovery and of five read
marks. Byte 128 is locked by every program that has the file open and delays nobody."""
_NAMED_MAX: Final = 3
_UNPRINTABLE: Final = re.compile(r"[^ -~]")


def holders(index: Path, proc: Path = Path("/proc")) -> str:
    """Return the other processes that hold locks on the index of a log (`history.db-shm`), as text.

    `another program` where the kernel does not name any.
    """
    found = sorted(set(_pids(index, proc)) - {os.getpid()})
    named = [_named(pid, proc) for pid in found[:_NAMED_MAX]]
    if len(found) > _NAMED_MAX:
        named.append(f"{len(found) - _NAMED_MAX} more")
    return ", ".join(named) or "another program"


def _pids(index: Path, proc: Path) -> Iterator[int]:
    try:
        inode = index.stat().st_ino
        lines = (proc / "locks").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        match = _LINE.match(line)
        if match is None or int(match[2]) != inode or int(match[1]) <= 0:
            continue
        last = _LAST_BYTE if match[4] == "EOF" else int(match[4])
        if int(match[3]) <= _LAST_BYTE and last >= _FIRST_BYTE:
            yield int(match[1])


def _named(pid: int, proc: Path) -> str:
    """Return name, pid and uid; a process chooses its own name, so it is filtered."""
    try:
        name = (proc / str(pid) / "comm").read_bytes().decode(errors="replace").rstrip("\n")
        owner = (proc / str(pid)).stat().st_uid
    except OSError:
        return f"pid {pid}"
    return f"{_UNPRINTABLE.sub('?', name)} (pid {pid}, uid {owner})"

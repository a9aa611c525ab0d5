# SPDX-License-Identifier: GPL-2.0-only
"""Explains a failure of the demo in one line, with the next step.

I/O: asks how much space the temporary folder has left.
"""

from __future__ import annotations

import errno
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from tests.lab.errors import EXIT_LOST_GUEST, LabError, LostGuest, NoLab

MIB = 1 << 20
SPACE_BYTES = 2560 * MIB
"""What the guest's disks can come to in the temporary folder."""
_FULL_BYTES = 64 * MIB
_LINE_CHARS = 240
_AGAIN = "make demo again"
_PORT = re.compile(r"Could not set up host forwarding rule 'tcp:[\d.]*:(\d+)-")
_NO_DOWNLOAD = ("cannot be downloaded", "to be had", "apt has no kernel")


class NoSpace(LabError):
    """The disks of the guest do not fit into the temporary folder."""


@dataclass(frozen=True, slots=True)
class Failure:
    """`what` and `next_step` have no line break; `code` is the exit code."""

    what: str
    next_step: str
    code: int = 1


def need_space() -> None:
    """Raise NoSpace unless the guest's disks fit into the temporary folder."""
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if free < SPACE_BYTES:
        needed = f"the guest's disks may need {SPACE_BYTES // MIB} MiB"
        raise NoSpace(f"{folder} has {free // MIB} MiB of free space, {needed}")


def explain(error: BaseException) -> Failure:
    """The failure as a user of the demo should see it."""
    if _disk_is_full(error):
        what = one_line(str(error)) if isinstance(error, NoSpace) else "the disk is full"
        step = "free some, or TMPDIR=/other/folder EBBGATE_CACHE=/other/folder make demo"
        return Failure(what, step, _code(error))
    if isinstance(error, NoLab):
        return Failure(one_line(str(error)), _without_lab(str(error)), EXIT_LOST_GUEST)
    if isinstance(error, LostGuest):
        return _lost(str(error))
    if isinstance(error, BrokenPipeError):
        return Failure("standard output was closed", "make demo without a pipe")
    name = "" if isinstance(error, LabError) else f"{type(error).__name__}: "
    what = one_line(f"{name}{error}") or type(error).__name__
    return Failure(what, f"{_AGAIN}; if it fails again, report it with the details")


def one_line(text: str) -> str:
    """The first and the last line that say something, shortened to fit one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = lines[:1] + (lines[-1:] if len(lines) > 1 else [])
    return ": ".join(line[:_LINE_CHARS].rstrip(".;:") for line in chosen)


def _lost(text: str) -> Failure:
    if taken := _PORT.search(text):
        what = f"another program took port {taken[1]} of the loopback while the guest started"
        return Failure(what, _AGAIN, EXIT_LOST_GUEST)
    if "Cannot allocate memory" in text or "cannot set up guest memory" in text:
        what = "QEMU did not get the guest's 2 GiB of memory"
        return Failure(what, f"end other programs, then {_AGAIN}", EXIT_LOST_GUEST)
    return Failure(f"the guest was lost: {one_line(text)}", _AGAIN, EXIT_LOST_GUEST)


def _without_lab(text: str) -> str:
    if any(words in text for words in _NO_DOWNLOAD):
        return f"check the network and apt's sources (apt-get update as root), then {_AGAIN}"
    return f"make deps (as root), then {_AGAIN}"


def _code(error: BaseException) -> int:
    return EXIT_LOST_GUEST if isinstance(error, NoSpace | LostGuest | NoLab) else 1


def _disk_is_full(error: BaseException) -> bool:
    """Whether it says so itself, or something else failed while the disk was full.

    A guest whose disk cannot grow any more only stops answering.
    """
    for each in causes(error):
        if isinstance(each, NoSpace) or getattr(each, "errno", None) == errno.ENOSPC:
            return True
        if "No space left on device" in str(each):
            return True
    try:
        return shutil.disk_usage(tempfile.gettempdir()).free < _FULL_BYTES
    except OSError:
        return False


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, what it came from, and so on."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__

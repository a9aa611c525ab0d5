# SPDX-License-Identifier: GPL-2.0-only
"""Tells errors of stdout from those of files. I/O: stdout."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING

from ebbgate.errors import OutputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STDOUT = 1


class _Stdout(io.FileIO):
    """Stdout; its errors are no OSError, at which click and rich would end the program."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Raises OutputError."""
        try:
            return super().write(data)
        except OSError as error:
            text = f"the output cannot be written: {error.strerror}"
            raise OutputError(text, reader_gone=error.errno == errno.EPIPE) from error


def open_output() -> None:
    """Let writes to stdout raise OutputError, and print what its encoding lacks as `?`.

    A stdout that was closed takes everything, so that a restore is not stopped by it. One that is
    not the process's own is left alone.
    """
    own = sys.__stdout__
    if own is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    elif sys.stdout is own:
        raw = io.BufferedWriter(_Stdout(_STDOUT, "w", closefd=False))
        sys.stdout = io.TextIOWrapper(
            raw, encoding=own.encoding, errors="replace", line_buffering=own.line_buffering
        )


def discard_output() -> None:
    """Drop what is left: Python writes it at exit, and would report the error again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)

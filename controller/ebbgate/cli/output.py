# SPDX-License-Identifier: GPL-2.0-only
"""Tells errors of stdout from those of files, and drops what stderr does not take.

I/O: the three standard streams.
"""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from ebbgate.errors import OutputError
from ebbgate.text import escape_json

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STDOUT = 1
_STDERR = 2


class _Stdout(io.FileIO):
    """Stdout; its errors are no OSError, at which click and rich would end the program."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Raises OutputError."""
        try:
            return super().write(data)
        except OSError as error:
            text = f"the output cannot be written: {error.strerror}"
            raise OutputError(text, reader_gone=error.errno == errno.EPIPE) from error


class _Stderr(io.FileIO):
    """Stderr; what cannot be written is dropped: no message may stop a command, nor change its exit
    code.
    """

    def write(self, data: ReadableBuffer, /) -> int:
        """Write what can be written."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Encode a value for stdout, whose encoding may lack a character, which JSON can escape."""
    utf8 = codecs.lookup(sys.stdout.encoding).name == "utf-8"
    return escape_json(json.dumps(value, indent=indent, ensure_ascii=not utf8))


def open_streams() -> None:
    """Make each standard stream safe to use, one that was closed included.

    One that is not the process's own is left alone. In the order of their numbers: a file that is
    opened takes the lowest that is free.
    """
    if sys.__stdin__ is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123
    elif sys.stdin is sys.__stdin__ and isinstance(sys.stdin, io.TextIOWrapper):
        # As a file is read: in most locales a byte that is not UTF-8 would be an exception.
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    _open_stdout()
    _open_stderr()


def _open_stdout() -> None:
    """Let writes to stdout raise OutputError, and print what its encoding lacks as `?`.

    A stdout that was closed takes everything, so that a restore is not stopped by it.
    """
    own = sys.__stdout__
    if own is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    elif sys.stdout is own:
        raw = io.BufferedWriter(_Stdout(_STDOUT, "w", closefd=False))
        sys.stdout = io.TextIOWrapper(
            raw, encoding=own.encoding, errors="replace", line_buffering=own.line_buffering
        )


def _open_stderr() -> None:
    """Let nothing that is written to stderr fail."""
    own = sys.__stderr__
    if own is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    elif sys.stderr is own:
        raw = io.BufferedWriter(_Stderr(_STDERR, "w", closefd=False))
        sys.stderr = io.TextIOWrapper(
            raw, encoding=own.encoding, errors=own.errors, line_buffering=True
        )


def discard_output() -> None:
    """Drop what is left: Python writes it at exit, and would report the error again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)

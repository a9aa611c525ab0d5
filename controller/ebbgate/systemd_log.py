# SPDX-License-Identifier: GPL-2.0-only
"""Sends the log to systemd's journal with priorities and the ids of messages.

I/O: one datagram socket, in the journal's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL).
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TextIO

from ebbgate.errors import EbbgateError
from ebbgate.log_messages.message import LogMessage
from ebbgate.text import clean_lines

SOCKET: Final = Path("/run/systemd/journal/socket")
_STDERR: Final = 2
_SEND_TIMEOUT_S: Final = 1.0
"""The daemon must not hang with the journal: its watchdog would end it."""
_PRIORITIES: Final = {
    logging.DEBUG: 7,
    logging.INFO: 6,
    logging.WARNING: 4,
    logging.ERROR: 3,
    logging.CRITICAL: 2,
}


class JournalHandler(logging.StreamHandler[TextIO]):
    """Sends records to the journal; writes to stderr what cannot be sent."""

    def __init__(self, program: str, path: Path = SOCKET) -> None:
        super().__init__(sys.stderr)
        self._program = program
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.settimeout(_SEND_TIMEOUT_S)

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record."""
        try:
            self._socket.sendto(datagram(self._fields(record)), str(self._path))
        except OSError:
            super().emit(record)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
        super().close()

    def _fields(self, record: logging.LogRecord) -> dict[str, str]:
        fields = {
            "MESSAGE": self.format(record),
            "PRIORITY": str(_PRIORITIES.get(record.levelno, 6)),
            "SYSLOG_IDENTIFIER": self._program,
        }
        if isinstance(record.msg, LogMessage):
            fields["MESSAGE_ID"] = record.msg.id
        return fields


def datagram(fields: Mapping[str, str]) -> bytes:
    """Return one entry of the journal in its native protocol."""
    parts = []
    for name, text in fields.items():
        value = text.encode(errors="replace")
        # The length makes line feeds in a value part of it.
        parts += [name.encode(), b"\n", len(value).to_bytes(8, "little"), value, b"\n"]
    return b"".join(parts)


def is_journal(environment: Mapping[str, str], fd: int) -> bool:
    """Return whether systemd has connected this file descriptor to the journal."""
    try:
        found = os.fstat(fd)
    except OSError:
        return False
    return environment.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def set_up_log(program: str, level: int, formatter: type[logging.Formatter]) -> None:
    """Log to the journal where systemd has connected stderr to it, else to stderr."""
    if log_to_journal(program, level, formatter):
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter("%(asctime)s %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])


def log_to_journal(program: str, level: int, formatter: type[logging.Formatter]) -> bool:
    """Log to the journal; false where systemd has not connected stderr to it."""
    if not is_journal(os.environ, _STDERR):
        return False
    handler = JournalHandler(program)
    handler.setFormatter(formatter("%(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    return True


def logs_to_journal() -> bool:
    """Return whether this program logs to the journal."""
    return any(isinstance(each, JournalHandler) for each in logging.getLogger().handlers)


def report_failure(program: str, message: LogMessage, error: EbbgateError) -> None:
    """Report the error that ends a program: in the journal with its id, else on stderr."""
    text = clean_lines(str(error))
    if logs_to_journal():
        logging.getLogger(program).critical(message, text)
    else:
        print(f"{program}: {text}", file=sys.stderr)

# SPDX-License-Identifier: GPL-2.0-only
"""Make a guest that answers no more say where it hangs.

I/O: the monitor of its emulator, a unix socket in the guest's folder.
"""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

MONITOR = "monitor"

_PROMPT = b"(qemu) "
_TIMEOUT_S = 10.0
# A panic prints the stacks of all CPUs through an emulated serial port.
_PANIC_S = 30.0
_REGISTERS = re.compile(r"^CPU#\d+|\bRIP=\w+|\bRSP=\w+|\bCPL=\d|\bHLT=\d|\bRFL=\w+ \[\S+\]", re.M)


def interrogate(folder: Path) -> str:
    """Where its CPUs are, in two looks; then end it by an NMI, which has its kernel panic.

    The kernel's own words (the stacks) are on its console afterwards. Empty if the emulator is
    gone or does not answer either.
    """
    try:
        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(_TIMEOUT_S)
            wire.connect(str(folder / MONITOR))
            _answer(wire)
            looks = [_look(wire)]
            time.sleep(1)
            looks.append(_look(wire))
            wire.sendall(b"nmi\n")
            _until_closed(wire)
    except OSError:
        return ""
    return "\n".join(looks)


def _look(wire: socket.socket) -> str:
    wire.sendall(b"info registers -a\n")
    return "cpus: " + " ".join(_REGISTERS.findall(_answer(wire)))


def _answer(wire: socket.socket) -> str:
    """What the monitor says up to its prompt."""
    data = b""
    while not data.endswith(_PROMPT):
        piece = wire.recv(65536)
        if not piece:
            raise ConnectionError("the monitor hung up")
        data += piece
    return data.decode(errors="replace")


def _until_closed(wire: socket.socket) -> None:
    deadline_s = time.monotonic() + _PANIC_S
    while time.monotonic() < deadline_s and wire.recv(65536):
        pass

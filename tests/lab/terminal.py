# SPDX-License-Identifier: GPL-2.0-only
"""Joins the terminal one sits at to a terminal in the guest.

I/O: stdin, stdout, the agent's terminals.
"""

from __future__ import annotations

import base64
import os
import shutil
import sys
import termios
import threading
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.lab.channel import checked
from tests.lab.session import Session


def interact(session: Session, argv: Sequence[str]) -> int:
    """Run an interactive command in the guest until it ends; returns its exit code."""
    columns, rows = shutil.get_terminal_size()
    environment = {"TERM": os.environ.get("TERM", "dumb")}
    fields = {"argv": list(argv), "env": environment, "rows": rows, "columns": columns}
    request = session.channel.send("pty", **fields)
    number = checked("pty", session.channel.receive(request))["terminal"]
    threading.Thread(target=_type, args=(session, number), daemon=True).start()
    with _raw_terminal():
        while True:
            frame = checked("pty", session.channel.receive(request))
            if "rc" in frame:
                return int(frame["rc"])
            os.write(sys.stdout.fileno(), base64.b64decode(frame["output"]))


def _type(session: Session, number: int) -> None:
    while data := os.read(sys.stdin.fileno(), 4096):
        text = base64.b64encode(data).decode()
        session.channel.call("pty_input", terminal=number, data=text)
    # A script that feeds the shell has ended: so does the shell.
    session.channel.call("pty_input", terminal=number, data=base64.b64encode(b"\x04").decode())


@contextmanager
def _raw_terminal() -> Iterator[None]:
    """Every key goes to the guest as it is; the terminal is as before afterwards."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)

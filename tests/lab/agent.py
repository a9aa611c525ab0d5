# SPDX-License-Identifier: GPL-2.0-only
"""The lab's agent inside the guest: executes requests that arrive on a virtio-serial port.

I/O: one JSON object a line, both ways. A request is {"id", "op", ...}; every reply repeats the
`id`. Bytes travel as base64. Each request has its own thread, so a long command does not keep a
short one waiting. Only the standard library, one process, no state that outlives the guest.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab.agent_process import Processes, end_group
from tests.lab.agent_pty import Terminals

PORT_NAME = "ebbgate.agent"
_DYING_S = 10.0
# While the next program to open a database that was not closed recovers it.
_BUSY_S = 20.0

Request = dict[str, Any]
Reply = dict[str, Any]


def encode(data: bytes) -> str:
    """Bytes as they travel."""
    return base64.b64encode(data).decode()


def decode(text: str) -> bytes:
    """Bytes that have travelled."""
    return base64.b64decode(text)


class Agent:
    """Reads requests from one file descriptor and answers on the same."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._write_lock = threading.Lock()
        processes = Processes()
        terminals = Terminals(self.send)
        self._operations: dict[str, Callable[[Request], Reply]] = {
            "ping": lambda _: {},
            "run": run,
            "read": read,
            "read_many": read_many,
            "query": query,
            "write": write,
            "resolve": resolve,
            "kernel_log": kernel_log,
            "spawn": processes.spawn,
            "wait": processes.wait,
            "kill": processes.kill,
            "feed": processes.feed,
            "release": processes.release,
            "pty": terminals.open,
            "pty_input": terminals.feed,
            "pty_size": terminals.resize,
            "power_off": power_off,
        }

    def serve(self) -> None:
        """Answer requests until the port is closed."""
        self.send({"id": "hello", "pid": os.getpid(), "release": os.uname().release})
        with os.fdopen(self._port, "rb", closefd=False) as lines:
            for line in lines:
                threading.Thread(target=self._handle, args=(line,), daemon=True).start()

    def send(self, reply: Reply) -> None:
        """Write one reply; safe from any thread."""
        data = json.dumps(reply).encode() + b"\n"
        with self._write_lock:
            while data:
                data = data[os.write(self._port, data) :]

    def _handle(self, line: bytes) -> None:
        request = json.loads(line)
        try:
            reply = self._operations[request["op"]](request)
        except OSError as error:
            reply = {"error": error.strerror or str(error), "errno": error.errno}
        except Exception as error:  # the thread's end: the caller must get an answer
            reply = {"error": f"{type(error).__name__}: {error}"}
        self.send({**reply, "id": request["id"]})


def run(request: Request) -> Reply:
    """Run a command to its end; on timeout its whole process group is killed."""
    process = subprocess.Popen(
        request["argv"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **request["env"]},
        cwd=request["cwd"],
        start_new_session=True,
    )
    timed_out = False
    try:
        out, err = process.communicate(decode(request["stdin"]), timeout=request["limit_s"])
    except subprocess.TimeoutExpired:
        timed_out = True
        end_group(process.pid, signal.SIGKILL)
        out, err = _what_is_left(process)
    return {
        "rc": process.returncode if process.returncode is not None else -signal.SIGKILL,
        "stdout": encode(out),
        "stderr": encode(err),
        "timed_out": timed_out,
    }


def _what_is_left(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """The outputs of a killed command, which need not end: what sleeps in the kernel for a device
    that does not answer cannot be killed, and a child that left the group holds the pipes."""
    try:
        return process.communicate(timeout=_DYING_S)
    except subprocess.TimeoutExpired as late:
        said = f"\n(killed, and its pipes are still open {_DYING_S:g} s later)\n".encode()
        return late.output or b"", (late.stderr or b"") + said


def read(request: Request) -> Reply:
    """Read at most `size` bytes of a file from `offset`."""
    with Path(request["path"]).open("rb") as file:
        if request["offset"]:
            file.seek(request["offset"])
        return {"data": encode(file.read(request["size"]))}


def read_many(request: Request) -> Reply:
    """Read many small text files at once; one that cannot be read is null."""
    return {"values": {path: _text_or_none(Path(path)) for path in request["paths"]}}


def query(request: Request) -> Reply:
    """Rows of a SQLite database, read in one transaction while others may write to it.

    Here and not from a copy of its files: SQLite makes and removes the log (-wal) when it likes,
    and a file and a log that were copied one after the other need not belong together.
    """
    # Imported late, so that a guest without queries starts sooner.
    import sqlite3  # noqa: PLC0415

    uri = f"{Path(request['path']).as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_S)) as database:
        return {"rows": database.execute(request["sql"]).fetchall()}


def _text_or_none(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def write(request: Request) -> Reply:
    """Write bytes in one system call where it fits (sysfs takes nothing else)."""
    path = Path(request["path"])
    if request["mkdir"]:
        path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY
    if request["create"]:
        flags |= os.O_CREAT | (os.O_APPEND if request["append"] else os.O_TRUNC)
    descriptor = os.open(path, flags, 0o644)
    try:
        data = decode(request["data"])
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)
    return {}


def resolve(request: Request) -> Reply:
    """Where a path really leads, or null if there is nothing."""
    try:
        return {"path": str(Path(request["path"]).resolve(strict=True))}
    except (OSError, RuntimeError):  # RuntimeError: Python 3.11 has it for a loop of links
        return {"path": None}


def kernel_log(request: Request) -> Reply:
    """The records of the kernel's log from number `start` on, as /dev/kmsg has them."""
    records: list[str] = []
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        while True:
            # One record a read; EPIPE says that the oldest were overwritten meanwhile.
            with contextlib.suppress(BrokenPipeError):
                record = os.read(log, 8192).decode(errors="replace")
                if int(record.split(",", 2)[1]) >= request["start"]:
                    records.append(record)
    except BlockingIOError:
        return {"records": records}
    finally:
        os.close(log)


def power_off(_: Request) -> Reply:
    """End this process soon; process 1 then turns the guest off."""
    threading.Timer(0.05, os._exit, (0,)).start()
    return {}


def find_port() -> str:
    """Device file of the port that the host gave its name."""
    for port in Path("/sys/class/virtio-ports").iterdir():
        if (port / "name").read_text().strip() == PORT_NAME:
            return f"/dev/{port.name}"
    sys.exit(f"no virtio-serial port named {PORT_NAME}")


if __name__ == "__main__":
    Agent(os.open(find_port(), os.O_RDWR)).serve()

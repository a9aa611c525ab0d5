# SPDX-License-Identifier: GPL-2.0-only
"""What one can do with a running guest: commands, processes, files, devices.

I/O: through a Channel to the guest's agent.
"""

from __future__ import annotations

import base64
import contextlib
import re
import shlex
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab import monitor
from tests.lab.channel import Channel
from tests.lab.errors import CommandFailed, LabError
from tests.lab.wait import wait_until

CONSOLE = "console.log"
EMULATOR_LOG = "qemu.log"

_FAULT = re.compile(r"BUG:|Oops|Kernel panic|sysrq: Trigger a crash|Out of memory")
_LAST_WORDS_LINES = 120

# "SERIAL NAME" of every disk. A SCSI disk has its serial behind the four bytes of a page's head.
# A path of an NVMe device (nvme0c0n1) has the same as the device, which comes later.
_SERIALS = r"""
cd /sys/block
for disk in *; do
	if [ -e "$disk/serial" ]; then serial=$(cat "$disk/serial")
	elif [ -e "$disk/device/serial" ]; then serial=$(cat "$disk/device/serial")
	elif [ -e "$disk/device/vpd_pg80" ]; then
		serial=$(tail -c +5 "$disk/device/vpd_pg80" | tr -d ' \0')
	else continue; fi
	echo "$serial $disk"
done"""
_CHUNK_BYTES = 512 * 1024
_QUERY_S = 60.0

Command = str | Sequence[str | Path]


@dataclass(frozen=True, slots=True)
class Completed:
    """A command of the guest that has ended."""

    argv: tuple[str, ...]
    rc: int
    """Exit code; minus the signal's number if a signal ended it (-9 after a timeout)."""
    stdout: str
    stderr: str
    timed_out: bool = False

    def check(self) -> Completed:
        """Itself if it succeeded, else CommandFailed with its output."""
        if self.rc != 0:
            why = "timed out" if self.timed_out else f"exit {self.rc}"
            output = f"{self.stdout}{self.stderr}".strip()
            raise CommandFailed(f"in the guest: {shlex.join(self.argv)}: {why}\n{output}")
        return self


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One message of the guest's kernel (Documentation/ABI/testing/dev-kmsg)."""

    number: int
    level: int
    """As in syslog: 3 is an error, 4 a warning, 6 information."""
    at_us: int
    """Since boot."""
    text: str

    @classmethod
    def parse(cls, record: str) -> LogRecord:
        """From what /dev/kmsg gives: `priority,number,time,flags;text`."""
        head, _, text = record.partition(";")
        priority, number, at_us = head.split(",")[:3]
        return cls(int(number), int(priority) & 7, int(at_us), text.splitlines()[0])


class Process:
    """A command of the guest that was started and may still run."""

    def __init__(self, session: Session, argv: Sequence[str], reply: Mapping[str, object]) -> None:
        self._session = session
        self.argv = tuple(argv)
        self._number = reply["number"]
        self.pid = int(str(reply["pid"]))
        """Its process id in the guest."""
        self.stdout_path = str(reply["stdout"])
        self.stderr_path = str(reply["stderr"])

    def poll(self) -> int | None:
        """Exit code, or None while it runs."""
        return self.wait_at_most(0)

    def wait(self, timeout_s: float) -> Completed:
        """Wait for its end; CommandFailed (and the process goes on) if it does not come."""
        rc = self.wait_at_most(timeout_s)
        if rc is None:
            raise CommandFailed(f"still running after {timeout_s:g} s: {shlex.join(self.argv)}")
        return Completed(self.argv, rc, self.stdout(), self.stderr())

    def wait_at_most(self, timeout_s: float) -> int | None:
        """Exit code, or None if it still runs after this time."""
        limit_s = timeout_s * self._session.clock_ahead
        reply = self._session.channel.call(
            "wait", timeout_s=timeout_s, number=self._number, limit_s=limit_s
        )
        rc: int | None = reply["rc"]
        return rc

    def kill(self, number: int = signal.SIGTERM, *, group: bool = True) -> None:
        """Signal it, and by default everything that it started in its process group."""
        self._session.channel.call("kill", number=self._number, signal=int(number), group=group)

    def write(self, text: str) -> None:
        """Write to its standard input (spawned with stdin=True)."""
        data = base64.b64encode(text.encode()).decode()
        self._session.channel.call("feed", number=self._number, data=data)

    def close_stdin(self) -> None:
        """End its standard input."""
        self._session.channel.call("feed", number=self._number, data=None)

    def stdout(self) -> str:
        """What it has written so far."""
        return self._session.read_bytes(self.stdout_path).decode(errors="replace")

    def stderr(self) -> str:
        """What it has written so far, on standard error."""
        return self._session.read_bytes(self.stderr_path).decode(errors="replace")


class Session:
    """A running guest, seen through its agent. Safe for use by many threads."""

    def __init__(self, channel: Channel, share: Path, folder: Path) -> None:
        self.channel = channel
        self.clock_ahead = 1.0
        """How much faster than ours the guest's clock may run: for the limits that it keeps."""
        self._devices: dict[str, str] = {}
        self.share = share
        """A folder that host and guest can both write, under the same path."""
        self.folder = folder
        """The host's folder of this guest: logs, disk images, control pages."""

    def close(self) -> None:
        """Hang up; the guest goes on."""
        self.channel.close()

    @property
    def console(self) -> Path:
        """The kernel's console, as a file of the host."""
        return self.folder / CONSOLE

    def run(
        self,
        command: Command,
        *,
        timeout_s: float = 60,
        env: Mapping[str, str] | None = None,
        cwd: str | Path = "/",
        stdin: str = "",
    ) -> Completed:
        """Run a command to its end; a string is a shell's. Never raises for its exit code."""
        argv = _argv(command)
        reply = self.channel.call(
            "run",
            timeout_s=timeout_s,
            limit_s=timeout_s * self.clock_ahead,
            argv=argv,
            env=dict(env or {}),
            cwd=str(cwd),
            stdin=base64.b64encode(stdin.encode()).decode(),
        )
        out, err = _text(reply["stdout"]), _text(reply["stderr"])
        return Completed(tuple(argv), reply["rc"], out, err, reply["timed_out"])

    def check(self, command: Command, *, timeout_s: float = 60, stdin: str = "") -> str:
        """Run a command that must succeed, and return its stdout."""
        return self.run(command, timeout_s=timeout_s, stdin=stdin).check().stdout

    def spawn(
        self,
        command: Command,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path = "/",
        stdin: bool = False,
    ) -> Process:
        """Start a command and let it run; several may run at once."""
        argv = _argv(command)
        reply = self.channel.call(
            "spawn", argv=argv, env=dict(env or {}), cwd=str(cwd), stdin=stdin
        )
        return Process(self, argv, reply)

    def read_bytes(self, path: str | Path, *, offset: int = 0) -> bytes:
        """A file of the guest; OSError as the guest has it."""
        chunks: list[bytes] = []
        while True:
            reply = self.channel.call("read", path=str(path), offset=offset, size=_CHUNK_BYTES)
            chunk = base64.b64decode(reply["data"])
            chunks.append(chunk)
            offset += len(chunk)
            # A short read is the end, for sysfs and for a plain file.
            if len(chunk) < _CHUNK_BYTES:
                return b"".join(chunks)

    def read(self, path: str | Path) -> str:
        """A text file of the guest, without white space at its ends."""
        return self.read_bytes(path).decode(errors="replace").strip()

    def read_many(self, paths: Iterable[str | Path]) -> dict[str, str | None]:
        """Many small text files in one round trip; one that cannot be read is None."""
        values: dict[str, str | None] = self.channel.call(
            "read_many", paths=[str(path) for path in paths]
        )["values"]
        return values

    def query(self, path: str | Path, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a SQLite database of the guest, as one transaction sees them.

        CommandFailed if there is no such database or it refuses the query.
        """
        reply = self.channel.call("query", timeout_s=_QUERY_S, path=str(path), sql=sql)
        return [tuple(row) for row in reply["rows"]]

    def write(self, path: str | Path, text: str) -> None:
        """Write to a file that exists, such as a knob, in one system call."""
        self._write(path, text.encode(), create=False, append=False)

    def put_file(self, path: str | Path, data: bytes | str | Path) -> None:
        """Make a file in the guest from bytes, text, or a file of the host."""
        if isinstance(data, Path):
            data = data.read_bytes()
        content = data.encode() if isinstance(data, str) else data
        self._write(path, content[:_CHUNK_BYTES], create=True, append=False)
        for start in range(_CHUNK_BYTES, len(content), _CHUNK_BYTES):
            self._write(path, content[start : start + _CHUNK_BYTES], create=True, append=True)

    def get_file(self, path: str | Path, to: Path) -> Path:
        """Copy a file of the guest to the host."""
        to.write_bytes(self.read_bytes(path))
        return to

    def device(self, name: str) -> str:
        """Kernel name (vda, sdb) of a device of the lab (hdd0), which is its serial number."""
        if name not in self._devices:
            lines = self.check(_SERIALS).splitlines()
            self._devices |= dict(line.split() for line in lines)
        if name not in self._devices:
            raise LabError(f"this guest has no device {name}: {sorted(self._devices)}")
        return self._devices[name]

    def name_device(self, name: str, kernel_name: str) -> None:
        """Give a device without a serial number a name for `device`."""
        self._devices[name] = kernel_name

    def resolve(self, path: str | Path) -> str | None:
        """Where a path of the guest really leads, or None if there is nothing."""
        real: str | None = self.channel.call("resolve", path=str(path))["path"]
        return real

    def wait_for_path(self, path: str | Path, timeout_s: float = 20) -> None:
        """Wait until a path exists in the guest."""
        wait_until(lambda: self.resolve(path), timeout_s, f"{path} in the guest")

    def kernel_log(self, start: int = 0) -> list[LogRecord]:
        """The kernel's messages from record number `start` on."""
        records = self.channel.call("kernel_log", start=start)["records"]
        return [LogRecord.parse(record) for record in records]

    def _write(self, path: str | Path, data: bytes, *, create: bool, append: bool) -> None:
        self.channel.call(
            "write",
            path=str(path),
            data=base64.b64encode(data).decode(),
            create=create,
            append=append,
            mkdir=create,
        )


def _argv(command: Command) -> list[str]:
    if isinstance(command, str):
        return ["bash", "-c", command]
    return [str(word) for word in command]


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode(errors="replace")


def why_silent(folder: Path) -> str:
    """Where a guest hangs that answers no more; it does not survive the question (monitor.py)."""
    return "\n".join(filter(None, [monitor.interrogate(folder), why_lost(folder)]))


def why_lost(folder: Path) -> str:
    """The last words of a guest: what its emulator and its kernel said."""
    words: list[str] = []
    for name in (EMULATOR_LOG, CONSOLE):
        # The folder may be gone already, or be removed while it is read.
        with contextlib.suppress(FileNotFoundError):
            words += _last_words((folder / name).read_text(errors="replace").splitlines())
    return "\n".join(["the guest has ended or is silent", *(words or ["(its console is empty)"])])


def _last_words(lines: list[str]) -> list[str]:
    """From the first line of a kernel fault on, else the end."""
    faults = [number for number, line in enumerate(lines) if _FAULT.search(line)]
    start = faults[0] if faults else -_LAST_WORDS_LINES
    return lines[start:][:_LAST_WORDS_LINES]

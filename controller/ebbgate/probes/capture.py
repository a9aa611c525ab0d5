# SPDX-License-Identifier: GPL-2.0-only
"""Records one volume: runs a probe of its own and reads sysfs at each tick.

I/O: a child process, sysfs. The format is that of `ebbgate.probes.recording`.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

from ebbgate import __version__
from ebbgate.errors import EbbgateError, PermissionDenied, Unavailable
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.model.volume import Volume
from ebbgate.probes.ebpf import track_command
from ebbgate.probes.recording import header_line, sysfs_line
from ebbgate.probes.volume_state import read_state
from ebbgate.units import format_bytes

_QUIT_TIMEOUT_S: Final = 5.0
# Loading the programs takes a second, and half a minute on a busy machine under emulation.
_START_TIMEOUT_S: Final = 60.0
_CHUNK_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Captured:
    """The result. `ended`: why it stopped early; empty where it ended as requested.

    `following`: the probe has confirmed that it follows the volume.
    """

    records: int = 0
    ticks: int = 0
    following: bool = False
    ended: str = ""


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """The idle time before an idle edge, and the period of queue samples."""

    wait_ns: int
    pace_ns: int = 0


class Capture:
    """Runs a probe on one volume and writes its records to a file."""

    def __init__(self, program: Path, sysfs: Sysfs, volume: Volume, out: IO[bytes]) -> None:
        self._program = program
        self._sysfs = sysfs
        self._volume = volume
        self._out = out
        self._so_far = Captured()
        self._rest = b""
        self._seconds: float | None = None
        self._deadline: float | None = None

    def run(self, settings: CaptureSettings, seconds: float | None) -> Captured:
        """Record for `seconds`, or until the probe ends or KeyboardInterrupt.

        The time starts when the probe follows the volume. Raises Unavailable and PermissionDenied
        where the probe cannot run.
        """
        self._seconds = seconds
        self._write(header_line(self._about()))
        child = self._start()
        try:
            self._command(child, settings)
            self._deadline = time.monotonic() + _START_TIMEOUT_S
            with suppress(KeyboardInterrupt):
                self._pump(child)
            return self._finish(child)
        finally:
            _end(child)

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            # A session of its own: this process passes a keyboard interrupt on as `quit`.
            return subprocess.Popen(
                [str(self._program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(
                f"the probe cannot be started: {self._program}: {error.strerror}",
                "build it with make probe, or reinstall",
            ) from error

    def _command(self, child: subprocess.Popen[bytes], settings: CaptureSettings) -> None:
        name = self._volume.name
        lines = (
            track_command(self._volume),
            f"wait {name} {settings.wait_ns}",
            f"pace {name} {settings.pace_ns}",
        )
        _send(child, *lines)

    def _pump(self, child: subprocess.Popen[bytes], *, ignore_reasons: bool = False) -> None:
        """Copy lines until the deadline, the probe's end or (unless ignored) another reason."""
        assert child.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            while ignore_reasons or not self._so_far.ended:
                left = None if self._deadline is None else self._deadline - time.monotonic()
                if (left is not None and left <= 0) or not selector.select(left):
                    return
                chunk = os.read(child.stdout.fileno(), _CHUNK_BYTES)
                if not chunk:
                    return
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                for line in lines:
                    self._take(line)

    def _take(self, line: bytes) -> None:
        """Write one line of the probe unchanged; at a tick add the state from sysfs."""
        self._out.write(line + b"\n")
        raw = _loads(line)
        so_far = replace(self._so_far, records=self._so_far.records + 1)
        match raw.get("t"):
            case "track":
                self._deadline = None if self._seconds is None else time.monotonic() + self._seconds
                so_far = replace(so_far, following=True)
                self._write_state()
            case "tick":
                so_far = replace(so_far, ticks=so_far.ticks + 1)
                self._write_state()
            case "error":
                so_far = _ended(so_far, f"the probe refused: {raw.get('text')}")
            case "untrack":
                so_far = _ended(so_far, f"{self._volume.name} {raw.get('why')}")
        self._so_far = so_far
        self._out.flush()

    def _write_state(self) -> None:
        state = read_state(self._sysfs, self._volume, time.monotonic_ns())
        self._write(sysfs_line(self._volume.name, state))

    def _finish(self, child: subprocess.Popen[bytes]) -> Captured:
        """Ask the probe to quit and record its last tick and `bye`."""
        _send(child, "quit")
        self._deadline = time.monotonic() + _QUIT_TIMEOUT_S
        self._pump(child, ignore_reasons=True)
        try:
            code = child.wait(_QUIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return replace(self._so_far, ended=self._so_far.ended or "the probe did not quit")
        if code != 0 and not self._so_far.ended:
            raise _probe_failed(code)
        if not self._so_far.following and not self._so_far.ended:
            return replace(self._so_far, ended=f"the probe never followed {self._volume.name}")
        return self._so_far

    def _about(self) -> str:
        """Return volume, devices, kernel and time as text."""
        volume, now = self._volume, datetime.now(UTC).isoformat(timespec="seconds")
        devices = f"{volume.backing.name} + {', '.join(cache.name for cache in volume.caches)}"
        size = format_bytes(volume.size_bytes)
        return (
            f"{volume.name} ({volume.kind}, {size}, {devices}), "
            f"Linux {os.uname().release}, {now}, ebbgate {__version__}"
        )

    def _write(self, line: str) -> None:
        self._out.write(line.encode() + b"\n")


def _ended(so_far: Captured, why: str) -> Captured:
    """Note why it ends; what comes after that only follows from it."""
    return replace(so_far, ended=so_far.ended or why)


def _loads(line: bytes) -> dict[str, Any]:
    """Return the line's fields; none for a damaged line, which is recorded unchanged."""
    try:
        raw = json.loads(line)
    except ValueError:
        return {}
    return raw if isinstance(raw, dict) else {}


def _send(child: subprocess.Popen[bytes], *lines: str) -> None:
    assert child.stdin is not None
    try:
        child.stdin.write("".join(f"{line}\n" for line in lines).encode())
    except BrokenPipeError:
        # It has ended already; its exit code tells why.
        return


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()


def _probe_failed(code: int) -> EbbgateError:
    if code == PermissionDenied.exit_code:
        return PermissionDenied("the probe may not load BPF programs", "run this as root")
    hint = "see what this kernel lacks: ebbgate doctor"
    return Unavailable(f"the probe ended with exit code {code}", hint)

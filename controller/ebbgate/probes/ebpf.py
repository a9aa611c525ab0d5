# SPDX-License-Identifier: GPL-2.0-only
"""Runs `ebbgate-probe`, passes its records on and restarts it. I/O: a child process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ebbgate.errors import EbbgateError, PermissionDenied, Unavailable
from ebbgate.log_messages.service import (
    PROBE_ENDED,
    PROBE_GIVEN_UP,
    PROBE_HANGS,
    PROBE_LINE_TOO_LONG,
    PROBE_RECORD_DAMAGED,
)
from ebbgate.model.records import (
    Edge,
    Hello,
    QueueSample,
    Record,
    SignalsChanged,
    Tracked,
    Untracked,
)
from ebbgate.model.status import ProbeStatus
from ebbgate.model.volume import Kind, Volume
from ebbgate.probes.dm_status import table_mode
from ebbgate.probes.protocol import BadRecord, parse_line

_LOG = logging.getLogger(__name__)
BACKOFF_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses before each restart; the last one stays. A probe that ran for a minute starts over."""
_STEADY_S = 60.0
_LINE_BYTES_MAX = 1 << 20
_LOGGED_MAX = 3
_CHUNK_BYTES = 1 << 16
_EXIT_S = 1.0
"""The time that a probe may take to end after it closed its output or broke the protocol."""
_HANG_S = 2.0
"""A probe that hangs in the kernel ends when that is over; the knobs are restored before."""
_SILENT_S = 10.0
_SILENT_TIMES = 3
"""A probe that follows volumes sends a record each tick, which is 10 s at most. One that sent
nothing for so many times in a row hangs. One long time is not enough: both may have been frozen."""
_EXIT_MEANING: Mapping[int, str] = {
    64: "it refused its arguments",
    69: "the kernel lacks what it needs (see `ebbgate doctor`)",
    70: "an internal error",
    77: "it lacks the privilege; run as root",
}
FATAL_EXITS = frozenset({64, 69, 77})
"""A restart cannot help."""
_INTERNAL_EXIT = 70
FAILED_STARTS_MAX = 3
"""After this many starts in a row that end with an internal error, wait `RETRY_S`."""
RETRY_S = 600.0
"""`EbpfProbe.retry` ends this pause."""


@dataclass(slots=True)
class ProbeHealth:
    """The state of the probe, for people."""

    state: str = "starting"
    restarts: int = 0
    hello: Hello | None = None
    bad_lines: int = 0
    complaints: dict[str, str] = field(default_factory=dict)

    def status(self) -> ProbeStatus:
        """Return it as in the daemon's status."""
        return ProbeStatus(
            kind=self.hello.probe if self.hello else "ebpf",
            state=self.state,
            restarts=self.restarts,
            signals=self.hello.signals if self.hello else {},
            bad_lines=self.bad_lines,
            complaints=dict(self.complaints),
        )


def track_command(volume: Volume) -> str:
    """Return the command that makes the probe follow a volume."""
    caches = ",".join(_devno(device.devno) for device in volume.caches)
    mode = ""
    if volume.kind is Kind.DM_CACHE and volume.mapping is not None:
        # The probe cannot tell writeback from writethrough by where a write goes.
        mode = f" mode={table_mode(volume.mapping.params)}"
    return (
        f"track {volume.name} kind={volume.kind} volume={_devno(volume.devno)}"
        f" cache={caches} backing={_devno(volume.backing.devno)}{mode}"
    )


def _devno(devno: tuple[int, int]) -> str:
    return f"{devno[0]}:{devno[1]}"


class EbpfProbe:
    """The child process and its commands. All is called on the event loop.

    `on_restart`: a child has begun. `on_end`: its records have ended.
    """

    def __init__(
        self,
        program: Path,
        on_record: Callable[[Record], None],
        on_restart: Callable[[], None],
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._program = program
        self._on_record = on_record
        self._on_restart = on_restart
        self._on_end = on_end
        self._process: Process | None = None
        self._stopping = False
        self._greeted = False
        self._heard = False
        self._tracked: set[str] = set()
        self._retry: asyncio.Event | None = None
        self.health = ProbeHealth()

    def command(self, line: str) -> None:
        """Send one command; dropped while no probe runs (a restart tracks all volumes again)."""
        process = self._process
        if process is not None and process.stdin is not None and not process.stdin.is_closing():
            process.stdin.write(line.encode() + b"\n")

    async def run(self) -> None:
        """Keep a probe running until `stop`. Raises EbbgateError where a restart cannot help.

        A probe that cannot start for an internal error is tried `FAILED_STARTS_MAX` times, then
        once every `RETRY_S`; meanwhile there are no signals.
        """
        attempt = failed_starts = 0
        while not self._stopping:
            started = time.monotonic()
            code = await self._run_once()
            if self._stop_asked():
                return
            if time.monotonic() - started > _STEADY_S:
                attempt = 0
            if code in FATAL_EXITS:
                self.health.state = f"down: {_meaning(code)}"
                raise _fatal(code, _meaning(code))
            failed = code == _INTERNAL_EXIT and not self._greeted
            failed_starts = failed_starts + 1 if failed else 0
            self.health.restarts += 1
            if failed_starts >= FAILED_STARTS_MAX:
                await self._wait_for_retry(first=failed_starts == FAILED_STARTS_MAX)
            else:
                await self._pause(code, attempt)
            attempt += 1

    def retry(self) -> None:
        """Start the probe now if it waits for `RETRY_S`; else do nothing."""
        if self._retry is not None:
            self._retry.set()

    async def _pause(self, code: int, attempt: int) -> None:
        why = _meaning(code)
        self.health.state = f"down: {why}"
        pause = BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)]
        _LOG.warning(PROBE_ENDED, why, pause)
        await asyncio.sleep(pause)

    async def _wait_for_retry(self, *, first: bool) -> None:
        """Log once that the probe cannot start, then wait."""
        text = (
            f"the probe cannot start here ({_meaning(_INTERNAL_EXIT)}; `{self._program} --check`"
            f" shows it): nothing is tuned. It is tried again every {RETRY_S / 60:g} min and on"
            " SIGHUP"
        )
        self.health.state = f"down: {text}"
        if first:
            _LOG.error(PROBE_GIVEN_UP, text)
        self._retry = asyncio.Event()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._retry.wait(), RETRY_S)
        self._retry = None

    async def stop(self, timeout_s: float = 3.0) -> None:
        """Ask the probe to quit; kill it after `timeout_s`, and soon after that leave it alone."""
        self._stopping = True
        self.retry()
        process = self._process
        if process is None:
            return
        with contextlib.suppress(ConnectionError):
            self.command("quit")
        await _end(process, timeout_s, _HANG_S)

    def _stop_asked(self) -> bool:
        return self._stopping

    async def _run_once(self) -> int:
        output, its_end = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                str(self._program), stdin=PIPE, stdout=its_end
            )
        except OSError as error:
            os.close(output)
            raise Unavailable(
                f"the probe cannot be started: {self._program}: {error.strerror}",
                "build it with `make probe`, or reinstall",
            ) from error
        finally:
            os.close(its_end)
        process = self._process
        self._greeted = False
        self._tracked.clear()
        self._on_restart()
        try:
            await self._read(output)
        except BaseException:
            # A bug, another protocol or a cancelled task: the child must not outlive its reader.
            await _end(process, 0.0, _HANG_S)
            raise
        finally:
            self._process = None
            os.close(output)
            self._on_end()
        return await _end(process, _EXIT_S)

    async def _read(self, output: int) -> None:
        """Read records until the probe closes its output, sends an endless line or hangs.

        Read from the pipe itself: an asyncio stream doubles the cost of a record.
        """
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        rest = b""

        def readable() -> None:
            nonlocal rest
            try:
                chunk = os.read(output, _CHUNK_BYTES)
                self._heard = True
                *lines, rest = (rest + chunk).split(b"\n")
                self._take(lines)
                if len(rest) > _LINE_BYTES_MAX:
                    _LOG.error(PROBE_LINE_TOO_LONG, _LINE_BYTES_MAX)
                    chunk = b""
            except BaseException as error:
                loop.remove_reader(output)
                ended.set_exception(error)
            else:
                if not chunk:
                    loop.remove_reader(output)
                    ended.set_result(None)

        loop.add_reader(output, readable)
        try:
            await self._end_or_hang(ended)
        finally:
            loop.remove_reader(output)

    async def _end_or_hang(self, ended: asyncio.Future[None]) -> None:
        """Wait for the end of the output, or until a probe that follows volumes hangs."""
        silent_times = 0
        while silent_times < _SILENT_TIMES:
            self._heard = False
            await asyncio.wait((ended,), timeout=_SILENT_S)
            if ended.done():
                return ended.result()
            silent = not self._heard and bool(self._tracked)
            silent_times = silent_times + 1 if silent else 0
        self.health.state = "down: it hangs"
        _LOG.error(PROBE_HANGS, _SILENT_S * _SILENT_TIMES)
        return None

    def _take(self, lines: Sequence[bytes]) -> None:
        records = [record for line in lines if (record := self._parse(line)) is not None]
        for record in without_stale(records):
            if isinstance(record, Hello):
                self._greeted = True
                self.health.hello = record
                self.health.state = "running"
            elif isinstance(record, SignalsChanged) and self.health.hello is not None:
                self.health.hello = replace(self.health.hello, signals=record.signals)
            elif isinstance(record, Tracked):
                self._tracked.add(record.volume)
            elif isinstance(record, Untracked):
                self._tracked.discard(record.volume)
            self._on_record(record)

    def _parse(self, line: bytes) -> Record | None:
        try:
            return parse_line(line)
        except BadRecord as error:
            self.health.bad_lines += 1
            if self.health.bad_lines <= _LOGGED_MAX:
                _LOG.warning(PROBE_RECORD_DAMAGED, error)
            return None


def without_stale(records: Sequence[Record]) -> list[Record]:
    """Drop all queue samples but the newest, and those from before an edge.

    A controller that fell behind must not act on old samples; they are cumulative, so nothing is
    lost.
    """
    newest: dict[str, Record] = {}
    for record in records:
        if isinstance(record, QueueSample | Edge):
            newest[record.volume] = record
    return [r for r in records if not isinstance(r, QueueSample) or newest[r.volume] is r]


async def _end(process: Process, grace_s: float, most_s: float | None = None) -> int:
    """Return the exit code of the child; kill it if it does not end in time.

    `most_s`: leave it alone if it has not ended so long after that; None: wait.
    """
    try:
        return await asyncio.wait_for(process.wait(), grace_s)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                return await process.wait()
        return -signal.SIGKILL
    finally:
        await _hang_up(process)


async def _hang_up(process: Process) -> None:
    """Close stdin; an error for unread input is raised here and not logged with a traceback."""
    if process.stdin is not None:
        process.stdin.close()
        with contextlib.suppress(OSError):
            await process.stdin.wait_closed()


def _meaning(code: int) -> str:
    return _EXIT_MEANING.get(code, f"exit code {code}")


def _fatal(code: int, why: str) -> EbbgateError:
    if code == PermissionDenied.exit_code:
        return PermissionDenied("the probe cannot attach", why)
    return Unavailable("the probe cannot run here", why)

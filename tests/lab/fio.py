# SPDX-License-Identifier: GPL-2.0-only
"""fio in the guest, with typed results.

I/O: runs fio through a Session; its JSON is parsed here and nowhere else.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.lab.errors import CommandFailed
from tests.lab.session import Completed, Process, Session

_SECTIONS = ("read", "write")
_STOPPED = 128
"""Exit code of a run that a signal has ended in order."""
_LOG_DIRECTION = {0: "read", 1: "write", 2: "trim"}


@dataclass(frozen=True, slots=True)
class Direction:
    """What a job did in one direction."""

    ios: int
    bytes: int
    runtime_ms: int
    latency_ns: Mapping[float, int]
    """Completion latency by percentile: 1.0, 5.0, ... 50.0, ... 99.0, 99.9, 99.99."""
    mean_ns: float
    max_ns: int

    @property
    def p50_ns(self) -> int:
        """Median completion latency; 0 if nothing was done."""
        return self.latency_ns.get(50.0, 0)

    @property
    def p99_ns(self) -> int:
        """99th percentile of the completion latency; 0 if nothing was done."""
        return self.latency_ns.get(99.0, 0)

    @property
    def bytes_per_s(self) -> float:
        """Throughput over the job's run time."""
        return self.bytes * 1000 / self.runtime_ms if self.runtime_ms else 0.0

    @property
    def iops(self) -> float:
        """Requests a second over the job's run time."""
        return self.ios * 1000 / self.runtime_ms if self.runtime_ms else 0.0


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One request in a latency log."""

    at_ms: int
    """Since the start of the job."""
    latency_ns: int
    direction: str
    size_bytes: int
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class JobResult:
    """One job's result."""

    name: str
    read: Direction
    write: Direction
    log: tuple[LogEntry, ...] = ()
    """Every request, if the run asked for it."""

    @property
    def runtime_ms(self) -> int:
        """Time from the job's first request to its last completion."""
        return max(self.read.runtime_ms, self.write.runtime_ms)

    @property
    def ios(self) -> int:
        """Reads and writes."""
        return self.read.ios + self.write.ios

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read.bytes + self.write.bytes


@dataclass(frozen=True, slots=True)
class FioResult:
    """The result of a run: its jobs, in the order in which they were given."""

    jobs: tuple[JobResult, ...]

    def job(self, name: str) -> JobResult:
        """The job with this name."""
        return next(job for job in self.jobs if job.name == name)

    @property
    def only(self) -> JobResult:
        """The job of a run that has one."""
        (job,) = self.jobs
        return job

    @property
    def ios(self) -> int:
        """Requests of all jobs."""
        return sum(job.ios for job in self.jobs)

    @property
    def bytes(self) -> int:
        """Bytes of all jobs."""
        return sum(job.bytes for job in self.jobs)


@dataclass(frozen=True, slots=True)
class Job:
    """One fio job; direct I/O, one request at a time unless `options` say otherwise.

    options: fio's own, e.g. {"iodepth": 8, "ioengine": "libaio"}; they win over everything here.
    """

    filename: str
    rw: str
    bs: str
    name: str = "job"
    options: Mapping[str, str | int] = field(default_factory=dict)

    def arguments(self, seed: int) -> list[str]:
        """The job as words of fio's command line.

        Without randrepeat=0 every job draws the same offsets, and one job's misses are the hits
        of the next.
        """
        settings: dict[str, str | int] = {
            "filename": self.filename,
            "rw": self.rw,
            "bs": self.bs,
            "direct": 1,
            "ioengine": "psync",
            "randrepeat": 0,
            "randseed": seed,
            **self.options,
        }
        return [f"--name={self.name}", *(f"--{key}={value}" for key, value in settings.items())]


class FioRun:
    """A run under way."""

    def __init__(self, session: Session, jobs: Sequence[Job], *, seed: int, log: bool) -> None:
        self._session = session
        self._folder = session.check(["mktemp", "-d", "/run/lab/fio.XXXXXX"]).strip()
        self._log = log
        words = ["fio", "--output-format=json+", f"--output={self._folder}/report"]
        for number, job in enumerate(jobs):
            words += job.arguments(seed + number)
            if log:
                # One line a request, with its place; one file for each job.
                words += [f"--write_lat_log={self._folder}/{number}", "--log_offset=1"]
        self.process: Process = session.spawn(words, cwd=self._folder)

    def wait(self, timeout_s: float) -> FioResult:
        """The result once the run has ended; CommandFailed if it fails or takes too long."""
        return self._result(self.process.wait(timeout_s), 0)

    def stop(self, timeout_s: float) -> FioResult:
        """End the run; the result until now. CommandFailed as for `wait`, or if it has ended."""
        self.process.kill(signal.SIGINT)
        return self._result(self.process.wait(timeout_s), _STOPPED)

    def _result(self, done: Completed, expected: int) -> FioResult:
        text = self._session.read(f"{self._folder}/report") if done.rc == expected else ""
        if done.rc != expected:
            raise CommandFailed(f"fio: exit {done.rc}\n{done.stdout}{done.stderr}".strip())
        # A warning of fio may precede the report.
        report = json.loads(text[text.index("{") :])
        jobs = tuple(
            _job(entry, self._entries(number)) for number, entry in enumerate(report["jobs"])
        )
        self._session.check(["rm", "-r", self._folder])
        return FioResult(jobs)

    def _entries(self, number: int) -> tuple[LogEntry, ...]:
        if not self._log:
            return ()
        # fio numbers the logs of a command line from 1 upwards.
        text = self._session.read(f"{self._folder}/{number}_clat.{number + 1}.log")
        return tuple(_entry(line) for line in text.splitlines())


def run(
    session: Session, *jobs: Job, seed: int, timeout_s: float = 120, log: bool = False
) -> FioResult:
    """Run jobs side by side to their end; job n draws from seed + n. `log` keeps each request."""
    return FioRun(session, jobs, seed=seed, log=log).wait(timeout_s)


def start(session: Session, *jobs: Job, seed: int, log: bool = False) -> FioRun:
    """Start jobs side by side and let them run."""
    return FioRun(session, jobs, seed=seed, log=log)


def _job(entry: Mapping[str, Any], log: tuple[LogEntry, ...]) -> JobResult:
    if entry["error"]:
        raise CommandFailed(f"fio: job {entry['jobname']}: error {entry['error']}")
    read, write = (_direction(entry[section]) for section in _SECTIONS)
    return JobResult(entry["jobname"], read, write, log)


def _direction(section: Mapping[str, Any]) -> Direction:
    latency = section["clat_ns"]
    percentiles = {float(key): int(value) for key, value in latency.get("percentile", {}).items()}
    return Direction(
        ios=section["total_ios"],
        bytes=section["io_bytes"],
        runtime_ms=section["runtime"],
        latency_ns=percentiles,
        mean_ns=latency["mean"],
        max_ns=latency["max"],
    )


def _entry(line: str) -> LogEntry:
    """`time ms, latency ns, direction, size, offset[, priority]`."""
    at_ms, latency_ns, direction, size_bytes, offset_bytes = (
        int(word, 0) for word in line.split(",")[:5]
    )
    return LogEntry(at_ms, latency_ns, _LOG_DIRECTION[direction], size_bytes, offset_bytes)

# SPDX-License-Identifier: GPL-2.0-only
"""Measures what the running probe costs: runs and nanoseconds of each BPF program.

I/O: /proc, bpf(2). The kernel counts only while kernel.bpf_stats_enabled is 1. Counting itself
costs about 20 ns per run, so it is off by default; `measure` switches it on for some seconds.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ebbgate.units import NS_PER_S

PROBE_COMM: Final = "ebbgate-probe"
_SWITCH: Final = "sys/kernel/bpf_stats_enabled"
# Count of a program that does nothing (measured on 6.18, 2.5 GHz).
EMPTY_RUN_NS: Final = 35
# System call numbers differ by architecture (asm/unistd.h).
_SYSCALLS: Final = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_PROG_GET_FD_BY_ID: Final = 13
_OBJ_GET_INFO_BY_FD: Final = 15
# struct bpf_prog_info up to and with `name`; the kernel fills as much as it is given room for.
_INFO_BYTES: Final = 80
_NAME: Final = slice(64, 80)


@dataclass(frozen=True, slots=True)
class Program:
    """One BPF program of the probe: runs and time. `name`: empty where the kernel does not tell."""

    id: int
    name: str
    runs: int
    run_ns: int


@dataclass(frozen=True, slots=True)
class Cost:
    """`why`: empty, or why there are no figures. `window_ns`: None for figures since the start."""

    pid: int | None
    counting: bool
    programs: tuple[Program, ...]
    why: str
    window_ns: int | None = None

    @property
    def runs(self) -> int:
        """Runs of all programs."""
        return sum(program.runs for program in self.programs)

    @property
    def ns_per_run(self) -> float | None:
        """Mean over all runs, the kernel's own counting included."""
        return sum(program.run_ns for program in self.programs) / self.runs if self.runs else None


def read(proc: Path) -> Cost:
    """Return what the kernel has counted until now."""
    counting = _switch(proc) == "1"
    pid = probe_pid(proc)
    if pid is None:
        return Cost(None, counting, (), "no probe is running")
    programs = _programs(proc, pid)
    if not programs:
        return Cost(pid, counting, (), "only root can see the probe's programs: run this as root")
    if any(program.runs for program in programs):
        return Cost(pid, counting, programs, "")
    why = "no event yet" if counting else "not measured: run ebbgate doctor --measure 5"
    return Cost(pid, counting, programs, why)


def measure(proc: Path, seconds: float, sleep: Callable[[float], None] = time.sleep) -> Cost:
    """Let the kernel count for some seconds, then restore the switch.

    Raises PermissionError without root.
    """
    before_switch = _switch(proc)
    switch = proc / _SWITCH
    try:
        switch.write_text("1\n")
        first = read(proc)
        sleep(seconds)
        last = read(proc)
    finally:
        if before_switch not in (None, "1"):
            switch.write_text(f"{before_switch}\n")
    if last.pid is None or last.pid != first.pid:
        return last
    start = {program.id: program for program in first.programs}
    programs = tuple(_since(start.get(program.id), program) for program in last.programs)
    why = "" if any(program.runs for program in programs) else "no request arrived meanwhile"
    return Cost(last.pid, last.counting, programs, why, round(seconds * NS_PER_S))


def probe_pid(proc: Path) -> int | None:
    """Return the process number of the probe; the lowest if there are several."""
    pids = []
    for comm in proc.glob("[0-9]*/comm"):
        with suppress(OSError):
            if comm.read_text().strip() == PROBE_COMM:
                pids.append(int(comm.parent.name))
    return min(pids, default=None)


def _since(start: Program | None, end: Program) -> Program:
    if start is None:
        return end
    return Program(end.id, end.name, end.runs - start.runs, end.run_ns - start.run_ns)


def _switch(proc: Path) -> str | None:
    try:
        return (proc / _SWITCH).read_text().strip()
    except OSError:
        return None


def _programs(proc: Path, pid: int) -> tuple[Program, ...]:
    """Return each program once, however many descriptors it has."""
    found: dict[int, Program] = {}
    with suppress(OSError):
        for info in sorted((proc / str(pid) / "fdinfo").iterdir()):
            program = _program(info)
            if program is not None:
                found[program.id] = program
    return tuple(found[number] for number in sorted(found))


def _program(fdinfo: Path) -> Program | None:
    """Return the program of a descriptor; None for anything else (a link has no counts)."""
    try:
        text = fdinfo.read_text()
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        return Program(
            id=int(fields["prog_id"]),
            name=program_name(int(fields["prog_id"])),
            runs=int(fields["run_cnt"]),
            run_ns=int(fields["run_time_ns"]),
        )
    except (OSError, KeyError, ValueError):
        return None


def program_name(number: int) -> str:
    """Return the first 15 characters of a program's name, which /proc does not have.

    Empty without root and on other architectures.
    """
    handle = _bpf(_PROG_GET_FD_BY_ID, struct.pack("=III", number, 0, 0))
    if handle < 0:
        return ""
    try:
        info = ctypes.create_string_buffer(_INFO_BYTES)
        attributes = struct.pack("=IIQ", handle, _INFO_BYTES, ctypes.addressof(info))
        if _bpf(_OBJ_GET_INFO_BY_FD, attributes) < 0:
            return ""
        return info.raw[_NAME].partition(b"\0")[0].decode(errors="replace")
    finally:
        os.close(handle)


def _bpf(command: int, attributes: bytes) -> int:
    """Call bpf(2); negative on failure and on unknown architectures."""
    syscall = _SYSCALLS.get(platform.machine())
    if syscall is None:
        return -1
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(syscall, command, buffer, len(attributes))
    return result

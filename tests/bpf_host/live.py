# SPDX-License-Identifier: GPL-2.0-only
"""The real probe on this machine's own kernel, for tests that need no cache.

I/O: starts build/ebbgate-probe, makes loop devices, runs fio. `unavailable()` says why not.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest

from tests.probe_records import Record, of_type

BUILD = Path(os.environ.get("BUILD", Path(__file__).resolve().parents[2] / "build"))
PROBE = BUILD / "ebbgate-probe"
DEADLINE_S = 15.0

LOOP_CONTROL = Path("/dev/loop-control")
LOOP_CTL_ADD = 0x4C80
LOOP_CTL_REMOVE = 0x4C81


def unavailable() -> str | None:
    """Return why the probe cannot run here, in one line; None if it can."""
    if os.geteuid() != 0:
        return "the probe needs root"
    if not PROBE.exists():
        return "build/ebbgate-probe is not built: make probe"
    for program in ("losetup", "fio"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if not LOOP_CONTROL.exists():
        return "this kernel has no loop devices"
    check = subprocess.run(
        [PROBE, "--check"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if check.returncode != 0:
        return f"the probe does not run on this kernel: {check.stderr.strip()[-200:]}"
    return None


def skip_unless_possible(reason: str | None) -> None:
    """Skip the test for this reason, if there is one; fail where nothing may be skipped."""
    if reason is None:
        return
    if os.environ.get("EBBGATE_REQUIRE_LAB") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def probe_with(stand_in: str, replaced: set[str], out: Path) -> Path:
    """Link the probe with a file of stand_in/ in place of some of its own."""
    here = Path(__file__).resolve().parent
    bpf = here.parents[1] / "bpf"
    stems = {path.stem for path in bpf.glob("*.c")} - replaced
    objects = [str(BUILD / "bpf" / f"{stem}.o") for stem in sorted(stems) if "." not in stem]
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Werror", f"-I{bpf}", f"-I{BUILD / 'bpf'}"]
    libraries = ["-lbpf", "-lelf", "-lz", "-lcap"]
    run(["cc", *flags, "-o", str(out), str(here / "stand_in" / stand_in), *objects, *libraries])
    return out


class LiveProbe:
    """Runs the probe and collects its records."""

    def __init__(
        self, *arguments: str, program: Path = PROBE, env: Mapping[str, str] | None = None
    ) -> None:
        self.records: list[Record] = []
        self.process = subprocess.Popen(
            [program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Self:
        self.wait_for("hello")
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> int:
        """Close stdin, wait for the end, and return the exit code."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            code = self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self._reader.join()
            if self.process.stdout is not None:
                self.process.stdout.close()
        return code

    def send(self, command: str) -> None:
        """Send a command line."""
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def wait_until(self, holds: Callable[[], object], what: str) -> None:
        """Wait until a condition on the records is true."""
        end = time.monotonic() + DEADLINE_S
        while not holds():
            assert time.monotonic() < end, f"no {what} within {DEADLINE_S:g} s: {self.records[-3:]}"
            if self.process.poll() is not None:
                self._reader.join()
                assert holds(), f"the probe ended before {what}: {self.records[-3:]}"
            time.sleep(0.005)

    def wait_for(self, kind: str, **fields: object) -> Record:
        """Return the first record of a type with these fields, old or new."""
        self.wait_until(lambda: of_type(self.records, kind, **fields), f"{kind} {fields}")
        return of_type(self.records, kind, **fields)[0]

    def track_disk(self, device: str, *, name: str = "disk", backing: bool = True) -> None:
        """Track a disk as a volume and as its own backing device."""
        number = dev_t(device)
        self.send(f"track {name} kind=disk volume={number}" + f" backing={number}" * backing)
        self.wait_for("track", vol=name)

    def next_tick(self, name: str = "disk") -> Record:
        """Return a tick whose counting began after this call."""
        seen = len(of_type(self.records, "tick", vol=name))
        self.wait_until(lambda: len(of_type(self.records, "tick", vol=name)) >= seen + 2, "tick")
        return of_type(self.records, "tick", vol=name)[-1]

    def edges(self, name: str = "disk") -> list[Record]:
        """Return the edges so far."""
        return of_type(self.records, "edge", vol=name)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            record = json.loads(line)
            record["came_ns"] = time.monotonic_ns()
            self.records.append(record)


class LoopDisk:
    """Makes a loop device over a file and removes it on exit."""

    def __init__(self, file: Path, size_bytes: int) -> None:
        self._file = file
        self._size_bytes = size_bytes
        self.path = ""

    def __enter__(self) -> Self:
        with self._file.open("wb") as file:
            file.truncate(self._size_bytes)
        # A new device: an existing one may belong to somebody, and it is removed on exit.
        with LOOP_CONTROL.open("rb") as control:
            number = fcntl.ioctl(control, LOOP_CTL_ADD, -1)
        self.path = f"/dev/loop{number}"
        run(["losetup", "--partscan", self.path, str(self._file)])
        return self

    def __exit__(self, *_: object) -> None:
        run(["losetup", "--detach", self.path])
        deadline = time.monotonic() + DEADLINE_S
        with LOOP_CONTROL.open("rb") as control:
            while True:
                try:
                    fcntl.ioctl(control, LOOP_CTL_REMOVE, int(self.path.removeprefix("/dev/loop")))
                    return
                except OSError:
                    assert time.monotonic() < deadline, f"{self.path} stays busy"
                    time.sleep(0.02)


class ZramDisk:
    """Makes a zram device, which has no requests: bios complete."""

    CONTROL = Path("/sys/class/zram-control")

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self.path = ""

    def __enter__(self) -> Self:
        number = int((self.CONTROL / "hot_add").read_text())
        self.path = f"/dev/zram{number}"
        Path(f"/sys/block/zram{number}/disksize").write_text(str(self._size_bytes))
        return self

    def __exit__(self, *_: object) -> None:
        (self.CONTROL / "hot_remove").write_text(self.path.removeprefix("/dev/zram"))


class HeldDisk:
    """Makes a loop disk whose writes can be held back by freezing the file system below it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = ""

    @contextmanager
    def made(self) -> Iterator[Self]:
        """Make the disk; remove it on exit."""
        image, mount = self._folder / "filesystem", self._folder / "mount"
        mount.mkdir()
        with LoopDisk(image, 64 << 20) as outer:
            run(["mkfs.ext4", "-q", outer.path])
            run(["mount", outer.path, str(mount)])
            try:
                file = mount / "disk"
                run(["fallocate", "--length", str(16 << 20), str(file)])
                with LoopDisk(file, 16 << 20) as inner:
                    self.path = inner.path
                    yield self
            finally:
                run(["umount", str(mount)])

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep all writes of the disk in flight."""
        mount = str(self._folder / "mount")
        run(["fsfreeze", "--freeze", mount])
        try:
            yield
        finally:
            run(["fsfreeze", "--unfreeze", mount])

    @contextmanager
    def writing(
        self,
        probe: LiveProbe,
        count: int,
        rw: str = "write",
        in_flight: Callable[[], int] | None = None,
    ) -> Iterator[None]:
        """Keep this many writes of 4 KiB in flight until the end of the context.

        `in_flight` tells how many there are; without it the kernel does.
        """
        counted = in_flight or self.in_flight
        argv = ["fio", "--name=w", f"--filename={self.path}", "--direct=1", "--bs=4k", f"--rw={rw}"]
        argv += ["--ioengine=libaio", f"--iodepth={count}", f"--number_ios={count}"]
        with self.held():
            process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
            probe.wait_until(lambda: counted() >= count, f"{count} writes in flight")
            yield
        assert process.wait(DEADLINE_S) == 0

    def in_flight(self) -> int:
        """Return the writes in flight by the kernel's count."""
        name = self.path.removeprefix("/dev/")
        return int(Path(f"/sys/block/{name}/inflight").read_text().split()[1])


def run(argv: Sequence[str], stdin: str = "") -> str:
    """Run a command that must succeed and return its output."""
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


def dev_t(device: str) -> str:
    """Return MAJ:MIN of a block device."""
    number = Path(device).stat().st_rdev
    return f"{os.major(number)}:{os.minor(number)}"


def kernel_address(function: str) -> int:
    """Return the address of a function of the kernel; 0 if it is not known."""
    with Path("/proc/kallsyms").open() as lines:
        for line in lines:
            words = line.split()
            if words[2] == function:
                return int(words[0], 16)
    return 0


def fio(device: str, *options: str) -> dict[str, Any]:
    """Run one fio job on a device, direct and synchronous by default, and return its report."""
    text = run(
        [
            "fio",
            "--output-format=json",
            "--name=job",
            f"--filename={device}",
            "--direct=1",
            "--ioengine=psync",
            "--bs=4k",
            *options,
        ]
    )
    report: dict[str, Any] = json.loads(text[text.index("{") :])
    job: dict[str, Any] = report["jobs"][0]
    return job

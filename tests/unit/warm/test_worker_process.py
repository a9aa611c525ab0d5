# SPDX-License-Identifier: GPL-2.0-only
"""The process that reads, with a real file: what happens to it meanwhile, and where it lies.

I/O: a process of its own; files of this machine, whose block devices stand for a volume.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbgate.units import KIB, MIB
from tests.loop_device import loop_device
from tests.programs import REPO

pytestmark = pytest.mark.timeout(300)


class Process:
    """A worker that has opened a file, and the daemon's side of it."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ebbgate.warm.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": str(REPO / "controller"), "PATH": os.environ["PATH"]},
        )
        self.send(path=str(path))
        self.opened = self.event()

    def send(self, **message: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def event(self) -> dict[str, Any]:
        assert self.process.stdout
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def until(self, *names: str) -> dict[str, Any]:
        while (found := self.event())["event"] not in names:
            pass
        return found

    def start(self, volume: str, backing: str, kind: str = "bcache") -> None:
        facts = {"kind": kind, "unit": 4096, "block": 64 * KIB, "burst": 0}
        self.send(command="start", volume=volume, backing=backing, **facts)

    def go(self) -> None:
        self.send(command="go", run=4 * MIB, rate=0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "file"
    with found.open("wb") as file:
        file.write(os.urandom(4 * MIB))
        os.fsync(file.fileno())
    return found


@pytest.fixture
def worker(path: Path) -> Iterator[Process]:
    made = Process(path)
    try:
        if made.opened["event"] == "failed":
            pytest.skip(made.opened["text"])
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def own(worker: Process) -> str:
    """The number of the device with the file."""
    major, minor = worker.opened["devno"]
    return f"{major}:{minor}"


@pytest.fixture
def unused() -> str:
    """The number of a block device that nobody reads, and which would count it."""
    for setting in sorted(Path("/sys/dev/block").glob("*/queue/iostats")):
        device = setting.parents[1]
        reads = (device / "stat").read_text().split()[0]
        if (setting.read_text().strip(), reads) == ("1", "0"):
            return device.name
    pytest.skip("needs a block device without reads")


def replace(path: Path) -> None:
    new = path.with_name("new")
    new.write_bytes(bytes(4 * MIB))
    new.rename(path)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Path.unlink, "the file was deleted"),
        (replace, "the file was replaced"),
        (lambda path: os.truncate(path, MIB), "the file was truncated"),
        (lambda path: path.rename(path.with_name("other")), "the file was renamed"),
    ],
    ids=["deleted", "replaced", "truncated", "renamed"],
)
def test_what_happens_to_a_file_that_is_read_ends_it_with_one_line(
    worker: Process, path: Path, unused: str, change: Callable[[Path], object], text: str
) -> None:
    worker.start(unused, unused)
    worker.send(command="step", run=4 * MIB, rate=0)
    assert worker.until("progress")["total"] == 4 * MIB
    change(path)
    assert worker.until("failed", "done") == {"event": "failed", "text": text, "hint": ""}
    assert worker.process.wait(10) == 0


def test_reads_that_the_volume_sees_and_its_backing_device_does_not_are_hits(
    worker: Process, unused: str
) -> None:
    worker.start(own(worker), unused)
    worker.go()
    done = worker.until("failed", "done")
    assert (done["event"], done["elsewhere"]) == ("done", 0)
    assert done["hits"] == done["checked"] > 100


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[str]:
    """The number of a device that was read once, and lies elsewhere."""
    image = tmp_path / "image"
    image.write_bytes(bytes(MIB))
    with loop_device(image) as device:
        with device.open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            assert len(file.read(4096)) == 4096
        number = device.stat().st_rdev
        yield f"{os.major(number)}:{os.minor(number)}"


def test_reads_of_another_device_are_no_hits(worker: Process, volume: str, unused: str) -> None:
    """As where a logical volume has parts that are not cached, or pvmove moves them there."""
    worker.start(volume, unused, "dm-cache")
    worker.go()
    done = worker.until("failed", "done")
    assert (done["event"], done["hits"]) == ("done", 0)
    assert done["elsewhere"] == done["checked"] >= 4 * MIB // (64 * KIB)


def test_a_volume_that_counts_no_reads_is_taken_at_the_word_of_its_backing_device(
    worker: Process, unused: str
) -> None:
    worker.start(unused, unused, "dm-cache")
    worker.go()
    done = worker.until("failed", "done")
    assert (done["hits"], done["elsewhere"]) == (done["checked"], 0)

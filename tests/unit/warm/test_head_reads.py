# SPDX-License-Identifier: GPL-2.0-only
"""The process that reads single pages: of the device that was meant, past the page cache.

I/O: a process of its own; a loop device, or files of this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbgate.units import MIB
from tests.loop_device import loop_device
from tests.programs import REPO

pytestmark = pytest.mark.timeout(300)


class Process:
    """A worker that reads pages."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ebbgate.warm.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": str(REPO / "controller"), "PATH": os.environ["PATH"]},
        )
        self._send(heads=True)

    def _send(self, **message: object) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self, device: Path, devno: list[int], offset: int) -> dict[str, Any]:
        assert self.process.stdout
        self._send(device=str(device), devno=devno, offset=offset)
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found


@pytest.fixture
def worker() -> Iterator[Process]:
    made = Process()
    yield made
    made.process.kill()
    made.process.communicate()


def number(device: Path) -> list[int]:
    found = device.stat().st_rdev
    return [os.major(found), os.minor(found)]


def reads(device: Path) -> int:
    """How many reads have reached it."""
    return int(Path(f"/sys/block/{device.name}/stat").read_text().split()[0])


def test_each_page_is_read_from_the_device(worker: Process, tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(MIB))
    with loop_device(image) as device:
        before = reads(device)
        for _ in range(3):
            # The same page each time: the page cache must not answer.
            found = worker.read(device, number(device), MIB // 2)
            assert found == {"event": "read", "device": str(device)}
        assert reads(device) >= before + 3


def test_a_page_behind_the_end_is_no_fault(worker: Process, tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(MIB))
    with loop_device(image) as device:
        assert worker.read(device, number(device), MIB)["event"] == "read"


def test_what_cannot_be_read_is_told_and_the_next_one_is_read(
    worker: Process, tmp_path: Path
) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(MIB))
    gone = worker.read(tmp_path / "gone", [7, 0], 0)
    assert (gone["event"], gone["text"]) == ("failed", "No such file or directory")
    file = worker.read(image, [7, 0], 0)
    assert (file["event"], file["text"]) == ("failed", f"{image} is another device now")
    with loop_device(image) as device:
        other = worker.read(device, [7, 4095], 0)
        assert (other["event"], other["text"]) == ("failed", f"{device} is another device now")
        assert worker.read(device, number(device), 0)["event"] == "read"


def test_a_pipe_in_place_of_a_device_does_not_hang_it(worker: Process, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert worker.read(tmp_path / "pipe", [7, 0], 0)["event"] == "failed"

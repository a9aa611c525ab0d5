# SPDX-License-Identifier: GPL-2.0-only
"""At a stop, every call that was reported earlier is made, whichever thread makes it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests import syscalls
from tests.syscalls import Child

pytestmark = pytest.mark.skipif(
    not syscalls.possible(), reason="this process may not trace its children"
)

WRITES = 50


@pytest.fixture
def one_processor() -> Iterator[None]:
    """This process and its children share a processor, as on a machine that has much to do."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.mark.usefixtures("one_processor")
def test_earlier_calls_are_made_at_the_next_stop(tmp_path: Path) -> None:
    files = [tmp_path / name for name in "ab"]
    for file in files:
        file.touch()
    with Child(lambda: write_side_by_side(files), [tmp_path]) as child:
        reported, threads = 0, set()
        for call in child.calls():
            assert sum(file.stat().st_size for file in files) == reported
            reported += call.name == "write"
            threads.add(call.thread)
    assert (reported, len(threads)) == (2 * WRITES, 2)


def write_side_by_side(files: list[Path]) -> None:
    """One thread for each file. They take the processor from nobody who uses it."""
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    threads = [Thread(target=append, args=(file,)) for file in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def append(file: Path) -> None:
    """A byte at a time."""
    handle = os.open(file, os.O_WRONLY | os.O_APPEND)
    for _ in range(WRITES):
        os.write(handle, b"x")
    os.close(handle)

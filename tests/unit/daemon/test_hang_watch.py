# SPDX-License-Identifier: GPL-2.0-only
"""A volume that hangs in the kernel is named while it hangs, once."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event, Thread

import pytest

from ebbgate.actuators.bcache_steps import write
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.daemon import hang_watch as module
from ebbgate.daemon.hang_watch import HangWatch
from ebbgate.units import NS_PER_S
from tests.knob_writer_fixture import REASON, WriterHarness
from tests.waiting import until


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_long_call_and_its_end_are_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = WriterHarness(tmp_path).writer
    writer.current_write = ("writeback_percent", 0)
    now_s = 1
    watch = HangWatch(lambda: [writer], lambda: now_s * NS_PER_S)
    watch.look()
    assert said(caplog) == []
    now_s = 3
    watch.look()
    watch.look()
    assert said(caplog) == [
        "bcache0: a write of writeback_percent hangs in the kernel (3 s so far)"
    ]
    writer.current_write, writer.reading_since_ns = None, 6 * NS_PER_S
    now_s = 9
    watch.look()
    watch.look()
    assert said(caplog)[1:] == [
        "bcache0: a read of its state hangs in the kernel (3 s so far)",
        "bcache0: a write of writeback_percent has returned, after 9 s",
    ]


def test_the_times_are_those_of_each_call_and_a_later_one_is_logged_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = WriterHarness(tmp_path).writer
    now_s = 0
    watch = HangWatch(lambda: [writer], lambda: now_s * NS_PER_S)
    for begun_s in (100, 200):
        writer.current_write, now_s = ("writeback_percent", begun_s * NS_PER_S), begun_s + 2
        watch.look()
        writer.current_write, now_s = None, begun_s + 5
        watch.look()
    hangs = "bcache0: a write of writeback_percent hangs in the kernel (2 s so far)"
    returned = "bcache0: a write of writeback_percent has returned, after 5 s"
    assert said(caplog) == [hangs, returned] * 2


def test_a_look_that_fails_does_not_end_the_watch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug in it must not leave later hangs without a cause."""
    monkeypatch.setattr(module, "_EVERY_S", 0.01)
    looks: list[int] = []

    def buggy() -> list[KnobWriter]:
        looks.append(1)
        raise RuntimeError("a bug")

    watch = HangWatch(buggy)
    watch.start()
    until(lambda: len(looks) > 1, "it looks again")
    watch.stop()
    assert said(caplog)[0] == "the check for hanging calls failed"


def test_a_write_that_hangs_is_seen_from_another_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "PATIENCE_NS", NS_PER_S // 10)
    monkeypatch.setattr(module, "_EVERY_S", 0.02)
    harness, let_go = WriterHarness(tmp_path), Event()
    harness.writer.now_ns = time.monotonic_ns
    harness.sysfs.before["writeback_percent"] = lambda: let_go.wait(20)

    watch = HangWatch(lambda: [harness.writer])
    watch.start()
    step = write("writeback_percent", 40)
    writer = Thread(target=lambda: harness.writer.apply((step,), REASON))
    writer.start()
    until(lambda: said(caplog), "it is reported")
    let_go.set()
    writer.join()
    watch.stop()
    assert "bcache0: a write of writeback_percent hangs in the kernel" in said(caplog)[0]
    assert harness.writer.current_write is None

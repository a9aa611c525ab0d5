# SPDX-License-Identifier: GPL-2.0-only
"""The writer of the history beside a reader that holds it up: it goes on in memory and recovers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import pytest

from ebbgate.model.status import DAEMON, DaemonStatus, VolumeStatus
from ebbgate.store import recorder as module
from ebbgate.store import write_queue
from ebbgate.store.limits import SIZE_BYTES_MIN, HistoryLimits
from ebbgate.store.queries import History
from ebbgate.store.recorder import Recorder
from ebbgate.units import NS_PER_S
from tests.builders import busy_frame, decision, idle_edge, proposal
from tests.hostile_reader import holding
from tests.unit.store.recorder_fixture import count, dropped, recorders, said, sound, why, written
from tests.waiting import until

BIG = decision(proposal(reason="x" * 12_000))
SMALL = HistoryLimits(SIZE_BYTES_MIN)
QUICK_S = 0.5
"""Far less than the second for which SQLite waits for a lock."""
TRIES = 5
T = TypeVar("T")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FLUSH_S", 0.02)
    monkeypatch.setattr(module, "_STATUS_NS", 0)
    # On a machine under load a write may take longer than the five seconds of a hanging disk.
    monkeypatch.setattr(module, "_HANGS_NS", 300 * NS_PER_S)


@contextmanager
def recording(path: Path) -> Iterator[Recorder]:
    recorder = Recorder(path, SMALL)
    recorder.flush()
    try:
        yield recorder
    finally:
        recorder.stop()


def total_bytes(path: Path) -> int:
    """The file and its log."""
    parts = (path, path.with_name(f"{path.name}-wal"))
    return sum(part.stat().st_size for part in parts)


def daemon_status(path: Path) -> DaemonStatus | None:
    with closing(History.open(path)) as history:
        found = history.statuses().daemon
        return found.status if found else None


def fill(recorder: Recorder, path: Path) -> None:
    """Decisions until nothing more is recorded; each batch is written before the next is made."""
    while recorder.health().written:
        assert total_bytes(path) <= SMALL.size_bytes
        for _ in range(20):
            recorder.decision(BIG, 1)
        with suppress(OSError):
            recorder.flush()


def quickly(act: Callable[[], T]) -> T:
    """Call it until it takes less than QUICK_S.

    A call that waits for a lock is never quick; one on a machine under load is, sooner or later.
    """
    for _ in range(TRIES):
        began_s = time.monotonic()
        result = act()
        if time.monotonic() - began_s < QUICK_S:
            return result
    raise AssertionError(f"{TRIES} calls took {QUICK_S} s and more")


def test_recording_stops_before_the_size_is_exceeded_and_goes_on_when_the_reader_ends(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with recording(path) as recorder:
        with holding("transaction", path) as pid:
            fill(recorder, path)
            log = recorder.health().log
            assert log is not None
            assert f"(pid {pid}," in (log.held_by or "")
            assert "history_size is 16 MiB" in why(recorder)
            before = count(path)
            for _ in range(300):
                recorder.decision(BIG, 1)
                recorder.sample(busy_frame(1000))
                recorder.edge(idle_edge(1000), 3)
            recorder.live(DAEMON, DaemonStatus(pid=1))
            until(lambda: daemon_status(path) == DaemonStatus(pid=1), "status is still written")
            assert count(path) == before
            assert total_bytes(path) <= SMALL.size_bytes
        until(lambda: written(recorder), "written again")
        log = recorder.health().log
        assert log is not None
        assert log.held_by is None
        assert count(path) >= before + 300, "records meanwhile were kept in memory"
        assert total_bytes(path) <= SMALL.size_bytes
    assert dropped(recorder) == 0
    assert said(caplog, "the history cannot be written (") == 1
    assert said(caplog, "the history is written again") == 1
    assert sound(path)


def test_not_even_status_is_written_beyond_the_size(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_queue, "TASKS_MAX", 50)
    with recording(path) as recorder:
        with holding("transaction", path):
            fill(recorder, path)
            for number in range(60):
                recorder.live(
                    f"bcache{number % 3}", VolumeStatus(summary="x" * 100_000, at_ns=number)
                )
                recorder.decision(BIG, 1)
                time.sleep(0.03)
                assert total_bytes(path) <= SMALL.size_bytes
            until(lambda: dropped(recorder) > 0, "memory is bounded, too")
        until(lambda: written(recorder), "written again")
        with closing(History.open(path)) as history:
            assert history.statuses().volumes["bcache2"].status.at_ns == 59
    assert sound(path)


def test_locks_of_a_reader_delay_only_the_writer(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with recording(path) as recorder:
        with holding("locks", path) as pid:
            recorder.decision(decision(), 1)
            until(lambda: not recorder.health().written, "noticed")
            assert f"(pid {pid}," in why(recorder)
            answer = recorder.written()
            with pytest.raises(OSError, match=f"pid {pid}"):
                answer.result(20)
            edges = 0

            def record() -> None:
                nonlocal edges
                for number in range(200):
                    recorder.decision(decision(), number)
                    recorder.sample(busy_frame(1000 * number))
                    recorder.live(DAEMON, DaemonStatus(pid=number))
                    recorder.edge(idle_edge(1000), 3)
                    edges += 1

            quickly(record)
            assert daemon_status(path) is None, "readers go on reading"
        until(lambda: written(recorder), "written again")
    assert (count(path), count(path, "edges"), dropped(recorder)) == (edges + 1, edges, 0)
    assert said(caplog, "the history cannot be written (database is locked: ") == 1
    assert sound(path)


def test_a_writer_starts_and_recovers_beside_a_locking_reader(path: Path) -> None:
    with recording(path):
        pass
    with closing(History.open(path)), holding("transaction", path), holding("locks", path):
        begun: list[Recorder] = []

        def begin() -> Recorder:
            begun.append(Recorder(path, SMALL))
            begun[-1].decision(decision(), 1)
            return begun[-1]

        recorder = quickly(begin)
        until(lambda: not recorder.health().written, "noticed")
    for each in begun:
        until(lambda each=each: written(each), "written again")  # type: ignore[misc]
        each.stop()
    assert count(path) == len(begun)


def test_stop_returns_beside_a_locking_reader(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = recorders()
    recorder = Recorder(path, SMALL)
    (own,) = recorders() - before
    recorder.flush()
    with holding("locks", path):
        recorder.decision(decision(), 1)
        recorder.stop()
        assert not own.is_alive(), "stop gave up waiting for it"
    assert count(path) == 0


def test_a_hanging_disk_is_reported_while_it_hangs(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_HANGS_NS", 50_000_000)
    answers, asked = Event(), Event()
    with recording(path) as recorder:
        write = write_queue.WriteQueue.write

        def hang(*given: Any) -> None:
            asked.set()
            answers.wait(20)
            write(*given)

        monkeypatch.setattr(write_queue.WriteQueue, "write", hang)
        assert asked.wait(20)
        until(lambda: not recorder.health().written, "noticed")
        assert why(recorder) == "the disk of the history does not answer"
        answers.set()
        until(lambda: recorder.health().written, "it answers again")
    assert said(caplog, "the history cannot be written (the disk of the history") == 1
    assert said(caplog, "the history is written again") == 1

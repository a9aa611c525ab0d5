# SPDX-License-Identifier: GPL-2.0-only
"""Each volume is restored by a process of its own, with a deadline."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ebbgate.actuators import volume_workers as module
from ebbgate.actuators.volume_workers import VolumeWorkers
from ebbgate.knobs.catalog import TABLE
from ebbgate.model.decision import Action, JournalEntry, Outcome, OutcomeKind
from ebbgate.units import NS_PER_S
from tests.builders import journal_entry
from tests.waiting import until

A, B = (journal_entry(volume=name) for name in ("bcache0", "bcache1"))


def restored(entry: JournalEntry, text: str = "") -> Outcome:
    action = Action(entry.volume, entry.knob, None, entry.original, "restore", "")
    return Outcome(action, OutcomeKind.CHANGED, 0, error=text)


class Blocked:
    """The work on bcache1 waits until somebody opens a pipe; `pid`: of the process that does it."""

    def __init__(self, folder: Path) -> None:
        self._pipe, self._pid = folder / "pipe", folder / "pid"
        folder.mkdir(exist_ok=True)
        os.mkfifo(self._pipe)

    def __call__(self, entry: JournalEntry) -> Outcome:
        if entry == B:
            self._pid.write_text(str(os.getpid()))
            self._pipe.read_bytes()
        return restored(entry)

    @property
    def pid(self) -> int:
        until(lambda: self._pid.exists() and self._pid.read_text(), "the process works")
        return int(self._pid.read_text())

    def let_go(self) -> None:
        """Return once the process has ended; it is not reaped."""
        self._pipe.write_bytes(b"")
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)


def test_an_answer_that_came_while_another_one_was_noted_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk of the journal took longer than the deadline to note the first one."""
    now_ns, work = 0, Blocked(tmp_path)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: now_ns))
    found = VolumeWorkers(lambda: None)({"bcache0": [A], "bcache1": [B]}, work)
    assert next(found) == (A, restored(A))
    work.let_go()
    now_ns = module.DEADLINE_NS + NS_PER_S
    assert list(found) == [(B, restored(B))]


def test_a_process_that_hangs_is_ended_and_named(tmp_path: Path) -> None:
    """It would else write its knobs later, after the restore has said that they are not back."""
    work = Blocked(tmp_path)
    ((entry, why),) = VolumeWorkers(lambda: None, deadline_ns=NS_PER_S // 5)({"b": [B]}, work)
    assert (entry, why) == (
        B,
        "the kernel has not answered for 200 ms: bcache1 hangs at writeback_percent",
    )
    until(lambda: not is_alive(work.pid), "it has ended")


def test_a_table_that_takes_long_delays_the_report_of_no_other_volume(tmp_path: Path) -> None:
    table, work = journal_entry(TABLE, volume="dm-0"), Blocked(tmp_path)
    workers = VolumeWorkers(lambda: None, deadline_ns=0, table_deadline_ns=600 * NS_PER_S)
    other = Blocked(tmp_path / "other")

    def works(entry: JournalEntry) -> Outcome:
        return other(B) if entry == table else work(entry)

    found = workers({"dm-0": [table], "bcache1": [B]}, works)
    assert next(found)[0] == B
    other.let_go()
    assert list(found) == [(table, restored(B))]


def test_an_answer_longer_than_a_pipe_comes_whole() -> None:
    """A table with many lines is in the outcome of a restore."""
    long = "x" * 1_000_000
    answers = VolumeWorkers(lambda: None)({"b": [A, B]}, lambda entry: restored(entry, long))
    assert list(answers) == [(A, restored(A, long)), (B, restored(B, long))]


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended is reaped."""
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False

# SPDX-License-Identifier: GPL-2.0-only
"""Each system call of the history's writer fails or hangs once: it says so, goes on, recovers."""

from __future__ import annotations

import errno
import json
import logging
from contextlib import suppress
from pathlib import Path

import pytest

from ebbgate.model.status import VolumeStatus
from ebbgate.store import recorder as module
from ebbgate.store.db import Store
from ebbgate.store.recorder import Recorder
from tests import syscalls
from tests.builders import busy_frame, decision, idle_edge
from tests.errno_harness import ERRNOS
from tests.syscalls import Child
from tests.unit.store.recorder_fixture import count, sound

pytestmark = [
    pytest.mark.skipif(not syscalls.possible(), reason="this process may not trace its children"),
    pytest.mark.timeout(300),
]
TOLD = 3


class RecorderLife:
    """A recorder in a child that gets three decisions, one after the other.

    `answer_timeout_s`: after which the disk hangs. A traced child on a busy machine is slow.
    """

    def __init__(self, folder: Path) -> None:
        self.answer_timeout_s = 20.0
        (folder / "state").mkdir()
        self.path = folder / "state" / "history.db"
        self.report = folder / "report"
        Store.open(self.path).close()
        self.empty = self.path.read_bytes()

    def life(self) -> None:
        """In the child."""
        errors: list[str] = []
        handler = logging.Handler(logging.ERROR)
        handler.emit = lambda record: errors.append(record.getMessage())  # type: ignore[method-assign]
        logging.getLogger().addHandler(handler)
        module.__dict__["_ANSWER_TIMEOUT_S"] = self.answer_timeout_s
        recorder = Recorder(self.path)
        for number in range(TOLD):
            recorder.decision(decision(), number)
            recorder.sample(busy_frame(1000 + 2000 * number))
            recorder.edge(idle_edge(1000), 3)
            recorder.live("bcache0", VolumeStatus(at_ns=number))
            with suppress(OSError):
                recorder.flush(0.5)
        recorder.stop()
        self.report.write_text(json.dumps(errors))

    def reset(self) -> None:
        """An empty history."""
        for file in self.path.parent.iterdir():
            file.unlink()
        self.path.write_bytes(self.empty)
        self.report.unlink(missing_ok=True)

    def calls(self) -> int:
        """How many an undisturbed life makes."""
        with Child(self.life, [self.path.parent]) as child:
            found = len(list(child.calls()))
        assert (child.exit_code, count(self.path)) == (0, TOLD)
        return found

    def can_be_written(self) -> bool:
        """By the next daemon."""
        before = count(self.path)
        recorder = Recorder(self.path)
        recorder.decision(decision(), 1)
        recorder.flush()
        recorder.stop()
        return count(self.path) == before + 1 and sound(self.path)


@pytest.fixture
def recorder_life(tmp_path: Path) -> RecorderLife:
    return RecorderLife(tmp_path)


# An odd step: each errno meets each kind of call.
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.full)])
def test_a_failing_call_loses_no_record_or_is_reported_once(
    recorder_life: RecorderLife, step: int
) -> None:
    for place in range(0, recorder_life.calls(), step):
        recorder_life.reset()
        number = ERRNOS[place % len(ERRNOS)]
        with Child(recorder_life.life, [recorder_life.path.parent]) as child:
            for _ in range(place + 1):
                call = child.next_call()
            if call is None:
                continue
            child.fail(number)
            for _ in child.calls():
                pass
        where = f"{place} {call} {errno.errorcode[number]}"
        assert child.exit_code == 0, where
        errors = json.loads(recorder_life.report.read_text())
        assert len(errors) <= 1, f"{where}: {errors}"
        assert count(recorder_life.path) == TOLD or errors, where
        assert recorder_life.can_be_written(), where


def test_a_hanging_call_stops_only_the_history(recorder_life: RecorderLife) -> None:
    calls = recorder_life.calls()
    recorder_life.answer_timeout_s = 0.3
    for place in range(0, calls, calls // 5):
        recorder_life.reset()
        with Child(recorder_life.life, [recorder_life.path.parent]) as child:
            for _ in range(place + 1):
                call = child.next_call()
            assert call is not None
            assert call.thread != child.pid, "a caller of the recorder touches no file"
            child.hang()
            while child.next_call(5.0) is not None:
                pass
        assert child.exit_code == 0, call
        assert json.loads(recorder_life.report.read_text()), f"{call} is not named"
        assert recorder_life.can_be_written(), call

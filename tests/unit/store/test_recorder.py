# SPDX-License-Identifier: GPL-2.0-only
"""The writer of the history: originals at once, the rest in batches; a bad disk stops nothing."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.model.status import VolumeStatus
from ebbgate.store import recorder as module
from ebbgate.store.db import Store
from ebbgate.store.queries_web import WebHistory
from ebbgate.store.recorder import Recorder
from ebbgate.units import NS_PER_MS, NS_PER_S
from tests.builders import action, busy_frame, decision, idle_edge, proposal
from tests.unit.store.recorder_fixture import count, dropped
from tests.waiting import until


def outcome(kind: OutcomeKind) -> Outcome:
    return Outcome(action(), kind, NS_PER_S)


def test_decisions_outcomes_and_edges_are_written_by_a_flush(
    recorder: Recorder, path: Path
) -> None:
    recorder.decision(decision(proposal()), 1)
    recorder.outcomes([outcome(OutcomeKind.CHANGED), outcome(OutcomeKind.UNCHANGED)], 5 * NS_PER_MS)
    recorder.edge(idle_edge(1000), 3)
    recorder.flush()
    assert [count(path, table) for table in ("decisions", "actions", "edges")] == [1, 1, 1]


def test_an_action_names_the_decision_behind_it(recorder: Recorder, path: Path) -> None:
    for number in (7, 8):
        recorder.decision(decision(proposal()), number)
    for named in (8, 7, 9, None):
        recorder.outcomes([numbered(named)], None)
    recorder.flush()
    with closing(WebHistory.open(path)) as history:
        # Of the second decision, of the first, of one that was never recorded, of none.
        found = [action["decision_id"] for action in history.actions_after(0, 10)]
    assert found == [2, 1, None, None]


def test_an_action_never_names_an_overwritten_decision(recorder: Recorder, path: Path) -> None:
    for number in range(1, 100):
        recorder.decision(decision(proposal()), number)
    recorder.outcomes([numbered(3)], None)
    recorder.flush()
    with closing(WebHistory.open(path)) as history:
        assert history.actions_after(0, 1)[0]["decision_id"] is None


def test_an_action_outlives_the_decision_behind_it(recorder: Recorder, path: Path) -> None:
    recorder.decision(decision(proposal()), 1)
    recorder.flush()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM decisions")
    recorder.outcomes([numbered(1)], None)
    recorder.flush()
    with closing(WebHistory.open(path)) as history:
        assert [action["decision_id"] for action in history.actions_after(0, 2)] == [None]
    assert count(path, "tallies") == 1


def test_an_action_names_no_decision_of_another_file(recorder: Recorder, path: Path) -> None:
    recorder.decision(decision(proposal()), 1)
    recorder.flush()
    for part in path.parent.glob("history.db*"):
        part.unlink()
    recorder.decision(decision(proposal()), 2)
    recorder.outcomes([numbered(2)], None)
    recorder.outcomes([numbered(1)], None)
    recorder.flush()
    with closing(WebHistory.open(path)) as history:
        assert [action["decision_id"] for action in history.actions_after(0, 3)] == [1, None]


def numbered(number: int | None) -> Outcome:
    """The outcome of an action of this decision."""
    plain = outcome(OutcomeKind.CHANGED)
    return replace(plain, action=replace(plain.action, decision=number))


def test_a_frame_a_second_is_kept(recorder: Recorder, path: Path) -> None:
    for at_ms in range(1000, 4000, 250):
        recorder.sample(busy_frame(at_ms))
    recorder.flush()
    assert count(path, "samples") == 3


@pytest.mark.parametrize("tick_ms", [50, 250, 500])
def test_no_second_is_left_out_where_ticks_come_early_or_late(
    recorder: Recorder, path: Path, tick_ms: int
) -> None:
    for number in range(60_000 // tick_ms):
        at_ms = 1000 + number * tick_ms
        recorder.sample(busy_frame(at_ms + (0, 2, 1, 4, 3)[at_ms // 1000 % 5]))
    recorder.flush()
    assert 59 <= count(path, "samples") <= 61


def test_after_a_late_tick_a_sample_follows_within_a_second(recorder: Recorder, path: Path) -> None:
    for at_ms in (1000, 2000, 3700, 3950, 4200, 4450, 4700):
        recorder.sample(busy_frame(at_ms))
    recorder.flush()
    assert count(path, "samples") == 4, "at 1.0, 2.0, 3.7 and 4.7 s"


def test_only_the_newest_status_document_is_written(recorder: Recorder, path: Path) -> None:
    for number in range(5):
        recorder.live("bcache0", VolumeStatus(at_ns=number))
    recorder.live("bcache1", VolumeStatus(at_ns=9))
    recorder.flush()
    recorder.drop_live("bcache1")
    recorder.flush()
    with closing(WebHistory.open(path)) as history:
        found = {name: live.status for name, live in history.statuses().volumes.items()}
        assert found == {"bcache0": VolumeStatus(at_ns=4)}


def test_statuses_of_an_earlier_daemon_are_dropped_before_new_ones_are_written(path: Path) -> None:
    with closing(Store.open(path)) as store:
        for name in ("", "bcache0", "bcache9"):
            store.set_live(name, {}, 1)
    recorder = Recorder(path)
    recorder.clear_live()
    recorder.live("bcache0", VolumeStatus(at_ns=4))
    recorder.stop()
    with closing(WebHistory.open(path)) as history:
        assert [row.volume for row in history.live_rows()] == ["bcache0"]


def test_a_record_that_cannot_be_written_affects_no_other(recorder: Recorder, path: Path) -> None:
    recorder.decision(None, 1)  # type: ignore[arg-type]
    recorder.edge(idle_edge(1), 3)
    recorder.flush()
    assert count(path, "edges") == 1


def test_a_status_document_that_cannot_be_written_affects_no_other(
    recorder: Recorder, path: Path
) -> None:
    recorder.live("bcache0", VolumeStatus(summary=object()))  # type: ignore[arg-type]
    recorder.live("bcache1", VolumeStatus(at_ns=1))
    recorder.edge(idle_edge(1), 3)
    recorder.flush()
    assert (count(path, "edges"), count(path, "live")) == (1, 1)


def test_stop_writes_what_is_queued(path: Path) -> None:
    recorder = Recorder(path)
    recorder.decision(decision(), 1)
    recorder.stop()
    assert count(path, "decisions") == 1


def test_records_are_written_without_a_flush(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FLUSH_S", 0.02)
    recorder = Recorder(path)
    recorder.flush()
    recorder.decision(decision(), 1)
    until(lambda: count(path) > 0, "it is written")
    recorder.stop()


def test_a_disk_that_does_not_answer_is_an_os_error(
    recorder: Recorder, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.flush()
    monkeypatch.setattr(module, "_ANSWER_TIMEOUT_S", 0.05)
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OSError, match="does not answer"):
            recorder.flush(0.05)


def test_an_unwritable_history_is_reported_once_and_nothing_is_lost(
    recorder: Recorder, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder.flush()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE decisions RENAME TO elsewhere")
        for _ in range(3):
            recorder.decision(decision(), 1)
            with pytest.raises(OSError, match="decisions"):
                recorder.flush()
        connection.execute("ALTER TABLE elsewhere RENAME TO decisions")
    assert not recorder.health().written
    recorder.decision(decision(), 1)
    recorder.flush()
    said = [record.getMessage() for record in caplog.records]
    assert sum("cannot be written" in text for text in said) == 1
    assert sum("written again" in text for text in said) == 1
    assert count(path, "decisions") == 4
    assert recorder.health().written


def test_records_dropped_while_the_disk_hangs_are_counted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FLUSH_S", 0.01)
    monkeypatch.setattr(module, "_QUEUE_MAX", 5)
    recorder = Recorder(path)
    recorder.flush()
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        deadline = time.monotonic() + 5
        while dropped(recorder) == 0:
            assert time.monotonic() < deadline, "nothing was dropped"
            recorder.decision(decision(), 1)
            time.sleep(0.001)
    recorder.stop()
    assert count(path, "decisions") > 0

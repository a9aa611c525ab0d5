# SPDX-License-Identifier: GPL-2.0-only
"""Requests of people in the history: recorded, resolved, read, and of bounded size."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from ebbgate.store.intent_rows import IntentRow
from ebbgate.store.queries_intents import IntentHistory, last_number
from ebbgate.store.recorder import Recorder


def row(number: int, **changed: object) -> IntentRow:
    values = {"kind": "mode", "volume": "bcache0", "args": {"mode": "advise"}, "who": "jo"}
    return IntentRow(id=number, at_unix_ns=7, **{**values, **changed})  # type: ignore[arg-type]


def test_a_request_is_kept_and_then_its_outcome(recorder: Recorder, path: Path) -> None:
    recorder.intent(row(17))
    recorder.flush()
    with closing(IntentHistory.open(path)) as history:
        assert history.get(17) == row(17)
        assert history.last() == (17, 17, 16)
        recorder.intent_done(17, False, "it is clean")
        recorder.flush()
        found = history.get(17)
        assert found is not None and (found.ok, found.outcome) == (False, "it is clean")
        assert found.resolved_unix_ns is not None
        assert history.last() == (17, 18, 17)
        assert history.get(18) is None


def test_the_newest_and_what_has_changed_since(recorder: Recorder, path: Path) -> None:
    for number in (1, 2, 3, 4):
        recorder.intent(row(number))
    recorder.intent_done(2, True, "done")
    recorder.flush()
    with closing(IntentHistory.open(path)) as history:
        assert [each.id for each in history.newest(2)] == [4, 3]
        assert [each.id for each in history.newest(9, before_id=3)] == [2, 1]
        assert [each.id for each in history.since(3, 1, 10)[0]] == [2, 4]


def test_requests_that_an_earlier_daemon_did_not_finish_get_an_outcome(
    recorder: Recorder, path: Path
) -> None:
    recorder.intent(row(1))
    recorder.intent(row(2))
    recorder.abandon_intents(2, "ebbgated ended before this was finished")
    recorder.flush()
    with closing(IntentHistory.open(path)) as history:
        assert [each.ok for each in history.newest(9)] == [None, False]


def test_a_long_text_is_not_kept_whole(recorder: Recorder, path: Path) -> None:
    recorder.intent(row(1, args={"name": "n", "text": "x" * 60_000}))
    recorder.flush()
    with closing(IntentHistory.open(path)) as history:
        found = history.get(1)
        assert found is not None and len(found.args["text"]) < 300


def test_a_flood_of_requests_takes_no_more_room_than_10000(recorder: Recorder, path: Path) -> None:
    for number in (1, 2, 3, 10_002):
        recorder.intent(row(number))
    recorder.flush()
    with closing(IntentHistory.open(path)) as history:
        assert [each.id for each in history.newest(9)] == [10_002, 3]


def test_what_only_grows_does_not_shrink_when_old_requests_are_deleted(
    recorder: Recorder, path: Path
) -> None:
    before = (0, 0, 0)
    steps: list[Callable[[], None]] = [
        lambda: recorder.intent(row(1)),
        lambda: recorder.intent(row(2)),
        lambda: recorder.intent_done(2, True, "done"),
        lambda: recorder.intent_done(1, True, "done"),
        lambda: recorder.intent(row(10_001)),
        lambda: recorder.intent(row(10_002)),
        lambda: recorder.intent_done(10_001, True, "done"),
    ]
    for step in steps:
        step()
        recorder.flush()
        with closing(IntentHistory.open(path)) as history:
            rows, now = history.since(before[0], before[1], 10)
            assert now != before, "each step is seen"
            assert rows
            assert all(new >= old for new, old in zip(now, before, strict=True))
            before = now


def test_the_last_number_is_known_or_none(recorder: Recorder, path: Path) -> None:
    assert last_number(path.with_name("none.db")) == 0
    recorder.intent(row(41))
    recorder.flush()
    assert last_number(path) == 41
    path.with_name("bad.db").write_bytes(b"nonsense" * 1000)
    assert last_number(path.with_name("bad.db")) is None


def test_a_row_with_invalid_arguments_is_still_shown(recorder: Recorder, path: Path) -> None:
    recorder.intent(row(1))
    recorder.flush()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE intents SET args = '[]'")
        connection.commit()
    with closing(IntentHistory.open(path)) as history:
        assert [each.args for each in history.newest(1)] == [{}]

# SPDX-License-Identifier: GPL-2.0-only
"""Live data: events arrive, a returning reader catches up, a slow one costs little."""

from __future__ import annotations

import asyncio
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.store.db import Store
from ebbgate.store.intent_rows import IntentRow
from ebbgate.web import events as web_events
from ebbgate.web.changes import NEWS_MAX, RESET, Cursor, Event, after, encode, parse
from ebbgate.web.events import READERS_PER_CLIENT_MAX, Broadcaster, Reader
from tests.builders import action, decision, proposal
from tests.unit.web.web_fixture import (
    DEADLINE_S,
    RIGHT,
    Served,
    WebHarness,
    running,
    served,
    streaming,
    taken,
)
from tests.waiting import until


def copied(web_history: Path, folder: Path) -> Path:
    shutil.copy(web_history / "history.db", folder)
    return folder


@pytest.fixture
def folder(web_history: Path, tmp_path: Path) -> Path:
    return copied(web_history, tmp_path)


@pytest.fixture
def own(folder: Path) -> Iterator[Served]:
    """A server of its own, for a test that takes something away from the others."""
    with served(folder) as server:
        yield server


@pytest.fixture(scope="module")
def shared_folder(web_history: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(web_history, tmp_path_factory.mktemp("stream"))


@pytest.fixture(scope="module")
def shared(shared_folder: Path) -> Iterator[Served]:
    """One server for tests that only add to its history: a stream begins with what is now."""
    with served(shared_folder) as server:
        yield server


def decide(folder: Path, count: int = 1) -> list[int]:
    """The daemon decides so often."""
    with closing(Store.open(folder / "history.db")) as store, store.batch():
        made = decision(proposal(), gate_strategy="idle_destage")
        return [store.add_decision(made, time.time_ns()) for _ in range(count)]


def write_knob(folder: Path, number: int) -> None:
    with closing(Store.open(folder / "history.db")) as store:
        named = replace(action(), decision=number)
        store.add_outcomes([Outcome(named, OutcomeKind.CHANGED, 1, "40")], number, time.time_ns())


# ---- over the wire -----------------------------------------------------------------------------
def test_stream_starts_with_the_current_state(shared: Served) -> None:
    with shared.events() as events:
        first = dict((name, data) for name, _, data in (next(events), next(events)))
    assert [each["volume"] for each in first["volumes"]["volumes"]] == [
        "bcache0",
        "bcache1",
        "vg-data2",
    ]
    assert first["health"]["history"] == {"ok": True, "why": None}


def test_changes_are_sent_within_a_moment(shared: Served, shared_folder: Path) -> None:
    with shared.events() as events:
        next(events)
        number = decide(shared_folder)[0]
        write_knob(shared_folder, number)
        with closing(Store.open(shared_folder / "history.db")) as store:
            store.add_intent(IntentRow(5, "hold", None, {"on": True}, "jo", time.time_ns()))
            seen: dict[str, object] = {}
            for name, _, data in events:
                if name not in ("volumes", "health"):
                    seen.setdefault(name, data["id"])
                if len(seen) == 3:
                    break
            assert seen["decision"] == number
            assert seen["intent"] == 5
            store.resolve_intent(5, time.time_ns(), True, "held")
        answered = next(data for name, _, data in events if name == "intent" and data["ok"])
    assert (answered["id"], answered["outcome"]) == (5, "held")


def test_unchanged_volumes_are_sent_once(own: Served, folder: Path) -> None:
    with own.events() as events:
        assert {next(events)[0], next(events)[0]} == {"volumes", "health"}
        for _ in range(3):
            number = decide(folder)[0]
            kinds = [(name, data) for name, _, data in _up_to_decision(events, number)]
            assert {name for name, _ in kinds} <= {"health", "decision"}


def _up_to_decision(
    events: Iterator[tuple[str, str, Any]], number: int
) -> Iterator[tuple[str, str, Any]]:
    for event in events:
        yield event
        if event[0] == "decision" and event[2]["id"] == number:
            return


def test_new_status_is_sent(own: Served, folder: Path) -> None:
    with own.events() as events, closing(Store.open(folder / "history.db")) as store:
        next(events)
        store.drop_live("bcache1")
        left = next(d for n, _, d in events if n == "volumes" and len(d["volumes"]) == 2)
    assert [each["volume"] for each in left["volumes"]] == ["bcache0", "vg-data2"]


def test_returning_reader_gets_what_it_missed_once(shared: Served, shared_folder: Path) -> None:
    with shared.events() as events:
        last = next(events)[1]
    missed = decide(shared_folder, 20)
    with shared.events(last) as events:
        told = [next(events) for _ in range(20)]
        fresh = decide(shared_folder)[0]
        later = [next(d["id"] for n, _, d in events if n == "decision")]
    assert [data["id"] for _, _, data in told] == missed
    assert later == [fresh]
    with shared.events(told[9][1]) as events:
        again = [next(events)[2]["id"] for _ in range(10)]
    assert again == missed[10:]


@pytest.mark.parametrize(
    "last",
    ["", "yesterday", "1.2.3", "999999.1.1.1.1.0", "-1.0.0.0.0.0", "1.2.3.4.5.6.7", "1" * 500],
)
def test_unknown_event_id_resets_the_reader(shared: Served, last: str) -> None:
    with shared.events(last) as events:
        assert next(events)[0] == RESET
        assert {next(events)[0], next(events)[0]} == {"volumes", "health"}


def reset_cursor(events: Iterator[tuple[str, str, Any]]) -> Cursor:
    """The cursor of the next event, which is a reset."""
    name, text, _ = next(events)
    cursor = parse(text)
    assert name == RESET
    assert cursor is not None
    return cursor


def test_reader_that_missed_too_much_is_reset(shared: Served, shared_folder: Path) -> None:
    with shared.events() as events:
        last = next(events)[1]
    numbers = decide(shared_folder, NEWS_MAX + 1)
    with shared.events(last) as events:
        assert reset_cursor(events).decision == numbers[-1]


def test_returning_reader_of_a_replaced_history_is_reset(own: Served, folder: Path) -> None:
    with own.events() as events:
        known = parse(next(events)[1])
        assert known is not None
    for part in ("", "-wal", "-shm"):
        (folder / f"history.db{part}").unlink(missing_ok=True)
    assert decide(folder, known.decision + 1)[-1] > known.decision
    with closing(Store.open(folder / "history.db")) as store:
        made = [Outcome(action(), OutcomeKind.CHANGED, 1, "40")] * (known.action + 1)
        store.add_outcomes(made, None, time.time_ns())
    with own.events(str(known)) as events:
        assert reset_cursor(events).history not in (0, known.history)


def test_too_many_streams_get_a_503(own: Served) -> None:
    with ExitStack() as stack:
        for _ in range(READERS_PER_CLIENT_MAX):
            stack.enter_context(own.events())
        answer = own.ask("GET", "/api/v1/events")
        assert answer.status == 503
        assert int(answer.headers["retry-after"]) > 0
        assert answer.error["code"] == "unavailable"
    until(lambda: _status(own) == 200, "a place became free")


def _status(own: Served) -> int:
    try:
        with own.events():
            return 200
    except AssertionError:
        return 503


def test_stopping_server_does_not_wait_for_readers(folder: Path) -> None:
    with ExitStack() as stack:
        with served(folder) as own:
            events = stack.enter_context(own.events())
            next(events)
            begun_s = time.monotonic()
        assert time.monotonic() - begun_s < DEADLINE_S / 2
        assert [name for name, _, _ in events if name not in ("volumes", "health")] == []


# ---- a token that is replaced --------------------------------------------------------------------
OTHER = "another-token-that-is-long-enough"


def keeps_alive(line: socket.socket, times: int = 3) -> bool:
    """Whether a stream goes on for this many comments; it ends with the connection."""
    text = b""
    while text.count(b": alive") < times:
        part = line.recv(1 << 16)
        if not part:
            return False
        text += part
    return True


def test_stream_ends_once_the_token_that_reading_needs_is_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_events, "COMMENT_S", 0.1)
    closed = WebHarness(folder, reading="token")
    numbers = count(10**9)

    def ended() -> bool:
        # As with a daemon that decides all the time: no comment is ever due.
        closed.api.publish([Event("decision", b"{}", Cursor(decision=next(numbers)))])
        return len(closed.api.broadcaster) == 0

    with (
        running(closed.api) as (address, _),
        streaming(address, connection="close", **RIGHT) as line,
    ):
        assert keeps_alive(line), "the token is valid"
        closed.config.web.token_file.write_text(OTHER)
        until(ended, "the stream ended")
        assert not keeps_alive(line)
    assert closed.get("/events", **RIGHT).status == 401


def test_stream_lives_on_without_its_token_where_reading_is_open(
    web: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_events, "COMMENT_S", 0.1)
    with running(web.api) as (address, _), streaming(address, **RIGHT) as line:
        web.config.web.token_file.write_text(OTHER)
        assert keeps_alive(line)


def test_stream_ends_where_its_token_can_no_longer_be_checked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_events, "COMMENT_S", 0.1)
    closed = WebHarness(folder, reading="token")
    with (
        running(closed.api) as (address, _),
        streaming(address, connection="close", **RIGHT) as line,
    ):
        closed.config.web.token_file.unlink()
        assert not keeps_alive(line, 100)


# ---- a reader that is stuck ----------------------------------------------------------------------
def test_stuck_reader_is_dropped_with_its_connection(
    web: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_events, "STUCK_S", 0.3)
    with running(web.api) as (address, server), streaming(address) as line:
        # More than the buffers of both ends hold.
        big = b"x" * (32 << 20)
        web.api.publish([Event("decision", big, Cursor(decision=10**9))])
        until(lambda: len(web.api.broadcaster) == 0, "the reader was dropped")
        until(lambda: not server.server_state.connections, "its line was cut")
        assert taken(line) < len(big), "what waited for it was thrown away"


def test_queue_of_a_reader_is_bounded() -> None:
    async def overrun() -> list[Event]:
        reader = Reader()
        for number in range(1, 3 * NEWS_MAX):
            reader.put([Event("volumes", b"%d" % number, newest=True)])
            reader.put([Event("decision", b"{}", Cursor(decision=number))])
        found = []
        while (event := await reader.next(0.01)) is not None:
            found.append(event)
        return found

    found = asyncio.run(overrun())
    assert found[0].name == RESET
    assert len(found) <= NEWS_MAX + 2
    assert [each.data for each in found if each.newest] == [b"%d" % (3 * NEWS_MAX - 1)]
    last = Cursor()
    for each in found:
        last = after(last, each)
    assert last.decision == 3 * NEWS_MAX - 1


def test_closing_broadcaster_ends_readers_and_accepts_none() -> None:
    async def closing_hub() -> None:
        hub = Broadcaster()
        reader = hub.join()
        assert reader is not None
        hub.close()
        assert await reader.next(1.0) is None
        assert reader.closed
        assert hub.join() is None

    asyncio.run(closing_hub())


# ---- the cursor --------------------------------------------------------------------------------
def test_cursor_round_trips() -> None:
    cursor = Cursor(12, 34, 5, 4, 3, 678)
    assert parse(str(cursor)) == cursor


@pytest.mark.parametrize(
    "text", ["", "1.2.3.4.5", "1.2.3.4.5.6.7", "a.b.c.d.e.f", "1.2.3.4.-5.6", "1.2.3.4.5.6\n"]
)
def test_malformed_cursor_is_none(text: str) -> None:
    assert parse(text) is None


def test_an_event_moves_only_its_own_part_of_the_cursor() -> None:
    before = Cursor(10, 20, 3, 4, 3)
    moved = after(before, Event("action", b"", Cursor(action=21)))
    assert moved == Cursor(10, 21, 3, 4, 3)
    anew = after(before, Event(RESET, b"", Cursor(1, 1, 1, 1, 1), restart=True))
    assert anew == Cursor(1, 1, 1, 1, 1)


def test_a_cursor_of_another_file_covers_no_event() -> None:
    here = Cursor(90, 90, 90, 90, 90, history=7)
    assert here.covers(Cursor(10, 10, 1, 1, 1, history=7))
    assert here.covers(Cursor(decision=10)), "an event says nothing of files"
    assert not here.covers(Cursor(10, 10, 1, 1, 1, history=6))
    assert here.beyond(Cursor(decision=91)) == replace(here, decision=91)


def test_an_event_is_three_lines_and_an_empty_one() -> None:
    assert encode(Event("action", b'{"id":1}'), Cursor(1, 2, 3, 4, 5)) == (
        b'event: action\nid: 1.2.3.4.5.0\ndata: {"id":1}\n\n'
    )

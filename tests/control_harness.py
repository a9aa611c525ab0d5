# SPDX-License-Identifier: GPL-2.0-only
"""The product's control socket, whose requests a test answers.

I/O: a unix socket, served by an event loop on a thread; the history.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, Final, TypeVar

from ebbgate.daemon.intent_dispatcher import IntentOutcome
from ebbgate.errors import UsageError
from ebbgate.intents.server import ControlServer
from ebbgate.intents.validation import check_intent
from ebbgate.store.db import Store
from ebbgate.store.intent_rows import IntentRow

T = TypeVar("T")
Outcome = tuple[bool, str] | tuple[bool, str, Mapping[str, str | int]]
Decide = Callable[[IntentRow], Outcome | None]
_DEADLINE_S: Final = 20.0


@dataclass(slots=True)
class AcceptedRequests:
    """What was accepted, in its order."""

    requests: list[IntentRow] = field(default_factory=list)


class _Dispatcher:
    """Carries requests out as the test says; the table and the socket are the product's."""

    def __init__(
        self, decide: Decide, store: Store | None, asked: AcceptedRequests, first: int
    ) -> None:
        self._decide = decide
        self._store = store
        self._asked = asked
        self._next = first

    def submit(
        self, kind: str, volume: str | None, args: Mapping[str, Any], who: str
    ) -> tuple[int, asyncio.Future[IntentOutcome]]:
        """As `IntentDispatcher.submit`."""
        check_intent(kind, volume, args)
        row = IntentRow(self._next, kind, volume, dict(args), who, time.time_ns())
        outcome = self._decide(row)
        self._next += 1
        self._asked.requests.append(row)
        done: asyncio.Future[IntentOutcome] = asyncio.get_running_loop().create_future()
        if outcome is not None:
            done.set_result(IntentOutcome(*outcome))
        if self._store is not None:
            self._store.add_intent(row)
            if outcome is not None:
                self._store.resolve_intent(row.id, time.time_ns(), *outcome[:2])
        return row.id, done


@contextmanager
def answering(
    path: Path, decide: Decide, store: Store | None = None, *, first: int = 5
) -> Iterator[AcceptedRequests]:
    """The daemon's socket. `decide`: the outcome of each request; None: it has none while the test
    lasts. An EbbgateError that it raises is a refusal. `store`: keeps the requests, whose numbers
    begin with `first`.
    """
    asked = AcceptedRequests()
    loop = asyncio.new_event_loop()
    server = ControlServer(path, _Dispatcher(decide, store, asked, first).submit)
    thread = Thread(target=loop.run_forever, name="control socket")
    thread.start()
    try:
        on_loop(loop, server.start)
        assert not server.problem, server.problem
        yield asked
    finally:
        end(loop, thread, server)


def end(loop: asyncio.AbstractEventLoop, thread: Thread, server: ControlServer) -> None:
    """Stop the server, its loop and the loop's thread."""
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result(_DEADLINE_S)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(_DEADLINE_S)
    loop.close()


def refuse(_: IntentRow) -> Outcome:
    """A `decide` that refuses everything."""
    raise UsageError("the test refuses this", "ask another test")


def on_loop(loop: asyncio.AbstractEventLoop, work: Callable[[], T]) -> T:
    """Run it on the loop's thread; raises what it raises."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    loop.call_soon_threadsafe(run)
    return done.result(_DEADLINE_S)

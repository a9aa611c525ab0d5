# SPDX-License-Identifier: GPL-2.0-only
"""A control socket whose requests a test answers. I/O: a unix socket, a thread, the history."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

from ebbgate import __version__
from ebbgate.errors import EbbgateError, UsageError
from ebbgate.intents import protocol, validation
from ebbgate.intents.protocol import Answer, Greeting, Request, State
from ebbgate.store.db import Store
from ebbgate.store.intent_rows import IntentRow

Outcome = tuple[bool, str]
Decide = Callable[[Request], Outcome | None]


@dataclass(slots=True)
class Asked:
    """What was accepted, in its order."""

    requests: list[Request] = field(default_factory=list)


@contextmanager
def answering(path: Path, decide: Decide, store: Store | None = None) -> Iterator[Asked]:
    """Something like a daemon on the socket. `decide`: the outcome of each request; None: it has
    none while the test lasts. Raises of it EbbgateError are refusals. `store`: keeps the requests.
    """
    asked = Asked()
    stop = Event()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path.unlink(missing_ok=True)
    listening.bind(str(path))
    listening.listen(16)
    listening.settimeout(0.05)
    thread = Thread(target=_serve, args=(listening, decide, store, asked, stop))
    thread.start()
    try:
        yield asked
    finally:
        stop.set()
        thread.join()
        listening.close()
        path.unlink()


def _serve(
    listening: socket.socket, decide: Decide, store: Store | None, asked: Asked, stop: Event
) -> None:
    threads = []
    while not stop.is_set():
        with suppress(TimeoutError):
            connection, _ = listening.accept()
            one = Thread(target=_talk, args=(connection, decide, store, asked, stop))
            one.start()
            threads.append(one)
    for each in threads:
        each.join()


def _talk(
    connection: socket.socket, decide: Decide, store: Store | None, asked: Asked, stop: Event
) -> None:
    with connection, suppress(OSError):
        connection.sendall(protocol.encode_greeting(Greeting(os.getpid(), __version__)))
        lines = connection.makefile("rb")
        connection.settimeout(10.0)
        for line in lines:
            request = protocol.decode_request(line)
            for answer in _answers(request, decide, store, asked, stop):
                connection.sendall(protocol.encode_answer(answer))


def _answers(
    request: Request, decide: Decide, store: Store | None, asked: Asked, stop: Event
) -> Iterator[Answer]:
    try:
        validation.check(request.kind, request.volume, request.args)
        outcome = decide(request)
    except EbbgateError as error:
        yield Answer(State.REFUSED, request.id, None, error.message, error.hint)
        return
    asked.requests.append(request)
    number = 4 + len(asked.requests)
    if store is not None:
        row = IntentRow(
            number, request.kind, request.volume, dict(request.args), "root", time.time_ns()
        )
        store.add_intent(row)
    yield Answer(State.ACCEPTED, request.id, number)
    if outcome is None:
        stop.wait(20.0)
        return
    ok, text = outcome
    if store is not None:
        store.resolve_intent(number, time.time_ns(), ok, text)
    yield Answer(State.DONE if ok else State.FAILED, request.id, number, text)


def refuse(_: Request) -> Outcome:
    """A `decide` that refuses everything."""
    raise UsageError("the test refuses this", "ask another test")

# SPDX-License-Identifier: GPL-2.0-only
"""The control socket: hostile clients lose their own connection, honest ones are answered.

I/O: a real unix socket, served by a real event loop on a thread; clients are plain sockets.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import pwd
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from ebbgate.errors import UsageError
from ebbgate.intents import connection, protocol, server
from ebbgate.intents.limits import Quotas
from ebbgate.intents.protocol import LINE_BYTES_MAX, PENDING_PER_UID, REQUESTS_BURST, REQUESTS_PER_S
from ebbgate.intents.server import ControlServer
from ebbgate.loop_silence import LoopSilence, measured_loop
from ebbgate.store import access
from ebbgate.units import NS_PER_MS, NS_PER_S

DEADLINE_S = 10.0
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")


class Served:
    """What a request came to."""

    def __init__(self, ok: bool, text: str) -> None:
        self.ok = ok
        self.text = text


class Bench:
    """A server whose requests are carried out as the test says: `hold` keeps them pending."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "c.sock"
        self.asked: list[tuple[str, str | None, Mapping[str, Any], str]] = []
        self.silence = LoopSilence()
        self.hold = False
        self.held: list[asyncio.Future[Served]] = []
        self.control = ControlServer(self.path, self._submit)
        self._loop = measured_loop(self.silence)
        self._thread = Thread(target=self._loop.run_forever)
        self._thread.start()
        self.call(self.control.start)
        self.call(self.silence.begin)

    def _submit(
        self, kind: str, volume: str | None, args: Mapping[str, Any], who: str
    ) -> tuple[int, asyncio.Future[Served]]:
        if kind == "bug":
            raise ZeroDivisionError("a bug")
        if kind != "mode":
            raise UsageError(f"unknown intent: {kind}", "known: mode")
        self.asked.append((kind, volume, args, who))
        future: asyncio.Future[Served] = self._loop.create_future()
        if self.hold:
            self.held.append(future)
        else:
            future.set_result(Served(True, f"{volume}: mode {args['mode']}"))
        return len(self.asked), future

    def call(self, work: Callable[[], Any]) -> Any:
        """On the event loop's thread."""
        done: Future[Any] = Future()

        def run() -> None:
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return done.result(DEADLINE_S)

    def finish(self) -> None:
        """What is pending is done."""

        def done() -> None:
            for future in self.held:
                if not future.done():
                    future.set_result(Served(True, "done"))

        self.call(done)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.control.stop(), self._loop).result(DEADLINE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE_S)
        self._loop.close()


class Client:
    """A plain socket."""

    def __init__(self, path: Path, *, greeted: bool = True) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(DEADLINE_S)
        self.socket.connect(str(path))
        self._buffer = b""
        if greeted:
            self.greeting = self.read()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def ask(self, **changed: Any) -> None:
        good = {"v": 1, "id": "a", "kind": "mode", "volume": "b", "args": {"mode": "advise"}}
        self.send(json.dumps({**good, **changed}).encode() + b"\n")

    def read(self) -> dict[str, Any]:
        """The next message. Raises EOFError at the end."""
        while b"\n" not in self._buffer:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        assert found.pop("v") == 1
        return found

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def client(bench: Bench) -> Iterator[Client]:
    with closing(Client(bench.path)) as made:
        yield made


def cut_off(client: Client) -> str:
    """The reason with which the connection was ended."""
    found = client.read()
    assert found["state"] == "error", found
    with pytest.raises((EOFError, ConnectionResetError)):
        client.read()
    return str(found["text"])


def answers(bench: Bench) -> None:
    """An honest client is answered within a second."""
    begun = time.monotonic()
    with closing(Client(bench.path)) as honest:
        honest.ask(id="honest")
        assert honest.read()["state"] == "accepted"
        assert honest.read()["state"] == "done"
    assert time.monotonic() - begun < 1.0


# ---- honest clients -----------------------------------------------------------------------------
def test_a_client_is_greeted_at_once_and_its_request_answered(bench: Bench, client: Client) -> None:
    assert client.greeting["pid"] == os.getpid()
    client.ask(id="a1")
    assert client.read() == {"id": "a1", "state": "accepted", "request": 1}
    assert client.read() == {
        "id": "a1",
        "state": "done",
        "request": 1,
        "text": "b: mode advise",
    }
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert bench.asked == [("mode", "b", {"mode": "advise"}, me)]


def test_several_requests_of_one_connection_are_told_apart(bench: Bench, client: Client) -> None:
    bench.hold = True
    client.ask(id="a")
    client.ask(id="b")
    assert [client.read()["id"], client.read()["id"]] == ["a", "b"]
    bench.finish()
    assert {client.read()["id"], client.read()["id"]} == {"a", "b"}


def test_a_request_in_two_pieces_is_one(client: Client) -> None:
    client.send(b'{"v":1,"id":"a","kind":"mode",')
    time.sleep(0.05)
    client.send(b'"volume":"b","args":{"mode":"advise"}}\n{"v"')
    assert [client.read()["state"], client.read()["state"]] == ["accepted", "done"]


def test_a_client_that_only_half_closes_gets_its_outcome(bench: Bench, client: Client) -> None:
    bench.hold = True
    client.ask()
    client.socket.shutdown(socket.SHUT_WR)
    assert client.read()["state"] == "accepted"
    bench.finish()
    assert client.read()["state"] == "done"


def test_who_asked_is_what_the_kernel_says_with_the_label_in_brackets(
    bench: Bench, client: Client
) -> None:
    client.ask(label="an\x1b[31mna\u202e\u200b")
    client.read()
    who = bench.asked[0][3]
    assert who.endswith(" (an?[31mna??)")
    assert not who.startswith("an")


def test_a_refusal_has_the_sentence_and_the_next_step(client: Client) -> None:
    client.ask(kind="warm")
    assert client.read() == {
        "id": "a",
        "state": "refused",
        "text": "unknown intent: warm",
        "hint": "known: mode",
    }


@needs_root
def test_another_user_of_the_group_is_named_and_nobody_else_gets_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "group_id", lambda: 64_322)
    for each in (tmp_path, *tmp_path.parents[:-1]):
        each.chmod(each.stat().st_mode | 0o011)
    bench = Bench(tmp_path)
    try:
        mode = bench.path.stat()
        assert (stat.S_IMODE(mode.st_mode), mode.st_uid, mode.st_gid) == (0o660, 0, 64_322)
        script = (
            "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
            's.sendall(b\'{"v":1,"id":"a","kind":"mode","volume":"b","args":{"mode":"x"}}\\n\')\n'
            "f=s.makefile(); f.readline(); f.readline(); f.readline()"
        )
        for gid, ends in ((64_322, 0), (64_323, 1)):
            argv = [sys.executable, "-c", script, str(bench.path)]
            done = subprocess.run(
                argv, user=64_321, group=gid, extra_groups=[], capture_output=True, check=False
            )
            assert done.returncode == ends, done.stderr
        assert [who for *_, who in bench.asked] == ["uid 64321"]
    finally:
        bench.stop()


def test_without_the_group_the_socket_is_for_its_owner_alone(bench: Bench) -> None:
    if access.group_id() is None:
        assert stat.S_IMODE(bench.path.stat().st_mode) == 0o600


# ---- lines that are no requests -----------------------------------------------------------------
@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"GET / HTTP/1.1\r\n", "not a JSON object"),
        (b"\n", "not a JSON object"),
        (b"\0\0\0\0\n", "not a JSON object"),
        (b"\xff\xfe\n", "not UTF-8"),
        (b"[" * 60_000 + b"\n", "not a JSON object"),
        (b'{"v":1,"id":"a","args":' + b'{"a":' * 9_000 + b"1" + b"}" * 9_001 + b"\n", "not a JSON"),
        (b'{"v":1,"id":"a","kind":"mode","args":{"n":' + b"9" * 4000 + b"}}\n", "20 digits"),
        (b'{"v":1,"kind":"mode"}\n', "id: must be"),
        (b'{"v":1,"id":["a"],"kind":"mode"}\n', "id: must be"),
        (b"x" * (LINE_BYTES_MAX + 1), f"longer than {LINE_BYTES_MAX} bytes"),
        (b'{"v":1,"id":"a","label":"' + b"x" * LINE_BYTES_MAX + b'"}\n', "longer than 65536"),
    ],
    ids=range(11),
)
def test_a_line_that_is_no_message_ends_its_connection_and_nothing_else(
    bench: Bench, client: Client, line: bytes, why: str
) -> None:
    client.send(line)
    assert why in cut_off(client)
    answers(bench)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"v": 2}, "version '2' is unknown"),
        ({"kind": 7}, "kind: must be a text"),
        ({"volume": "a\0b"}, "volume: has a character"),
        ({"volume": ["b"]}, "volume: must be a text"),
        ({"args": "mode"}, "args: must be an object"),
        ({"args": {"mode": {"deep": 1}}}, "args: mode: must be a text"),
        ({"label": "x" * 65}, "label: longer"),
        ({"shell": "rm"}, "unknown key: 'shell'"),
        ({"kind": "\x1b[2J"}, "unknown intent: ?[2J"),
    ],
)
def test_a_wrong_request_is_refused_and_the_connection_goes_on(
    client: Client, changed: dict[str, Any], why: str
) -> None:
    client.ask(**changed)
    found = client.read()
    assert (found["state"], found["id"]) == ("refused", "a")
    assert why in found["text"]
    assert "\x1b" not in json.dumps(found, ensure_ascii=False)
    client.ask(id="b")
    assert client.read()["state"] == "accepted"


def test_a_second_request_of_the_same_id_is_refused(bench: Bench, client: Client) -> None:
    bench.hold = True
    client.ask()
    client.ask()
    assert client.read()["state"] == "accepted"
    assert "has no outcome yet" in client.read()["text"]
    bench.finish()
    assert client.read()["state"] == "done"
    client.ask()
    assert client.read()["state"] == "accepted"


def test_an_exception_in_a_handler_is_answered_and_said_once(
    bench: Bench, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.ask(kind="bug")
    assert client.read()["text"] == "a bug of ebbgate: ZeroDivisionError"
    assert len([r for r in caplog.records if r.levelno >= logging.ERROR]) == 1
    client.ask()
    assert client.read()["state"] == "accepted"
    answers(bench)


# ---- limits -------------------------------------------------------------------------------------
def test_a_flood_of_requests_is_slowed_to_its_limit(bench: Bench, client: Client) -> None:
    line = b'{"v":1,"id":"a","kind":"mode","volume":"b","args":{"mode":"advise"}}\n'
    client.socket.setblocking(False)
    begun, sent = time.monotonic(), 0
    while time.monotonic() - begun < 1.0:
        try:
            sent += client.socket.send(line * 100)
        except BlockingIOError:
            time.sleep(0.001)
    elapsed_s = time.monotonic() - begun
    assert sent > 1000 * len(line)
    assert len(bench.asked) <= REQUESTS_BURST + REQUESTS_PER_S * elapsed_s + 1
    assert bench.silence.max_ns < 100 * NS_PER_MS
    client.socket.settimeout(DEADLINE_S)
    found = [client.read() for _ in range(2 * REQUESTS_BURST + 1)]
    assert found[-1]["state"] == "refused"
    assert found[-1]["text"] == "too many requests: at most 20 per second, 40 at once"


def test_who_goes_on_beyond_the_limit_is_cut_off(
    bench: Bench, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_PAUSE_S", 0.0)
    client.send(b'{"v":1,"id":"a","kind":"warm"}\n' * 100)
    found = [client.read() for _ in range(REQUESTS_BURST + 20)]
    assert {each["state"] for each in found} == {"refused"}
    assert cut_off(client).startswith("too many requests")


def test_so_many_requests_of_one_user_may_be_pending(bench: Bench, client: Client) -> None:
    bench.hold = True
    for number in range(PENDING_PER_UID + 1):
        client.ask(id=f"a{number}")
    found = [client.read() for _ in range(PENDING_PER_UID + 1)]
    assert [each["state"] for each in found] == ["accepted"] * PENDING_PER_UID + ["refused"]
    assert f"{PENDING_PER_UID} of this user have no outcome yet" in found[-1]["text"]
    bench.finish()
    for _ in range(PENDING_PER_UID):
        assert client.read()["state"] == "done"
    client.ask(id="again")
    assert client.read()["state"] == "accepted"


def test_a_client_that_leaves_does_not_cancel_what_was_accepted(bench: Bench) -> None:
    bench.hold = True
    with closing(Client(bench.path)) as leaves:
        leaves.ask()
        assert leaves.read()["state"] == "accepted"
    time.sleep(0.05)
    assert not bench.held[0].cancelled()
    assert bench.control._quotas.users[os.geteuid()].pending == 1
    bench.finish()
    until(lambda: bench.control._quotas.users[os.geteuid()].pending == 0)
    until(lambda: bench.control.open_connections == 0)


def test_one_user_may_have_so_many_connections(bench: Bench) -> None:
    with ExitStack() as stack:
        for _ in range(protocol.CONNECTIONS_PER_UID):
            stack.enter_context(closing(Client(bench.path)))
        one_more = stack.enter_context(closing(Client(bench.path)))
        assert cut_off(one_more) == "too many connections: this user has 16 open"
    until(lambda: bench.control.open_connections == 0)
    answers(bench)


def test_other_users_cannot_lock_root_out() -> None:
    quotas = Quotas()
    for uid in range(1, 5):
        for _ in range(16):
            if not quotas.refusal(uid, 0):
                quotas.of(uid, 0).connections += 1
    assert sum(each.connections for each in quotas.users.values()) == 56
    assert quotas.refusal(9, 0) == "too many connections: 56 are open"
    assert quotas.refusal(0, 0) == ""


def test_the_rate_of_a_user_recovers_and_users_that_left_are_forgotten() -> None:
    quotas = Quotas()
    allowed = [quotas.request_refusal(7, 0) for _ in range(REQUESTS_BURST + 1)]
    assert allowed[:-1] == [""] * REQUESTS_BURST
    assert allowed[-1].startswith("too many requests")
    assert quotas.request_refusal(7, NS_PER_S // REQUESTS_PER_S) == ""
    assert quotas.request_refusal(8, NS_PER_S) == "", "another user is not concerned"
    for uid in range(100, 200):
        quotas.of(uid, 100 * NS_PER_S)
    assert set(quotas.users) == {199}, "nobody of them has anything in use"


# ---- slow, silent and deaf clients --------------------------------------------------------------
def test_a_line_that_is_not_finished_is_cut_off(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LINE_TIMEOUT_NS", NS_PER_S // 5)
    with closing(Client(bench.path)) as slow:
        begun = time.monotonic()
        for letter in b'{"v":1,"id"':
            slow.send(bytes([letter]))
            time.sleep(0.01)
        assert "a line was not finished within" in cut_off(slow)
        assert time.monotonic() - begun < 2
    answers(bench)


def test_a_silent_client_is_cut_off_unless_its_request_is_pending(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "IDLE_TIMEOUT_NS", NS_PER_S // 10)
    bench.hold = True
    with closing(Client(bench.path)) as waits, closing(Client(bench.path)) as silent:
        waits.ask()
        assert waits.read()["state"] == "accepted"
        assert "nothing was asked" in cut_off(silent)
        time.sleep(0.3)
        bench.finish()
        assert waits.read()["state"] == "done"


@pytest.mark.parametrize("requests", [5, 12], ids=["for too long", "too much"])
def test_a_client_that_does_not_read_is_cut_off(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, requests: int
) -> None:
    monkeypatch.setattr(connection, "UNSENT_TIMEOUT_NS", NS_PER_S // 2)
    with closing(Client(bench.path)) as deaf:
        begun = time.monotonic()
        with suppress(OSError):
            for number in range(requests):
                deaf.ask(id=f"a{number}", args={"mode": "x" * 60_000})
        until(lambda: bench.control.open_connections == 0)
        assert (time.monotonic() - begun < 0.4) is (requests == 12)
        with pytest.raises((EOFError, ConnectionResetError)):
            while True:
                deaf.read()
    answers(bench)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# ---- the socket itself --------------------------------------------------------------------------
def test_a_socket_that_is_removed_is_made_again(bench: Bench) -> None:
    bench.path.unlink()
    bench.call(bench.control.look)
    answers(bench)
    bench.path.unlink()
    bench.path.write_text("not a socket")
    bench.call(bench.control.look)
    answers(bench)


def test_a_folder_that_is_not_there_is_said_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    bench = Bench(folder)
    try:
        bench.path.unlink()
        folder.rmdir()
        for _ in range(3):
            bench.call(bench.control.look)
        assert "No such file" in bench.control.problem
        assert len([r for r in caplog.records if "nobody can ask" in r.message]) == 1
        folder.mkdir()
        bench.call(bench.control.look)
        assert bench.control.problem == ""
        answers(bench)
    finally:
        bench.stop()


def test_the_end_of_the_server_removes_its_socket(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    client = Client(bench.path)
    bench.stop()
    assert not bench.path.exists()
    with closing(client), pytest.raises((EOFError, ConnectionResetError)):
        client.read()


def test_everything_at_once_keeps_the_loop_awake_and_honest_clients_answered(bench: Bench) -> None:
    """A smaller run of what the hostile-client scenario does for minutes."""
    stop = Event()
    lines = (
        b"[" * 60_000 + b"\n",
        b'{"v":1,"id":"a","kind":"mode","args":{"n":' + b"9" * 4000 + b"}}\n",
        b'{"v":1,"id":"a","kind":"x","args":{"a":[' + b"1," * 30_000 + b"1]}}\n",
        b'{"v":1,"id":"a","kind":"mode","volume":"' + b"x" * 60_000 + b'"}\n',
        b"x" * 70_000,
        b'{"v":1',
        b"",
    )

    def hostile(seed: int) -> None:
        number = seed
        while not stop.is_set():
            number += 1
            try:
                with closing(Client(bench.path, greeted=number % 3 == 0)) as client:
                    client.socket.settimeout(0.1)
                    client.send(lines[number % len(lines)])
                    client.read()
            except (OSError, EOFError):
                pass

    threads = [Thread(target=hostile, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(2.0)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert bench.silence.max_ns < 100 * NS_PER_MS
    until(lambda: bench.control.open_connections == 0)
    answers(bench)

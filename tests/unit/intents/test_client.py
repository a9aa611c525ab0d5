# SPDX-License-Identifier: GPL-2.0-only
"""The socket's client: time-outs are total, and a server that is broken or gone is an error.

What a sound server says is in the tests of the command line and the web, which run the real one.
"""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from ebbgate.errors import EbbgateError, PermissionDenied, Unavailable, UsageError
from ebbgate.intents.client import Busy, ControlClient, NotAnswering, NotRunning, Refused, greet
from ebbgate.intents.protocol import LINE_BYTES_MAX

GREETING = b'{"v":1,"pid":7,"version":"0.1.0"}\n'
Script = Callable[[socket.socket], None]


@contextmanager
def serving(path: Path, script: Script) -> Iterator[None]:
    """A server that does to its one client whatever the test says."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    listening.listen(1)
    # Accepting ends with the test, whether a client came or not.
    listening.settimeout(10.0)

    def run() -> None:
        connection, _ = listening.accept()
        with connection:
            script(connection)

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        listening.close()


def says(*parts: bytes, asked: bool = True) -> Script:
    """Greets; waits for the request where there is one; says the parts and closes."""

    def script(connection: socket.socket) -> None:
        connection.sendall(GREETING)
        if asked:
            assert connection.recv(LINE_BYTES_MAX).endswith(b"\n")
        for part in parts:
            connection.sendall(part)

    return script


def request(path: Path, timeout_s: float = 5.0) -> int:
    with ControlClient.connect(path, timeout_s) as open_:
        assert (open_.greeting.pid, open_.greeting.version) == (7, "0.1.0")
        return open_.send("restore", None, {}, "jo", timeout_s)


def test_a_request_is_accepted_and_gets_its_outcome(tmp_path: Path) -> None:
    accepted = b'{"v":1,"id":"1","state":"accepted","request":17}\n'
    done = b'{"v":1,"id":"1","state":"done","request":17,"text":"it is done"}\n'
    # In pieces and together: lines are lines however they arrive.
    with (
        serving(tmp_path / "s", says(accepted[:9], accepted[9:] + done[:5], done[5:])),
        ControlClient.connect(tmp_path / "s", 5.0) as open_,
    ):
        assert open_.send("restore", None, {}, "", 5.0) == 17
        answer = open_.outcome(5.0)
    assert (answer.state, answer.text) == ("done", "it is done")


def test_a_refusal_has_its_sentence_and_hint(tmp_path: Path) -> None:
    refused = b'{"v":1,"id":"1","state":"refused","text":"no","hint":"ask nicely"}\n'
    with serving(tmp_path / "s", says(refused)), pytest.raises(Refused) as caught:
        request(tmp_path / "s")
    assert (caught.value.message, caught.value.hint) == ("no", "ask nicely")


def test_a_missing_daemon_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match="ebbgated is not running") as caught:
        greet(tmp_path / "none", 5.0)
    assert "systemctl start ebbgated" in caught.value.hint
    with serving(tmp_path / "s", says(asked=False)):
        greet(tmp_path / "s", 5.0)
    assert stat.S_ISSOCK((tmp_path / "s").stat().st_mode), "left by a daemon that was killed"
    with pytest.raises(NotRunning):
        greet(tmp_path / "s", 5.0)


def test_a_path_that_cannot_be_a_socket_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="too long"):
        greet(tmp_path / ("x" * 200), 1.0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_without_the_right_the_next_step_is_the_group(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(folder / "s"))
        listening.listen(1)
        (folder / "s").chmod(0o600)
        message = _as_nobody(folder / "s")
    assert message == (
        f"no access to {folder / 's'}\n  run this as root or as a member of the group ebbgate\n"
    )


def _as_nobody(path: Path) -> str:
    """The error of a child process that has given up its rights."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            os.dup2(writing, 1)
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            try:
                greet(path, 5.0)
            except PermissionDenied as error:
                os.write(1, f"{error}\n".encode())
                status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return text


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (says(b"", asked=False), Unavailable),
        (says(b"nonsense\n"), Unavailable),
        (says(b"\xff\n"), Unavailable),
        (says(b"{" * LINE_BYTES_MAX + b"\n"), Unavailable),
        (says(b"x" * (2 * LINE_BYTES_MAX)), Unavailable),
        (says(b'{"v":2,"id":"1","state":"accepted","request":1}\n'), Unavailable),
        (says(b'{"v":1,"id":"2","state":"accepted","request":1}\n'), Unavailable),
        (says(b'{"v":1,"id":"1","state":"accepted"}\n'), Unavailable),
        (says(b'{"v":1,"id":"1","state":"done","request":1,"text":"x"}\n'), Unavailable),
        (says(GREETING), Unavailable),
        (says(b'{"v":1,"state":"error","text":"too many connections","busy":true}\n'), Busy),
        (says(b'{"v":1,"id":"1","state":"refused","text":"slowly","busy":true}\n'), Busy),
        (says(b'{"v":1,"state":"error","text":"the line is broken"}\n'), Unavailable),
    ],
)
def test_any_answer_of_a_broken_server_is_an_error_with_a_next_step(
    tmp_path: Path, script: Script, kind: type[EbbgateError]
) -> None:
    def tolerant(connection: socket.socket) -> None:
        with _suppressed():
            script(connection)

    with serving(tmp_path / "s", tolerant), pytest.raises(kind) as caught:
        request(tmp_path / "s")
    assert caught.value.hint


@contextmanager
def _suppressed() -> Iterator[None]:
    """The client has gone, as intended."""
    with suppress(OSError):
        yield


def test_an_error_instead_of_a_greeting_is_a_limit(tmp_path: Path) -> None:
    def full(connection: socket.socket) -> None:
        connection.sendall(
            b'{"v":1,"state":"error","text":"too many connections: 64","busy":true}\n'
        )

    with serving(tmp_path / "s", full), pytest.raises(Busy, match="too many connections: 64"):
        greet(tmp_path / "s", 5.0)


def test_a_server_that_drips_cannot_extend_the_time(tmp_path: Path) -> None:
    over = Event()

    def drip(connection: socket.socket) -> None:
        with _suppressed():
            while not over.wait(0.02):
                connection.sendall(b" ")

    with serving(tmp_path / "s", drip):
        began_s = time.monotonic()
        with pytest.raises(NotAnswering) as caught:
            greet(tmp_path / "s", 0.3)
        took_s = time.monotonic() - began_s
        over.set()
    assert took_s < 2.0
    assert caught.value.pid == os.getpid(), "the kernel reports the listener"


def test_a_server_that_hangs_with_a_full_queue_is_not_gone(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen(0)
        waiting = []
        for _ in range(4):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            one.setblocking(False)
            waiting.append(one)
            try:
                one.connect(str(tmp_path / "s"))
            except BlockingIOError:
                break
        began_s = time.monotonic()
        with pytest.raises(NotAnswering):
            greet(tmp_path / "s", 0.3)
        assert 0.2 < time.monotonic() - began_s < 2.0
        for each in waiting:
            each.close()


def test_an_outcome_that_is_late_can_be_waited_for_again(tmp_path: Path) -> None:
    more = Event()

    def late(connection: socket.socket) -> None:
        says(b'{"v":1,"id":"1","state":"accepted","request":3}\n{"v":1,"id":"1",')(connection)
        more.wait(10.0)
        connection.sendall(b'"state":"failed","request":3,"text":"no"}\n')

    with serving(tmp_path / "s", late), ControlClient.connect(tmp_path / "s", 5.0) as open_:
        assert open_.send("restore", None, {}, "", 5.0) == 3
        with pytest.raises(NotAnswering):
            open_.outcome(0.1)
        more.set()
        assert open_.outcome(5.0).state == "failed"


@pytest.mark.parametrize(
    ("volume", "args"),
    [
        (None, {"name": "x", "text": "\u00e9" * LINE_BYTES_MAX}),
        ("a\0b", {}),
        ("\ud800", {}),
        ("x" * 256, {}),
        (None, {"on": [1]}),
        (None, {"for_ns": 1 << 80}),
    ],
)
def test_what_the_server_would_not_read_is_not_sent(
    tmp_path: Path, volume: str | None, args: dict[str, object]
) -> None:
    def script(connection: socket.socket) -> None:
        connection.sendall(GREETING)
        assert connection.recv(1) == b"", "nothing may arrive"

    with (
        serving(tmp_path / "s", script),
        ControlClient.connect(tmp_path / "s", 5.0) as open_,
        pytest.raises(UsageError),
    ):
        open_.send("policy_save", volume, args, "", 5.0)


def test_connections_are_closed_when_the_greeting_is_none(tmp_path: Path) -> None:
    def script(connection: socket.socket) -> None:
        connection.sendall(b"no\n")
        connection.settimeout(5.0)
        assert connection.recv(1) == b"", "the client hangs up"

    # The error that is kept keeps its frames: nothing but a call of close() closes the socket.
    with serving(tmp_path / "s", script), pytest.raises(Unavailable) as caught:
        greet(tmp_path / "s", 5.0)
    assert caught.value.message

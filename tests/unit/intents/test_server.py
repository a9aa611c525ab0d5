# SPDX-License-Identifier: GPL-2.0-only
"""The control socket: hostile clients lose their own connection, honest ones are answered.

I/O: a real unix socket, served by a real event loop on a thread; clients are plain sockets.
"""

from __future__ import annotations

import json
import logging
import os
import pwd
import socket
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ebbgate.intents import server
from ebbgate.intents.protocol import LINE_BYTES_MAX
from ebbgate.store import access
from tests.control_fixture import SILENCE_NS_MAX, Client, ControlHarness, answers, cut_off
from tests.house_rules import REPO
from tests.waiting import until

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")


# ---- honest clients -----------------------------------------------------------------------------
def test_a_client_is_greeted_at_once_and_its_request_answered(
    harness: ControlHarness, client: Client
) -> None:
    assert client.greeting["pid"] == os.getpid()
    client.ask(id="a1")
    assert client.read() == {"id": "a1", "state": "accepted", "request": 1}
    assert client.read() == {"id": "a1", "state": "done", "request": 1, "text": "b: mode advise"}
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert harness.asked == [("mode", "b", {"mode": "advise"}, me)]


def test_several_requests_of_one_connection_get_their_own_answers(
    harness: ControlHarness, client: Client
) -> None:
    harness.hold = True
    client.ask(id="a")
    client.ask(id="b")
    assert [client.read()["id"], client.read()["id"]] == ["a", "b"]
    harness.finish()
    assert {client.read()["id"], client.read()["id"]} == {"a", "b"}


def test_a_request_in_two_pieces_is_one(client: Client) -> None:
    client.send(b'{"v":1,"id":"a","kind":"mode",')
    time.sleep(0.05)
    client.send(b'"volume":"b","args":{"mode":"advise"}}\n{"v"')
    assert [client.read()["state"], client.read()["state"]] == ["accepted", "done"]


def test_a_client_that_only_half_closes_gets_its_outcome(
    harness: ControlHarness, client: Client
) -> None:
    harness.hold = True
    client.ask()
    client.socket.shutdown(socket.SHUT_WR)
    assert client.read()["state"] == "accepted"
    harness.finish()
    assert client.read()["state"] == "done"


def test_the_requester_is_the_kernels_user_with_the_label_in_brackets(
    harness: ControlHarness, client: Client
) -> None:
    client.ask(label="an\x1b[31mna\u202e\u200b")
    client.read()
    who = harness.asked[0][3]
    assert who.endswith(" (an?[31mna??)")
    assert not who.startswith("an")


def test_a_refusal_has_the_sentence_and_the_next_step(client: Client) -> None:
    client.ask(kind="warm")
    assert client.read() == {
        "id": "a",
        "state": "refused",
        "text": "unknown request: warm",
        "hint": "known: mode",
    }


@needs_root
def test_only_users_of_the_group_connect_and_are_named(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "group_id", lambda: 64_322)
    harness = ControlHarness(open_folder)
    try:
        mode = harness.path.stat()
        assert (stat.S_IMODE(mode.st_mode), mode.st_uid, mode.st_gid) == (0o660, 0, 64_322)
        script = (
            "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
            's.sendall(b\'{"v":1,"id":"a","kind":"mode","volume":"b","args":{"mode":"x"}}\\n\')\n'
            "f=s.makefile(); f.readline(); f.readline(); f.readline()"
        )
        for gid, ends in ((64_322, 0), (64_323, 1)):
            argv = [sys.executable, "-c", script, str(harness.path)]
            done = subprocess.run(
                argv, user=64_321, group=gid, extra_groups=[], capture_output=True, check=False
            )
            assert done.returncode == ends, done.stderr
        assert [who for *_, who in harness.asked] == ["uid 64321"]
    finally:
        harness.stop()


def test_without_the_group_the_socket_is_for_its_owner_alone(harness: ControlHarness) -> None:
    if access.group_id() is None:
        assert stat.S_IMODE(harness.path.stat().st_mode) == 0o600


def test_a_socket_that_cannot_be_given_to_the_group_names_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(server, "group_id", lambda: 64_322)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("os.chown", refused)
    harness = ControlHarness(tmp_path)
    harness.stop()
    assert "set Group=ebbgate" in caplog.text


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
def test_an_invalid_line_ends_only_its_own_connection(
    harness: ControlHarness, client: Client, line: bytes, why: str
) -> None:
    client.send(line)
    assert why in cut_off(client)
    answers(harness)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"v": 2}, "version '2' is unknown"),
        ({"kind": 7}, "kind: must be a text"),
        ({"volume": "a\0b"}, "volume: has an invalid character"),
        ({"volume": ["b"]}, "volume: must be a text"),
        ({"args": "mode"}, "args: must be an object"),
        ({"args": {"mode": {"deep": 1}}}, "args: mode: must be a text"),
        ({"label": "x" * 65}, "label: longer"),
        ({"shell": "rm"}, "unknown key: 'shell'"),
        ({"kind": "\x1b[2J"}, "unknown request: ?[2J"),
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


def test_a_second_request_of_the_same_id_is_refused(
    harness: ControlHarness, client: Client
) -> None:
    harness.hold = True
    client.ask()
    client.ask()
    assert client.read()["state"] == "accepted"
    assert "has no outcome yet" in client.read()["text"]
    harness.finish()
    assert client.read()["state"] == "done"
    client.ask()
    assert client.read()["state"] == "accepted"


def test_an_exception_in_a_handler_is_answered_and_logged_once(
    harness: ControlHarness, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.ask(kind="bug")
    assert client.read()["text"] == "internal error: ZeroDivisionError"
    # Not what asyncio says of the tasks of other tests.
    ours = [record for record in caplog.records if record.name.startswith("ebbgate.")]
    assert len([record for record in ours if record.levelno >= logging.ERROR]) == 1
    client.ask()
    assert client.read()["state"] == "accepted"
    answers(harness)


# ---- the socket itself --------------------------------------------------------------------------
def test_a_socket_that_is_removed_is_made_again(harness: ControlHarness) -> None:
    harness.path.unlink()
    harness.call(harness.control.look)
    answers(harness)
    harness.path.unlink()
    harness.path.write_text("not a socket")
    harness.call(harness.control.look)
    answers(harness)


def test_a_look_leaves_a_socket_that_works_alone(
    harness: ControlHarness, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    before = harness.path.stat()
    harness.call(harness.control.look)
    assert harness.path.stat() == before
    assert caplog.records == []
    client.ask()
    assert client.read()["state"] == "accepted"


def test_a_missing_folder_is_logged_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    harness = ControlHarness(folder)
    try:
        harness.path.unlink()
        folder.rmdir()
        for _ in range(3):
            harness.call(harness.control.look)
        assert harness.control.problem == f"{harness.path}: No such file or directory"
        assert len([r for r in caplog.records if "changes are not possible" in r.message]) == 1
        folder.mkdir()
        harness.call(harness.control.look)
        assert harness.control.problem == ""
        answers(harness)
    finally:
        harness.stop()


def test_a_path_that_is_too_long_for_a_socket_is_the_problem(tmp_path: Path) -> None:
    """Python's error has no error number, and so no text of the system."""
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    harness = ControlHarness(folder)
    try:
        assert harness.control.problem == f"{harness.path}: AF_UNIX path too long"
    finally:
        harness.stop()


def test_the_end_of_the_server_removes_its_socket(tmp_path: Path) -> None:
    harness = ControlHarness(tmp_path)
    client = Client(harness.path)
    harness.stop()
    assert not harness.path.exists()
    with closing(client), pytest.raises((EOFError, ConnectionResetError)):
        client.read()


def test_everything_at_once_keeps_the_loop_awake_and_honest_clients_answered(
    harness: ControlHarness,
) -> None:
    """A smaller run of what the hostile-client scenario does for minutes."""
    argv = [sys.executable, "-m", "tests.control_fixture", str(harness.path), "2"]
    env = {**os.environ, "PYTHONPATH": f"{REPO / 'controller'}:{REPO}"}
    hostile = [subprocess.Popen(argv, env=env) for _ in range(2)]
    assert [process.wait(60) for process in hostile] == [0, 0]
    assert harness.silence.max_ns < SILENCE_NS_MAX
    until(lambda: harness.control.open_connections == 0)
    answers(harness)

# SPDX-License-Identifier: GPL-2.0-only
"""Who gets a connection when there are too many, and whose request is cut when it never comes."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from ebbgate.web import connections, events, protocol
from ebbgate.web.connections import Room, client_name, make_room
from ebbgate.web.events import Broadcaster
from ebbgate.web.peer import loopback_uid
from tests.unit.web.web_fixture import (
    DEADLINE_S,
    Served,
    WebHarness,
    add_page,
    connected,
    running,
    served,
    streaming,
    taken,
)
from tests.waiting import until

GET = b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
GET_LARGE = b"GET /large.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
HEAD_AND_NO_BODY = (
    b"POST /api/v1/policies/check HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
)


# ---- the rule ----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Fake:
    owner: str
    silent_since_s: float | None


def busy(owner: str, count: int = 1) -> list[Fake]:
    return [Fake(owner, None) for _ in range(count)]


def room(open_connections: list[Fake], client: str) -> Room[Fake]:
    return make_room(open_connections, client, most=4, most_per_client=3)


def test_below_the_limits_every_client_is_accepted() -> None:
    assert room(busy("a", 2), "a") == Room(granted=True)
    assert room([*busy("a", 2), *busy("b")], "a") == Room(granted=True)


def test_client_at_its_limit_loses_its_longest_silent_connection() -> None:
    mine, yours = [Fake("a", 7.0), Fake("a", 5.0), *busy("a")], Fake("b", 1.0)
    assert room([*mine, yours], "a") == Room(granted=True, close=mine[1])
    assert room([*busy("a", 3), yours], "a") == Room(granted=False)


def test_at_the_total_limit_the_greediest_client_loses_a_connection() -> None:
    greedy = [Fake("a", 9.0), Fake("a", 8.0), *busy("a")]
    assert room([Fake("b", 1.0), *greedy], "c") == Room(granted=True, close=greedy[1])
    assert room([Fake("b", 1.0), *busy("a", 3)], "c").close == Fake("b", 1.0)


def test_without_silent_connections_only_clients_with_fewer_are_accepted() -> None:
    greedy = busy("a", 3)
    assert room([*busy("b"), *greedy], "c").close is greedy[0]
    assert room([*busy("b", 2), *busy("a", 2)], "c").close is not None
    assert room([*busy("a"), *busy("b"), *busy("c"), *busy("d")], "e") == Room(granted=False)


@pytest.mark.parametrize(
    ("address", "uid", "name"),
    [
        ("127.0.0.1", 1000, "uid 1000"),
        ("127.9.9.9", None, "loopback"),
        ("::1", None, "loopback"),
        ("192.0.2.7", None, "192.0.2.7"),
        ("2001:db8:1:2:3::4", None, "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", None, "192.0.2.7"),
        ("::ffff:127.0.0.1", None, "loopback"),
        ("", None, ""),
    ],
)
def test_client_name(address: str, uid: int | None, name: str) -> None:
    assert client_name(address, uid) == name


def test_streams_are_shared_fairly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "READERS_MAX", 4)
    monkeypatch.setattr(events, "READERS_PER_CLIENT_MAX", 3)
    streams = Broadcaster()
    mine = [streams.join("a") for _ in range(4)]
    assert [each is None for each in mine] == [False, False, False, True]
    assert streams.join("b") is not None
    assert [each.closed for each in mine if each] == [False, False, False]
    assert streams.join("c") is not None
    # The oldest stream of the client that had most gave way.
    assert [each.closed for each in mine if each] == [True, False, False]
    assert len(streams) == 4
    assert streams.join("a") is None


# ---- who is at the other end -------------------------------------------------------------------
@contextmanager
def both_ends(family: socket.AddressFamily, host: str) -> Iterator[tuple[socket.socket, ...]]:
    with (
        socket.create_server((host, 0), family=family) as listening,
        connected(listening.getsockname()[:2]) as client,
        listening.accept()[0] as accepted,
    ):
        yield client, accepted


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_kernel_reports_the_user_of_the_other_end(family: socket.AddressFamily, host: str) -> None:
    with both_ends(family, host) as (client, accepted):
        remote, local = accepted.getpeername(), accepted.getsockname()
        assert loopback_uid(remote, local) == os.geteuid()
        client.close()
        assert loopback_uid(remote, local) is None, "a socket that is not open has no owner"


def test_client_of_ipv4_has_its_user_on_a_socket_of_both_families() -> None:
    try:
        listening = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    except (OSError, ValueError) as error:
        pytest.skip(f"no IPv6 here: {error}")
    port = listening.getsockname()[1]
    with listening, connected(("127.0.0.1", port)), listening.accept()[0] as accepted:
        remote, local = accepted.getpeername(), accepted.getsockname()
        assert remote[0] == "::ffff:127.0.0.1"
        assert loopback_uid(remote, local) == os.geteuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_socket_of_another_user_is_recognised() -> None:
    with both_ends(socket.AF_INET, "127.0.0.1") as (client, accepted):
        os.fchown(client.fileno(), 64_321, -1)
        assert loopback_uid(accepted.getpeername(), accepted.getsockname()) == 64_321


@pytest.mark.parametrize(
    ("remote", "local"),
    [
        (("192.0.2.1", 1), ("192.0.2.2", 2)),
        (("127.0.0.1", 1), ("127.0.0.1", 2)),
        (("127.0.0.1", 70_000), ("127.0.0.1", 2)),
        (("nowhere", 1), ("127.0.0.1", 2)),
        (None, None),
        ("", ""),
    ],
)
def test_remote_or_closed_peer_has_no_uid(remote: object, local: object) -> None:
    assert loopback_uid(remote, local) is None


# ---- over the wire -----------------------------------------------------------------------------
def status(address: tuple[str, int], request: bytes = GET) -> int:
    """0: closed without an answer."""
    with connected(address, request) as line:
        return int((line.recv(4096).split(b" ", 2)[1:2] or [b"0"])[0])


def lasts_s(line: socket.socket) -> float:
    """How long until the server closes."""
    begun_s = time.monotonic()
    taken(line)
    return time.monotonic() - begun_s


@pytest.fixture(scope="module")
def real(web_history: Path) -> Iterator[Served]:
    with served(web_history) as found:
        yield found


@pytest.mark.parametrize("sent", [b"", b"GET / HT", HEAD_AND_NO_BODY], ids=["none", "half", "body"])
def test_silent_connections_do_not_lock_others_out(real: Served, sent: bytes) -> None:
    """999 of them made everybody else get 503, and more than 1000 whoever had any."""
    with ExitStack() as stack:
        for _ in range(1200):
            stack.enter_context(connected(("127.0.0.1", real.port), sent))
        begun_s = time.monotonic()
        assert {status(("127.0.0.1", real.port)) for _ in range(5)} == {200}
        assert time.monotonic() - begun_s < 5.0
    assert status(("127.0.0.1", real.port)) == 200


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: loc"])
def test_connection_without_a_request_is_closed_in_time(
    web: WebHarness, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.5)
    with running(web.api) as (address, _), connected(address, sent) as line:
        assert 0.3 < lasts_s(line) < 5.0


def test_slow_bytes_do_not_extend_the_timeout(
    web: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.5)
    with running(web.api) as (address, _), connected(address) as line:
        begun_s = time.monotonic()
        with pytest.raises(ConnectionError):
            while time.monotonic() - begun_s < 5.0:
                line.sendall(b"G")
                time.sleep(0.05)
        assert time.monotonic() - begun_s < 5.0


def test_idle_connection_is_closed_in_time(
    web: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "IDLE_TIMEOUT_S", 0.5)
    head = b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with running(web.api) as (address, _), connected(address, head) as line:
        assert b"200 OK" in line.recv(1 << 16)
        line.sendall(b"G")
        assert 0.3 < lasts_s(line) < 5.0


def test_stream_is_not_a_silent_connection(
    web: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HEAD_TIMEOUT_S", "IDLE_TIMEOUT_S"):
        monkeypatch.setattr(protocol, name, 0.3)
    monkeypatch.setattr(connections.make_room, "__kwdefaults__", {"most": 9, "most_per_client": 5})
    with running(web.api) as (address, _), streaming(address):
        with ExitStack() as stack:
            for _ in range(20):
                stack.enter_context(connected(address))
            time.sleep(0.8)
        assert len(web.api.broadcaster) == 1


def test_client_without_silent_connections_gets_a_503(
    web: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections.make_room, "__kwdefaults__", {"most": 9, "most_per_client": 2})
    with (
        running(web.api) as (address, _),
        streaming(address),
        streaming(address),
        connected(address) as refused,
        refused.makefile("rb") as answer,
    ):
        head, _, body = answer.read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 10" in head.lower()
    assert b"cache-control: no-store" in head.lower()
    assert b'"code":"unavailable"' in body


def test_answer_that_is_not_read_is_dropped(
    web: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "STUCK_TIMEOUT_S", 0.4)
    size = 32 << 20
    add_page(web.folder, "large.bin", b"x" * size)
    api = WebHarness(web.folder).api
    with running(api) as (address, _), connected(address, GET_LARGE) as line:
        line.recv(15)
        time.sleep(1.5)
        assert taken(line) < size
        assert status(address) == 200


def test_total_of_unsent_answers_is_bounded(
    web: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "UNSENT_BYTES_MAX", 150_000)
    size = 16 << 20
    add_page(web.folder, "large.bin", b"x" * size)
    with running(WebHarness(web.folder).api) as (address, _), ExitStack() as stack:
        lines = [stack.enter_context(connected(address, GET_LARGE)) for _ in range(3)]
        time.sleep(1.0)
        counts = sorted(taken(line) for line in lines)
    assert counts[0] < size, "who had most to take was cut off"
    assert counts[-1] > size, "who takes its answer gets it"


# ---- what is no request ------------------------------------------------------------------------
@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Null: \x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/99999999999999999999.1\r\nHost: localhost\r\n\r\n",
        b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost:" + b"9" * 5000 + b"\r\n\r\n",
        b"POST /api/v1/policies/check HTTP/1.1\r\nHost: localhost\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n" + b"F" * 40 + b"\r\n",
        b"GET /api/v1/decisions/" + b"9" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_malformed_request_gets_4xx_without_a_stack_in_the_log(real: Served, sent: bytes) -> None:
    """Debian 12's uvicorn logs one; `served` looks at the log."""
    found = status(("127.0.0.1", real.port), sent)
    assert 400 <= found < 500


def test_request_for_a_web_socket_is_not_logged(
    web: WebHarness, caplog: pytest.LogCaptureFixture
) -> None:
    """uvicorn says to install what this server has switched off."""
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    with running(web.api) as (address, _):
        assert status(address, GET.removesuffix(b"\r\n") + upgrade)
    assert [each for each in caplog.messages if "ebSocket" in each or "pgrade" in each] == []


def test_garbage_during_an_answer_closes_the_connection(real: Served) -> None:
    head = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connected(("127.0.0.1", real.port), head) as line:
        assert line.recv(15) == b"HTTP/1.1 200 OK"
        line.sendall(b"no chunk at all\r\n")
        assert lasts_s(line) < DEADLINE_S
    until(lambda: status(("127.0.0.1", real.port)) == 200, "it answers others")


def test_clients_that_reset_at_once_leave_nothing_behind(real: Served) -> None:
    for _ in range(200):
        with connected(("127.0.0.1", real.port)) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert status(("127.0.0.1", real.port)) == 200

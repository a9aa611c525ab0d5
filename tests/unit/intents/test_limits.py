# SPDX-License-Identifier: GPL-2.0-only
"""Limits of the control socket for clients that flood, are slow or do not read."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, suppress

import pytest

from ebbgate.intents import connection, limits, protocol
from ebbgate.intents.limits import Quotas, UserQuota
from ebbgate.intents.protocol import (
    LINE_BYTES_MAX,
    PENDING_PER_UID,
    REQUEST_BYTES,
    REQUESTS_BURST,
    REQUESTS_PER_S,
    UNSENT_BYTES_MAX,
)
from ebbgate.units import DAY_NS, NS_PER_S
from tests.control_fixture import (
    DEADLINE_S,
    SILENCE_NS_MAX,
    Client,
    ControlHarness,
    answers,
    cut_off,
)
from tests.waiting import until


# ---- limits -------------------------------------------------------------------------------------
def test_a_flood_of_requests_is_slowed_to_its_limit(
    harness: ControlHarness, client: Client
) -> None:
    line = b'{"v":1,"id":"a","kind":"mode","volume":"b","args":{"mode":"advise"}}\n'
    client.socket.setblocking(False)
    begun, sent = time.monotonic(), 0
    while time.monotonic() - begun < 1.0:
        try:
            sent += client.socket.send(line * 100)
        except BlockingIOError:
            time.sleep(0.001)
    # Counted before the time is taken: the server goes on meanwhile.
    asked = len(harness.asked)
    elapsed_s = time.monotonic() - begun
    assert sent > 1000 * len(line)
    assert asked <= REQUESTS_BURST + REQUESTS_PER_S * elapsed_s + 1
    assert harness.silence.max_ns < SILENCE_NS_MAX
    client.socket.settimeout(DEADLINE_S)
    # A slow machine accepts more before the first refusal, since time passes meanwhile.
    refused = next(each for each in iter(client.read, None) if each["state"] == "refused")
    assert refused["text"] == "too many requests: at most 20 per second, 40 at once"


def test_a_client_that_continues_beyond_the_limit_is_cut_off(
    harness: ControlHarness, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_PAUSE_S", 0.0)
    # On a slow machine time would allow some more between them.
    monkeypatch.setattr(UserQuota, "_refill", lambda _quota, _now_ns: None)
    client.send(b'{"v":1,"id":"a","kind":"warm"}\n' * 100)
    found = [client.read() for _ in range(REQUESTS_BURST + 20)]
    assert {each["state"] for each in found} == {"refused"}
    assert cut_off(client).startswith("too many requests")


def test_pending_requests_of_a_user_are_bounded(harness: ControlHarness, client: Client) -> None:
    harness.hold = True
    for number in range(PENDING_PER_UID + 1):
        client.ask(id=f"a{number}")
    found = [client.read() for _ in range(PENDING_PER_UID + 1)]
    assert [each["state"] for each in found] == ["accepted"] * PENDING_PER_UID + ["refused"]
    assert f"{PENDING_PER_UID} of this user are not finished yet" in found[-1]["text"]
    harness.finish()
    for _ in range(PENDING_PER_UID):
        assert client.read()["state"] == "done"
    client.ask(id="again")
    assert client.read()["state"] == "accepted"


def test_a_client_that_leaves_does_not_cancel_what_was_accepted(harness: ControlHarness) -> None:
    harness.hold = True
    with closing(Client(harness.path)) as leaves:
        leaves.ask()
        assert leaves.read()["state"] == "accepted"
    time.sleep(0.05)
    assert not harness.held[0].cancelled()
    with closing(Client(harness.path)) as client:
        found = []
        for number in range(PENDING_PER_UID):
            client.ask(id=f"a{number}")
            found.append(client.read()["state"])
    assert found == ["accepted"] * (PENDING_PER_UID - 1) + ["refused"], "its request still counts"
    harness.finish()
    until(lambda: harness.control.open_connections == 0)


def test_connections_of_one_user_are_bounded(harness: ControlHarness) -> None:
    with ExitStack() as stack:
        for _ in range(protocol.CONNECTIONS_PER_UID):
            stack.enter_context(closing(Client(harness.path)))
        one_more = stack.enter_context(closing(Client(harness.path)))
        assert cut_off(one_more) == "too many connections: this user has 16 open"
    until(lambda: harness.control.open_connections == 0)
    answers(harness)


def test_other_users_cannot_lock_root_out() -> None:
    quotas = Quotas()
    for uid in range(1, 5):
        for _ in range(16):
            if not quotas.connection_refusal(uid, 0):
                quotas.of(uid, 0).connections += 1
    assert sum(each.connections for each in quotas.users.values()) == 56
    assert quotas.connection_refusal(9, 0) == "too many connections: 56 are open"
    assert quotas.connection_refusal(0, 0) == ""


def test_the_rate_of_a_user_recovers_and_users_that_left_are_forgotten() -> None:
    quotas = Quotas()
    allowed = [quotas.request_refusal(7, 0) for _ in range(REQUESTS_BURST + 1)]
    assert allowed[:-1] == [""] * REQUESTS_BURST
    assert allowed[-1].startswith("too many requests")
    assert quotas.request_refusal(7, NS_PER_S // REQUESTS_PER_S) == ""
    assert quotas.request_refusal(8, NS_PER_S) == "", "another user is not concerned"
    for uid in range(100, 200):
        quotas.of(uid, 100 * NS_PER_S)
    assert set(quotas.users) == {199}, "none of them has anything in use"


def test_long_requests_use_up_the_rate_of_a_user_sooner() -> None:
    quotas = Quotas()
    most = LINE_BYTES_MAX // REQUEST_BYTES
    assert [quotas.request_refusal(7, 0, LINE_BYTES_MAX) for _ in range(2)] == ["", ""]
    assert quotas.request_refusal(7, 0, LINE_BYTES_MAX) == (
        "too many requests: at most 20 per second, 40 at once; one of this length counts as 16"
    )
    left = [quotas.request_refusal(7, 0, REQUEST_BYTES) for _ in range(REQUESTS_BURST - 2 * most)]
    assert set(left) == {""}, "a request that is refused costs nothing"
    assert quotas.request_refusal(7, 0, REQUEST_BYTES) != ""
    assert quotas.request_refusal(7, most * NS_PER_S // REQUESTS_PER_S, LINE_BYTES_MAX) == ""


def test_a_client_of_long_lines_is_slowed_to_its_limit(
    harness: ControlHarness, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a slow machine time would allow some more between them.
    monkeypatch.setattr(UserQuota, "_refill", lambda _quota, _now_ns: None)
    for number in range(3):
        client.ask(id=f"a{number}", args={"mode": "x" * (LINE_BYTES_MAX - REQUEST_BYTES)})
    refused = next(each for each in iter(client.read, None) if each["state"] == "refused")
    assert refused["busy"]
    assert len(harness.asked) == REQUESTS_BURST // (LINE_BYTES_MAX // REQUEST_BYTES)


# ---- slow, silent and deaf clients --------------------------------------------------------------
def test_a_line_that_is_not_finished_is_cut_off(
    harness: ControlHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LINE_TIMEOUT_NS", NS_PER_S // 5)
    with closing(Client(harness.path)) as slow:
        begun_ns = harness.own_ns()
        # On a slow machine it is cut off before it has sent them all.
        with suppress(OSError):
            for letter in b'{"v":1,"id"':
                slow.send(bytes([letter]))
                time.sleep(0.01)
        assert "a message was not complete within" in cut_off(slow)
        assert harness.own_ns() - begun_ns < 2 * NS_PER_S
    answers(harness)


def test_a_silent_client_is_cut_off_unless_its_request_is_pending(
    harness: ControlHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "IDLE_TIMEOUT_NS", NS_PER_S // 10)
    harness.hold = True
    with closing(Client(harness.path)) as waits, closing(Client(harness.path)) as silent:
        waits.ask()
        assert waits.read()["state"] == "accepted"
        assert "no request was sent" in cut_off(silent)
        time.sleep(0.3)
        harness.finish()
        assert waits.read()["state"] == "done"


@pytest.mark.parametrize(
    ("requests", "bound", "never"),
    [
        (5, ("UNSENT_TIMEOUT_NS", NS_PER_S // 2), ("UNSENT_BYTES_MAX", 1 << 40)),
        (12, ("UNSENT_BYTES_MAX", UNSENT_BYTES_MAX), ("UNSENT_TIMEOUT_NS", DAY_NS)),
    ],
    ids=["for too long", "too much"],
)
def test_a_client_that_does_not_read_is_cut_off(
    harness: ControlHarness,
    monkeypatch: pytest.MonkeyPatch,
    requests: int,
    bound: tuple[str, int],
    never: tuple[str, int],
) -> None:
    for name, value in (bound, never):
        monkeypatch.setattr(connection, name, value)
    # Its requests are long, and are not what is to be refused here.
    monkeypatch.setattr(limits, "REQUEST_BYTES", LINE_BYTES_MAX)
    with closing(Client(harness.path)) as deaf:
        with suppress(OSError):
            for number in range(requests):
                deaf.ask(id=f"a{number}", args={"mode": "x" * 60_000})
        until(lambda: harness.control.open_connections == 0)
        with pytest.raises((EOFError, ConnectionResetError)):
            while True:
                deaf.read()
    answers(harness)

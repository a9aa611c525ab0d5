# SPDX-License-Identifier: GPL-2.0-only
"""The daemon notifies systemd, and sends nothing without systemd."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from ebbgate.daemon import sd_notify
from ebbgate.daemon.sd_notify import Watchdog
from ebbgate.units import NS_PER_S


@pytest.fixture
def systemd() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        yield sock


def say_all(watchdog: Watchdog) -> None:
    watchdog.ready()
    watchdog.alive()
    watchdog.stopping()


def heard(systemd: socket.socket) -> list[bytes]:
    return [systemd.recv(100) for _ in range(3)]


SAID = [b"READY=1", b"WATCHDOG=1", b"STOPPING=1"]


def test_ready_alive_and_stopping_are_sent(systemd: socket.socket, tmp_path: Path) -> None:
    systemd.bind(str(tmp_path / "notify"))
    say_all(Watchdog(str(tmp_path / "notify")))
    assert heard(systemd) == SAID


def test_an_abstract_address_is_written_with_an_at_sign(systemd: socket.socket) -> None:
    name = f"ebbgate-test-{id(systemd)}"
    systemd.bind(f"\0{name}")
    say_all(Watchdog(f"@{name}"))
    assert heard(systemd) == SAID


def test_the_address_comes_from_the_environment(
    systemd: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd.bind(str(tmp_path / "notify"))
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    say_all(Watchdog())
    assert heard(systemd) == SAID


def test_the_loop_does_not_wait_for_a_systemd_that_hangs(
    systemd: socket.socket, tmp_path: Path
) -> None:
    address = str(tmp_path / "notify")
    systemd.bind(address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as others:
        others.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                others.sendto(b"x", address)
    watchdog = Watchdog(address)
    for report in (watchdog.alive, watchdog.stopping):
        thread = Thread(target=report, daemon=True)
        thread.start()
        thread.join(5)
        assert not thread.is_alive()


def test_without_systemd_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)

    def no_socket(*_: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", no_socket)
    say_all(Watchdog())


def test_a_socket_that_is_gone_does_not_disturb_the_daemon(tmp_path: Path) -> None:
    say_all(Watchdog(str(tmp_path / "gone")))


@pytest.mark.parametrize(("since_tick_s", "alive"), [(12, True), (13, False)])
async def test_a_tick_task_that_hangs_is_not_reported_alive(
    monkeypatch: pytest.MonkeyPatch, since_tick_s: int, alive: bool
) -> None:
    monkeypatch.setattr(sd_notify, "_EVERY_S", 0.001)
    sent: list[int] = []
    now_s = [0]
    watchdog = Watchdog("", tick_ns=10 * NS_PER_S, now_ns=lambda: now_s[0] * NS_PER_S)
    monkeypatch.setattr(watchdog, "alive", lambda: sent.append(now_s[0]))
    pings = asyncio.create_task(watchdog.run())
    await asyncio.sleep(0.01)
    now_s[0] = since_tick_s
    await asyncio.sleep(0.05)
    pings.cancel()
    assert sent[0] == 0
    assert (sent[-1] == since_tick_s) is alive

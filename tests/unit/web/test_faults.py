# SPDX-License-Identifier: GPL-2.0-only
"""A database that is missing, locked or damaged, and a daemon that is dead: said, and over."""

from __future__ import annotations

import os
import re
import select
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from ebbgate.errors import PermissionDenied
from ebbgate.intents.client import greet
from ebbgate.intents.protocol import Greeting
from ebbgate.store import connection
from ebbgate.store.db import Store
from ebbgate.web import intent_service, liveness, snapshot
from tests.db_faults import DatabaseFault, damaged, locked, missing
from tests.unit.web.web_fixture import RIGHT, WebHarness, connected, running
from tests.waiting import until

QUESTIONS = (
    "/volumes/bcache0",
    "/volumes/bcache0/samples",
    "/volumes/bcache0/latency",
    "/volumes/bcache0/actions",
    "/decisions",
    "/decisions/1",
)


@contextmanager
def empty(path: Path) -> Iterator[None]:
    whole = path.read_bytes()
    path.write_bytes(b"")
    yield
    path.write_bytes(whole)


@contextmanager
def a_folder(path: Path) -> Iterator[None]:
    aside = path.with_suffix(".aside")
    path.rename(aside)
    path.mkdir()
    yield
    path.rmdir()
    aside.rename(path)


@contextmanager
def of_a_newer_version(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path)) as connection:
        known = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute("PRAGMA user_version = 99")
        yield
        connection.execute(f"PRAGMA user_version = {known}")


class _Clock:
    """Each call is a second later, so nothing cached is young enough to be reused."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def monotonic(self) -> float:
        self._now_s += 1.0
        return self._now_s


@pytest.fixture(autouse=True)
def uncached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "time", _Clock())


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon of a test answers; on a busy machine, not within half a second."""
    monkeypatch.setattr(liveness, "_TIMEOUT_S", 20.0)
    monkeypatch.setattr(intent_service, "_TIMEOUT_S", 20.0)


each_trouble = pytest.mark.parametrize(
    "trouble", [missing, locked, damaged, empty, a_folder, of_a_newer_version]
)


def test_a_bit_error_in_a_decision_is_reported(web: WebHarness) -> None:
    with closing(sqlite3.connect(web.config.history_path)) as connection, connection:
        connection.execute("UPDATE decisions SET document = substr(document, 2)")
    for path in ("/decisions", "/decisions/1"):
        answer = web.get(path)
        assert answer.status == 503, path
        assert "the history cannot be read" in answer.error["message"]


@each_trouble
def test_unreadable_history_is_reported_and_recovers(
    web: WebHarness, trouble: DatabaseFault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "READ_TIMEOUT_S", 0.1)
    with trouble(web.config.history_path):
        health = web.get("/health")
        assert health.status == 200
        assert health.json["history"]["ok"] is False
        assert health.json["history"]["why"]
        volumes = web.get("/volumes")
        assert (volumes.status, volumes.json["volumes"]) == (200, [])
        assert volumes.json["history"] == health.json["history"]["why"]
        for path in QUESTIONS:
            answer = web.get(path)
            assert answer.status == 503, path
            assert answer.error["message"]
            assert int(answer.headers["retry-after"]) > 0
        assert web.get("/advice").status == 200
        assert web.get("/policies").status == 200
    assert web.get("/health").json["history"] == {"ok": True, "why": None}
    for path in QUESTIONS:
        assert web.get(path).status == 200, path


def test_long_reader_of_the_history_is_reported(web: WebHarness) -> None:
    log = {"bytes": 9 << 20, "held_since_unix_ns": 7, "held_by": "python3 (pid 12, uid 33)"}
    history = {"written": True, "dropped": 0, "trouble": None, "log": log}
    with closing(Store.open(web.config.history_path)) as store, web.daemon():
        store.set_live("", {"version": "0.1.0", "history": history}, web.now_ns)
        said = "python3 (pid 12, uid 33) keeps reading the history: its log has grown to 9 MiB."
        assert [e for e in web.get("/health").json["daemon"]["errors"] if e.startswith(said)]
        assert [e for e in web.get("/doctor").json["missing"] if e.startswith(said)]


def test_size_of_the_history_on_the_disk_is_a_metric(web: WebHarness) -> None:
    def sizes() -> list[float]:
        page = web.ask("GET", "/metrics").body.decode()
        found = re.findall(r"^ebbgate_history_(?:file|log|limit)_bytes (.+)$", page, re.MULTILINE)
        return [float(each) for each in found]

    path = web.config.history_path
    with closing(Store.open(path)) as store:
        store.set_live("bcache0", {}, 1)
        log_bytes = path.with_name("history.db-wal").stat().st_size
        assert log_bytes > 0
        assert sizes() == [path.stat().st_size, log_bytes, 256 << 20]
    assert sizes() == [path.stat().st_size, 0, 256 << 20]
    path.rename(path.with_suffix(".aside"))
    assert sizes() == []


@each_trouble
def test_requests_are_accepted_while_the_history_is_unreadable(
    web: WebHarness, trouble: DatabaseFault
) -> None:
    with trouble(web.config.history_path), web.daemon():
        health = web.get("/health").json
        assert health["intents"] == {"ok": True, "why": None}
        assert health["history"]["ok"] is False
        assert web.post("/intents", {"kind": "restore"}, **RIGHT).status == 202
        listed = web.get("/intents")
        assert listed.status == 503 or [e["id"] for e in listed.json["intents"]] == [5]
    assert [e["id"] for e in web.get("/intents").json["intents"]] == [5, 4, 3, 2, 1]


# ---- a device that hangs -----------------------------------------------------------------------
@contextmanager
def hanging(path: Path) -> Iterator[None]:
    """Whoever opens this file waits until the end, as in sysfs for a lock of the kernel."""
    fifo, aside = path.with_name("fifo"), path.with_name("aside")
    os.mkfifo(fifo)
    path.rename(aside)
    path.hardlink_to(fifo)
    try:
        yield
    finally:
        aside.replace(path)
        # Those that wait find an end of file.
        os.close(os.open(fifo, os.O_RDWR))
        fifo.unlink()


@pytest.mark.parametrize("path", ["advice", "doctor"])
def test_device_that_hangs_leaves_threads_for_other_requests(web: WebHarness, path: str) -> None:
    def request(path: str) -> bytes:
        head = f"GET /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        return head.encode()

    state = web.fake.sysfs.locate("/sys/block/bcache0/bcache/state")
    with running(web.api) as (address, _), ExitStack() as stack:
        with hanging(state):
            lines = [stack.enter_context(connected(address, request(path))) for _ in range(8)]
            with connected(address, request("health")) as health:
                health.settimeout(2.0)
                assert health.recv(15) == b"HTTP/1.1 200 OK"
            # All are of one client, which leaves the other two places to others.
            until(lambda: len(select.select(lines, [], [], 0)[0]) == 6, "6 of them are refused")
        answers = [stack.enter_context(line.makefile("rb")).read().lower() for line in lines]
    busy = [each for each in answers if each.startswith(b"http/1.1 503 ")]
    assert len(busy) == 6
    assert all(b"\r\nretry-after: 2\r\n" in each for each in busy)
    assert sum(each.startswith(b"http/1.1 200 ") for each in answers) == 2


# ---- the daemon --------------------------------------------------------------------------------
def test_dead_daemon_makes_volumes_stale_and_its_return_fresh(
    web: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "time", _Clock())
    health = web.get("/health").json
    assert health["daemon"]["alive"] is False
    assert any("is not running" in each for each in health["daemon"]["errors"])
    assert health["intents"] == {"ok": False, "why": "ebbgated is not running"}
    said = web.get("/volumes").json
    assert said["daemon_alive"] is False
    assert all(each["stale"] for each in said["volumes"])
    with web.daemon():
        said = web.get("/volumes").json
        assert said["daemon_alive"] is True
        assert not any(each["stale"] for each in said["volumes"])
        health = web.get("/health").json["daemon"]
        assert (health["alive"], health["pid"], health["errors"]) == (True, os.getpid(), [])


def test_hanging_daemon_is_alive_with_an_old_status(web: WebHarness) -> None:
    web.now_ns += 20_000_000_000
    with web.daemon():
        health = web.get("/health").json["daemon"]
        assert health["alive"] is True
        assert health["age_s"] == 20
        assert health["errors"] == ["the daemon runs, but its status is old"]
        assert all(each["stale"] for each in web.get("/volumes").json["volumes"])


def test_daemon_is_asked_once_a_second(web: WebHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def counted(path: Path, timeout_s: float) -> Greeting:
        asked.append(path)
        return greet(path, timeout_s)

    monkeypatch.setattr(liveness, "greet", counted)
    began_s = time.monotonic()
    with web.daemon():
        for _ in range(50):
            assert web.get("/health").json["daemon"]["alive"] is True
    assert len(asked) <= 1 + (time.monotonic() - began_s)


def test_without_socket_access_the_history_shows_if_the_daemon_runs(
    web: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: Path, timeout_s: float) -> Greeting:
        raise PermissionDenied(f"no access to {path}", "ask root")

    monkeypatch.setattr(liveness, "greet", closed)
    health = web.get("/health").json
    assert health["daemon"]["alive"] is True
    assert "no access to" in health["intents"]["why"]
    web.now_ns += 20_000_000_000
    assert web.get("/health").json["daemon"]["alive"] is None


def test_errors_of_the_daemon_are_in_the_health(web: WebHarness) -> None:
    with closing(Store.open(web.config.history_path)) as store:
        document = {
            "pid": 4711,
            "history": {"written": False, "trouble": {"why": "the disk is full"}},
            "intents_error": "overrides.db is damaged",
            "probe": {"state": "down: it ended"},
            "policies": {"problems": ["a.yaml:1:1: no"]},
        }
        store.set_live("", document, web.now_ns)
    with web.daemon():
        errors = web.get("/health").json["daemon"]["errors"]
    assert len(errors) == 4
    for part in ("the disk is full", "overrides.db is damaged", "down", "a.yaml:1:1"):
        assert any(part in each for each in errors)


def test_missing_history_and_daemon(tmp_path: Path) -> None:
    web = WebHarness(tmp_path)
    health = web.get("/health").json
    assert (health["history"]["ok"], health["daemon"]["alive"]) == (False, False)
    assert web.get("/volumes").json["volumes"] == []
    assert web.get("/intents").json == {"intents": []}
    assert web.ask("GET", "/metrics").status == 200

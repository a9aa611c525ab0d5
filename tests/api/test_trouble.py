# SPDX-License-Identifier: GPL-2.0-only
"""The web process killed, a database locked, replaced, damaged or gone, the daemon dead: every
route says what it cannot know, and recovers by itself. Real processes, on both sets of packages.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ebbgate.store.db import Store
from tests import web_history
from tests.api.stack import SETS, WITH_TOKEN, Site, history, served
from tests.builders import decision, proposal
from tests.control_harness import answering
from tests.db_faults import DatabaseFault, damaged, locked, missing
from tests.programs import free_port, until
from tests.unit.web.web_fixture import DEADLINE_S, DOCUMENT, Answer, complaint

# A day of history is made first, on whatever machine this is.
pytestmark = pytest.mark.timeout(300)
ROUTES = (
    "/health",
    "/volumes",
    "/volumes/{volume}",
    "/volumes/{volume}/samples",
    "/volumes/{volume}/latency",
    "/volumes/{volume}/actions",
    "/decisions",
    "/decisions/{number}",
    "/advice",
    "/doctor",
    "/policies",
    "/intents",
    "/intents/{number}",
)
LOCKED_S = 10.0
ANSWER_S = 5.0
"""Within this every answer comes, also of a database that somebody keeps."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("made")
    web_history.fill(folder, 3, 0.2, int(time.time())).store.close()
    return folder


@pytest.fixture
def state(made: Path, tmp_path: Path) -> Path:
    """A separate history without a writer."""
    return Path(shutil.copytree(made, tmp_path / "state"))


@dataclass(frozen=True, slots=True)
class Lasting:
    """A site with its state folder, through one trouble after the other: each must be over."""

    site: Site
    state: Path


@pytest.fixture(scope="module", params=SETS)
def lasting(
    request: pytest.FixtureRequest, made: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lasting]:
    folder = tmp_path_factory.mktemp("lasting")
    state = Path(shutil.copytree(made, folder / "state"))
    with served(folder, state, request.param) as running:
        yield Lasting(running, state)


def ask(site: Site, route: str) -> Answer:
    """An answer in time, as the document describes it."""
    path = "/api/v1" + route.replace("{volume}", "bcache0").replace("{number}", "1")
    began_s = time.monotonic()
    answer = site.client.ask("GET", path)
    assert time.monotonic() - began_s < ANSWER_S, route
    responses = DOCUMENT["paths"][f"/api/v1{route}"]["get"]["responses"]
    assert str(answer.status) in responses, (route, answer.status, answer.body)
    schema = responses[str(answer.status)]["content"]["application/json"]["schema"]
    assert complaint(answer.json, schema) == "", route
    if answer.status == 503:
        assert answer.error["message"]
        assert int(answer.headers["retry-after"]) > 0
    return answer


def hold(site: Site) -> Answer:
    """Request that all knobs stay as they are."""
    body = b'{"kind": "hold", "args": {"on": true}}'
    return site.client.ask("POST", "/api/v1/intents", body, **WITH_TOKEN)


def statuses(site: Site) -> dict[str, int]:
    return {route: ask(site, route).status for route in ROUTES}


def add_decision(state: Path) -> int:
    with closing(Store.open(state / "history.db")) as store:
        return store.add_decision(decision(proposal()), time.time_ns())


Holds = Callable[[Any], bool]


def told(events: Iterator[tuple[str, str, Any]], **wanted: Holds) -> dict[str, Any]:
    """The data of the first event of each name that is so, whichever comes first."""
    found: dict[str, Any] = {}
    until_s = time.monotonic() + DEADLINE_S
    while set(found) < set(wanted):
        assert time.monotonic() < until_s, f"never sent: {set(wanted) - set(found)}"
        name, _, data = next(events)
        if name in wanted and wanted[name](data):
            found.setdefault(name, data)
    return found


# ---- the web process -----------------------------------------------------------------------------
@pytest.mark.parametrize("name", SETS)
def test_a_killed_web_process_resends_missed_events(state: Path, tmp_path: Path, name: str) -> None:
    port = free_port()
    with served(tmp_path, state, name, port) as first, first.client.events() as events:
        last = next(number for kind, number, _ in events if kind == "health")
        os.kill(first.program.process.pid, signal.SIGKILL)
        # The connection is closed, so that a browser notices and reconnects.
        with pytest.raises((StopIteration, OSError)):
            while True:
                next(events)
    missed = [add_decision(state) for _ in range(3)]
    with served(tmp_path, state, name, port) as second, second.client.events(last) as events:
        kinds = [next(events) for _ in range(5)]
        assert [data["id"] for kind, _, data in kinds if kind == "decision"] == missed
        assert {kind for kind, _, _ in kinds} == {"decision", "volumes", "health"}


# ---- the history ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("trouble", "lasts_s", "requests"),
    [
        (locked, LOCKED_S, (503, 503)),
        (damaged, 0.0, (503, 503)),
        # Without a history there are no requests.
        (missing, 0.0, (200, 404)),
    ],
)
@pytest.mark.timeout(120)
def test_every_route_reports_an_unreadable_history_and_recovers(
    lasting: Lasting, trouble: DatabaseFault, lasts_s: float, requests: tuple[int, int]
) -> None:
    site, state = lasting.site, lasting.state
    before = statuses(site)
    assert set(before.values()) == {200}
    during = {**before, **dict.fromkeys(ROUTES[2:8], 503)}
    during |= dict(zip(("/intents", "/intents/{number}"), requests, strict=True))
    with site.client.events() as events:
        with trouble(state / "history.db"):
            until_s = time.monotonic() + lasts_s
            found = told(events, health=lambda data: not data["history"]["ok"])["health"]
            assert found["history"]["why"]
            while True:
                assert statuses(site) == during
                if time.monotonic() >= until_s:
                    break
            assert ask(site, "/volumes").json["history"]
        back = told(
            events,
            health=lambda data: data["history"]["ok"],
            volumes=lambda data: not data["history"],
        )
        assert len(back["volumes"]["volumes"]) == 3
    # A writer that reopens the log may lock readers out again for a moment.
    until("every route answers again", lambda: statuses(site) == before)


@pytest.mark.parametrize("name", SETS)
def test_a_replaced_history_is_read_and_streams_restart(
    state: Path, tmp_path: Path, name: str
) -> None:
    with served(tmp_path, state, name) as site:
        with site.client.events() as events:
            told(events, health=lambda data: data["history"]["ok"])
            with closing(Store.open(tmp_path / "other.db")) as store:
                number = store.add_decision(decision(proposal()), time.time_ns())
            for part in ("history.db-wal", "history.db-shm"):
                (state / part).unlink(missing_ok=True)
            (tmp_path / "other.db").rename(state / "history.db")
            told(events, reset=lambda _: True)
            later = add_decision(state)
            assert told(events, decision=lambda _: True)["decision"]["id"] == later
        rows = site.client.ask("GET", "/api/v1/decisions").json["decisions"]
        assert [each["id"] for each in rows] == [later, number]
        assert ask(site, "/volumes/{volume}").status == 404


# ---- the daemon ----------------------------------------------------------------------------------
def test_without_a_daemon_nothing_is_accepted_and_everything_else_is_answered(
    lasting: Lasting,
) -> None:
    site, state = lasting.site, lasting.state
    # One look is shared by all who ask within a moment, such as the test before.
    until("it is reported", lambda: not ask(site, "/health").json["intents"]["ok"])
    assert ask(site, "/health").json["intents"]["why"] == "ebbgated is not running"
    assert set(statuses(site).values()) == {200}
    answer = hold(site)
    assert (answer.status, answer.error["code"]) == (503, "no_daemon")
    with answering(state / "control.sock", lambda _: None) as asked:
        until("it can be asked", lambda: ask(site, "/health").json["intents"]["ok"])
        answer = hold(site)
        assert answer.status == 202, answer.body
        assert [request.kind for request in asked.requests] == ["hold"]
        # The history has it later, or here never; the client can follow it by its number.
        assert site.client.ask("GET", f"/api/v1/intents/{answer.json['id']}").json == answer.json
    assert len(ask(site, "/intents").json["intents"]) == 5


@pytest.mark.parametrize("name", SETS)
@pytest.mark.timeout(120)
def test_a_dead_daemon_and_its_return_are_reported_at_once(tmp_path: Path, name: str) -> None:
    with history(tmp_path) as state, served(tmp_path, state, name) as site:
        until("it lives", lambda: ask(site, "/health").json["daemon"]["alive"])
        assert hold(site).status == 202
        with site.client.events() as events:
            alive = told(events, health=lambda data: data["daemon"]["alive"])["health"]
            os.kill(alive["daemon"]["pid"], signal.SIGKILL)
            dead = told(
                events,
                health=lambda data: not data["daemon"]["alive"],
                volumes=lambda data: not data["daemon_alive"],
            )
            assert dead["health"]["daemon"]["errors"]
            assert all(each["stale"] for each in dead["volumes"]["volumes"])
            assert set(statuses(site).values()) == {200}
            refused = hold(site)
            assert (refused.status, refused.error["code"]) == (503, "no_daemon")
            with answering(state / "control.sock", lambda _: None):
                back = told(events, health=lambda data: data["daemon"]["alive"])["health"]
                assert back["daemon"]["pid"] == os.getpid()

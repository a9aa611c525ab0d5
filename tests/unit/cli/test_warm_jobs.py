# SPDX-License-Identifier: GPL-2.0-only
"""`warm` begins several jobs, reports each that is refused, and waits for their end."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from ebbgate.cli import job_watch
from ebbgate.cli.daemon_status import Link
from ebbgate.store.db import Store
from ebbgate.store.intent_rows import IntentRow
from ebbgate.units import NS_PER_S
from tests.builders import live_document
from tests.control_harness import Outcome
from tests.unit.conftest import NOW_NS, Cli, Result

FIRST = 5
"""The number of the first request."""
BEGUN = (True, "bcache0: a job warms it")


def job(number: int, state: str = "done", why: str = "") -> dict[str, Any]:
    return {"id": number, "target": f"/srv/{number}", "state": state, "who": "jo", "why": why}


class Clock:
    """Shows the next status whenever the command sleeps. It fails where none is left."""

    def __init__(self, store: Store, statuses: list[list[dict[str, Any]]]) -> None:
        self._store = store
        self._statuses = iter(statuses)
        self.sleep(0)

    def sleep(self, _seconds: float) -> None:
        status = live_document(title="bcache0", jobs=next(self._statuses))
        self._store.set_live("bcache0", status, NOW_NS)


Wait = Callable[..., Result]


@pytest.fixture
def wait(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Wait:
    """Warms so many files and waits, while the daemon shows these statuses one after another."""

    def run(count: int, *statuses: list[dict[str, Any]], words: tuple[str, ...] = ()) -> Result:
        with cli.daemon(answers=BEGUN) as store:
            monkeypatch.setattr(job_watch, "time", Clock(store, list(statuses)))
            paths = (f"/srv/{number}" for number in range(FIRST, FIRST + count))
            return cli("warm", "--wait", *words, *paths)

    return run


def test_jobs_that_the_daemon_has_forgotten_since_are_done(wait: Wait) -> None:
    numbers = range(FIRST, FIRST + 10)
    result = wait(
        10,
        [job(each, "waiting") for each in numbers],
        [job(each, "done" if each < FIRST + 5 else "waiting") for each in numbers],
        [job(each) for each in numbers][-8:],
        words=("--json",),
    )
    assert (result.code, result.err) == (0, "")
    found = [(each["id"], each["state"]) for each in result.document["jobs"]]
    assert found == [(each, "done") for each in numbers]
    assert result.document["errors"] == []


def test_jobs_that_end_while_others_are_begun_are_remembered(wait: Wait) -> None:
    """The first status is there while the jobs are begun."""
    result = wait(2, [job(FIRST)], [job(FIRST + 1)])
    assert result.code == 0, result.err
    assert "job 5, /srv/5" in result.out
    assert "job 6, /srv/6" in result.out


def test_a_failed_job_is_an_error_once_all_are_over(wait: Wait) -> None:
    result = wait(
        3,
        [job(5, "reading"), job(6, "waiting"), job(7, "waiting")],
        [job(5, "failed", "the file was deleted"), job(6, "reading"), job(7, "waiting")],
        [job(5, "failed", "the file was deleted"), job(6), job(7, "cancelled", "by jo")],
    )
    assert result.code == 74
    assert "job 6, /srv/6 (jo): done" in result.out
    assert "bcache0: job 5, /srv/5 (jo): failed: the file was deleted" in result.err
    assert "bcache0: job 7, /srv/7 (jo): cancelled: by jo" in result.err
    assert "job 6, /srv/6 (jo): done" not in result.err


def test_a_job_that_the_daemon_does_not_know_is_lost(wait: Wait) -> None:
    """A status may be late, but not five times in a row."""
    result = wait(2, *[[job(5)]] * 5, words=("--json",))
    assert result.code == 74
    assert [each["id"] for each in result.document["jobs"]] == [5]
    (error,) = result.document["errors"]
    assert error["message"] == "job 6 is not known any more"


def test_a_list_without_jobs_says_what_has_become_of_them(cli: Cli) -> None:
    """A daemon that was started anew knows none of those before."""
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(), NOW_NS)
        out = cli("jobs").out
    assert " ".join(out.split()) == (
        "no warm-up is under way, and none has ended of late; jobs end with ebbgated"
    )


def test_jobs_of_a_daemon_that_has_ended_are_not_listed(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(title="bcache0", jobs=[job(5)]), NOW_NS)
    for words in (["jobs"], ["warm"]):
        text, document = cli(*words).out, cli(*words, "--json").document
        assert "ebbgated is not running" in text
        assert "job 5" not in text
        assert (document["jobs"], document["daemon"]["alive"]) == ([], False)


def test_a_job_is_not_lost_while_the_status_of_its_volume_is_late(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter(range(12))

    def sleep(_seconds: float) -> None:
        late = next(looks) < 10
        status = live_document(title="bcache0", jobs=[job(5, "reading" if late else "done")])
        store.set_live("bcache0", status, NOW_NS - 6 * NS_PER_S * late)

    with cli.daemon(answers=BEGUN) as store:
        sleep(0)
        monkeypatch.setattr(job_watch, "time", SimpleNamespace(sleep=sleep))
        result = cli("warm", "--wait", "/srv/5")
    assert result.code == 0, result.err


def test_nobody_waits_for_a_daemon_that_has_ended(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(_seconds: float) -> None:
        monkeypatch.setattr(job_watch, "look", lambda _: Link(alive=False, pid=None))

    with cli.daemon(answers=BEGUN) as store:
        Clock(store, [[job(5, "reading")]])
        monkeypatch.setattr(job_watch, "time", SimpleNamespace(sleep=ends))
        result = cli("warm", "--wait", "/srv/5")
    assert result.code == 69
    assert "ebbgated has ended, and its jobs with it" in result.err
    assert "job 5, /srv/5 (jo): reading" in result.out


def refuse_second(row: IntentRow) -> Outcome:
    if row.args["path"] == "/srv/b":
        return False, "/srv/b is no regular file\n  name files"
    return BEGUN


def test_a_path_that_is_refused_does_not_hide_the_others(cli: Cli) -> None:
    with cli.daemon(answers=refuse_second):
        text = cli("warm", "/srv/a", "/srv/b", "/srv/c")
        document = cli("warm", "--json", "/srv/a", "/srv/b", "/srv/c")
    assert (text.code, text.out.count(BEGUN[1])) == (74, 2)
    assert "/srv/b is no regular file" in text.err
    assert document.code == 74
    assert [each["path"] for each in document.document["requests"]] == ["/srv/a", "/srv/c"]
    assert document.document["errors"] == [
        {"message": "/srv/b is no regular file", "hint": "name files"}
    ]
    assert json.loads(document.err)["error"]["code"] == 74


def test_the_jobs_that_were_begun_are_waited_for_beside_one_that_is_refused(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cli.daemon(answers=refuse_second) as store:
        statuses = [[job(5, "reading"), job(7, "waiting")], [job(5), job(7)]]
        monkeypatch.setattr(job_watch, "time", Clock(store, statuses))
        result = cli("warm", "--wait", "/srv/a", "/srv/b", "/srv/c")
    assert result.code == 74
    assert "job 7, /srv/7 (jo): done" in result.out
    assert "/srv/b is no regular file" in result.err


def slow_first(row: IntentRow) -> Outcome | None:
    return None if row.args["path"] == "/srv/a" else BEGUN


def test_a_file_that_is_slow_to_open_does_not_hide_the_others(cli: Cli) -> None:
    cli.timeout_s = 0.2
    with cli.daemon(answers=slow_first):
        result = cli("warm", "--json", "/srv/a", "/srv/b", "/srv/c")
    assert [each["args"]["path"] for each in cli.intents()] == ["/srv/a", "/srv/b", "/srv/c"]
    assert result.code == 69
    assert [each["path"] for each in result.document["requests"]] == ["/srv/b", "/srv/c"]
    (error,) = result.document["errors"]
    assert error["message"] == "no result within 0.2 s: request 5 was accepted and continues"


@pytest.fixture
def wait_for_slow(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Wait:
    """Warms two files and waits; the request of the first one has no outcome in time."""

    def run(*statuses: list[dict[str, Any]]) -> Result:
        cli.timeout_s = 0.2
        with cli.daemon(answers=slow_first) as store:
            monkeypatch.setattr(job_watch, "time", Clock(store, list(statuses)))
            return cli("warm", "--wait", "--json", "/srv/a", "/srv/b")

    return run


def test_a_file_that_is_slow_to_open_is_waited_for(wait_for_slow: Wait) -> None:
    others = [[job(6, "reading")]] * 20 + [[job(6)]] * 5
    result = wait_for_slow(*others, [job(5, "reading"), job(6)], [job(5), job(6)])
    assert (result.code, result.err) == (0, "")
    assert [(each["id"], each["state"]) for each in result.document["jobs"]] == [
        (5, "done"),
        (6, "done"),
    ]
    assert result.document["errors"] == []


def test_a_file_that_is_never_opened_is_an_error(wait_for_slow: Wait) -> None:
    result = wait_for_slow(*[[job(6)]] * 35)
    assert result.code == 69
    late, lost = (each["message"] for each in result.document["errors"])
    assert late.startswith("no result within 0.2 s: request 5 was accepted")
    assert lost == "job 5 is not known any more"


def test_nothing_more_is_requested_from_a_daemon_that_does_not_answer(cli: Cli) -> None:
    cli.timeout_s = 0.2
    with closing(socket.socket(socket.AF_UNIX)) as hangs:
        hangs.bind(str(cli.runtime_dir / "control.sock"))
        hangs.listen()
        result = cli("warm", "/srv/a", "/srv/b")
    assert (result.code, result.out) == (69, "")
    assert result.err.count("does not answer") == 1
    assert "not requested: 1 of 2 warm-ups" in result.err
    without = cli("warm", "/srv/a", "/srv/b")
    assert (without.code, without.err.count("ebbgated is not running")) == (69, 1)
    assert "not requested" not in cli("warm", "/srv/a").err


def test_what_is_not_requested_any_more_is_counted(cli: Cli) -> None:
    def vanishes(row: IntentRow) -> Outcome:
        if row.args["path"] == "/srv/b":
            (cli.runtime_dir / "control.sock").unlink()
        return BEGUN

    with cli.daemon(answers=vanishes):
        result = cli("warm", "/srv/a", "/srv/b", "/srv/c", "/srv/d")
    assert (result.code, result.out.count(BEGUN[1])) == (69, 2)
    assert "not requested: 1 of 4 warm-ups" in result.err

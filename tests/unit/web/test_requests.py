# SPDX-License-Identifier: GPL-2.0-only
"""Policies that are checked, and requests that are sent on: over HTTP."""

from __future__ import annotations

import os
import pwd
import socket
import time
from contextlib import closing
from threading import Event, Thread
from typing import Any

import pytest

from ebbgate.intents.protocol import PENDING_PER_UID
from ebbgate.model.override import IntentKind
from ebbgate.store.db import Store
from ebbgate.web import intent_service
from ebbgate.web.errors import ApiError
from ebbgate.web.models.intents import NewIntent
from tests.control_harness import refuse
from tests.unit.web.web_fixture import NOW_S, RIGHT, WebHarness
from tests.waiting import until


# ---- policies ----------------------------------------------------------------------------------
def test_a_policy_is_checked_with_the_place_of_each_error(still: WebHarness) -> None:
    text = "version: 1\nname: night\nstrategys: []\n"
    answer = still.post("/policies/check", {"name": "night", "text": text})
    assert answer.status == 200
    assert not answer.json["ok"]
    error = answer.json["errors"][0]
    assert (error["line"], error["column"], error["nearest"]) == (3, 1, "strategies")


def test_valid_policy_passes_and_is_not_saved(web: WebHarness) -> None:
    answer = web.post("/policies/check", {"name": "night", "text": "version: 1\nname: night\n"})
    assert answer.json == {"ok": True, "errors": [], "notes": []}
    assert not web.policies.exists()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"\xff", 400),
        (b'{"name": NaN}', 422),
        (b"[" * 100_000, 400),
        (b"[]", 422),
        (b'{"name": "x"}', 422),
        (b'{"name": "x", "text": 1}', 422),
        (b'{"name": "x", "text": "", "more": 1}', 422),
        (b'{"name": "../x", "text": ""}', 422),
        (b'{"name": "X", "text": ""}', 422),
    ],
)
def test_invalid_body_is_refused(still: WebHarness, body: bytes, status: int) -> None:
    answer = still.post("/policies/check", body)
    assert answer.status == status
    assert answer.error["message"]


def test_policy_files_are_listed_with_their_errors(web: WebHarness) -> None:
    web.policies.mkdir()
    (web.policies / "a.yaml").write_text("version: 1\nname: a\n")
    (web.policies / "b.yaml").write_text("version: 2\nname: b\n")
    files = web.get("/policies").json["files"]
    assert [(each["name"], each["ok"]) for each in files] == [("a", True), ("b", False)]
    assert files[0]["text"] == "version: 1\nname: a\n"
    assert files[1]["errors"][0]["line"] == 1


def test_changed_policy_file_is_read_again(web: WebHarness) -> None:
    def files() -> dict[str, bool]:
        return {each["name"]: each["ok"] for each in web.get("/policies").json["files"]}

    assert files() == {}
    web.policies.mkdir()
    (web.policies / "a.yaml").write_text("version: 1\nname: a\n")
    assert files() == {"a": True}
    assert files() == {"a": True}
    (web.policies / "a.yaml").write_text("version: 2\nname: a\n")
    assert files() == {"a": False}
    (web.policies / "a.yaml").rename(web.policies / "b.yaml")
    assert files() == {"b": False}
    (web.policies / "b.yaml").unlink()
    assert files() == {}


def test_effective_policies_have_the_titles_of_volumes(still: WebHarness) -> None:
    told = {each["title"]: each for each in still.get("/policies").json["effective"]}
    assert list(told) == ["bcache0", "bcache1", "vg/data2"]
    named = {"volume": "vg-data2", "title": "vg/data2", "policy": "adaptive"}
    assert told["vg/data2"] == {**named, "overlay": None, "file": None}


def test_policy_schema_is_served(still: WebHarness) -> None:
    answer = still.get("/policy-schema")
    assert answer.headers["content-type"] == "application/schema+json"
    assert answer.json["title"] == "ebbgate policy"


# ---- requests ----------------------------------------------------------------------------------
def intent_json(kind: str, volume: str | None = "bcache0", **args: Any) -> dict[str, Any]:
    return {"kind": kind, "volume": volume, "args": args}


ENFORCE = intent_json("mode", mode="enforce")


def test_request_is_sent_and_can_be_followed(web: WebHarness) -> None:
    with web.daemon() as asked:
        answer = web.post("/intents", ENFORCE, **RIGHT, **{"x-ebbgate-who": "jo"})
    assert answer.status == 202
    (request,) = asked.requests
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert intent_json(request.kind, request.volume, **request.args) == ENFORCE
    assert request.who == f"{user} (jo)"
    unresolved = dict.fromkeys(("resolved_unix_s", "ok", "outcome"))
    known = {**ENFORCE, "id": 5, "who": f"{user} (jo)", "at_unix_s": NOW_S}
    assert answer.json == known | unresolved
    # The history does not have it yet.
    assert web.get("/intents/5").json == answer.json
    assert [each["id"] for each in web.get("/intents").json["intents"]] == [5, 4, 3, 2, 1]
    assert [each["id"] for each in web.get("/intents?limit=2").json["intents"]] == [5, 4]
    assert [each["id"] for each in web.get("/intents?before_id=5").json["intents"]] == [4, 3, 2, 1]


def test_history_overrides_remembered_requests(web: WebHarness) -> None:
    with (
        closing(Store.open(web.config.history_path)) as store,
        web.daemon(lambda _: (True, "bcache0: mode enforce"), store),
    ):
        assert web.post("/intents", ENFORCE, **RIGHT).status == 202
        until(lambda: web.get("/intents/5").json["ok"], "the outcome")
    assert web.get("/intents/5").json["outcome"] == "bcache0: mode enforce"
    assert [each["id"] for each in web.get("/intents").json["intents"]] == [5, 4, 3, 2, 1]


def test_without_a_daemon_nothing_is_accepted(web: WebHarness) -> None:
    answer = web.post("/intents", ENFORCE, **RIGHT)
    assert answer.status == 503
    assert answer.error["code"] == "no_daemon"
    assert "systemctl start ebbgated" in answer.error["hint"]
    assert int(answer.headers["retry-after"]) > 0
    assert web.get("/intents/5").status == 404


def test_refusal_of_the_daemon_is_passed_on(web: WebHarness) -> None:
    with web.daemon(refuse):
        answer = web.post("/intents", ENFORCE, **RIGHT)
    assert answer.status == 409
    assert answer.error["message"] == "the test refuses this"
    assert answer.error["hint"] == "ask another test"
    assert web.get("/intents/5").status == 404


def test_silent_daemon_costs_bounded_time_and_blocks_no_reader(
    web: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intent_service, "_TIMEOUT_S", 0.3)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(web.config.socket_path))
        listening.listen(8)
        began_s = time.monotonic()
        answer = web.post("/intents", intent_json("restore", None), **RIGHT)
        assert time.monotonic() - began_s < 5.0
        health = web.get("/health").json
    assert answer.status == 503
    assert "does not answer" in answer.error["message"]
    assert health["daemon"]["alive"] is True, "there is a process"
    assert health["daemon"]["pid"] == os.getpid()
    assert "does not answer" in health["intents"]["why"]


def test_limit_of_the_daemon_is_429(web: WebHarness) -> None:
    requests = intent_service.IntentService(web.api.databases)
    wanted = NewIntent(kind=IntentKind.RESTORE)
    with web.daemon():
        for _ in range(PENDING_PER_UID):
            requests.add(wanted, "")
        answer = web.post("/intents", {"kind": "restore"}, **RIGHT)
    assert answer.status == 429, answer.body
    assert answer.error["message"].startswith("too many ")
    assert int(answer.headers["retry-after"]) > 0


def test_waiting_requests_are_bounded(web: WebHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intent_service, "_AT_ONCE", 1)
    requests = intent_service.IntentService(web.api.databases)
    held, over = Event(), Event()

    def slow(*_: object) -> int:
        held.set()
        assert over.wait(10.0)
        return 5

    monkeypatch.setattr(requests, "_send", slow)
    wanted = NewIntent(kind=IntentKind.RESTORE)
    first = Thread(target=requests.add, args=(wanted, ""))
    first.start()
    try:
        assert held.wait(10.0)
        with pytest.raises(ApiError) as caught:
            requests.add(wanted, "")
    finally:
        over.set()
        first.join()
    assert (caught.value.status, caught.value.retry_after_s) == (503, 2)
    assert requests.add(wanted, "").id == 5


def test_remembered_requests_are_bounded(web: WebHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = intent_service.IntentService(web.api.databases)
    numbers = iter(range(100, 1000))
    monkeypatch.setattr(requests, "_send", lambda *_: next(numbers))
    text = "version: 1\n" + "# long\n" * 1000
    save = NewIntent(kind=IntentKind.POLICY_SAVE, args={"name": "night", "text": text})
    for _ in range(2 * intent_service.REMEMBERED_MAX):
        assert requests.add(save, "").args["text"] == text
    found = requests.newest(1000, 1 << 53)
    assert len(found) == intent_service.REMEMBERED_MAX + 4
    assert len(found[0].args["text"]) < 300, "the text itself is in its file"
    monkeypatch.setattr(intent_service, "_REMEMBERED_S", -1.0)
    assert [each.id for each in requests.newest(1000, 1 << 53)] == [4, 3, 2, 1]


def test_policy_that_exceeds_a_line_is_refused(web: WebHarness) -> None:
    with web.daemon() as asked:
        text = "# \u00fc" * 10_000
        saved = intent_json("policy_save", None, name="night", text=text)
        answer = web.post("/intents", saved, **RIGHT)
    assert answer.status == 422
    assert asked.requests == []


@pytest.mark.parametrize(
    ("wanted", "where"),
    [
        (intent_json("fly"), "kind: "),
        (intent_json("mode", mode="brave"), "mode: mode: "),
        (intent_json("mode", None, mode="enforce"), "mode needs a volume"),
        (intent_json("set", knob="stop", value="1"), "ebbgate never writes stop"),
        (intent_json("set", knob="sequential_cutoff", value="0"), "0 is out of bounds"),
        (
            intent_json("set", knob="sequential_cutoff", value="1MiB", for_s=1),
            "set: unknown argument for_s",
        ),
        (intent_json("drain", for_ns=0), "drain: for_ns: "),
        (intent_json("hold", on="yes"), "hold: on: "),
        (intent_json("undo", action_id=-1), "undo: action_id: "),
        (intent_json("pin", path="/srv/db"), "pin takes no volume"),
        (intent_json("pin", None), "pin needs path"),
        (intent_json("pin", None, path="/srv/db", force=True), "pin: unknown argument force"),
        (intent_json("unpin", None), "unpin needs either a pin or a path"),
        (intent_json("unpin", None, pin=1, path="/srv/db"), "unpin needs either a pin or a path"),
        (intent_json("unpin", None, pin=0), "unpin: pin: "),
        (intent_json("unpin", None, pin="1"), "unpin: pin: "),
        (intent_json("forget", absent="bcache9"), "forget takes no volume"),
        (intent_json("forget", None), "forget needs absent"),
        (intent_json("forget", None, absent="bcache9\n"), "forget: absent: "),
        (intent_json("forget", None, absent=["bcache9"]), "forget: absent: "),
        (intent_json("warm", from_bytes=0, to_bytes=0), "warm: a volume takes a range"),
        (intent_json("warm", from_bytes=2, to_bytes=1), "warm: a volume takes a range"),
        (intent_json("warm", path="/srv/db", to_bytes=1), "warm: a volume takes a range"),
        (intent_json("warm", None, to_bytes=1), "warm needs a path, or a volume"),
        (intent_json("warm", to_bytes="1GiB"), "warm: to_bytes: "),
        (intent_json("warm", to_bytes=1.5), "warm: to_bytes: "),
        (intent_json("warm", from_bytes=-1, to_bytes=1), "warm: from_bytes: "),
        (intent_json("warm", to_bytes=2**63), "warm: to_bytes: "),
        (intent_json("warm", to_bytes=1, bandwidth_bytes_per_s=1), "warm: bandwidth_bytes_per_s: "),
        ([], ""),
        ({}, "kind: "),
        ({"kind": True}, "kind: "),
        ({"kind": "mode", "volume": 1, "args": {}}, "volume: "),
        ({"kind": "mode", "args": []}, "args: "),
        ({"kind": "mode", "more": 1}, "more: "),
    ],
)
def test_invalid_request_is_refused_and_not_saved(web: WebHarness, wanted: Any, where: str) -> None:
    with web.daemon() as asked:
        answer = web.post("/intents", wanted, **RIGHT)
    assert answer.status == 422, answer.body
    assert answer.error["message"].startswith(where)
    assert asked.requests == [], "the table refuses it here already"
    assert len(web.get("/intents").json["intents"]) == 4


@pytest.mark.parametrize("kind", ["warm", "pin", "unpin"])
@pytest.mark.parametrize("path", ["srv/db", "/" + "x" * 4095, "/a\x1b[2J", "/a\n", "", 7, ["/a"]])
def test_paths_that_may_be_named_are_the_same_for_warm_and_pin(
    web: WebHarness, kind: str, path: object
) -> None:
    with web.daemon() as asked:
        answer = web.post("/intents", intent_json(kind, None, path=path), **RIGHT)
    assert answer.status == 422, answer.body
    assert answer.error["message"].startswith(f"{kind}: path: ")
    assert answer.error["hint"]
    assert asked.requests == []


@pytest.mark.parametrize(
    "wanted",
    [
        intent_json("pin", None, path="/srv/db/hot"),
        intent_json("unpin", None, pin=7),
        intent_json("unpin", None, path="/srv/db/hot"),
        intent_json("forget", None, absent="bcache9"),
        intent_json("warm", from_bytes=0, to_bytes=2**30),
        intent_json("warm", from_bytes=2**20, to_bytes=2**52, bandwidth_bytes_per_s=2**24),
    ],
)
def test_pins_and_ranges_are_sent_on_with_the_token_alone(
    web: WebHarness, wanted: dict[str, Any]
) -> None:
    with web.daemon() as asked:
        assert web.post("/intents", wanted).status == 401
        assert asked.requests == []
        answer = web.post("/intents", wanted, **RIGHT)
    assert answer.status == 202, answer.body
    (request,) = asked.requests
    assert intent_json(request.kind, request.volume, **request.args) == wanted
    assert {key: answer.json[key] for key in wanted} == wanted


@pytest.mark.parametrize("who", ["x" * 65, "a\x07b", "a\x9bb"])
def test_unprintable_or_long_name_is_refused(web: WebHarness, who: str) -> None:
    with web.daemon():
        answer = web.post("/intents", {"kind": "restore"}, **RIGHT, **{"x-ebbgate-who": who})
    assert answer.status == 422

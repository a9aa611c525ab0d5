# SPDX-License-Identifier: GPL-2.0-only
"""Policies that are checked and tried, and wishes that are added: over HTTP."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from ebbgate.store.intents import Intents
from ebbgate.web import openapi
from tests.unit.web_bench import RIGHT, Bench, complaint


# ---- policies ----------------------------------------------------------------------------------
def test_a_policy_is_checked_with_the_place_of_each_error(still: Bench) -> None:
    text = "version: 1\nname: night\nstrategys: []\n"
    answer = still.post("/policies/check", {"name": "night", "text": text})
    assert answer.status == 200
    assert not answer.json["ok"]
    error = answer.json["errors"][0]
    assert (error["line"], error["column"], error["nearest"]) == (3, 1, "strategies")


def test_a_right_policy_is_right_and_nothing_is_written(web: Bench) -> None:
    answer = web.post("/policies/check", {"name": "night", "text": "version: 1\nname: night\n"})
    assert answer.json == {"ok": True, "errors": []}
    assert not web.policies.exists()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"\xff", 400),
        (b'{"name": NaN}', 400),
        (b"[" * 100_000, 400),
        (b"[]", 422),
        (b'{"name": "x"}', 422),
        (b'{"name": "x", "text": 1}', 422),
        (b'{"name": "x", "text": "", "more": 1}', 422),
        (b'{"name": "../x", "text": ""}', 422),
        (b'{"name": "X", "text": ""}', 422),
    ],
)
def test_a_body_that_is_not_what_was_asked_for_is_refused(
    still: Bench, body: bytes, status: int
) -> None:
    answer = still.post("/policies/check", body)
    assert answer.status == status
    assert answer.error["message"]


def test_the_files_of_the_folder_are_shown_with_what_is_wrong(web: Bench) -> None:
    web.policies.mkdir()
    (web.policies / "a.yaml").write_text("version: 1\nname: a\n")
    (web.policies / "b.yaml").write_text("version: 2\nname: b\n")
    files = web.get("/policies").json["files"]
    assert [(each["name"], each["ok"]) for each in files] == [("a", True), ("b", False)]
    assert files[0]["text"] == "version: 1\nname: a\n"
    assert files[1]["errors"][0]["line"] == 1


def test_a_policy_file_that_changes_is_seen_at_the_next_look(web: Bench) -> None:
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


def test_what_runs_where_is_told_under_the_names_that_people_use(still: Bench) -> None:
    told = {each["title"]: each for each in still.get("/policies").json["effective"]}
    assert list(told) == ["bcache0", "bcache1", "vg/data2"]
    assert told["vg/data2"] == {
        "volume": "vg-data2",
        "title": "vg/data2",
        "policy": "adaptive",
        "overlay": None,
        "file": None,
    }


def test_the_language_is_the_shipped_schema(still: Bench) -> None:
    answer = still.get("/policy-schema")
    assert answer.headers["content-type"] == "application/schema+json"
    assert answer.json["title"] == "ebbgate policy"


NAS = "version: 1\nname: mine\nstrategies:\n  - stream_bypass: {}\n"


def test_a_dry_run_says_what_would_have_been_otherwise(still: Bench) -> None:
    asked = {"volume": "bcache0", "text": NAS, "against": "adaptive", "hours": 0.25}
    answer = still.post("/policies/dry-run", asked)
    assert answer.status == 200, answer.body
    described = openapi.document(still.api.app)
    schema = {"$ref": "#/components/schemas/DryRunResult"}
    assert complaint(answer.json, schema, described) == ""
    assert answer.json["frames"] > 600
    assert {each["setting"] for each in answer.json["differences"]} == {"destage"}
    assert answer.json["until_unix_s"] - answer.json["from_unix_s"] == 900


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"hours": 25}, 422),
        ({"hours": 0}, 422),
        ({"volume": "sda"}, 404),
        ({"against": "nobody"}, 404),
        ({"against": "/etc/passwd"}, 404),
        ({"text": "version: 1\nname: mine\nrulez: []\n"}, 422),
    ],
)
def test_a_dry_run_that_cannot_be_meant_is_refused(
    still: Bench, change: dict[str, Any], status: int
) -> None:
    asked = {"volume": "bcache0", "text": NAS, "against": None, "hours": 1, **change}
    answer = still.post("/policies/dry-run", asked)
    assert answer.status == status, answer.body
    if "text" in change:
        assert answer.error["place"] == {"file": "the policy", "line": 3, "column": 1}


# ---- wishes ------------------------------------------------------------------------------------
def wish(kind: str, volume: str | None = "bcache0", **args: Any) -> dict[str, Any]:
    return {"kind": kind, "volume": volume, "args": args}


def test_a_wish_is_a_row_that_the_daemon_will_find(web: Bench) -> None:
    with web.daemon():
        answer = web.post(
            "/intents", wish("mode", mode="enforce"), **RIGHT, **{"x-ebbgate-who": "jo"}
        )
    assert answer.status == 202
    assert (answer.json["who"], answer.json["ok"]) == ("web (jo)", None)
    with closing(Intents.open(web.config.intents_path)) as intents:
        row = intents.pending()[0]
    assert (row.id, row.kind, row.volume, row.args) == (5, "mode", "bcache0", {"mode": "enforce"})
    assert web.get("/intents/5").json == answer.json


def test_without_a_daemon_no_wish_is_kept(web: Bench) -> None:
    answer = web.post("/intents", wish("mode", mode="enforce"), **RIGHT)
    assert answer.status == 503
    assert answer.error["code"] == "no_daemon"
    assert web.get("/intents/5").status == 404


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        (wish("fly"), 422),
        (wish("mode", mode="brave"), 422),
        (wish("mode", None, mode="enforce"), 422),
        (wish("mode", "sda", mode="enforce"), 404),
        (wish("set", knob="stop", value="1"), 422),
        (wish("set", knob="sequential_cutoff", value="0"), 422),
        (wish("set", knob="sequential_cutoff", value="1MiB", for_s=1), 422),
        (wish("drain", for_ns=0), 422),
        (wish("hold", on="yes"), 422),
        (wish("undo", action_id=-1), 422),
        ({"kind": "mode", "volume": 1, "args": {}}, 422),
        ({"kind": "mode", "args": []}, 422),
        ({"volume": "bcache0"}, 422),
    ],
)
def test_a_wish_that_cannot_be_meant_is_refused_and_not_kept(
    web: Bench, wanted: Any, status: int
) -> None:
    with web.daemon():
        answer = web.post("/intents", wanted, **RIGHT)
    assert answer.status == status, answer.body
    assert answer.error["message"]
    assert len(web.get("/intents").json["intents"]) == 4


@pytest.mark.parametrize("who", ["x" * 65, "a\x07b"])
def test_an_odd_name_of_a_person_is_refused(web: Bench, who: str) -> None:
    with web.daemon():
        answer = web.post("/intents", wish("restore"), **RIGHT, **{"x-ebbgate-who": who})
    assert answer.status == 422

# SPDX-License-Identifier: GPL-2.0-only
"""Every route answers as the OpenAPI document says, from a history of the product's own making."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbgate.model.pin import PinState, PinStatus
from ebbgate.model.status_json import status_to_json
from ebbgate.store.connection import open_writer
from ebbgate.store.db import Store
from ebbgate.store.queries import History
from ebbgate.store.schema import HISTORY
from tests.unit.web.web_fixture import DOCUMENT, NOW_S, RIGHT, WebHarness, add_page, complaint

# Path, and what the answer shows.
GOOD: dict[str, Callable[[Any], bool]] = {
    "/health": lambda d: d["history"] == {"ok": True, "why": None},
    "/volumes": lambda d: [v["volume"] for v in d["volumes"]] == ["bcache0", "bcache1", "vg-data2"],
    "/volumes/bcache0": lambda d: (
        d["mode"] == "enforce"
        and d["dirty_bytes"] > 0
        and d["cutoff_dirty_bytes"] == d["dirty_bytes"] + d["room_bytes"]
    ),
    "/volumes/vg-data2": lambda d: d["title"] == "vg/data2" and d["kind"] == "dm-cache",
    "/volumes/bcache0/samples": lambda d: d["span_s"] == 60 and len(d["at_unix_s"]) == 60,
    "/volumes/bcache0/samples?points=10": lambda d: d["span_s"] == 3600,
    f"/volumes/bcache0/samples?since_unix_s={NOW_S - 60}": lambda d: d["span_s"] == 1,
    "/volumes/bcache0/latency?op=write": lambda d: d["op"] == "write",
    "/volumes/bcache0/actions?limit=3": lambda d: len(d["actions"]) == 3,
    "/volumes/bcache0/actions?outcome=failed": lambda d: d["actions"] == [],
    "/decisions?limit=2": lambda d: len(d["decisions"]) == 2 and d["next_before_id"],
    "/decisions/1": lambda d: d["id"] == 1 and d["proposals"],
    "/advice": lambda d: "advice" in d,
    "/doctor": lambda d: d["kernel"]["release"],
    "/policies": lambda d: {"adaptive", "nas-sleep"} <= {p["name"] for p in d["shipped"]},
    "/intents": lambda d: [i["id"] for i in d["intents"]] == [4, 3, 2, 1],
    "/intents?limit=1&before_id=3": lambda d: [i["id"] for i in d["intents"]] == [2],
    "/intents/4": lambda d: d["ok"] is False and d["outcome"] == "bcache0: it is clean",
    "/token": lambda d: d == {"ok": True},
}

BAD = {
    "/nothing": 404,
    "/volumes/sda": 404,
    "/volumes/sda/samples": 404,
    "/volumes/sda/latency": 404,
    "/volumes/sda/actions": 404,
    "/volumes/bcache0/samples?points=0": 422,
    "/volumes/bcache0/samples?since_unix_s=1e300": 422,
    "/volumes/bcache0/samples?since_unix_s=2&until_unix_s=1": 422,
    "/volumes/bcache0/samples?since_unix_s=0&points=5000": 422,
    "/volumes/bcache0/latency?op=trim": 422,
    "/volumes/bcache0/actions?limit=-1": 422,
    "/volumes/bcache0/actions?outcome=advised": 422,
    "/decisions?limit=1001": 422,
    "/decisions/0": 422,
    "/decisions/first": 422,
    "/decisions/123456789": 404,
    "/intents/77": 404,
    "/intents?limit=0": 422,
}


def schema_of(path: str, method: str, status: int) -> Any:
    """The schema of an answer, of the route that a path goes to."""
    parts = path.partition("?")[0].split("/")
    for route, operations in DOCUMENT["paths"].items():
        words = route.removeprefix("/api/v1").split("/")
        if len(words) == len(parts) and all(
            word in ("{volume}", "{number}", part) for word, part in zip(words, parts, strict=True)
        ):
            response = operations[method]["responses"][str(status)]
            return response["content"]["application/json"]["schema"]
    return None


def refuse_constant(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


@pytest.mark.parametrize("path", GOOD)
def test_answer_matches_the_document(still: WebHarness, path: str) -> None:
    answer = still.get(path, **RIGHT)
    assert answer.status == 200, answer.body
    document = json.loads(answer.body, parse_constant=refuse_constant)
    assert complaint(document, schema_of(path, "get", 200)) == ""
    assert GOOD[path](document)


@pytest.mark.parametrize("path", BAD)
def test_error_matches_the_document_and_has_a_hint(still: WebHarness, path: str) -> None:
    answer = still.get(path)
    assert answer.status == BAD[path], answer.body
    assert answer.error["message"]
    assert answer.error["hint"]
    if path != "/nothing":
        assert complaint(answer.json, schema_of(path, "get", BAD[path])) == ""


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_unknown_method_is_405(still: WebHarness, method: str) -> None:
    headers = {**RIGHT, "content-type": "application/json"}
    answer = still.ask(method, "/api/v1/volumes", headers)
    assert answer.status == 405
    assert answer.error["code"] == "method_not_allowed"
    assert answer.headers["allow"] == "GET"


@pytest.mark.parametrize("rate_bytes_per_s", [0.0, None])
def test_forecast_of_never_is_null_and_listed(
    web: WebHarness, rate_bytes_per_s: float | None
) -> None:
    with closing(Store.open(web.config.history_path)) as store:
        with closing(History.open(web.config.history_path)) as history:
            status = history.statuses().volumes["bcache0"].status
            never = replace(
                status,
                room_bytes=1,
                destage_bytes_per_s=rate_bytes_per_s,
                time_to_full_s=None,
                time_to_clean_s=None,
            )
        store.set_live("bcache0", status_to_json(never), web.now_ns)
    said = web.get("/volumes/bcache0").json
    assert (said["time_to_full_s"], said["time_to_clean_s"]) == (None, None)
    # Where the rates are not measured, nothing is known.
    known = rate_bytes_per_s is not None
    assert said["never"] == (["time_to_full_s", "time_to_clean_s"] if known else [])


def test_pins_are_listed_with_size_state_and_reason(web: WebHarness) -> None:
    pins = (
        PinStatus(3, "/srv/a", PinState.HOT, "jo", "", 4096, 0.1, 1.0, 5, 6),
        PinStatus(4, "/srv/b", PinState.ABSENT, "jo", "not looked at yet"),
    )
    with closing(Store.open(web.config.history_path)) as store:
        with closing(History.open(web.config.history_path)) as history:
            status = history.statuses().volumes["bcache0"].status
        store.set_live("bcache0", status_to_json(replace(status, pins=pins)), web.now_ns)
    answer = web.get("/volumes/bcache0")
    assert complaint(answer.json, schema_of("/volumes/bcache0", "get", 200)) == ""
    hot, absent = answer.json["pins"]
    assert (hot["id"], hot["path"], hot["state"], hot["size_bytes"]) == (3, "/srv/a", "hot", 4096)
    assert (absent["state"], absent["why"]) == ("absent", "not looked at yet")
    assert absent["size_bytes"] is absent["hit_ratio"] is None


def test_the_hit_ratio_counts_reads_of_the_last_minutes(still: WebHarness) -> None:
    said = still.get("/volumes/bcache1").json
    assert said["hit_ratio_window_s"] == 300
    assert said["hit_ratio"] is None or 0 <= said["hit_ratio"] <= 1
    since_s = NOW_S - 300
    found = still.get(f"/volumes/bcache0/samples?since_unix_s={since_s}&points=300").json["paths"]
    reads = sum(sum(filter(None, p["ios"])) for name, p in found.items() if name.startswith("read"))
    hits = sum(filter(None, found["read hit"]["ios"]))
    assert still.get("/volumes/bcache0").json["hit_ratio"] == pytest.approx(hits / reads, abs=0.02)


# ---- decisions ---------------------------------------------------------------------------------
@pytest.mark.parametrize("of", ["", "volume=bcache0&"])
def test_pages_of_decisions_have_no_gap(still: WebHarness, of: str) -> None:
    whole = [each["id"] for each in still.get(f"/decisions?{of}limit=40").json["decisions"]]
    pages: list[int] = []
    query = f"/decisions?{of}limit=7"
    while len(pages) < 40:
        page = still.get(query).json
        pages += [each["id"] for each in page["decisions"]]
        query = f"/decisions?{of}limit=7&before_id={page['next_before_id']}"
    assert pages[:40] == whole
    assert whole == sorted(whole, reverse=True)


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ("volume=bcache0", lambda d: d["volume"] == "bcache0"),
        ("knob=writeback_rate", lambda d: any(a["knob"] == "writeback_rate" for a in d["actions"])),
        (
            "outcome=changed",
            lambda d: d["acted"] and any(a["outcome"] == "changed" for a in d["actions"]),
        ),
        ("strategy=idle_destage", lambda d: d["gate_strategy"] == "idle_destage"),
        (f"since_unix_s={NOW_S - 120}", lambda d: d["at_unix_s"] >= NOW_S - 120),
        (f"until_unix_s={NOW_S - 600}", lambda d: d["at_unix_s"] < NOW_S - 600),
    ],
)
def test_filter_of_decisions(still: WebHarness, query: str, holds: Callable[[Any], bool]) -> None:
    found = still.get(f"/decisions?limit=200&{query}").json["decisions"]
    assert found
    assert all(map(holds, found))
    everything = still.get("/decisions?limit=1000").json["decisions"]
    assert len(found) == min(200, sum(map(holds, everything)))


@pytest.mark.parametrize("query", ["", f"&since_unix_s={NOW_S - 7200}", "&volume=bcache0"])
def test_decisions_of_before_the_clock_was_set_back_are_listed(web: WebHarness, query: str) -> None:
    before = web.get(f"/decisions?limit=5{query}").json["decisions"]
    web.now_ns -= 3600 * 1_000_000_000
    assert web.get(f"/decisions?limit=5{query}").json["decisions"] == before
    assert before


def test_a_decision_is_explained_with_its_writes(still: WebHarness) -> None:
    found = still.get("/decisions?outcome=changed&limit=1").json["decisions"][0]
    whole = still.get(f"/decisions/{found['id']}").json
    assert {key: whole[key] for key in found} == found
    conditions = [c for p in whole["proposals"] for c in p["conditions"]]
    assert all(set(c) >= {"signal", "measured", "threshold", "holds"} for c in conditions)
    writes = still.get(f"/volumes/{found['volume']}/actions?limit=5000").json["actions"]
    of_it = [each for each in writes if each["decision_id"] == found["id"]]
    assert sorted(each["id"] for each in of_it) == [each["id"] for each in found["actions"]]


@pytest.mark.parametrize("wanted", [("changed",), ("unchanged",), ("changed", "unchanged")])
def test_knob_writes_are_filtered_by_outcome_before_the_limit(
    still: WebHarness, wanted: tuple[str, ...]
) -> None:
    everything = still.get("/volumes/bcache0/actions?limit=5000").json["actions"]
    assert {"changed", "unchanged"} <= {each["outcome"] for each in everything}
    query = "&".join(f"outcome={each}" for each in wanted)
    found = still.get(f"/volumes/bcache0/actions?limit=7&{query}").json["actions"]
    assert len(found) == 7
    assert found == [each for each in everything if each["outcome"] in wanted][:7]


# ---- advice ------------------------------------------------------------------------------------
def test_advice_lists_what_could_not_be_checked(web: WebHarness) -> None:
    with web.daemon():
        found = web.get("/advice").json
    assert {each["volume"] for each in found["advice"]} <= {"bcache0"}
    assert {"bcache1", "vg-data2"} <= {each["volume"] for each in found["unknown"]}
    assert all(each["why"] for each in found["unknown"])


def test_advice_on_a_knob_that_nobody_has_set_is_listed(web: WebHarness) -> None:
    with web.daemon():
        found = web.get("/advice").json["advice"]
    assert [(each["id"], each["about"]) for each in found] == [("EBB-205", "bcache0")]


def test_without_a_daemon_there_is_no_advice_on_a_knob_that_it_may_have_left(
    web: WebHarness,
) -> None:
    web.fake.write("/sys/block/bcache0/bcache/sequential_cutoff", "0")
    found = web.get("/advice").json
    assert not any("sequential_cutoff" in each["text"] + each["about"] for each in found["advice"])
    assert "bcache0" in {each["volume"] for each in found["unknown"]}


# ---- metrics, pages ----------------------------------------------------------------------------
OLDER_TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", OLDER_TEXT),
        ("text/plain", OLDER_TEXT),
        ("application/openmetrics-text", OPENMETRICS),
        (
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2",
            OPENMETRICS,
        ),
        ("application/openmetrics-text;q=0.1,text/plain;q=0.9", OLDER_TEXT),
        ("application/openmetrics-text;q=x", OLDER_TEXT),
    ],
)
def test_metrics_have_the_accepted_format(still: WebHarness, accept: str, kind: str) -> None:
    with still.daemon():
        answer = still.ask("GET", "/metrics", {"accept": accept})
    assert answer.status == 200
    assert answer.headers["content-type"] == kind
    assert b"ebbgate_up 1" in answer.body
    assert answer.body.endswith(b"# EOF\n") == kind.startswith("application")


def test_missing_pages_are_reported_at_the_root(still: WebHarness) -> None:
    answer = still.ask("GET", "/")
    assert answer.status == 404
    assert str(still.config.web.ui_dir) in answer.error["message"]


def test_pages_are_served_from_their_folder_only(tmp_path: Path) -> None:
    add_page(tmp_path)
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "ui/link").symlink_to(tmp_path / "secret")
    web = WebHarness(tmp_path)
    assert web.ask("GET", "/").body == b"the page"
    for path in ("/../secret", "/%2e%2e/secret", "/link", "/nothing.js", "//secret"):
        answer = web.ask("GET", path)
        assert answer.status == 404, path
        assert answer.body != b"secret"


# ---- a history of another version ---------------------------------------------------------------
def test_status_of_another_version_is_listed_and_hides_no_other(web: WebHarness) -> None:
    with closing(open_writer(web.config.history_path, HISTORY)) as connection:
        connection.execute("UPDATE live SET document = '{\"odd\": 1}' WHERE volume = 'bcache1'")
    said = web.get("/volumes").json
    assert said["unreadable"] == ["bcache1"]
    assert [each["volume"] for each in said["volumes"]] == ["bcache0", "vg-data2"]
    assert web.get("/volumes/bcache1").status == 503


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"history": 3, "probe": [], "policies": {}, "pid": "x"}']
)
def test_garbled_status_of_the_daemon_is_unknown(web: WebHarness, text: str) -> None:
    with closing(open_writer(web.config.history_path, HISTORY)) as connection:
        connection.execute("UPDATE live SET document = ? WHERE volume = ''", (text,))
    with web.daemon():
        daemon = web.get("/health").json["daemon"]
        assert (daemon["probe"], daemon["policies"], daemon["version"]) == (None, None, None)
        assert daemon["errors"] == []
        for path in ("/volumes", "/advice", "/doctor", "/policies"):
            assert web.get(path).status == 200
        assert web.ask("GET", "/metrics").status == 200

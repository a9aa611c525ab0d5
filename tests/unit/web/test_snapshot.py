# SPDX-License-Identifier: GPL-2.0-only
"""The last words of the daemon are put as the API says them once, and are the same everywhere."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from ebbgate.model.status import DAEMON
from ebbgate.store import rollup
from ebbgate.store.queries import LiveRow
from ebbgate.store.queries_web import WebHistory
from ebbgate.units import MINUTE_NS, NS_PER_S
from ebbgate.web.liveness import DaemonState
from ebbgate.web.snapshot import Snapshot, cached_statuses
from tests.unit.web.web_fixture import NOW_S, RIGHT, WebHarness


def _rows(web: WebHarness) -> list[LiveRow]:
    with closing(WebHistory.open(web.config.history_path)) as history:
        return history.live_rows()


def test_only_changed_statuses_are_encoded_again(web: WebHarness) -> None:
    rows = _rows(web)
    before = cached_statuses(rows, {})
    changed = [
        row._replace(text=row.text.replace('"regime"', '"regime" ')) if row.volume else row
        for row in rows[:2]
    ]
    later = cached_statuses([*changed, *rows[2:]], before)
    assert {name for name in later if later[name] is not before[name]} == {
        row.volume for row in changed if row.volume
    }
    assert set(cached_statuses(rows[1:], before)) == {row.volume for row in rows[1:]}


@pytest.mark.parametrize(("tick_s", "old_after_s"), [(0.25, 5), (1, 5), (2, 6), (10, 30)])
def test_a_status_is_old_after_three_ticks_at_the_earliest(
    web: WebHarness, tick_s: float, old_after_s: int
) -> None:
    rows = [row._replace(at_unix_ns=0) for row in _rows(web)]
    (own,) = (row for row in rows if row.volume == DAEMON)
    document = json.loads(own.text) | {"tick_ns": round(tick_s * NS_PER_S)}
    rows[rows.index(own)] = own._replace(text=json.dumps(document))
    statuses = cached_statuses(rows, {})

    def at(now_ns: int) -> Snapshot:
        return Snapshot(now_ns, statuses, {}, DaemonState(None, None, None), None)

    just, later = at(old_after_s * NS_PER_S), at(old_after_s * NS_PER_S + 1)
    assert (just.alive, later.alive) == (True, None)
    for snapshot, stale in ((just, False), (later, True)):
        volumes = json.loads(snapshot.volumes_json)["volumes"]
        assert [each["stale"] for each in volumes] == [stale] * 3
    assert just.content_key == at(0).content_key != later.content_key


def test_volume_is_equal_in_the_list_and_alone(web: WebHarness) -> None:
    with web.daemon():
        listed = web.get("/volumes").json["volumes"]
        assert len(listed) == 3
        for each in listed:
            assert web.get(f"/volumes/{each['volume']}").json == each


def test_settable_knobs_are_those_that_a_request_accepts(web: WebHarness) -> None:
    (volume,) = (row for row in _rows(web) if row.volume == "bcache0")
    document = json.loads(volume.text)
    knobs = {"cache_mode": {"value": "writeback", "original": None, "owner": "kernel"}}
    document["knobs"] = {**document["knobs"], **knobs}
    found = cached_statuses([volume._replace(text=json.dumps(document))], {})["bcache0"]
    assert found.steady_json is not None
    said = json.loads(found.steady_json)["knobs"]
    for name, knob in said.items():
        request = {"kind": "set", "volume": "bcache0", "args": {"knob": name, "value": "nonsense"}}
        with web.daemon():
            refused = web.post("/intents", request, **RIGHT).error["message"]
        # Of one that can be set only the value is refused.
        assert knob["settable"] == ("nonsense" in refused), (name, refused)
    assert said["sequential_cutoff"]["settable"]
    assert not said["cache_mode"]["settable"]


def test_age_is_that_of_the_snapshot(web: WebHarness) -> None:
    with web.daemon():
        first = {each["volume"]: each for each in web.get("/volumes").json["volumes"]}
        assert not any(each["stale"] for each in first.values())
        web.now_ns += 60 * NS_PER_S
        later = json.loads(web.api.databases.snapshot().volumes_json)["volumes"]
    for each in later:
        assert each["age_s"] == pytest.approx(first[each["volume"]]["age_s"] + 60)
        assert each["stale"]
        assert each["at_unix_s"] == first[each["volume"]]["at_unix_s"]


def test_a_status_that_becomes_old_is_news_once(web: WebHarness) -> None:
    """An open dashboard gets volumes only when their content has changed."""
    keys = []
    with web.daemon():
        for _ in range(4):
            keys.append(web.api.databases.snapshot().content_key)
            web.now_ns += 4 * NS_PER_S
    assert [keys[at] == keys[at + 1] for at in range(3)] == [True, False, True]


@pytest.mark.parametrize("window_s", [1, 300, 7200])
def test_hit_ratio_covers_all_samples(web_history: Path, window_s: int) -> None:
    until_ns = NOW_S * NS_PER_S
    since_ns = until_ns - window_s * NS_PER_S
    with closing(WebHistory.open(web_history / "history.db")) as history:
        for volume in ("bcache0", "bcache1", "vg-data2"):
            rows = history.rows(volume, since_ns, until_ns, MINUTE_NS)
            whole = rollup.hit_ratio(rollup.merge_paths(row["paths"] for row in rows))
            assert history.hit_ratio(volume, since_ns, until_ns) == whole

# SPDX-License-Identifier: GPL-2.0-only
"""The history keeps what happened, for readers that can change nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from threading import Barrier, Thread

import pytest

from ebbgate.errors import PermissionDenied, Unavailable
from ebbgate.model.decision import Gate, GateKind, Outcome, OutcomeKind
from ebbgate.model.frame import PathLatency, Rates
from ebbgate.model.promotion import Promotion
from ebbgate.model.records import Direction
from ebbgate.model.status import VolumeStatus
from ebbgate.model.volume import Mode
from ebbgate.store.connection import identity_of, open_reader, open_writer
from ebbgate.store.db import Store
from ebbgate.store.documents import SAMPLE_SPAN_NS, decision_document, to_json
from ebbgate.store.queries import History, Statuses, TimedStatus
from ebbgate.store.queries_web import WebHistory
from ebbgate.store.schema import HISTORY
from ebbgate.units import NS_PER_S
from tests.builders import action, decision, frame, proposal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "history.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store.open(path)
    yield opened
    opened.close()


def history(path: Path) -> History:
    return History.open(path)


def test_a_decision_is_stored_with_its_explanation_and_winners(store: Store, path: Path) -> None:
    gate = Gate(GateKind.PACED, 10 << 20)
    chosen = decision(
        proposal("idle_destage", gate=gate, reason="idle 410 ms"),
        proposal("stream_bypass", unsupported="no such knob"),
        gate=gate,
        gate_strategy="idle_destage",
    )
    number = store.add_decision(chosen, wall_ns=5)
    (found,) = history(path).decisions("bcache0", 10)
    assert (found["id"], found["at_unix_ns"], found["gate"]["kind"]) == (number, 5, "paced")
    winner, loser = found["proposals"]
    assert (winner["reason"], winner["wins"]) == ("idle 410 ms", ["gate"])
    assert (loser["unsupported"], loser["wins"]) == ("no such knob", [])
    assert winner["conditions"][0]["measured"] == "410 ms"


def test_the_newest_decisions_come_first_and_of_one_volume_only(store: Store, path: Path) -> None:
    for at in (1, 2, 3):
        store.add_decision(decision(), wall_ns=at)
    store.add_decision(decision(volume="bcache1"), wall_ns=9)
    assert [row["at_unix_ns"] for row in history(path).decisions("bcache0", 2)] == [3, 2]
    assert len(history(path).decisions(None, 10)) == 4


def test_outcomes_keep_the_knob_the_values_and_the_latency(store: Store, path: Path) -> None:
    number = store.add_decision(decision(), wall_ns=5)
    outcome = Outcome(action(), OutcomeKind.FAILED, at_ns=7, read_back="10", error="EIO")
    store.add_outcomes([outcome], number, 6, latency_ns=4_000_000)
    with closing(WebHistory.open(path)) as opened:
        (found,) = opened.actions_of([number])[number]
    assert (found["knob"], found["old"], found["new"]) == ("writeback_percent", "10", "40")
    assert (found["outcome"], found["error"], found["latency_ns"]) == ("failed", "EIO", 4_000_000)


def test_a_sample_keeps_unknown_apart_from_zero(store: Store, path: Path) -> None:
    known = frame(
        foreground={Direction.READ: Rates(10.0, 4096.0), Direction.WRITE: Rates(0.0, 0.0)},
        paths={
            (Direction.READ, "hit"): PathLatency(3, 12288, 1000, 2000),
            (Direction.READ, "miss"): PathLatency(1, 4096, 9000, 9000),
        },
        dirty_bytes=0,
    )
    store.add_samples([(known, 10), (frame(missing={"foreground": "no probe"}), 11)])
    first, second = history(path).samples("bcache0", 0, 100, SAMPLE_SPAN_NS)
    assert (first["read_iops"], first["write_iops"], first["dirty_bytes"]) == (10.0, 0.0, 0)
    assert first["hit_ratio"] == 0.75
    assert first["paths"] == {
        "read hit": [3, 12288, 1000, 2000],
        "read miss": [1, 4096, 9000, 9000],
    }
    assert (second["read_iops"], second["dirty_bytes"], second["hit_ratio"]) == (None, None, None)
    assert second["missing"] == {"foreground": "no probe"}


def test_samples_are_selected_by_time(store: Store, path: Path) -> None:
    store.add_samples([(frame(), at) for at in (1, 2, 3)])
    found = history(path).samples("bcache0", 2, 3, SAMPLE_SPAN_NS)
    assert [row["at_unix_ns"] for row in found] == [2]


def test_a_live_document_is_replaced_and_dropped(store: Store, path: Path) -> None:
    store.set_live("bcache0", {"mode": "advise"}, 1)
    store.set_live("bcache0", {"mode": "enforce"}, 2)
    reader = history(path)
    assert reader.live_rows() == [("bcache0", 2, '{"mode":"enforce"}')]
    assert reader.statuses().volumes["bcache0"] == TimedStatus(2, VolumeStatus(mode=Mode.ENFORCE))
    store.drop_live("bcache0")
    assert reader.statuses() == Statuses()


def test_a_batch_is_all_or_nothing(store: Store, path: Path) -> None:
    with pytest.raises(RuntimeError), store.batch():
        store.add_samples([(frame(), 1)])
        store.add_decision(decision(), 1)
        raise RuntimeError
    with store.batch():
        store.set_live("bcache0", {}, 1)
    assert history(path).decisions(None, 10) == []
    assert list(history(path).statuses().volumes) == ["bcache0"]


def test_threads_take_turns(store: Store, path: Path) -> None:
    def work(volume: str) -> None:
        for at in range(50):
            store.add_decision(decision(volume=volume), at)

    threads = [Thread(target=work, args=(f"bcache{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(history(path).decisions(None, 1000)) == 200


def test_programs_that_make_the_same_file_at_once_all_get_it(tmp_path: Path) -> None:
    for number in range(20):
        together, path = Barrier(4), tmp_path / f"{number}.db"

        def make(path: Path = path, together: Barrier = together) -> int:
            together.wait()
            with closing(open_writer(path, HISTORY)) as connection:
                return identity_of(connection)

        with ThreadPoolExecutor(4) as programs:
            found = {made.result() for made in [programs.submit(make) for _ in range(4)]}
        assert len(found) == 1 and found != {0}


def test_a_reader_cannot_write(store: Store, path: Path) -> None:
    with (
        closing(open_reader(path, HISTORY)) as connection,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        connection.execute("DELETE FROM decisions")


def test_only_root_and_the_group_may_read_the_file(store: Store, path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.parent.stat().st_mode & 0o007 == 0


def test_a_history_that_was_never_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"nothing was recorded yet[\s\S]*start the daemon"):
        History.open(tmp_path / "history.db")


def test_a_damaged_file_is_named_with_the_next_step(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(Unavailable, match=r"cannot be used: file is not a database[\s\S]*mv "):
        Store.open(path)


def test_a_file_in_place_of_the_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(Unavailable, match="state"):
        Store.open(tmp_path / "state" / "history.db")


def test_no_access_names_root(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(PermissionDenied, match="run this as root"):
        History.open(path)


def test_a_decisions_document_is_what_the_standard_library_makes_of_it() -> None:
    gate = Gate(GateKind.PACED, 10 << 20, queue_depth=7)
    chosen = decision(proposal(gate=gate), gate=gate, gate_strategy="idle_destage")
    document = decision_document(chosen)
    for found in document["proposals"]:
        assert found.pop("wins") == ["gate"]
    assert json.loads(to_json(document)) == json.loads(to_json(asdict(chosen)))


def test_what_a_decision_moves_is_kept_as_ranges() -> None:
    promotion = Promotion((9, 3, 4, 5, *range(100, 1000, 2)), 0.4)
    chosen = decision(
        proposal("promote_hot", promotion=promotion),
        promotion=promotion,
        promotion_strategy="promote_hot",
    )
    document = decision_document(chosen)
    assert document["promotion"]["mib"] == 454
    assert document["promotion"]["ranges"][:3] == [[3, 6], [9, 10], [100, 101]]
    assert len(to_json(document)) < 4000
    (only,) = document["proposals"]
    assert (only["wins"], only["promotion"]) == (["promotion"], None)


@pytest.mark.parametrize(("age_s", "fresh"), [(0, True), (4, True), (-1, True), (60, False)])
def test_a_status_is_recent_for_some_seconds(age_s: int, fresh: bool) -> None:
    assert TimedStatus(100 * NS_PER_S, VolumeStatus()).fresh((100 + age_s) * NS_PER_S) is fresh


def test_a_status_of_before_the_clock_was_set_back_is_not_recent() -> None:
    status = TimedStatus(1_795_780_800 * NS_PER_S, VolumeStatus())
    for seconds_later in (1_795_777_200, 60):
        assert not status.fresh(seconds_later * NS_PER_S)


def test_the_newest_decisions_are_those_made_last_though_the_clock_was_set_back(
    store: Store, path: Path
) -> None:
    for at_unix_ns in (1000, 2000, 60):
        store.add_decision(decision(), at_unix_ns)
    for volume in ("bcache0", None):
        found = history(path).decisions(volume, 2)
        assert [row["at_unix_ns"] for row in found] == [60, 2000]

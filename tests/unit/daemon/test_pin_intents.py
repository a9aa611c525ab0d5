# SPDX-License-Identifier: GPL-2.0-only
"""Files are pinned, touched, warmed again, and unpinned when they are gone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from ebbgate.daemon import pin_intents, pin_touches, warm_intents
from ebbgate.model.override import IntentKind
from ebbgate.model.pin import PinState
from ebbgate.text import SHOWN_MAX
from ebbgate.units import GIB, MIB
from tests.intent_fixture import MINUTE_NS, IntentHarness
from tests.on_loop_fixture import ON_LOOP, add_dm_on_loop
from tests.pin_fixture import BOTH, HANGS, OPENED, OTHER, PATH, FakeProcess, People

GONE: dict[str, Any] = {"event": "missing", "devno": [252, 0], "mount": "/srv"}


@pytest.fixture
def people(intents: IntentHarness, monkeypatch: pytest.MonkeyPatch) -> Iterator[People]:
    FakeProcess.made, FakeProcess.found = [], {}
    FakeProcess.touched = FakeProcess.reads = 100
    monkeypatch.setattr(warm_intents, "WarmProcess", FakeProcess)
    monkeypatch.setattr(pin_intents, "WarmProcess", FakeProcess)
    on = {(252, 0): ("bcache0",), (8, 1): (), ON_LOOP: ()}
    for module in (warm_intents, pin_intents):
        monkeypatch.setattr(
            module, "cached_volumes_below", lambda _sysfs, devno, _known: on[tuple(devno)]
        )
    intents.tick()
    yield People(intents)
    intents.run(intents.dispatcher.pins.stop())
    intents.run(intents.dispatcher.warm.stop())


def test_a_file_is_pinned_once_whatever_it_is_called(people: People) -> None:
    assert people.pin().ok
    again = people.pin("/srv/./a")
    assert (again.ok, "is the same file as /srv/a, which is pinned already" in again.outcome) == (
        False,
        True,
    )
    FakeProcess.found = {OTHER: {**OPENED, "generation": 8}}
    assert people.pin(OTHER).ok, "the same number, on another partition"


def test_a_pin_has_the_uuid_of_its_volume(people: People) -> None:
    loop = people.intents.volume.loop
    loop.volume = replace(loop.volume, backing_uuid="uuid-a")
    assert people.pin().ok
    (pin,) = people.intents.dispatcher.pins.registry.of("bcache0")
    assert pin.device_uuid == "uuid-a"


def test_a_long_path_is_shortened_in_the_status(people: People) -> None:
    path = "/" + "a" * 4000
    assert people.pin(path).ok
    assert len(people.pins[0].path) == SHOWN_MAX
    assert len(people.intents.volume.loop.jobs[0].target) == SHOWN_MAX
    assert people.unpin(path=path).ok


def test_a_file_is_pinned_warmed_and_touched(people: People) -> None:
    found = people.pin()
    assert (found.ok, found.outcome) == (
        True,
        "bcache0: /srv/a is pin 1, 8 MiB; job 2 warms it",
    )
    assert (people.state(), people.pins[0].who) == (PinState.WARMING, "jo")
    people.passes()
    assert people.touches == [], "it is touched while it is warmed"
    people.job_ends()
    people.passes()
    (status,) = people.pins
    assert (status.state, status.why, status.hit_ratio) == (PinState.HOT, "", 1.0)
    assert status.size_bytes == 8 * MIB
    assert status.touched_unix_ns == people.intents.clocks.wall_ns
    (command,) = people.touches
    assert (command["kind"], command["step"], command["rate"]) == ("bcache", 256 << 10, 500)
    people.passes(MINUTE_NS)
    assert len(people.touches) == 1
    people.passes(5 * MINUTE_NS)
    assert len(people.touches) == 2
    assert people.touches[0]["phase"] != people.touches[1]["phase"]


def test_touches_follow_what_is_written_to_the_cache(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = iter([0, 0, 0, 0, *[GIB] * 9])
    monkeypatch.setattr(pin_intents, "cache_written_bytes", lambda *_: next(written))
    people.pin()
    people.job_ends()
    people.passes()
    assert len(people.touches) == 1
    people.passes()
    assert len(people.touches) == 2


def test_what_falls_out_is_warmed_again_but_not_all_the_time(people: People) -> None:
    people.pin()
    people.job_ends()
    FakeProcess.touched = 90
    people.passes()
    (status,) = people.pins
    assert (status.state, status.hit_ratio) == (PinState.COLD, 0.9), status.why
    people.passes(6 * MINUTE_NS)
    (status,) = people.pins
    assert status.state is PinState.WARMING
    assert status.why == "10.0% of 100 touches were misses; job 3"
    assert [job.target for job in people.intents.volume.loop.jobs] == [PATH, PATH]


def test_a_round_that_misses_have_ended_is_continued(people: People) -> None:
    people.pin()
    people.job_ends()
    FakeProcess.touched, FakeProcess.reads = 3, 20
    for _ in range(3):
        people.passes(6 * MINUTE_NS)
        if people.state() is PinState.WARMING:
            people.job_ends()
    assert [each["first"] for each in people.touches[:3]] == [0, 20, 40 % 32]


def test_a_cancelled_warm_up_leaves_the_pin(people: People) -> None:
    people.pin()
    FakeProcess.touched = 0
    people.intents.ask(IntentKind.JOB, None, job=2, action="cancel")
    people.passes()
    assert (people.state(), people.pins[0].why) == (
        PinState.COLD,
        "100% of 100 touches were misses",
    )
    people.passes(6 * MINUTE_NS)
    assert people.state() is PinState.WARMING


@pytest.mark.parametrize("by", [{"pin": 1}, {"path": PATH}])
def test_a_pin_ends_by_number_or_path(people: People, by: dict[str, Any]) -> None:
    people.pin()
    assert people.unpin(**by).outcome == "bcache0: /srv/a is not pinned any more"
    assert people.pins == ()
    assert people.rows() == [(PATH, 5, 7, "jo unpinned it")]
    assert "is not pinned" in people.unpin(**by).outcome


def test_pins_survive_a_restart(people: People) -> None:
    people.pin()
    people.pin(OTHER)
    people.unpin(path="/srv/b")
    people.restart()
    people.passes()
    assert [pin.path for pin in people.pins] == [PATH]
    assert people.state() is PinState.HOT


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (GONE, "the file was deleted"),
        ({**OPENED, "inode": 6}, "the file was replaced"),
        ({**OPENED, "generation": 8}, "the file was replaced"),
    ],
)
def test_the_pin_of_a_file_that_is_gone_ends_once(
    people: People, event: dict[str, Any], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    people.pin()
    people.job_ends()
    FakeProcess.found = {PATH: event}
    caplog.set_level("INFO")
    people.passes(6 * MINUTE_NS)
    assert people.pins == ()
    assert people.rows() == [(PATH, 5, 7, why)]
    said = [record.getMessage() for record in caplog.records if "is over" in record.getMessage()]
    assert said.count(f"bcache0: pin 1 of /srv/a is over: {why}") == 1
    assert people.touches == []


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ({**GONE, "devno": [8, 1]}, "its file system may not be mounted"),
        ({**GONE, "mount": "/"}, "its file system may not be mounted on /srv"),
        ({**OPENED, "inode": 6, "mount": "/"}, "its file system may not be mounted on /srv"),
        ({**OPENED, "generation": 8, "mount": "/"}, "its file system may not be mounted on /srv"),
        ({**OPENED, "devno": [8, 1]}, "its file system may not be mounted"),
        ({"event": "failed", "text": "/srv/a cannot be opened"}, "cannot be opened"),
        ({}, "the reading process has ended"),
        (HANGS, "its file system may hang"),
    ],
)
def test_a_file_that_is_not_there_now_is_waited_for(
    people: People, event: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pin_touches, "_OPEN_S", 0.2)
    people.pin()
    people.job_ends()
    FakeProcess.found = {PATH: event}
    people.passes()
    assert people.state() is PinState.ABSENT
    assert why in people.pins[0].why
    FakeProcess.found = {}
    people.passes(6 * MINUTE_NS)
    assert people.state() is PinState.HOT


def test_a_file_that_hangs_is_tried_less_and_less_often(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time may leave a process behind, of which there is a bounded number."""
    monkeypatch.setattr(pin_touches, "_OPEN_S", 0.02)
    people.pin()
    people.job_ends()
    FakeProcess.found = {PATH: HANGS}
    before = len(FakeProcess.made)
    for _ in range(12):
        people.passes(5 * MINUTE_NS)
    assert len(FakeProcess.made) - before == 6
    monkeypatch.setattr(pin_touches, "_OPEN_S", 30.0)
    FakeProcess.found = {}
    people.passes(60 * MINUTE_NS)
    assert people.state() is PinState.HOT


def test_a_file_system_without_generations_has_the_inode_alone(people: People) -> None:
    FakeProcess.found = {PATH: {**OPENED, "generation": None}}
    people.pin()
    people.job_ends()
    FakeProcess.found = {PATH: {**OPENED, "generation": 9}}
    people.passes()
    assert people.state() is PinState.HOT


def test_no_more_than_a_quarter_of_the_cache_is_pinned(people: People) -> None:
    FakeProcess.found = {
        PATH: {**OPENED, "bytes": 200 * MIB},
        OTHER: {**BOTH[OTHER], "bytes": 8 << 30},
    }
    cache = people.intents.volume.loop.state.current_frame
    assert cache is not None
    refused = people.pin(OTHER)
    assert (refused.ok, "do not fit" in refused.outcome) == (False, True)
    people.pin()
    FakeProcess.found = {OTHER: {**BOTH[OTHER], "bytes": (cache.cache_bytes or 0) // 4 - 100 * MIB}}
    refused = people.pin(OTHER)
    assert "200 MiB of other pinned files are more than" in refused.outcome
    assert "unpin another file: ebbgate pins" in refused.outcome
    assert people.rows() == [(PATH, 5, 7, None)]


def test_a_file_that_grows_beyond_the_limit_is_not_touched_any_more(people: People) -> None:
    people.pin()
    people.job_ends()
    FakeProcess.found = {PATH: {**OPENED, "bytes": 8 << 30}}
    people.passes()
    assert people.state() is PinState.TOO_LARGE
    assert people.touches == []


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ({**OPENED, "bytes": 0}, "there is nothing to pin"),
        ({**OPENED, "devno": [8, 1]}, "is not on one cached volume"),
        (GONE, "No such file or directory"),
        (
            {"event": "failed", "text": "it is a folder", "hint": "name files"},
            "folder\n  name files",
        ),
        ({}, "the reading process has ended"),
    ],
)
def test_a_file_that_cannot_be_pinned_is_answered(
    people: People, event: dict[str, Any], why: str
) -> None:
    FakeProcess.found = {PATH: event}
    found = people.pin()
    assert (found.ok, why in found.outcome) == (False, True), found.outcome
    assert FakeProcess.made[0].ended
    assert people.rows() == []


def test_a_file_whose_place_on_a_loop_device_is_unknown_is_not_pinned(people: People) -> None:
    add_dm_on_loop(people.intents.volume.loop.writer.sysfs.root)
    FakeProcess.found = {PATH: {**OPENED, "devno": ON_LOOP}}
    found = people.pin()
    assert not found.ok
    assert found.outcome.startswith(f"{PATH} is on loop0, a loop device of /srv/image; ")


def test_a_file_is_pinned_once(people: People) -> None:
    people.pin()
    assert people.pin().outcome == "/srv/a is pinned already\n  it is pin 1"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("path", "srv"),
        ("path", "/a\x1b"),
        ("volume", ""),
        ("inode", -1),
        ("inode", "x"),
        ("generation", 1.5),
        ("mount", "srv"),
        ("who", "x" * 300),
        ("at_unix_ns", 0),
    ],
)
def test_an_invalid_row_is_set_aside_and_the_others_stay(
    people: People, column: str, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    people.pin()
    people.pin(OTHER)
    people.rows()
    with closing(sqlite3.connect(people.intents.path)) as connection:
        connection.execute(f"UPDATE pins SET {column} = ? WHERE id = 2", (value,))
        connection.commit()
    people.restart()
    people.passes()
    assert [pin.path for pin in people.pins] == [PATH]
    assert f"overrides.db: pin 2 is set aside: {column}" in caplog.text


def test_a_database_that_cannot_be_used_pins_nothing(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Callable[..., None]:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr("ebbgate.intents.pin_rows.add", fail)
    found = people.pin()
    assert (found.ok, "it cannot be saved" in found.outcome) == (False, True)
    assert people.pins == ()


def test_a_volume_that_goes_ends_its_process(people: People) -> None:
    people.pin()
    people.job_ends()
    people.passes()
    people.intents.daemon.volumes.clear()
    people.passes()
    assert all(process.ended for process in FakeProcess.made)


def test_a_pin_on_a_mount_that_cannot_be_displayed_survives_a_restart(people: People) -> None:
    FakeProcess.found = {PATH: {**OPENED, "mount": "/srv\x1b"}}
    people.pin()
    people.restart()
    people.passes()
    assert [pin.path for pin in people.pins] == [PATH]


def test_the_pin_of_a_file_that_is_mounted_elsewhere_goes_on_there(people: People) -> None:
    """An older release saw no bind mounts, so its pins have the mount above."""
    people.pin()
    people.job_ends()
    FakeProcess.found = {PATH: {**OPENED, "mount": "/srv/bound"}}
    people.passes()
    assert people.state() is PinState.HOT
    people.rows()
    people.restart()
    FakeProcess.found = {PATH: GONE}
    people.passes()
    assert people.pins[0].why == "its file system may not be mounted on /srv/bound"
    FakeProcess.found = {PATH: {**GONE, "mount": "/srv/bound"}}
    people.passes(6 * MINUTE_NS)
    assert people.rows() == [(PATH, 5, 7, "the file was deleted")]


def test_a_pin_on_a_mount_that_cannot_be_displayed_waits_for_it(people: People) -> None:
    FakeProcess.found = {PATH: {**OPENED, "mount": "/srv\x1b"}}
    people.pin()
    people.job_ends()
    FakeProcess.found = {PATH: {**GONE, "mount": "/"}}
    people.passes()
    assert people.pins[0].why == "its file system may not be mounted on /srv?"


def test_a_pin_of_an_older_release_ends_with_its_file(people: People) -> None:
    people.pin()
    people.job_ends()
    people.rows()
    with closing(sqlite3.connect(people.intents.path)) as connection:
        connection.execute("UPDATE pins SET mount = NULL")
        connection.commit()
    people.restart()
    FakeProcess.found = {PATH: GONE}
    people.passes()
    assert people.rows() == [(PATH, 5, 7, "the file was deleted")]

# SPDX-License-Identifier: GPL-2.0-only
"""overrides.db belongs to root, is durable, and tolerates invalid rows."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import PermissionDenied
from ebbgate.intents.database import OverrideDatabase
from ebbgate.intents.override_writer import OverrideWriter
from ebbgate.model.override import Override, OverrideKind
from ebbgate.model.volume import Mode
from ebbgate.units import NS_PER_S
from tests.intent_fixture import IntentHarness

AT_NS = 1_700_000_000 * NS_PER_S
DAY_NS = 24 * 3600 * NS_PER_S
GOOD = {
    "kind": "set",
    "volume": "bcache0",
    "knob": "writeback_percent",
    "value": "20",
    "who": "jo",
    "at_unix_ns": AT_NS,
    "until_unix_ns": AT_NS + DAY_NS,
}


def override(**changed: Any) -> Override:
    given: dict[str, Any] = {**GOOD, **changed}
    return Override(**{**given, "kind": OverrideKind(given["kind"])})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "overrides.db"


@pytest.fixture
def database(path: Path) -> Iterator[OverrideDatabase]:
    opened = OverrideDatabase.open(path)
    yield opened
    opened.close()


def write_by_hand(path: Path, **changed: Any) -> None:
    row = {**GOOD, **changed}
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            f"INSERT INTO overrides ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
            tuple(row.values()),
        )
        connection.commit()


def invalid(path: Path) -> list[str | None]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT invalid FROM overrides ORDER BY id").fetchall()
        return [row[0] for row in rows]


# ---- whose it is --------------------------------------------------------------------------------
def test_only_its_owner_may_open_it(path: Path) -> None:
    before = os.umask(0)
    try:
        with closing(OverrideDatabase.open(path)) as database:
            database.add((override(),))
            modes = {
                stat.S_IMODE(each.stat().st_mode)
                for each in path.parent.iterdir()
                if each.name.startswith("overrides.db")
            }
    finally:
        os.umask(before)
    assert modes == {0o600}


def test_a_file_that_was_opened_to_others_is_closed_again(path: Path) -> None:
    OverrideDatabase.open(path).close()
    path.chmod(0o666)
    OverrideDatabase.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")
def test_a_file_of_another_user_is_not_opened(path: Path) -> None:
    OverrideDatabase.open(path).close()
    os.chown(path, 64_321, -1)
    with pytest.raises(PermissionDenied, match="not a file that belongs to root"):
        OverrideDatabase.open(path)


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionDenied, match="not a file that belongs to root"):
        OverrideDatabase.open(path)
    assert not (tmp_path / "elsewhere").exists()


# ---- what is kept -------------------------------------------------------------------------------
def test_an_override_survives_a_restart_and_a_newer_one_replaces_it(path: Path) -> None:
    with closing(OverrideDatabase.open(path)) as database:
        (first,) = database.add((override(),))
        (second,) = database.add((override(value="30"),))
        (hold,) = database.add((override(kind="hold", knob="", value=""),))
    with closing(OverrideDatabase.open(path)) as database:
        assert database.load().overrides == (second, hold)
        database.reopen((first,))
        assert database.load().overrides == (first, hold)
        database.end({first.id: "its time is over", hold.id: "released"}, AT_NS)
        assert database.load().overrides == ()


def test_all_of_them_are_kept_or_none(path: Path, database: OverrideDatabase) -> None:
    broken = override(knob="sequential_cutoff", value=None)
    with pytest.raises(sqlite3.Error):
        database.add((override(), broken))
    assert database.load().overrides == ()


def test_modes_are_kept(path: Path, database: OverrideDatabase) -> None:
    database.set_mode("bcache0", Mode.ENFORCE, AT_NS)
    database.set_mode("vg-data", Mode.OBSERVE, AT_NS)
    database.set_mode("bcache0", Mode.ADVISE, AT_NS)
    assert database.load().modes == {"bcache0": Mode.ADVISE, "vg-data": Mode.OBSERVE}
    database.set_mode("vg-data", None, AT_NS)
    assert database.load().modes == {"bcache0": Mode.ADVISE}


def test_two_volumes_that_had_the_same_name_are_kept_apart(database: OverrideDatabase) -> None:
    (first,) = database.add((override(device_uuid="a"),))
    (second,) = database.add((override(value="30", device_uuid="b"),))
    assert database.load().overrides == (first, second)
    (newer,) = database.add((override(value="40", volume="bcache1", device_uuid="a"),))
    assert database.load().overrides == (second, newer), "the same volume under another name"
    for uuid, mode in (("a", Mode.ENFORCE), ("b", Mode.OBSERVE)):
        database.set_mode("bcache0", mode, AT_NS, uuid)
    assert database.load().modes == {"a": Mode.ENFORCE, "b": Mode.OBSERVE}
    database.set_mode("bcache0", None, AT_NS, "b")
    assert database.load().modes == {"a": Mode.ENFORCE}


def test_a_choice_for_a_volume_replaces_one_for_its_name(database: OverrideDatabase) -> None:
    database.add((override(),))
    database.set_mode("bcache0", Mode.ENFORCE, AT_NS)
    (kept,) = database.add((override(value="30", device_uuid="a"),))
    database.set_mode("bcache0", Mode.ADVISE, AT_NS, "a")
    found = database.load()
    assert (found.overrides, found.modes) == ((kept,), {"a": Mode.ADVISE})
    assert found.mode_volumes == {"a": "bcache0"}


def test_a_row_whose_place_is_taken_stays_and_the_others_move(database: OverrideDatabase) -> None:
    by_name, by_uuid, hold = database.add(
        (
            override(),
            override(volume="bcache1", device_uuid="a"),
            override(kind="hold", knob="", value=""),
        )
    )
    moved = [replace(each, device_uuid="a") for each in (by_name, hold)]
    database.place(moved, {})
    assert database.load().overrides == (by_name, by_uuid, moved[1])


def test_a_mode_by_the_name_goes_where_the_volume_has_one(database: OverrideDatabase) -> None:
    database.set_mode("bcache0", Mode.ENFORCE, AT_NS)
    database.set_mode("bcache1", Mode.OBSERVE, AT_NS, "a")
    database.place((), {"a": "bcache0"})
    found = database.load()
    assert (found.modes, found.mode_volumes) == ({"a": Mode.OBSERVE}, {"a": "bcache0"})


def test_ended_overrides_are_bounded(path: Path, database: OverrideDatabase) -> None:
    for _ in range(12):
        kept = database.add(
            [override(kind="hold", knob="", value="", volume=f"bcache{n}") for n in range(100)]
        )
        database.end({each.id: "over" for each in kept}, AT_NS)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM overrides").fetchone() == (1000,)


def test_overrides_that_are_only_replaced_are_bounded(
    path: Path, database: OverrideDatabase
) -> None:
    for _ in range(11):
        database.add([override(kind="hold", knob="", value="") for _ in range(100)])
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM overrides").fetchone() == (1000,)
    assert len(database.load().overrides) == 1


# ---- rows that make no sense --------------------------------------------------------------------
BAD: list[tuple[dict[str, Any], str]] = [
    ({"kind": "warm"}, "kind: unknown"),
    ({"kind": 7}, "kind: unknown"),
    ({"at_unix_ns": "yesterday"}, "at_unix_ns: not a whole number"),
    ({"at_unix_ns": 1.5}, "at_unix_ns: not a whole number"),
    ({"at_unix_ns": -5}, "at_unix_ns: not a time"),
    ({"at_unix_ns": (1 << 63) - 1}, "at_unix_ns: not a time"),
    ({"until_unix_ns": "9" * 4000}, "until_unix_ns: not a whole number"),
    ({"until_unix_ns": b"soon"}, "until_unix_ns: not a whole number"),
    ({"until_unix_ns": AT_NS}, "until_unix_ns: not within 30 days"),
    ({"until_unix_ns": AT_NS + 31 * DAY_NS}, "until_unix_ns: not within 30 days"),
    ({"kind": "drain", "knob": "", "value": "", "until_unix_ns": None}, "until_unix_ns: a drain"),
    ({"kind": "drain"}, "knob: a drain has none"),
    ({"kind": "hold"}, "knob: a hold has none"),
    ({"knob": "cache_mode", "value": "writeback"}, "knob: cannot be overridden"),
    ({"knob": "trigger_gc", "value": "1"}, "knob: cannot be overridden"),
    ({"knob": "x" * 300}, "knob: not 1 to 255 characters"),
    ({"knob": b"\xff\xfe"}, "knob: not a text"),
    ({"value": "much"}, "value: "),
    ({"value": "90"}, "value: "),
    ({"value": "20%"}, "value: not in the kernel's form"),
    ({"value": '{"a":' * 5000}, "value: not 1 to 255 characters"),
    ({"volume": ""}, "volume: not 1 to 255"),
    ({"volume": "b\x1b[31m"}, "volume: has an invalid character"),
    ({"volume": "b\ud7ff\u202e"}, "volume: has an invalid character"),
    ({"who": "x" * 300}, "who: not 1 to 256"),
    ({"kind": "manual", "knob": "nonsense"}, "knob: unknown"),
    ({"device_uuid": "x" * 300}, "device_uuid: not 1 to 255"),
    ({"device_uuid": b"a"}, "device_uuid: not a text"),
]


@pytest.mark.parametrize(("changed", "why"), BAD)
def test_an_invalid_row_is_set_aside_and_the_others_stay(
    path: Path, changed: dict[str, Any], why: str
) -> None:
    with closing(OverrideDatabase.open(path)) as database:
        good = database.add((override(volume="bcache1"),))
    write_by_hand(path, **changed)
    with closing(OverrideDatabase.open(path)) as database:
        found = database.load()
        assert found.overrides == good
        (report,) = found.set_aside
        assert report.startswith(f"overrides.db: override 2 is set aside: {why}")
        assert report.isprintable()
        assert database.load().set_aside == (), "reported once"
    marked = invalid(path)
    assert marked[0] is None
    assert str(marked[1]).startswith(why), "it stays in the file, with the reason"


def test_a_text_that_is_no_utf8_is_set_aside(path: Path) -> None:
    OverrideDatabase.open(path).close()
    write_by_hand(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE overrides SET volume = CAST(x'ff41' AS TEXT)")
        connection.commit()
    with closing(OverrideDatabase.open(path)) as database:
        assert "volume: has an invalid character" in database.load().set_aside[0]


def test_a_duplicate_override_is_set_aside(path: Path) -> None:
    OverrideDatabase.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP INDEX overrides_in_force")
    write_by_hand(path)
    write_by_hand(path, value="30")
    with closing(OverrideDatabase.open(path)) as database:
        found = database.load()
    assert [each.value for each in found.overrides] == ["20"]
    assert "there is another one for the same" in found.set_aside[0]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (("bcache0", "turbo"), "mode: unknown"),
        (("bcache0", 7), "mode: unknown"),
        (("\x1b", "advise"), "volume: has an invalid character"),
        ((b"\xff", "advise"), "volume: not a text"),
    ],
)
def test_an_invalid_mode_is_set_aside(path: Path, row: tuple[Any, Any], why: str) -> None:
    with closing(OverrideDatabase.open(path)) as database:
        database.set_mode("bcache1", Mode.ADVISE, AT_NS)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO modes (volume, mode, at_unix_ns) VALUES (?, ?, 1)", row)
        connection.commit()
    with closing(OverrideDatabase.open(path)) as database:
        found = database.load()
        assert found.modes == {"bcache1": Mode.ADVISE}
        assert why in found.set_aside[0]
        assert database.load().set_aside == ()
        database.set_mode("bcache0", Mode.ENFORCE, AT_NS)
        assert database.load().modes["bcache0"] is Mode.ENFORCE, "a new choice is a good row again"


def test_bad_rows_do_not_keep_a_daemon_from_starting(
    intents: IntentHarness, caplog: pytest.LogCaptureFixture
) -> None:
    assert intents.set("30")[0]
    intents.stop()
    for number, (changed, _) in enumerate(BAD):
        write_by_hand(intents.path, **{"volume": f"volume{number}", **changed})
    caplog.clear()
    intents.start()
    intents.poll()
    intents.poll()
    assert intents.percent() == "30"
    report = [r for r in caplog.records if "is set aside" in r.getMessage()]
    assert len(report) == len(BAD)
    caplog.clear()
    intents.start()
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR], "reported once"


# ---- files that make no sense -------------------------------------------------------------------
@pytest.mark.parametrize("spoil", ["nonsense", "another", "empty"])
def test_a_file_that_is_no_database_of_overrides_is_kept_aside(path: Path, spoil: str) -> None:
    if spoil == "another":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE overrides (id INTEGER PRIMARY KEY)")
            connection.execute("PRAGMA user_version = 1")
            connection.commit()
    else:
        path.write_bytes(b"nonsense" * 1000 if spoil == "nonsense" else b"")
    with closing(OverrideDatabase.open(path)) as database:
        assert len(database.add((override(),))) == 1
    assert path.with_name("overrides.db.damaged").exists() is (spoil != "empty")


def test_a_failure_is_logged_once_and_the_database_reopened(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = OverrideWriter(path)
    path.mkdir()
    for _ in range(3):
        failed = writer.submit(lambda database: database.load())
        assert "is not a file that belongs to root" in str(failed.exception(10))
    assert "overrides.db: " in writer.error
    path.rmdir()
    assert writer.submit(lambda database: database.load()).result(10).overrides == ()
    assert writer.error == ""
    assert [r.levelno for r in caplog.records] == [logging.ERROR, logging.WARNING]


def test_nothing_is_saved_in_a_file_that_was_removed(path: Path) -> None:
    writer = OverrideWriter(path)
    writer.submit(lambda database: database.set_mode("bcache0", Mode.OBSERVE, AT_NS)).result(10)
    away = path.with_name("away.db")
    path.rename(away)
    for _ in range(2):
        failed = writer.submit(lambda database: database.add((override(),))).exception(10)
        assert "was moved, deleted or replaced while ebbgated runs" in str(failed)
        assert "move it back, or restart ebbgated" in str(failed)
    assert "was moved" in writer.error
    away.replace(path)
    assert len(writer.submit(lambda database: database.add((override(),))).result(10)) == 1
    assert writer.error == ""
    with closing(OverrideDatabase.open(path)) as database:
        assert len(database.load().overrides) == 1

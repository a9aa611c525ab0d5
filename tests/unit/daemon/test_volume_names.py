# SPDX-License-Identifier: GPL-2.0-only
"""What people chose follows its volume when a boot gives the kernel's names to others."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.daemon.chosen_rows import place_all, stable_uuid
from ebbgate.daemon.daemon import Daemon
from ebbgate.intents.database import OverrideDatabase
from ebbgate.model.override import Override, OverrideKind
from ebbgate.model.pin import Pin
from ebbgate.model.volume import Mode
from ebbgate.store.schema import OVERRIDES
from tests.boot_fixture import AT_NS, HOLD, SET, A, B, Machine, choose, in_force, registered_again
from tests.builders import dm_volume, volume
from tests.fake_dm import CACHE_UUID


# ---- names that are swapped ---------------------------------------------------------------------
async def test_choices_follow_volumes_that_swap_their_names(boots: Machine) -> None:
    async with boots.boot(A, B) as daemon:
        await choose(daemon, SET, HOLD, bcache0=Mode.ENFORCE, bcache1=Mode.ADVISE)
        assert boots.logged() == []
    async with boots.boot(B, A) as daemon:
        assert in_force(daemon) == {
            "bcache0": (Mode.ADVISE, [OverrideKind.HOLD]),
            "bcache1": (Mode.ENFORCE, [OverrideKind.SET]),
        }
        assert daemon.volumes["bcache0"].frozen
        assert not daemon.volumes["bcache1"].frozen
        assert "bcache0: this volume was bcache1 before; what was chosen for it is in force:" in (
            "\n".join(boots.logged())
        )
        assert boots.rows("overrides") == [("bcache1", A), ("bcache0", B)]
        assert sorted(boots.rows("modes")) == [("bcache0", B), ("bcache1", A)]
    async with boots.boot(B, A) as daemon:
        assert in_force(daemon)["bcache1"] == (Mode.ENFORCE, [OverrideKind.SET])
        assert boots.logged() == [], "the names are on the disk"


async def test_a_value_of_somebody_else_follows_its_volume(boots: Machine) -> None:
    async with boots.boot(A, B) as daemon:
        manual = replace(SET, kind=OverrideKind.MANUAL, value="10")
        await daemon.overrides.keep((manual,))
    async with boots.boot(B, A) as daemon:
        manuals = {name: loop.writer.manual for name, loop in daemon.volumes.items()}
        assert manuals == {"bcache0": set(), "bcache1": {"writeback_percent"}}


async def test_names_that_are_swapped_under_a_running_daemon(boots: Machine) -> None:
    async with boots.boot(A, B) as daemon:
        await choose(daemon, SET, bcache0=Mode.ENFORCE)
        await registered_again(daemon, B, A)
        assert in_force(daemon) == {
            "bcache0": (Mode.OBSERVE, []),
            "bcache1": (Mode.ENFORCE, [OverrideKind.SET]),
        }


# ---- another volume under the name --------------------------------------------------------------
async def test_nothing_of_an_absent_volume_applies_to_another_one_of_its_name(
    boots: Machine,
) -> None:
    async with boots.boot(A) as daemon:
        await choose(daemon, SET, bcache0=Mode.ENFORCE)
    async with boots.boot(B) as daemon:
        assert in_force(daemon) == {"bcache0": (Mode.OBSERVE, [])}
        assert boots.logged() == [
            "bcache0: another volume had this name before; what was chosen for that one is not"
            " applied here: mode enforce, writeback_percent 20"
        ]
        # A choice for this one leaves the other one's as it is.
        await choose(daemon, replace(SET, value="30"), bcache0=Mode.ADVISE)
        assert [each.override.value for each in daemon.overrides.of("bcache0")] == ["30"]
    async with boots.boot(B, A) as daemon:
        assert in_force(daemon) == {
            "bcache0": (Mode.ADVISE, [OverrideKind.SET]),
            "bcache1": (Mode.ENFORCE, [OverrideKind.SET]),
        }
        values = {
            name: [each.override.value for each in daemon.overrides.of(name)]
            for name in daemon.volumes
        }
        assert values == {"bcache0": ["30"], "bcache1": ["20"]}


async def test_volumes_that_have_one_name_in_turn_have_their_own_choices(boots: Machine) -> None:
    async with boots.boot(A) as daemon:
        await choose(daemon, SET, bcache0=Mode.ENFORCE)
        await registered_again(daemon, B)
        await choose(daemon, replace(SET, value="30"), bcache0=Mode.ADVISE)
        for uuid, value, mode in ((A, "20", Mode.ENFORCE), (B, "30", Mode.ADVISE)):
            await registered_again(daemon, uuid)
            assert daemon.volumes["bcache0"].mode is mode
            assert [each.override.value for each in daemon.overrides.of("bcache0")] == [value]


async def test_a_release_ends_nothing_of_another_volume(boots: Machine) -> None:
    async with boots.boot(A) as daemon:
        await choose(daemon, SET)
    async with boots.boot(B) as daemon:
        daemon.overrides.end_all("bcache0", "jo released it")
    assert boots.rows("overrides") == [("bcache0", A)]


async def test_where_the_uuid_cannot_be_read_only_rows_without_one_apply(boots: Machine) -> None:
    async with boots.boot(A) as daemon:
        await choose(daemon, SET, bcache0=Mode.ENFORCE)
    async with boots.boot("") as daemon:
        assert in_force(daemon) == {"bcache0": (Mode.OBSERVE, [])}
        await choose(daemon, replace(HOLD, volume="bcache0"), bcache0=Mode.ADVISE)
    async with boots.boot("") as daemon:
        assert in_force(daemon) == {"bcache0": (Mode.ADVISE, [OverrideKind.HOLD])}


async def test_a_choice_stays_with_the_first_of_two_copies(boots: Machine) -> None:
    async with boots.boot(A) as daemon:
        await choose(daemon, SET, bcache0=Mode.ENFORCE)
    async with boots.boot(A, A) as daemon:
        assert [each.override.volume for each in daemon.overrides.of("bcache0")] == ["bcache0"]
        assert daemon.overrides.of("bcache1") == ()
        assert daemon.volumes["bcache0"].mode is Mode.ENFORCE


# ---- rows of older releases ---------------------------------------------------------------------
def write_as_before(path: Path) -> None:
    """A set value and a mode of bcache0, as a release without uuids stored them."""
    older = replace(OVERRIDES, migrations=OVERRIDES.migrations[:2])
    with closing(sqlite3.connect(path)) as connection:
        for statement in (*older.create, *(each for part in older.migrations for each in part)):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {older.version}")
        connection.execute(
            "INSERT INTO overrides (kind, volume, knob, value, who, at_unix_ns)"
            f" VALUES ('set', 'bcache0', 'writeback_percent', '20', 'jo', {AT_NS})"
        )
        connection.execute("INSERT INTO modes VALUES ('bcache0', 'enforce', 1, NULL)")
        connection.commit()


async def test_rows_of_an_older_release_go_by_the_name_and_get_the_uuid(boots: Machine) -> None:
    write_as_before(boots.state / "overrides.db")
    async with boots.boot(A) as daemon:
        assert in_force(daemon) == {"bcache0": (Mode.ENFORCE, [OverrideKind.SET])}
        assert boots.rows("overrides") == boots.rows("modes") == [("bcache0", A)]
        assert boots.logged() == []
    async with boots.boot(B, A) as daemon:
        assert in_force(daemon) == {
            "bcache0": (Mode.OBSERVE, []),
            "bcache1": (Mode.ENFORCE, [OverrideKind.SET]),
        }


async def test_rows_of_absent_volumes_keep_their_names(boots: Machine) -> None:
    write_as_before(boots.state / "overrides.db")
    async with boots.boot() as daemon:
        assert in_force(daemon) == {}
    assert boots.rows("overrides") == boots.rows("modes") == [("bcache0", "")]


async def test_a_row_with_the_uuid_counts_more_than_one_with_the_name(boots: Machine) -> None:
    write_as_before(boots.state / "overrides.db")
    with closing(OverrideDatabase.open(boots.state / "overrides.db")) as database:
        database.add((replace(SET, volume="bcache7", value="30", device_uuid=A),))
        database.set_mode("bcache7", Mode.ADVISE, AT_NS, A)
    for _ in range(2):
        async with boots.boot(A) as daemon:
            assert in_force(daemon) == {"bcache0": (Mode.ADVISE, [OverrideKind.SET])}
            (kept,) = daemon.overrides.of("bcache0")
            assert kept.override.value == "30"
    assert boots.rows("overrides") == boots.rows("modes") == [("bcache0", A)]


# ---- pins ---------------------------------------------------------------------------------------
async def looked_after(daemon: Daemon) -> None:
    """Three seconds: pins are read, given to their volumes, and stored."""
    for _ in range(3):
        daemon.intents.pins.poll()
        await daemon.intents.pins.settled()


@pytest.mark.parametrize("uuid", [A, ""])
async def test_a_pin_follows_its_volume(boots: Machine, uuid: str) -> None:
    async with boots.boot(A, B) as daemon:
        pin = Pin("bcache0", "/srv/a", 5, 7, "jo", AT_NS, device_uuid=uuid)
        await daemon.intents.pins.registry.load()
        await daemon.intents.pins.registry.add(pin)
        await looked_after(daemon)
    assert boots.rows("pins") == [("bcache0", A)]
    async with boots.boot(B, A) as daemon:
        await looked_after(daemon)
        found = daemon.intents.pins.registry
        assert ([each.path for each in found.of("bcache1")], found.of("bcache0")) == (
            ["/srv/a"],
            [],
        )
        assert boots.logged() == [
            "bcache1: this volume was bcache0 before; what was chosen for it is in force:"
            " pin 1, /srv/a"
        ]
    assert boots.rows("pins") == [("bcache1", A)]


# ---- what names a volume ------------------------------------------------------------------------
def test_a_renamed_dm_volume_keeps_its_choices() -> None:
    row = Override(OverrideKind.HOLD, "vg-old", "jo", AT_NS, id=1, device_uuid=CACHE_UUID)
    found = place_all([row], dm_volume(), {})
    assert found.moved == [replace(row, volume="vg-data")]
    assert found.followed == {"the hold": "vg-old"}


@pytest.mark.parametrize("uuid", ["", "x" * 300, "LVM-\x1b[31m"])
def test_a_dm_volume_without_a_usable_uuid_goes_by_its_name(uuid: str) -> None:
    mapping = dm_volume().mapping
    assert mapping is not None
    bare = replace(dm_volume(), mapping=replace(mapping, uuid=uuid))
    assert stable_uuid(bare) == ""
    row = Override(OverrideKind.HOLD, "vg-data", "jo", AT_NS, id=1)
    assert (place_all([row], bare, {}).moved, place_all([row], bare, {}).of_another) == ([], [])


def test_a_volume_has_the_uuid_of_its_backing_device_or_of_device_mapper() -> None:
    assert replace(volume(), backing_uuid=A).uuid == A
    assert dm_volume().uuid == CACHE_UUID

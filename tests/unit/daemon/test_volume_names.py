# SPDX-License-Identifier: GPL-2.0-only
"""What people chose follows its volume when a boot gives the kernel's names to others."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.config.settings import Config
from ebbgate.daemon.chosen_rows import place_all, stable_uuid
from ebbgate.daemon.daemon import Daemon
from ebbgate.intents.database import OverrideDatabase
from ebbgate.log_messages.volumes import OVERRIDES_FOLLOWED, OVERRIDES_OF_ANOTHER
from ebbgate.model.override import Override, OverrideKind
from ebbgate.model.pin import Pin
from ebbgate.model.volume import Mode
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten
from ebbgate.store.recorder import Recorder
from ebbgate.store.schema import OVERRIDES
from tests.builders import dm_volume, volume
from tests.fake_dm import CACHE_UUID
from tests.fake_sysfs import NO_DM, FakeSysfs, WatchedSysfs
from tests.volume_loop_fixture import DEADLINE_S

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
AT_NS = 1_700_000_000 * 10**9
SET = Override(OverrideKind.SET, "bcache0", "jo", AT_NS, None, "writeback_percent", "20")
HOLD = Override(OverrideKind.HOLD, "bcache1", "jo", AT_NS)


def machine(root: Path, *uuids: str) -> FakeSysfs:
    """bcache0, bcache1, ... whose backing devices have these uuids; empty: the kernel has none."""
    fake = FakeSysfs(root)
    for number, uuid in enumerate(uuids):
        disk, ssd, start = f"sd{number}", f"ssd{number}", 32 * number
        fake.disk(disk, f"8:{start}")
        fake.disk(ssd, f"8:{start + 16}", rotational=False)
        fake.bcache(
            f"bcache{number}",
            backing=disk,
            cache=ssd,
            devno=f"252:{number}",
            set_uuid=f"11111111-2222-3333-4444-{number:012}",
            files={"backing_dev_uuid": uuid},
        )
        if not uuid:
            fake.remove(f"/sys/block/bcache{number}/bcache/backing_dev_uuid")
    return fake


class Machine:
    """A machine that boots; the state of the daemon outlives a boot."""

    def __init__(self, folder: Path, log: pytest.LogCaptureFixture) -> None:
        self.state = folder / "state"
        self.state.mkdir()
        self._folder, self._log, self._boots = folder, log, 0

    @asynccontextmanager
    async def boot(self, *uuids: str, mode: Mode = Mode.OBSERVE) -> AsyncIterator[Daemon]:
        """A daemon on volumes with these uuids, in this mode unless a person chose another one."""
        self._boots += 1
        self._log.clear()
        here = self._folder / f"boot-{self._boots}"
        sysfs = WatchedSysfs(machine(here / "sys", *uuids).root, NO_DM)
        recorder, last = Recorder(self.state / "history.db"), LastWritten(here / "last-written")
        journal = JournalWriter(here / "journal.db", last)
        config = Config(
            *(self.state, here / "no-probe"),
            mode=mode,
            runtime_dir=here / "run",
            policy_dir=here / "policies.d",
        )
        daemon = Daemon(config, sysfs, recorder, journal, f"boot {self._boots}")
        try:
            await daemon.overrides.load()
            await daemon.volume_set.discover()
            await on_disk(daemon)
            yield daemon
            await on_disk(daemon)
        finally:
            await asyncio.to_thread(daemon.volume_set.release_all)
            daemon.overrides.writer.submit(OverrideDatabase.close).result(DEADLINE_S)
            for each in (recorder, journal):
                each.stop()
            last.close()

    def logged(self) -> list[str]:
        """What was logged on volumes with other names, in this boot."""
        ids = (OVERRIDES_FOLLOWED, OVERRIDES_OF_ANOTHER)
        return [each.getMessage() for each in self._log.records if each.msg in ids]

    def rows(self, table: str) -> list[tuple[str, str]]:
        """The name and the uuid of each row in force."""
        over = "" if table == "modes" else "AND ended_unix_ns IS NULL"
        with closing(sqlite3.connect(self.state / "overrides.db")) as connection:
            return connection.execute(
                f"SELECT volume, device_uuid FROM {table} WHERE invalid IS NULL {over} ORDER BY id"
            ).fetchall()


async def on_disk(daemon: Daemon) -> None:
    """All that was to be written is."""
    # What was begun is queued first, and is known to be done last.
    for _ in range(2):
        for _ in range(5):
            await asyncio.sleep(0)
        await asyncio.wrap_future(daemon.overrides.writer.submit(lambda database: None))


async def registered_again(daemon: Daemon, *uuids: str) -> None:
    """The daemon runs on, and bcache0, bcache1, ... are these volumes now."""
    for number, uuid in enumerate(uuids):
        here = f"/sys/block/bcache{number}/bcache/backing_dev_uuid"
        daemon.sysfs.locate(here).write_text(f"{uuid}\n")
    await daemon.volume_set.discover()


async def choose(daemon: Daemon, *overrides: Override, **modes: Mode) -> None:
    """A person asks for these."""
    registry = daemon.overrides
    registry.enforce(await registry.keep(overrides))
    for name, mode in modes.items():
        await registry.keep_mode(name, mode)
        daemon.volumes[name].set_mode(mode, "requested")


def in_force(daemon: Daemon) -> dict[str, tuple[Mode, list[OverrideKind]]]:
    return {
        name: (loop.mode, [each.override.kind for each in daemon.overrides.of(name)])
        for name, loop in daemon.volumes.items()
    }


@pytest.fixture
def boots(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Machine:
    caplog.set_level(logging.INFO)
    return Machine(tmp_path, caplog)


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

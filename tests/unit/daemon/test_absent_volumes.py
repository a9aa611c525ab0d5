# SPDX-License-Identifier: GPL-2.0-only
"""What is kept for a volume that is not here is listed, and can be dropped, all or nothing."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ebbgate.daemon.absent_volumes import Presence, absent_volumes, named_absent
from ebbgate.daemon.chosen_modes import ChosenModes
from ebbgate.daemon.chosen_rows import Followed
from ebbgate.daemon.daemon import Daemon
from ebbgate.errors import EbbgateError, Unavailable
from ebbgate.intents.database import OverrideDatabase
from ebbgate.model.override import IntentKind, Override, OverrideKind
from ebbgate.model.pin import Pin
from ebbgate.model.status import AbsentVolume, DaemonStatus, KeptChoice
from ebbgate.model.volume import Mode
from ebbgate.store.queries import History
from tests.boot_fixture import (
    AT_NS,
    HOLD,
    SET,
    A,
    B,
    Machine,
    choose,
    in_force,
    on_disk,
    registered_again,
)
from tests.builders import volume

C = "cccccccc-0000-4000-8000-000000000003"
PIN = Pin("bcache0", "/srv/a", 5, 7, "jo", AT_NS, device_uuid=A)
MANUAL = replace(SET, kind=OverrideKind.MANUAL, knob="sequential_cutoff", value="0")


async def listed(daemon: Daemon) -> tuple[AbsentVolume, ...] | None:
    """What the status has once the pins are read."""
    await daemon.intents.pins.registry.load()
    return daemon.intents.absent.volumes()


async def published(daemon: Daemon, boots: Machine) -> DaemonStatus:
    """The daemon's own status, as readers find it."""
    daemon.send_status()
    await asyncio.wrap_future(daemon.recorder.written())
    with closing(History.open(boots.state / "history.db")) as history:
        found = history.statuses().daemon
    assert found is not None
    return found.status


async def forget(daemon: Daemon, named: str) -> tuple[bool, str]:
    """A person asks for it."""
    _, outcome = daemon.intents.submit(IntentKind.FORGET, None, {"absent": named}, "jo")
    found = await outcome
    return found.ok, found.text


async def everything(daemon: Daemon) -> None:
    """A person chooses all that there is for bcache0."""
    await choose(daemon, SET, replace(HOLD, volume="bcache0"), bcache0=Mode.ENFORCE)
    await daemon.overrides.keep((MANUAL,))
    await daemon.intents.pins.registry.load()
    await daemon.intents.pins.registry.add(PIN)


# ---- what is listed -----------------------------------------------------------------------------
async def test_what_is_kept_for_another_volume_of_the_name_is_listed(boots: Machine) -> None:
    async with boots.boot(A) as daemon:
        await everything(daemon)
        assert await listed(daemon) == ()
    async with boots.boot(B) as daemon:
        (found,) = await listed(daemon) or ()
        assert (found.volume, found.uuid) == ("bcache0", A)
        assert found.why == "another volume has the name bcache0 now"
        assert [each.what for each in found.kept] == [
            "mode enforce",
            "writeback_percent 20",
            "the hold",
            "sequential_cutoff left alone",
            "pin 1, /srv/a",
        ]
        since = {each.what: each.since_unix_ns for each in found.kept}
        assert {since[each] for each in since if each != "mode enforce"} == {AT_NS}
        assert (since["mode enforce"] or 0) > AT_NS
    async with boots.boot(B, A) as daemon:
        assert await listed(daemon) == ()


async def test_the_status_of_the_daemon_has_the_first_of_them(boots: Machine) -> None:
    async with boots.boot() as daemon:
        daemon.send_status()
        daemon.overrides.chosen.modes = {f"vg-{number:02}": Mode.OBSERVE for number in range(40)}
        statuses = [await published(daemon, boots)]
        await listed(daemon)
        statuses.append(await published(daemon, boots))
    assert [each.absent_count for each in statuses] == [None, 40]
    assert statuses[0].absent is None, "the pins were not read yet"
    assert [each.volume for each in statuses[1].absent or ()] == [f"vg-{n:02}" for n in range(32)]


async def test_a_volume_without_its_cache_is_listed_as_that(boots: Machine) -> None:
    async with boots.boot(A) as daemon:
        await choose(daemon, SET)
        cache_set = daemon.sysfs.locate("/sys/block/bcache0/bcache/cache")
        cache_set.unlink()
        await daemon.volume_set.discover()
        (found,) = await listed(daemon) or ()
        assert found.why == "no cache is attached to it"
        assert (await forget(daemon, "bcache0"))[0]


async def test_a_choice_of_an_older_release_is_named_by_its_volume(boots: Machine) -> None:
    async with boots.boot() as daemon:
        await choose(daemon, replace(SET, volume="bcache7"))
        (found,) = await listed(daemon) or ()
        assert (found.volume, found.uuid, found.why) == ("bcache7", "", "it is not found")
        done = "bcache7: dropped writeback_percent 20"
        assert await forget(daemon, "bcache7") == (True, done)
        assert await listed(daemon) == ()


async def test_until_all_devices_were_looked_at_it_is_not_known(boots: Machine) -> None:
    async with boots.boot(A) as daemon:
        await choose(daemon, SET)
    async with boots.boot(B) as daemon:
        assert await listed(daemon)
        known, daemon.volume_set.presence = daemon.volume_set.presence, None
        assert await listed(daemon) is None
        ok, text = await forget(daemon, A)
        assert (ok, text.partition("\n")[0]) == (
            False,
            "it is not known yet which volumes are here",
        )
        daemon.volume_set.presence = known
        daemon.overrides.loaded = False
        assert await listed(daemon) is None


async def test_while_a_volume_is_put_together_anew_it_is_not_known(
    boots: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[AbsentVolume, ...] | None] = []
    async with boots.boot(A) as daemon:
        await choose(daemon, SET)
        await listed(daemon)
        dropped = daemon.recorder.drop_live

        def drop_live(name: str) -> None:
            seen.append(daemon.intents.absent.volumes())
            dropped(name)

        monkeypatch.setattr(daemon.recorder, "drop_live", drop_live)
        await registered_again(daemon, B)
        assert seen == [None]
        assert [each.uuid for each in await listed(daemon) or ()] == [A]


# ---- what is dropped ----------------------------------------------------------------------------
async def test_what_was_dropped_is_gone_for_good_and_from_the_log(boots: Machine) -> None:
    async with boots.boot(A) as daemon:
        await everything(daemon)
    async with boots.boot(B) as daemon:
        await choose(daemon, replace(SET, value="30"), bcache0=Mode.ADVISE)
        assert len(boots.logged()) == 1
        ok, text = await forget(daemon, A)
        assert (ok, text) == (
            True,
            f"bcache0 ({A}): dropped mode enforce, writeback_percent 20, the hold,"
            " sequential_cutoff left alone, pin 1, /srv/a",
        )
        assert await listed(daemon) == ()
        assert in_force(daemon) == {"bcache0": (Mode.ADVISE, [OverrideKind.SET])}
    for table in ("overrides", "modes"):
        assert boots.rows(table) == [("bcache0", B)]
    assert boots.rows("pins") == []
    async with boots.boot(B, A) as daemon:
        assert boots.logged() == []
        assert in_force(daemon) == {
            "bcache0": (Mode.ADVISE, [OverrideKind.SET]),
            "bcache1": (Mode.OBSERVE, []),
        }
        assert await listed(daemon) == ()


@pytest.mark.parametrize("named", ["bcache0", B])
async def test_a_volume_that_is_here_is_refused(boots: Machine, named: str) -> None:
    async with boots.boot(A) as daemon:
        await choose(daemon, SET)
    async with boots.boot(B) as daemon:
        ok, text = await forget(daemon, named)
        assert (ok, text.partition("\n")[0]) == (
            False,
            "bcache0 is here, so nothing of it is dropped",
        )
        # By the name a person may mean the other one.
        assert (f"ebbgate forget {A}" in text) == (named == "bcache0")
        assert len(await listed(daemon) or ()) == 1


async def test_of_several_volumes_that_had_the_name_the_uuids_are_told(boots: Machine) -> None:
    async with boots.boot(A) as daemon:
        await choose(daemon, SET)
    async with boots.boot(B) as daemon:
        await choose(daemon, SET)
    async with boots.boot() as daemon:
        ok, text = await forget(daemon, "bcache0")
        assert (ok, text) == (
            False,
            "bcache0 was the name of 2 volumes that are not here\n"
            f"  name one of them by its uuid: {A}, {B}",
        )
        assert (await forget(daemon, A))[0]
        assert (await forget(daemon, "bcache0"))[0], "only one is left"
        assert await listed(daemon) == ()


@pytest.mark.parametrize("named", ["bcache9", C, "x" * 255])
async def test_what_nothing_is_kept_for_is_told(boots: Machine, named: str) -> None:
    async with boots.boot(A) as daemon:
        ok, text = await forget(daemon, named)
    assert (ok, text.startswith(f"nothing is kept for a volume {named}")) == (False, True)


# ---- a disk that fails or is slow ---------------------------------------------------------------
async def test_nothing_is_dropped_if_the_disk_fails(
    boots: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with boots.boot(A) as daemon:
        await everything(daemon)
    async with boots.boot(B) as daemon:
        before = await listed(daemon)

        def full(*_: Any) -> None:
            raise Unavailable("the disk is full")

        monkeypatch.setattr(OverrideDatabase, "forget", full)
        ok, text = await forget(daemon, A)
        assert (ok, "the disk is full" in text) == (False, True)
        assert await listed(daemon) == before
        monkeypatch.undo()
        assert (await forget(daemon, A))[0]


async def test_a_volume_that_comes_while_the_disk_is_slow_gets_nothing(
    boots: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with boots.boot(A) as daemon:
        await choose(daemon, SET, bcache0=Mode.ENFORCE)
    async with boots.boot(B) as daemon:
        await listed(daemon)
        slow: Future[Any] = Future()
        submit = daemon.overrides.writer.submit
        monkeypatch.setattr(daemon.overrides.writer, "submit", lambda _: slow)
        dropping = asyncio.create_task(forget(daemon, A))
        await asyncio.sleep(0.01)
        monkeypatch.setattr(daemon.overrides.writer, "submit", submit)
        await registered_again(daemon, A)
        assert in_force(daemon) == {"bcache0": (Mode.OBSERVE, [])}
        slow.set_result(None)
        assert (await dropping)[0]
        assert in_force(daemon) == {"bcache0": (Mode.OBSERVE, [])}


async def test_a_mode_whose_uuid_is_not_on_the_disk_yet_is_dropped_there(boots: Machine) -> None:
    async with boots.boot() as daemon:
        await daemon.overrides.keep_mode("bcache0", Mode.ENFORCE)
        # As after a volume that was seen while the disk was full.
        daemon.overrides.chosen.place(replace(volume(), backing_uuid=A), {})
        assert (await forget(daemon, A))[0]
        await on_disk(daemon)
    assert boots.rows("modes") == []


# ---- what cannot be known -----------------------------------------------------------------------
def absent(row: Override, found: Presence) -> AbsentVolume:
    (only,) = absent_volumes(ChosenModes(), [row], [], {}, found)
    return only


def test_a_dm_volume_is_not_dropped_while_device_mapper_cannot_be_queried() -> None:
    blocked = Presence(dm_blocked="no permission")
    hidden = absent(replace(HOLD, volume="vg-data", device_uuid="LVM-1"), blocked)
    assert hidden.why == "device-mapper cannot be queried (no permission), so it may be here"
    with pytest.raises(Unavailable, match="it may be here"):
        named_absent([hidden], "LVM-1", {}, blocked)
    assert named_absent([hidden], "vg-data", {}, Presence()) is hidden
    bcache = absent(HOLD, blocked)
    assert named_absent([bcache], "bcache1", {}, blocked) is bcache


def test_a_volume_is_here_under_each_of_its_names() -> None:
    here: dict[str, Followed] = {"bcache0": SimpleNamespace(volume=volume())}
    rows = [replace(SET, device_uuid=volume().uuid), replace(SET, device_uuid="")]
    assert absent_volumes(ChosenModes(), rows, [PIN], here, Presence()) == (
        AbsentVolume(
            "bcache0",
            A,
            "another volume has the name bcache0 now",
            (KeptChoice("pin 0, /srv/a", AT_NS),),
        ),
    )


def test_no_control_character_of_a_name_is_told() -> None:
    with pytest.raises(EbbgateError) as caught:
        named_absent([], "a\x1b[31m\nb", {}, Presence())
    assert "\x1b" not in str(caught.value) and "\nb" not in str(caught.value)

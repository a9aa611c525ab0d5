# SPDX-License-Identifier: GPL-2.0-only
"""`restore` without a daemon takes every name of a volume, also of one that is gone."""

from __future__ import annotations

from contextlib import closing

import pytest

from ebbgate.intents.database import OverrideDatabase
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.model.override import Override, OverrideKind
from ebbgate.probes.dm_status import lvm_dm_name, lvm_name
from tests.builders import journal_entry
from tests.fake_dm import CACHE_UUID, FakeCache, FakeDm, fake_lvm
from tests.fake_sysfs import BACKING_FILES
from tests.unit.conftest import BOOT_ID, Cli

PERCENT = "/sys/block/bcache0/bcache/writeback_percent"
BCACHE_UUID = BACKING_FILES["backing_dev_uuid"]
GONE = "my--vg-my--data"


def add_dm(cli: Cli) -> FakeDm:
    dm = fake_lvm(cli.fake)
    cli.fake.sysfs = Sysfs(cli.fake.root, dm)
    return dm


def leave_dm(cli: Cli, volume: str = "vg-data") -> None:
    """What a killed daemon leaves of a dm-cache."""
    path = f"dm:{volume}/migration_threshold"
    values = {"path": path, "original": "2048", "last_written": "0"}
    cli.journal(journal_entry("migration_threshold", volume=volume, boot_id=BOOT_ID, **values))


def add_hold(cli: Cli, volume: str, uuid: str = "") -> None:
    with closing(OverrideDatabase.open(cli.state_dir / "overrides.db")) as database:
        database.add([Override(OverrideKind.HOLD, volume, "jo", 1, device_uuid=uuid)])


def held(cli: Cli) -> list[str]:
    with closing(OverrideDatabase.open(cli.state_dir / "overrides.db")) as database:
        return [each.volume for each in database.load().overrides]


DM_NAMES = (
    "vg-data",
    "vg/data",
    "/dev/vg/data",
    "/dev/mapper/vg-data",
    "dm-0",
    "/dev/dm-0",
    CACHE_UUID,
)


@pytest.mark.parametrize("name", DM_NAMES)
def test_every_name_of_a_dm_volume_restores_it_and_no_other(cli: Cli, name: str) -> None:
    dm = add_dm(cli)
    dm.devices[0].threshold = 0
    leave_dm(cli)
    leave_bcache(cli)
    add_hold(cli, "vg-data", CACHE_UUID)
    add_hold(cli, "bcache0", BCACHE_UUID)
    result = cli("restore", name)
    assert result.code == 0
    # Another process has written it.
    assert "vg-data migration_threshold 2048 restored" in " ".join(result.out.split())
    assert cli.journal() == ["writeback_percent"]
    assert held(cli) == ["bcache0"]


@pytest.mark.parametrize("name", ["bcache0", "/dev/bcache0", BCACHE_UUID])
def test_every_name_of_a_bcache_volume_restores_it(cli: Cli, name: str) -> None:
    leave_bcache(cli)
    add_hold(cli, "bcache0")
    result = cli("restore", name)
    assert (result.code, cli.fake.read(PERCENT)) == (0, "10")
    assert held(cli) == []


def leave_bcache(cli: Cli) -> None:
    cli.journal(journal_entry(boot_id=BOOT_ID, last_written="0"))
    cli.fake.write(PERCENT, "0")


@pytest.mark.parametrize(
    "name", [GONE, "my-vg/my-data", "/dev/my-vg/my-data", f"/dev/mapper/{GONE}"]
)
@pytest.mark.parametrize("allowed", [True, False])
def test_the_names_of_a_volume_that_is_gone_or_cannot_be_queried(
    cli: Cli, name: str, allowed: bool
) -> None:
    cli.fake.sysfs = Sysfs(cli.fake.root, FakeDm(allowed=allowed))
    leave_dm(cli, GONE)
    add_hold(cli, GONE)
    assert cli("restore", name).code == 0
    assert cli.journal() == []
    assert held(cli) == []


@pytest.mark.parametrize("name", ["bcache7", "vg/dta", "vdb", "/dev/mapper/vg-dta"])
def test_a_name_of_no_volume_is_an_error_while_originals_are_saved(cli: Cli, name: str) -> None:
    add_dm(cli)
    leave_dm(cli)
    leave_bcache(cli)
    add_hold(cli, "bcache0")
    result = cli("restore", name)
    assert result.code == 66
    assert f"no original of {name} is saved" in result.err
    assert "originals are saved of: bcache0, vg-data" in result.err
    assert (len(cli.journal()), held(cli)) == (2, ["bcache0"])


def test_a_volume_of_which_nothing_is_saved_needs_no_restore(cli: Cli) -> None:
    add_dm(cli)
    leave_bcache(cli)
    assert cli("restore", "vg/data").code == 0
    assert cli.journal() == ["writeback_percent"]


def test_the_override_of_a_volume_that_is_gone_ends(cli: Cli) -> None:
    leave_bcache(cli)
    add_hold(cli, GONE)
    assert cli("restore", "my-vg/my-data").code == 0
    assert held(cli) == []
    assert cli.journal() == ["writeback_percent"]


@pytest.mark.parametrize("name", ["vg/data", "my-vg/a-b-c"])
def test_a_name_of_lvm_and_its_name_in_device_mapper_lead_to_each_other(name: str) -> None:
    assert lvm_name(lvm_dm_name(name), FakeCache().uuid) == name


@pytest.mark.parametrize("name", ["bcache0", "vg-data", "bcache/by-label/vm", "/data", "vg/"])
def test_other_names_stay_as_they_are(name: str) -> None:
    assert lvm_dm_name(name) == name

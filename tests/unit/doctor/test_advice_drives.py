# SPDX-License-Identifier: GPL-2.0-only
"""Advice on single hard disks: a short queue in gaps, one left short, and the write cache."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbgate.doctor import report, unprivileged
from ebbgate.doctor.advice import advise
from ebbgate.doctor.model import Advice, DiskKind, Drive, Facts, Weight
from ebbgate.doctor.unprivileged import FreshStatus
from ebbgate.model.decision import Condition
from ebbgate.model.status import (
    DaemonStatus,
    FlowTotals,
    ProposalStatus,
    VolumeStatus,
    VolumeTotals,
)
from ebbgate.model.volume import DiskUsers, Kind
from ebbgate.policy.language.parse import parse
from ebbgate.probes import topology
from ebbgate.units import GIB, MIB, NS_PER_S
from tests.builders import device, dm_volume, live_status, volume
from tests.fake_sysfs import FakeSysfs, fake_multipath
from tests.unit.doctor.test_advice import SOUND, check_form

Queue = dict[str, Any]
SATA = Drive(sata=True, depth_settable=True)
CACHE_FILE = "/sys/block/sda/device/scsi_disk/0:0:0:0/cache_type"
CACHED = replace(SATA, cache_file=CACHE_FILE)
# 100 gaps of 2 to 4 s, 1000 of 2 to 4 ms, and a wait of 1 s.
GAPS = (*[0] * 11, 1000, *[0] * 9, 100)
MEASURED = VolumeStatus(
    wait_ns=NS_PER_S,
    dirty_bytes=GIB,
    totals=VolumeTotals(destage=FlowTotals(1600, 1600 * MIB), gap_counts=GAPS),
)
_ASKS = Condition("queue of the disks", "bfq, depth 32", "=", "bfq", holds=True)
ASKED = VolumeStatus(proposals=(ProposalStatus("idle_destage", conditions=(_ASKS,)),))
_PER_GAP = "1.6 GiB written back, with 100 gaps longer than 1 s: about 16 MiB for each"


def facts(drive: Drive = SATA, queue: Queue | None = None, **parts: Any) -> Facts:
    disk = replace(device("sda"), **(queue or {}))
    known: dict[str, Any] = {
        "volume": replace(volume(), backing=disk, disks=(disk,)),
        "state": SOUND,
        "disks": (disk,),
        "kinds": {"sda": DiskKind.SINGLE},
        "drives": {"sda": drive},
    }
    return Facts(**{**known, **parts})


def only(found: tuple[Advice, ...]) -> Advice:
    (one,) = found
    check_form(one)
    return one


def numbers(known: Facts) -> list[str]:
    return [each.id for each in advise(known)]


# ---- bfq and a short queue -----------------------------------------------------------------------
def test_a_short_queue_in_gaps_is_advised_as_a_policy_with_its_undo() -> None:
    found = only(advise(facts()))
    assert (found.id, found.about, found.weight) == ("EBB-105", "bcache0", Weight.NOTE)
    text, _, end = found.command.removeprefix("echo '").partition("' | sudo tee ")
    assert end == "/etc/ebbgate/policies.d/short-queue-bcache0.yaml"
    assert found.undo == f"sudo rm {end}"
    parsed = parse(text, end)
    assert parsed.document is not None
    assert not parsed.problems
    assert parsed.document.backing_scheduler == "bfq"


@pytest.mark.parametrize(
    ("dirty_bytes", "weight"), [(GIB, Weight.ADVICE), (MIB, Weight.NOTE), (None, Weight.NOTE)]
)
def test_a_short_queue_is_recommended_where_a_gap_leaves_dirty_data(
    dirty_bytes: int | None, weight: Weight
) -> None:
    found = only(advise(facts(status=replace(MEASURED, dirty_bytes=dirty_bytes))))
    assert found.weight is weight
    assert found.evidence.startswith(_PER_GAP)
    assert "in the lab" in found.effect


def test_the_wait_of_returning_requests_is_evidence() -> None:
    found = only(advise(facts(status=replace(MEASURED, disturbance_ns=3_000_000))))
    waited = "returning requests waited 3 ms longer after the last one"
    assert found.evidence == f"{_PER_GAP}; {waited}; 1 GiB dirty now"


def test_with_a_policy_of_ones_own_the_keys_are_named_and_no_file_is_written() -> None:
    found = only(advise(facts(status=replace(MEASURED, policy="nas"))))
    assert (found.command, found.undo) == ("", "")
    assert "Add to its policy nas: backing_scheduler: bfq" in found.text


def test_a_queue_that_is_short_already_needs_no_advice() -> None:
    assert advise(facts(status=ASKED)) == ()


def test_no_short_queue_is_advised_while_a_write_cache_spoils_it() -> None:
    found = {each.id: each for each in advise(facts(CACHED, status=MEASURED))}
    assert list(found) == ["EBB-105", "EBB-107"]
    assert found["EBB-105"].weight is Weight.NOTE
    assert "First switch the write cache of sda off" in found["EBB-105"].text


@pytest.mark.parametrize(
    "known",
    [
        facts(queue={"scheduler": "bfq"}),
        facts(replace(SATA, depth_settable=False)),
        facts(replace(SATA, users=DiskUsers(("bcache1",)))),
        facts(volume=volume(set_uuid=""), queue={"scheduler": "bfq"}),
        facts(volume=dm_volume()),
        facts(kinds={"sda": DiskKind.ARRAY}),
        facts(kinds={"sda": DiskKind.VIRTUAL}),
        facts(queue={"rotational": False}),
        facts(disks=(device("sda"), device("md0")), kinds={"sda": DiskKind.SINGLE}),
    ],
)
def test_other_disks_and_volumes_get_no_advice_on_a_short_queue(known: Facts) -> None:
    assert "EBB-105" not in numbers(known)


# ---- a queue left short --------------------------------------------------------------------------
def test_a_sata_disk_with_depth_1_has_lost_ncq() -> None:
    known = facts(queue={"queue_depth": 1, "scheduler": "bfq"})
    found = only(advise(known))
    assert (found.id, found.weight) == ("EBB-106", Weight.ADVICE)
    assert "switches NCQ off" in found.text
    assert found.command == "echo 31 | sudo tee /sys/block/sda/device/queue_depth"
    assert found.undo == "echo 1 | sudo tee /sys/block/sda/device/queue_depth"


@pytest.mark.parametrize(
    ("depth", "drive", "owned", "advised"),
    [
        (4, SATA, (), True),
        (1, replace(SATA, sata=False), (), True),
        (8, SATA, (), False),
        (4, SATA, ("queue_depth:sda",), False),
        # As usb-storage has it.
        (1, replace(SATA, depth_settable=False), (), False),
    ],
)
def test_a_short_queue_of_nobody_is_noted(
    depth: int, drive: Drive, owned: tuple[str, ...], advised: bool
) -> None:
    queue = {"queue_depth": depth, "scheduler": "bfq"}
    found = advise(facts(drive, queue, owned=frozenset(owned)))
    assert [(each.id, each.weight) for each in found] == [("EBB-106", Weight.NOTE)] * advised


# ---- the write cache -----------------------------------------------------------------------------
@pytest.mark.parametrize("of", [volume(), dm_volume()])
def test_a_write_cache_is_noted_with_its_trade_and_both_commands(of: Any) -> None:
    known = facts(CACHED, {"scheduler": "bfq"}, volume=of, status=MEASURED)
    found = only(tuple(each for each in advise(known) if each.about == "sda"))
    assert (found.id, found.weight) == ("EBB-107", Weight.NOTE)
    assert found.command == f'echo "write through" | sudo tee {CACHE_FILE}'
    assert found.undo == f'echo "write back" | sudo tee {CACHE_FILE}'
    assert "hdparm -W0 /dev/sda" in found.lasts
    assert found.keep.endswith('ATTR{device/scsi_disk/*/cache_type}="write through"')
    assert found.evidence.startswith(_PER_GAP)


def test_the_write_cache_of_a_name_with_a_slash_is_that_of_its_device() -> None:
    disk = replace(device("x!sda"), scheduler="bfq")
    known = facts(disks=(disk,), kinds={"x!sda": DiskKind.SINGLE}, drives={"x!sda": CACHED})
    found = next(each for each in advise(known) if each.id == "EBB-107")
    assert "hdparm -W0 /dev/x/sda" in found.lasts
    assert 'KERNEL=="x/sda"' in found.keep


@pytest.mark.parametrize(
    "known",
    [
        facts(queue={"scheduler": "bfq"}),
        facts(CACHED, queue={"rotational": False}),
        facts(CACHED, kinds={"sda": DiskKind.ARRAY}),
        facts(CACHED, volume=dm_volume(Kind.DM_WRITECACHE)),
    ],
)
def test_other_disks_get_no_advice_on_a_write_cache(known: Facts) -> None:
    assert "EBB-107" not in [each.id for each in advise(known)]


# ---- encryption ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kernel", "of", "noted"),
    [
        ("6.1.0-56-amd64", volume(), True),
        ("5.10.0-40-amd64", volume(), True),
        ("6.12.117+deb13-amd64", volume(), False),
        ("7.3.4-amd64", volume(), False),
        ("", volume(), False),
        ("6.1.0-56-amd64", volume(set_uuid=""), False),
        ("6.1.0-56-amd64", dm_volume(), False),
    ],
)
def test_encryption_that_loses_the_idle_class_is_noted(kernel: str, of: Any, noted: bool) -> None:
    known = facts(volume=of, encrypted=("luks-data",), kernel=kernel)
    found = [each for each in advise(known) if each.id == "EBB-110"]
    assert [(each.weight, each.text.split()[0]) for each in found] == (
        [(Weight.NOTE, "luks-data")] if noted else []
    )
    plain = facts(volume=of, kernel=kernel)
    assert "EBB-110" not in [each.id for each in advise(plain)]


def test_the_devices_of_dm_crypt_below_a_volume_are_found(tmp_path: Path) -> None:
    fake = FakeSysfs(tmp_path)
    fake.disk("sda", "8:0")
    for name, devno, below, uuid in (
        ("dm-0", "253:0", "sda", "CRYPT-INTEGRITY-checked"),
        ("dm-1", "253:1", "dm-0", "CRYPT-LUKS2-1c6b9d42-luks-data"),
        ("dm-2", "253:2", "dm-1", "LVM-qMVgCDUlZsA4"),
    ):
        fake.disk(name, devno, scheduler="none", queue_depth=None)
        fake.write(f"/sys/block/{name}/dm/uuid", uuid)
        fake.write(f"/sys/block/{name}/dm/name", f"name-of-{name}")
        fake.link(f"/sys/class/block/{name}/slaves/{below}", f"/sys/block/{below}")
    fake.bcache(backing="dm-2", cache=None)
    (found,) = topology.discover(fake.sysfs)
    known = report.facts(fake.sysfs, found, SOUND, {}, MEASURED)
    assert known.encrypted == ("name-of-dm-1",)
    assert known.kernel == os.uname().release


# ---- multipath -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("schedulers", "advised"), [("[mq-deadline] none", []), ("[none] mq-deadline", ["dm-0"])]
)
def test_the_scheduler_of_a_multipath_device_counts_not_those_of_its_paths(
    tmp_path: Path, schedulers: str, advised: list[str]
) -> None:
    fake = FakeSysfs(tmp_path)
    fake.disk("dm-0", "253:0", scheduler=schedulers, queue_depth=None)
    fake.write("/sys/block/dm-0/dm/uuid", "mpath-35000c500a1b2c3d4")
    for name, devno in (("sda", "8:0"), ("sdb", "8:16")):
        fake.disk(name, devno, scheduler="[none] mq-deadline")
        fake.write(f"/sys/block/{name}/device/vendor", "SEAGATE")
        fake.link(f"/sys/class/block/dm-0/slaves/{name}", f"/sys/block/{name}")
    fake.bcache(backing="dm-0", cache=None)
    (found,) = topology.discover(fake.sysfs)
    known = report.facts(fake.sysfs, found, SOUND, {}, MEASURED)
    of_schedulers = [each for each in advise(known) if each.id in ("EBB-101", "EBB-105")]
    assert [each.about for each in of_schedulers] == advised
    for each in of_schedulers:
        assert each.command.endswith("sudo tee /sys/block/dm-0/queue/scheduler")
        check_form(each)


def test_paths_are_no_disks_of_their_own(tmp_path: Path) -> None:
    fake = fake_multipath(tmp_path)
    fake.bcache(backing="dm-0", cache="sdc")
    (found,) = topology.discover(fake.sysfs)
    known = report.facts(fake.sysfs, found, SOUND, {}, MEASURED)
    assert not known.several_disks
    (stacked,) = (each for each in advise(known) if each.id == "EBB-104")
    assert stacked.text == (
        "dm-0 has the paths sda, sdb. The I/O scheduler is a setting of dm-0, the queue depth one"
        " of each path; ebbgate paces write-back to dm-0 as a whole."
    )


# ---- shared disks --------------------------------------------------------------------------------
HOME = DiskUsers((), ("sda2 (ext4 on /)",))


def test_other_users_of_the_disk_are_named_before_the_queue_is_short() -> None:
    found = only(advise(facts(replace(SATA, users=HOME))))
    assert found.id == "EBB-105"
    assert "sda also serves sda2 (ext4 on /)" in found.text


@pytest.mark.parametrize(
    ("users", "says"),
    [
        (HOME, "sda also serves sda2 (ext4 on /). In gaps of bcache0 it shares"),
        (DiskUsers(("bcache1",)), "sda is below bcache1, too"),
    ],
)
def test_who_shares_a_disk_with_a_short_queue_is_named(users: DiskUsers, says: str) -> None:
    bfq = {"scheduler": "bfq"}
    found = only(advise(facts(replace(SATA, users=users), bfq, status=ASKED)))
    assert (found.id, found.weight) == ("EBB-108", Weight.NOTE)
    assert says in found.text


# ---- from sysfs ----------------------------------------------------------------------------------
@pytest.fixture
def shared(tmp_path: Path) -> FakeSysfs:
    """Two volumes on partitions of a SATA disk with its write cache on."""
    fake = FakeSysfs(tmp_path / "sys")
    fake.disk("sda", "8:0", scheduler="mq-deadline [bfq]", queue_depth=4)
    fake.write("/sys/block/sda/device/vendor", "ATA     ")
    fake.write("/sys/block/sda/device/model", "ST4000DM000")
    fake.write(CACHE_FILE, "write back")
    fake.disk("sdb", "8:16", rotational=False)
    for number in (1, 2):
        fake.partition("sda", f"sda{number}", f"8:{number}")
        name, uuid = f"bcache{number - 1}", f"{number}" * 8 + "-2222-3333-4444-555555555555"
        fake.bcache(name, backing=f"sda{number}", devno=f"252:{number}", cache=None)
        fake.link(f"/sys/block/sda/sda{number}/bcache/cache", f"/sys/fs/bcache/{uuid}")
        fake.write(f"/sys/fs/bcache/{uuid}/bucket_size", "512.0k")
    return fake


def test_a_disk_of_several_volumes_has_its_advice_once_and_names_them(shared: FakeSysfs) -> None:
    live = {name: live_status(volume=name, knobs={}) for name in ("bcache0", "bcache1")}
    rows = unprivileged.advice(shared.sysfs, FreshStatus(DaemonStatus(), live))["advice"]
    found = [(row["id"], row["volume"]) for row in rows if row["about"] == "sda"]
    assert found == [("EBB-106", "bcache0"), ("EBB-107", "bcache0")]
    assert all("sda is below bcache1, too." in row["text"] for row in rows if row["about"] == "sda")
    (depth,) = (row for row in rows if row["id"] == "EBB-106")
    assert depth["command"] == "echo 31 | sudo tee /sys/block/sda/device/queue_depth"
    assert depth["undo"] == "echo 4 | sudo tee /sys/block/sda/device/queue_depth"


def test_a_cache_that_is_off_and_a_depth_that_cannot_be_set_give_no_advice(
    shared: FakeSysfs,
) -> None:
    shared.write(CACHE_FILE, "write through")
    shared.sysfs.locate("/sys/block/sda/device/queue_depth").chmod(0o444)
    rows = unprivileged.advice(shared.sysfs, FreshStatus())["advice"]
    assert [row for row in rows if row["about"] == "sda"] == []


def test_a_cache_on_a_partition_of_a_hard_disk_is_named_by_its_disk(tmp_path: Path) -> None:
    fake = FakeSysfs(tmp_path / "sys")
    fake.disk("sda", "8:0", rotational=False)
    fake.disk("sdb", "8:16")
    fake.partition("sdb", "sdb1", "8:17")
    for disk in ("sda", "sdb"):
        fake.write(f"/sys/block/{disk}/device/vendor", "ATA     ")
    fake.bcache(backing="sda", cache="sdb1")
    rows = unprivileged.advice(fake.sysfs, FreshStatus())["advice"]
    (slow,) = (row for row in rows if row["id"] == "EBB-111")
    assert slow["about"] == "sdb"
    assert "what is behind it (sda) does not" in slow["text"]

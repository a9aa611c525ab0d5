# SPDX-License-Identifier: GPL-2.0-only
"""Advice on bfq for dm-cache on hard disks below which the kernel throttles writes."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbgate.doctor import unprivileged
from ebbgate.doctor.advice import advise
from ebbgate.doctor.model import Advice, DiskKind, Drive, Facts, Weight
from ebbgate.doctor.unprivileged import FreshStatus
from ebbgate.model.status import VolumeStatus
from ebbgate.model.volume import DiskUsers, Kind
from ebbgate.policy.language.parse import parse
from tests.builders import device, dm_volume
from tests.fake_dm import lvm_disks, lvm_machine
from tests.unit.doctor.test_advice import check_form
from tests.unit.doctor.test_advice_drives import (
    CACHED,
    GAPS,
    MEASURED,
    SATA,
    Queue,
    facts,
    numbers,
)

# As MEASURED, and one gap of 8 to 17 s.
LONG_GAPS = replace(MEASURED.totals, gap_counts=(*GAPS, 0, 1))


def throttled_facts(drive: Drive = SATA, queue: Queue | None = None, **parts: Any) -> Facts:
    """LVM's vg/data on a disk with mq-deadline, below which writes are throttled."""
    disk = replace(device("sda"), **{"wbt_lat_usec": 75000, **(queue or {})})
    status = replace(MEASURED, totals=LONG_GAPS)
    known = {"volume": dm_volume(), "disks": (disk,), "status": status}
    return facts(drive, **{**known, **parts})


def throttling(known: Facts) -> Advice:
    """Return the advice on it: a volume of dm-cache has others, too."""
    (found,) = (each for each in advise(known) if each.id == "EBB-112")
    check_form(found)
    return found


def test_bfq_is_advised_where_long_gaps_are_throttled() -> None:
    found = throttling(throttled_facts())
    assert (found.about, found.weight) == ("vg/data", Weight.ADVICE)
    text, _, end = found.command.removeprefix("echo '").partition("' | sudo tee ")
    assert end == "/etc/ebbgate/policies.d/short-queue-vg-data.yaml"
    parsed = parse(text, end)
    assert parsed.document is not None and not parsed.problems
    assert parsed.document.backing_scheduler == "bfq"
    assert found.undo == f"sudo rm {end}"


def test_as_long_as_no_gap_was_measured_it_is_a_note() -> None:
    assert throttling(throttled_facts(status=VolumeStatus())).weight is Weight.NOTE


def test_a_write_cache_spoils_it() -> None:
    found = throttling(throttled_facts(CACHED))
    assert found.weight is Weight.NOTE
    assert "First switch the write cache of sda off" in found.text


@pytest.mark.parametrize(
    "known",
    [
        throttled_facts(status=MEASURED),
        throttled_facts(queue={"wbt_lat_usec": 0}),
        throttled_facts(queue={"wbt_lat_usec": None}),
        throttled_facts(queue={"scheduler": "bfq"}),
        throttled_facts(queue={"scheduler": "none"}),
        throttled_facts(queue={"rotational": False}),
        throttled_facts(replace(SATA, users=DiskUsers(("bcache1",)))),
        throttled_facts(kinds={"sda": DiskKind.ARRAY}),
        throttled_facts(volume=dm_volume(Kind.DM_WRITECACHE)),
        facts(queue={"wbt_lat_usec": 75000}),
    ],
)
def test_others_have_no_throttling_to_be_rid_of(known: Facts) -> None:
    assert "EBB-112" not in numbers(known)


@pytest.mark.parametrize(("wbt_lat_usec", "advised"), [("75000", 1), ("0", 0)])
def test_the_disk_below_a_logical_volume_is_found(
    tmp_path: Path, wbt_lat_usec: str, advised: int
) -> None:
    fake = lvm_disks(tmp_path)
    fake.disk("sda", "8:0")
    fake.write("/sys/block/sda/device/vendor", "ATA     ")
    fake.write("/sys/block/sda/device/model", "ST4000DM000")
    fake.write("/sys/block/sda/queue/wbt_lat_usec", wbt_lat_usec)
    sysfs, _ = lvm_machine(fake)
    # It lies on a SATA disk, not on a virtual one.
    shutil.rmtree(fake.sysfs.locate("/sys/block/dm-4/slaves/vda"))
    fake.write("/sys/block/dm-4/slaves/sda/dev", "")
    rows = unprivileged.advice(sysfs, FreshStatus())["advice"]
    found = [row["text"] for row in rows if row["id"] == "EBB-112"]
    assert len(found) == advised
    assert all("lets 12 blocks at once go to sda" in text for text in found)

# SPDX-License-Identifier: GPL-2.0-only
"""Volumes of device-mapper in the lab are made as requested, and unclean ones are noticed."""

from __future__ import annotations

import pytest

from tests.lab import fio
from tests.lab.devices import MIB
from tests.lab.dm_stack import DmCacheStack, DmStack, DmWritecacheStack, Options
from tests.lab.dm_status import cache_status, writecache_status
from tests.lab.errors import LabError, UncleanStack
from tests.lab.session import Session

_STATUS = (
    "vg-data: 0 4186112 cache 8 27/2048 128 31/8064 1 2 3 4 5 6 7 2 metadata2 writeback "
    "2 migration_threshold 2048 mq 2 random_threshold 9 rw -"
)
_CACHES = [
    (True, False),
    pytest.param(True, True, marks=pytest.mark.full),
    pytest.param(False, False, marks=pytest.mark.full),
]


def test_a_status_line_is_read_by_its_counts() -> None:
    status = cache_status(_STATUS)
    assert (status.metadata_used, status.metadata_total) == (27, 2048)
    assert (status.block_bytes, status.used, status.total) == (65536, 31, 8064)
    assert (status.read_hits, status.write_misses) == (1, 4)
    assert (status.demotions, status.promotions, status.dirty) == (5, 6, 7)
    assert (status.mode, status.policy) == ("writeback", "mq")
    assert status.core == {"migration_threshold": 2048}
    assert status.policy_arguments == {"random_threshold": 9}
    assert not status.read_only
    assert not status.needs_check


def test_a_cache_that_needs_a_check_or_has_failed_is_reported() -> None:
    assert cache_status(_STATUS.replace("rw -", "ro needs_check")).needs_check
    with pytest.raises(LabError, match="no working cache"):
        cache_status("vg-data: 0 4186112 cache Fail")
    with pytest.raises(LabError, match="no working writecache"):
        writecache_status("vg-data: 0 4186112 linear")


@pytest.mark.parametrize(("lvm", "cachepool"), _CACHES)
def test_a_cache_is_made_as_requested_and_removed_clean(
    guest: Session, lvm: bool, cachepool: bool
) -> None:
    with DmCacheStack(guest, lvm=lvm, cachepool=cachepool) as stack:
        assert stack.status().mode == "writeback"
        assert stack.status().policy in ("smq", "mq")
        stack.threshold = 0
        job = fio.Job(stack.device, "write", "64k", options={"size": "8m"})
        assert fio.run(guest, job, seed=1).only.write.bytes == 8 * MIB
        assert stack.dirty_bytes() == 8 * MIB
        stack.threshold = int(stack.originals["migration_threshold"])
    assert guest.run(["dmsetup", "info", stack.name]).rc != 0


@pytest.mark.full
@pytest.mark.parametrize("lvm", [True, False])
def test_a_writecache_is_made_and_drains(guest: Session, lvm: bool) -> None:
    with DmWritecacheStack(guest, lvm=lvm, cache_bytes=128 * MIB) as stack:
        job = fio.Job(stack.device, "randwrite", "4k", options={"size": "8m"})
        fio.run(guest, job, seed=2)
        assert stack.dirty_bytes() == 8 * MIB
        stack.drain()
        assert stack.status().error == 0


@pytest.mark.full
def test_leaving_a_cache_names_a_threshold_that_was_not_put_back(guest: Session) -> None:
    with (
        pytest.raises(UncleanStack, match="knob migration_threshold: 2048 -> 256"),
        DmCacheStack(guest) as stack,
    ):
        stack.threshold = 256


@pytest.mark.full
def test_settings_are_the_originals_and_a_declared_change_may_stay(guest: Session) -> None:
    settings = {"migration_threshold": 512, "volume:queue/max_sectors_kb": 64}
    with DmCacheStack(guest, lvm=False, settings=settings) as stack:
        assert stack.threshold == 512
        stack.set_knob("volume:queue/max_sectors_kb", 32)
        assert stack.changed_knobs() == {"volume:queue/max_sectors_kb": ("64", "32")}
        stack.expect_changed("volume:queue/max_sectors_kb")


def test_a_device_that_was_left_on_a_disk_is_named_and_removed(guest: Session) -> None:
    with (
        pytest.raises(UncleanStack, match="left over: stray"),
        DmCacheStack(guest, lvm=False) as stack,
    ):
        table = f"0 8 linear {stack.device} 0"
        guest.check(["dmsetup", "create", "--noudevsync", "stray", "--table", table])
    assert guest.run(["dmsetup", "info", "stray"]).rc != 0


def test_metadata_that_is_damaged_is_found(guest: Session) -> None:
    with (
        pytest.raises(UncleanStack, match="cache_check: exit"),
        DmCacheStack(guest, lvm=False) as stack,
    ):
        stack.expect_changed("mode", "policy", "migration_threshold", "read_only", "needs_check")
        damage(guest, stack)


def damage(guest: Session, stack: DmStack) -> None:
    """Overwrite the superblock of the metadata once the cache has closed it."""
    guest.check(["dmsetup", "remove", "--noudevsync", stack.name])
    guest.write("/dev/mapper/vg-cmeta", "x" * 4096)


@pytest.mark.full
@pytest.mark.parametrize("options", [Options(), Options(lvm=False)])
def test_each_part_of_a_stack_has_its_device(guest: Session, options: Options) -> None:
    with DmCacheStack(guest, **options) as stack:
        parts = [stack.dev_t(part) for part in ("volume", "origin", "cache", "metadata")]
        assert len(set(parts)) == 4
        bare = stack.dev_t("origin") == stack.dev_t("hdd")
        assert bare is not stack.lvm
        assert stack.dev_t("volume") == guest.read(f"/sys/block/{stack.volume}/dev")

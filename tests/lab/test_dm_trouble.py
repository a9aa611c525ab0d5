# SPDX-License-Identifier: GPL-2.0-only
"""ebbgate on dm-cache volumes that are ill, nearly full, renamed, locked or in passthrough.

I/O: the guest.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.bench.gap_drain import fill_job
from tests.bench.product import PYTHON, Product, stage
from tests.lab import fio
from tests.lab.dm_stack import DmCacheStack, Options
from tests.lab.errors import CommandFailed
from tests.lab.fio_compare import assert_equal_to_fio, gained
from tests.lab.probe import GuestProbe
from tests.lab.session import Session
from tests.lab.test_dm_product import SMALL, holds_back, users
from tests.lab.test_probe_dm import mixed

BARE = Options(lvm=False)


def volume_of(product: Product) -> dict[str, Any]:
    (volume,) = json.loads(product.cli("status", "--json"))["volumes"]
    found: dict[str, Any] = volume
    return found


@contextmanager
def held(product: Product, stack: DmCacheStack) -> Iterator[None]:
    """The daemon runs and has shut the gate of a volume with dirty data."""
    with product, users(stack):
        fio.run(stack.session, fill_job(stack.device, SMALL), seed=6)
        holds_back(product, stack)
        yield


@pytest.mark.parametrize(
    ("reads", "said", "state"),
    [
        pytest.param(False, "needs_check", "its metadata needs a check", id="needs_check"),
        pytest.param(
            True,
            "Fail",
            "the kernel reports that the cache has failed",
            id="fail",
            marks=pytest.mark.full,
        ),
    ],
)
def test_a_failing_cache_is_left_alone_and_reported(
    guest: Session, reads: bool, said: str, state: str
) -> None:
    with DmCacheStack(guest, **BARE) as stack:
        stack.expect_changed("metadata", "kernel", "ro", "needs_check", "migration_threshold")
        stack.expect_changed("mode", "policy")
        product = Product(guest)
        with held(product, stack):
            stack.break_metadata(reads=reads)
            # Looked at without --noflush, the kernel commits its metadata.
            guest.check(["dmsetup", "status", stack.name])
            product.wait_until(lambda: said in stack.status_line() or None, 60, "a sick cache")
            product.wait_until(lambda: state in product.last_decision() or None, 30, "it said")
            assert "EBB-301" in product.cli("doctor", stack.name)
            with pytest.raises(CommandFailed):
                product.cli("clean", stack.name, "--yes")
            daemon = product.daemon
            assert daemon is not None
            assert daemon.poll() is None
            log = product.stop(signal.SIGTERM)
        assert "Traceback" not in log
        assert "migration_threshold" in log[log.index(state) :], "what could not be put back"


RELOAD = """
import sys
from ebbgate.kernel.device_mapper import DeviceMapper
try:
    DeviceMapper().store(sys.argv[1], "table", sys.argv[2])
except OSError as error:
    print(error.strerror)
"""


def test_a_table_that_cannot_begin_to_work_leaves_no_device_suspended(guest: Session) -> None:
    """The kernel suspends and swaps before it finds that a new table cannot resume.

    Here another snapshot has the same store. A dm-cache that fails in this way gives up its
    metadata, too, so that none of its tables can be loaded; this is about what the kernel does.
    """
    disk, made = f"/dev/{guest.device('hdd0')}", list[str]()
    guest.check(["modprobe", "dm-snapshot"])
    try:
        for number, name in enumerate(("plain", "origin", "store")):
            guest.check(
                ["dmsetup", "create", name, "--table", f"0 8192 linear {disk} {number * 8192}"]
            )
            made.insert(0, name)
        numbers = "dmsetup info -c --noheadings -o major,minor"
        below = " ".join(guest.check(f"{numbers} {name}").strip() for name in ("origin", "store"))
        shares = f"0 8192 snapshot {below} P 8"
        # A store that begins with another test's data is no empty one.
        zero = f"dd if=/dev/zero of={disk} bs=4096 seek={2 * 1024} count=1 oflag=direct"
        guest.check(zero)
        guest.check(["dmsetup", "create", "first", "--table", shares])
        made.insert(0, "first")
        before = guest.check(["dmsetup", "table", "plain"])
        argv = [PYTHON, "-c", RELOAD, "plain", shares]
        said = guest.run(argv, env={"PYTHONPATH": str(stage())}).check().stdout
        assert said == "Invalid argument\n"
        assert "SUSPENDED" not in guest.check(["dmsetup", "info", "plain"])
        assert guest.check(["dmsetup", "table", "plain"]) == before
        node = guest.check("dmsetup info -c --noheadings -o blkdevname plain").strip()
        guest.check(f"dd if=/dev/{node} of=/dev/null bs=1M count=4 iflag=direct")
    finally:
        for name in made:
            guest.run(["dmsetup", "resume", name])
            guest.check(["dmsetup", "remove", name])


@pytest.mark.full
def test_metadata_that_is_nearly_full_is_reported(guest: Session) -> None:
    # Of a cache of this size that holds nothing yet 28 blocks are in use; its hints find no room.
    with DmCacheStack(guest, metadata_bytes=34 * 4096, **BARE) as stack, Product(guest) as product:
        stack.expect_changed("metadata", "kernel")
        status = stack.status()
        assert status.metadata_used / status.metadata_total > 0.8, status
        assert "EBB-302" in product.cli("doctor", stack.name)


@pytest.mark.full
def test_a_volume_in_passthrough_is_counted_and_has_nothing_to_tune(guest: Session) -> None:
    with DmCacheStack(guest, cache_mode="passthrough") as stack:
        with GuestProbe(guest, "--tick-ms", "100") as probe:
            probe.track_dm(stack)
            gain, result = gained(probe, stack, *mixed(stack), seed=41)
            assert_equal_to_fio(gain, result)
            assert gain("path", "write", "bypass", "ios") == gain("fg", "write", "ios")
        with Product(guest) as product:
            assert volume_of(product)["cache_mode"] == "passthrough"
            assert "EBB-303" in product.cli("doctor", stack.lvm_name)
            with pytest.raises(
                CommandFailed, match="the cache is in passthrough mode, so nothing is dirty"
            ):
                product.cli("clean", stack.lvm_name, "--yes")


@pytest.mark.full
def test_a_volume_that_is_renamed_while_tuned_gets_its_threshold_back(guest: Session) -> None:
    with DmCacheStack(guest) as stack:
        product = Product(guest)
        with held(product, stack):
            guest.check("lvrename vg/data vg/other", timeout_s=60)
            product.wait_until(lambda: "vg/other" in product.log() or None, 30, "the new name")
            product.stop(signal.SIGTERM)
        try:
            line = guest.check(["dmsetup", "table", "vg-other"])
            assert "migration_threshold" not in line or "migration_threshold 2048" in line
            status = guest.check(["dmsetup", "status", "--noflush", "vg-other"])
            assert "migration_threshold 2048" in status
        finally:
            guest.check("lvrename vg/other vg/data", timeout_s=60)


@pytest.mark.full
def test_a_lock_of_lvm_delays_nothing(guest: Session) -> None:
    with DmCacheStack(guest) as stack:
        lock = "/run/lock/lvm/V_vg"
        keeper = guest.spawn(f"flock {lock} sleep 600")
        guest.wait_for_path(lock)
        try:
            product = Product(guest)
            with held(product, stack):
                assert volume_of(product)["live"]
                assert "vg/data" in product.cli("explain", stack.lvm_name)
        finally:
            keeper.kill(signal.SIGKILL)

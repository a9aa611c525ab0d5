# SPDX-License-Identifier: GPL-2.0-only
"""ebbgate on real dm-cache volumes: the gate, a cleaning, LVM beside it, and nothing left behind.

Leaving a stack compares threshold, policy, mode, queues and LVM's own settings with their
originals, and checks the metadata. I/O: the guest.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.bench.dm_coexist import goes_on
from tests.bench.faults import data_job, keep, load
from tests.bench.gap_drain import Pieces, fill_job
from tests.bench.product import STATE_DIR, Product
from tests.lab import fio
from tests.lab.dm_stack import DmCacheStack, DmWritecacheStack
from tests.lab.kernel_matrix import needs, on_kernels
from tests.lab.session import Session

MIB = 1 << 20
SMALL = Pieces(kib=64, dirty_mib=64, range_mib=256)
DATA_MIB = 16
"""Writes of less than a block, which the kernel promotes one by one, at the disk's pace."""


@contextmanager
def users(stack: DmCacheStack) -> Iterator[None]:
    """Reads that miss, without a pause: the kernel's own idle second never comes."""
    with ExitStack() as exits:
        options: dict[str, str | int] = {"offset": "1G", "size": "900M", "rate_iops": 40}
        keep(load(stack.session, stack.device, "randread", "4k", **options), exits)
        yield


def holds_back(product: Product, stack: DmCacheStack) -> None:
    product.wait_until(lambda: stack.threshold == 0 or None, 30, "the gate to be shut")


def shut_then_open(stack: DmCacheStack) -> None:
    with Product(stack.session) as product:
        with users(stack):
            fio.run(stack.session, fill_job(stack.device, SMALL), seed=1)
            holds_back(product, stack)
            dirty_bytes = stack.dirty_bytes()
            assert dirty_bytes >= 60 * MIB
        product.wait_until(
            lambda: 0 < stack.threshold < 2048 or None, 30, "the gate to be open, a little"
        )
        product.wait_until(
            lambda: stack.dirty_bytes() < dirty_bytes - 8 * MIB or None, 30, "a gap to drain"
        )
        document = json.loads(product.cli("status", "--json"))
    (volume,) = document["volumes"]
    assert volume["title"] == (stack.lvm_name or stack.name)
    assert (volume["mapping"]["dm_name"], volume["live"]) == (stack.name, True)
    assert volume["mapping"]["block_bytes"] == 65536
    assert stack.threshold == 2048


# ---- a volume of their own: before the shared one, which has the same devices --------------------
@pytest.mark.full
def test_the_gate_of_a_volume_without_lvm_is_shut_and_opened(guest: Session) -> None:
    with DmCacheStack(guest, lvm=False) as stack:
        shut_then_open(stack)


@pytest.mark.full
def test_writecache_is_measured_and_its_limits_are_reported(guest: Session) -> None:
    with DmWritecacheStack(guest) as stack, Product(guest) as product:
        fio.run(guest, fill_job(stack.device, SMALL), seed=5)
        product.wait_until(lambda: product.live(stack.name) or None, 30, "a document of the volume")
        said = product.cli("status")
        assert "Nothing to tune: dm-writecache takes its watermarks only with the table" in said
        assert "EBB-306" in product.cli("doctor", "vg/data")
        assert stack.dirty_bytes() > 0
        product.cli("clean", "vg/data", "--yes")
        product.wait_until(lambda: stack.dirty_bytes() == 0 or None, 60, "the flush")
        product.wait_until(
            lambda: "cleaning is over: flushed" in product.log() or None, 20, "its end to be said"
        )


@pytest.mark.full
def test_the_daemon_survives_a_volume_that_is_deactivated(guest: Session) -> None:
    product = Product(guest)
    try:
        with DmCacheStack(guest) as stack:
            with users(stack):
                product.start()
                fio.run(guest, fill_job(stack.device, SMALL), seed=4)
                holds_back(product, stack)
            guest.check(f"lvchange -an {stack.lvm_name}")
            product.wait_until(
                lambda: "gone or changed" in product.log() or None, 30, "the daemon to see it go"
            )
            guest.check(f"lvchange -ay {stack.lvm_name}")
            product.wait_until(
                lambda: product.log().count("dm-cache over") > 1 or None, 30, "it to be back"
            )
            assert product.daemon is not None
            assert product.daemon.poll() is None
            log = product.stop(signal.SIGTERM)
            assert "Traceback" not in log
            stack.expect_changed("devices", "hdd:queue/scheduler", "volume:queue/max_sectors_kb")
    finally:
        product.stop(signal.SIGTERM)


@pytest.mark.full
def test_lvm_loads_a_table_of_its_own_and_wins(guest: Session) -> None:
    guest.run(["rm", "-rf", STATE_DIR])
    # Of a cache that is still being filled, whose counts show each load of a table.
    with DmCacheStack(guest) as stack, Product(guest) as product, users(stack):
        fio.run(guest, fill_job(stack.device, SMALL), seed=2)
        holds_back(product, stack)
        for settings in ("migration_threshold=4096", "migration_threshold=default"):
            done = guest.run(f"lvchange --cachesettings {settings} {stack.lvm_name}", timeout_s=60)
            assert done.rc == 0, done.stderr
            goes_on(product, stack.lvm_name, settings)
        holds_back(product, stack)
        product.stop()
        assert stack.threshold == 2048


@pytest.mark.full
def test_a_cleaning_just_after_an_extension_keeps_the_new_size(guest: Session) -> None:
    """The daemon's last look at the volume is of before the extension."""
    with DmCacheStack(guest) as stack:

        def size_bytes() -> int:
            return int(guest.check(["blockdev", "--getsize64", stack.device]))

        extended_bytes = size_bytes()
        guest.check(f"lvreduce -qq -y -f -L -64M {stack.lvm_name}", timeout_s=60)
        assert size_bytes() == extended_bytes - 64 * MIB
        with Product(guest) as product, users(stack):
            fio.run(guest, fill_job(stack.device, SMALL), seed=6)
            holds_back(product, stack)
            guest.check(f"lvextend -qq -y -L +64M {stack.lvm_name}", timeout_s=60)
            product.cli("clean", "vg/data", "--within", "3min", "--yes")
            product.wait_until(
                lambda: stack.status().policy == "cleaner" or None, 30, "the cleaner to be there"
            )
            assert size_bytes() == extended_bytes
            product.wait_until(lambda: stack.status().policy != "cleaner" or None, 90, "its end")
            assert size_bytes() == extended_bytes


# ---- the shared volume; those that fill it come after those that clean it ------------------------
def die(stack: DmCacheStack, when: Callable[[Product], None], mib: int = DATA_MIB) -> Product:
    """A daemon that is killed, under users, over data that can be checked."""
    product = Product(stack.session)
    with users(stack), ExitStack() as exits:
        fio.run(stack.session, data_job(stack.device, verify_only=False, mib=mib), seed=5)
        exits.callback(product.stop, signal.SIGKILL)
        product.start()
        when(product)
    return product


def data_is_good(stack: DmCacheStack, mib: int = DATA_MIB) -> bool:
    check = fio.run(stack.session, data_job(stack.device, verify_only=True, mib=mib), seed=5)
    return check.bytes >= mib * MIB


@pytest.mark.full
def test_a_killed_daemon_leaves_no_threshold_and_no_data_behind(
    guest: Session, stack: DmCacheStack
) -> None:
    product = die(stack, lambda product: holds_back(product, stack))
    assert stack.threshold == 0
    product.cli("restore")
    assert stack.threshold == 2048
    assert data_is_good(stack)


def test_a_cleaning_under_load_comes_clean_and_is_undone(
    guest: Session, stack: DmCacheStack
) -> None:
    with Product(guest) as product, users(stack):
        fio.run(guest, data_job(stack.device, verify_only=False, mib=DATA_MIB), seed=5)
        holds_back(product, stack)
        product.cli("clean", "vg/data", "--within", "3min", "--yes")
        product.wait_until(lambda: stack.dirty_bytes() == 0 or None, 90, "the volume to be clean")
        product.wait_until(
            lambda: stack.status().policy != "cleaner" or None, 20, "the old policy to be back"
        )
        holds_back(product, stack)
    assert data_is_good(stack)


@pytest.mark.full
def test_restore_takes_a_cleaning_of_a_dead_daemon_back(
    guest: Session, stack: DmCacheStack
) -> None:
    def cleans(product: Product) -> None:
        product.cli("clean", "vg/data", "--within", "3min", "--yes")
        product.wait_until(
            lambda: stack.status().policy == "cleaner" or None, 20, "the cleaner to be there"
        )

    # So much that the cleaning is not over before the daemon dies.
    product = die(stack, cleans, mib=64)
    assert stack.status().policy == "cleaner"
    product.cli("restore")
    assert stack.status().policy != "cleaner"
    assert data_is_good(stack, mib=64)


@on_kernels("dm-cache: shut under load, open in a gap", "trixie")
def test_the_gate_is_shut_under_load_and_open_in_a_gap(stack: DmCacheStack) -> None:
    needs(stack.session, "volume", "dm_path", "dm_class")
    shut_then_open(stack)


@pytest.mark.full
def test_a_threshold_set_by_somebody_else_is_left_alone(
    guest: Session, stack: DmCacheStack
) -> None:
    with Product(guest) as product, users(stack):
        fio.run(guest, fill_job(stack.device, SMALL), seed=3)
        holds_back(product, stack)
        stack.threshold = 6144
        product.wait_until(
            lambda: "migration_threshold was changed by somebody else" in product.log() or None,
            30,
            "the hand to be seen",
        )
    assert stack.threshold == 6144
    stack.threshold = 2048

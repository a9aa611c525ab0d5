# SPDX-License-Identifier: GPL-2.0-only
"""A disk that is pulled out below a tuned dm-cache: what users are told. I/O: a guest."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.bench.gap_drain import Pieces, fill_job
from tests.bench.product import Product
from tests.lab import fio
from tests.lab.conftest import without_lab
from tests.lab.devices import Attachment, Ssd, as_sold
from tests.lab.dm_stack import DmCacheStack
from tests.lab.errors import NoLab
from tests.lab.guest import Guest
from tests.lab.session import Session
from tests.lab.test_dm_product import holds_back, users

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
DIRTY = Pieces(kib=64, dirty_mib=64, range_mib=256)
REASON = "no disk is left below its backing device"


@pytest.fixture
def guest() -> Iterator[Session]:
    try:
        with Guest([as_sold("hdd0", Attachment.SCSI), Ssd("ssd0")]) as session:
            yield session
    except NoLab as reason:
        without_lab(reason)


def test_status_and_doctor_say_that_the_disk_is_gone_and_what_only_the_cache_has(
    guest: Session,
) -> None:
    with DmCacheStack(guest) as stack, Product(guest) as product:
        # The disk stays away: its knobs go with it, and the kernel reports errors.
        stack.expect_changed("kernel", "metadata", "devices", *stack.originals)
        with users(stack):
            fio.run(guest, fill_job(stack.device, DIRTY), seed=1)
            holds_back(product, stack)
            guest.write(f"/sys/block/{stack.hdd}/device/delete", "1")
        product.wait_until(lambda: REASON in product.last_decision(), 30, "the loss to be seen")
        product.wait_until(lambda: stack.threshold == 2048, 30, "the threshold to be back")
        assert stack.dirty_bytes() > 0
        (volume,) = json.loads(product.cli("status", "--json"))["volumes"]
        assert (volume["state"], volume["dirty_bytes"] > 0) == ("diskless", True)
        assert REASON in product.cli("status")
        assert "EBB-310" in product.cli("doctor", stack.lvm_name)
        log = product.stop()
    assert "Traceback" not in log
    assert "every knob is restored" in log

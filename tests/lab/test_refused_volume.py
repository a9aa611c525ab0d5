# SPDX-License-Identifier: GPL-2.0-only
"""A volume that the probe refuses: what users are told. I/O: a guest of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.bench.product import Product
from tests.lab.bcache_stack import BcacheStack
from tests.lab.conftest import without_lab
from tests.lab.devices import Attached, Ssd
from tests.lab.errors import NoLab
from tests.lab.guest import Guest
from tests.lab.session import Session

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
REASON = "boot with nvme_core.multipath=N"


@dataclass(frozen=True, slots=True)
class NvmeWithPaths(Ssd):
    """A fast disk in an NVMe subsystem, which may have several controllers: the kernel's head."""

    def attach(self, folder: Path, _port: int = 0) -> Attached:
        drive, thread = Ssd.attach(self, folder).qemu_args[:2], f"drive={self.name},shared=on"
        controller = f"nvme,serial={self.name},subsys=subsystem"
        qemu_args = [*drive, "-device", "nvme-subsys,id=subsystem", "-device", controller]
        return Attached([*qemu_args, "-device", f"nvme-ns,{thread}"], modules=("nvme",))


class RefusedProduct(Product):
    """The daemon; it has started once it knows the refusal."""

    def _ready(self) -> bool:
        return REASON in self.log()


@pytest.fixture
def guest() -> Iterator[Session]:
    try:
        with Guest([Ssd("ssd0"), NvmeWithPaths("ssd1")]) as session:
            yield session
    except NoLab as reason:
        without_lab(reason)


def test_status_and_doctor_name_the_reason_and_the_next_step(guest: Session) -> None:
    with (
        BcacheStack(guest, hdd="ssd0", ssd="ssd1", scheduler="none") as stack,
        RefusedProduct(guest, mode="enforce") as product,
    ):
        before = stack.findings()
        document = json.loads(product.cli("status", "--json"))
        (volume,) = document["volumes"]
        assert volume["missing"]["foreground"].endswith(REASON)
        assert "the load is unknown: requests of an NVMe device" in product.cli("status")
        doctor = json.loads(product.cli("doctor", "--json"))
        (advice,) = (each for each in doctor["volumes"][0]["advice"] if each["id"] == "EBB-109")
        assert REASON in advice["text"]
        assert product.log().count(REASON) <= 2, "once as a warning, once as a reason"
        assert stack.findings() == before

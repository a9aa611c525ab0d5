# SPDX-License-Identifier: GPL-2.0-only
"""A fake device-mapper: tables and status lines as a stock 6.1 kernel prints them."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ebbgate.kernel.device_mapper import UUID_REF, DeviceMapper, DmDevice, Target
from ebbgate.kernel.sysfs import Sysfs
from tests.fake_sysfs import FakeSysfs

CACHE_UUID = "LVM-" + "v" * 32 + "d" * 32
# As LVM 2.03.16 makes it, `mq` for the policy included.
CACHE_TABLE = (
    "253:3 253:2 253:4 128 2 metadata2 writeback mq 10 random_threshold 0 sequential_threshold 0"
    " discard_promote_adjustment 0 read_promote_adjustment 0 write_promote_adjustment 0"
)
CACHE_STATUS = (
    "8 40/2048 128 {used}/14528 450 90 52288 10 {demotions} {promotions} {dirty} 2 metadata2"
    " writeback 2 migration_threshold {threshold} {policy} {end}"
)
MQ = (
    "mq 10 random_threshold 0 sequential_threshold 0 discard_promote_adjustment 0"
    " read_promote_adjustment 0 write_promote_adjustment 0"
)
LENGTH_SECTORS = 4186112


@dataclass(slots=True)
class FakeCache:
    """One volume of dm-cache. `refuses`: the errno of every message. `length_sectors`: LVM may
    extend it.
    """

    name: str = "vg-data"
    uuid: str = CACHE_UUID
    devno: tuple[int, int] = (253, 0)
    kind: str = "cache"
    table: str = CACHE_TABLE
    length_sectors: int = LENGTH_SECTORS
    threshold: int = 2048
    used: int = 8211
    dirty: int = 6372
    promotions: int = 8211
    demotions: int = 7
    end: str = "rw - "
    line: str = ""
    suspended: bool = False
    refuses: int = 0
    messages: list[str] = field(default_factory=list)

    def status(self) -> str:
        return self.line or CACHE_STATUS.format(
            used=self.used,
            promotions=self.promotions,
            demotions=self.demotions,
            dirty=self.dirty,
            threshold=self.threshold,
            policy="cleaner 0" if self.table.endswith("cleaner 0") else MQ,
            end=self.end,
        )


class FakeDm(DeviceMapper):
    """Answers as the kernel does, for the devices that a test gives it."""

    def __init__(self, *devices: FakeCache, allowed: bool = True) -> None:
        super().__init__()
        self.devices = list(devices)
        self.allowed = allowed
        self.fails: dict[str, int] = {}
        """By call (`device`, `status`, `table`, `message`, `reload`, `names`): its errno."""

    def present(self) -> bool:
        return self.allowed

    def blocked(self) -> str:
        return "" if self.allowed else "only root may open /dev/mapper/control"

    def _ask_kernel(self, call: str, ref: str = "") -> None:
        if call in self.fails:
            number = self.fails[call]
            raise OSError(number, os.strerror(number), ref)

    def names(self) -> tuple[str, ...]:
        self._ask_kernel("names")
        return tuple(device.name for device in self.devices)

    def find(self, ref: str) -> FakeCache:
        for device in self.devices:
            if ref in (device.name, f"{UUID_REF}{device.uuid}"):
                return device
        raise OSError(errno.ENXIO, "No such device or address", ref)

    def device(self, ref: str) -> DmDevice:
        self._ask_kernel("device", ref)
        found = self.find(ref)
        return DmDevice(found.name, found.uuid, found.devno, found.suspended, False, 0)

    def table(self, ref: str) -> tuple[Target, ...]:
        self._ask_kernel("table", ref)
        found = self.find(ref)
        return (Target(0, found.length_sectors, found.kind, found.table),)

    def status(self, ref: str) -> tuple[Target, ...]:
        self._ask_kernel("status", ref)
        found = self.find(ref)
        return (Target(0, found.length_sectors, found.kind, found.status()),)

    def reload(self, ref: str, targets: tuple[Target, ...]) -> None:
        self._ask_kernel("reload", ref)
        found = self.find(ref)
        (target,) = targets
        assert (target.start_sectors, target.length_sectors) == (0, found.length_sectors)
        # Values set by messages are lost, and promotions are counted from 0.
        threshold = re.search(r"migration_threshold (\d+)", target.params)
        found.table, found.promotions = target.params, 0
        found.threshold = int(threshold[1]) if threshold else 2048

    def message(self, ref: str, text: str) -> None:
        self._ask_kernel("message", ref)
        found = self.find(ref)
        if found.refuses:
            raise OSError(found.refuses, "refused by the kernel", ref)
        found.messages.append(text)
        word, _, value = text.partition(" ")
        if word != "migration_threshold" or not value.isdigit():
            raise OSError(errno.EINVAL, "Invalid argument", ref)
        found.threshold = int(value)


WRITECACHE: Final = FakeCache(kind="writecache", table="s 253:4 253:2 4096 0", line="0 1000 400 16")


def lvm_disks(root: Path) -> FakeSysfs:
    """A fake machine with the disk and the SSD of LVM's `vg/data`."""
    made = FakeSysfs(root)
    made.disk("vda", "254:0")
    made.disk("vdb", "254:16", rotational=False)
    return made


def lvm_machine(fake: FakeSysfs, *devices: FakeCache) -> tuple[Sysfs, FakeDm]:
    """LVM's `vg/data` on a fake machine."""
    dm = fake_lvm(fake, *devices)
    return Sysfs(fake.root, dm), dm


def fake_lvm(fake: FakeSysfs, *devices: FakeCache) -> FakeDm:
    """LVM's `vg/data` on a fake machine: its dm devices in sysfs, and their device-mapper."""
    mapped = {
        "dm-0": ("253:0", ()),
        "dm-2": ("253:2", ("vdb",)),
        "dm-3": ("253:3", ("vdb",)),
        "dm-4": ("253:4", ("vda",)),
    }
    for name, (devno, below) in mapped.items():
        real = fake.disk(name, devno, size_bytes=LENGTH_SECTORS * 512, queue_depth=None)
        fake.write(f"{real}/queue/max_sectors_kb", "1280")
        fake.write(f"{real}/dm/uuid", CACHE_UUID if name == "dm-0" else f"LVM-{name}")
        for disk in below:
            fake.write(f"{real}/slaves/{disk}/dev", "")
    return FakeDm(*(devices or (FakeCache(),)))

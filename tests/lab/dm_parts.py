# SPDX-License-Identifier: GPL-2.0-only
"""Steps that make, inspect and remove stacks of device-mapper.

I/O: through a Session: LVM's tools, dmsetup, cache_check, sysfs of the guest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.lab.errors import LabError
from tests.lab.session import Session

MIB = 1 << 20

# There is no udev in the guest: LVM and dmsetup have to make the nodes themselves. LVM does not
# know null disks.
_LVM = """activation { udev_sync=0 udev_rules=0 verify_udev_operations=1 }
devices { types=["nullb", 16] }
"""
_NO_UDEV_OPTIONS = ("--noudevsync", "--noudevrules")

# Where the parts stand in a volume's table, behind `start length target`.
_PARTS = {
    "cache": {"metadata": 3, "cache": 4, "origin": 5},
    "writecache": {"origin": 4, "cache": 5, "metadata": 5},
}


@dataclass(frozen=True, slots=True)
class Made:
    """A volume and its underlying devices."""

    dev_ts: dict[str, str] = field(default_factory=dict)
    """MAJ:MIN of volume, origin, cache, metadata."""
    kernel_names: dict[str, str] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    """All device-mapper names above the two disks."""
    metadata: tuple[str, int, int] | None = None
    """Of a dm-cache: the disk, first sector and length in sectors of its metadata."""


def prepare(session: Session, modules: Sequence[str]) -> None:
    """Load modules and configure LVM for a guest without udev."""
    session.put_file("/etc/lvm/lvmlocal.conf", _LVM)
    session.check(["modprobe", "-a", "dm-mod", *modules])


def make_vg(session: Session, vg: str, hdd: str, ssd: str) -> None:
    """A volume group of two disks, with the LV `data` on the slow one."""
    disks = [f"/dev/{hdd}", f"/dev/{ssd}"]
    session.check(["pvcreate", "-qq", "-y", "-ff", *disks])
    session.check(["vgcreate", "-qq", vg, *disks])
    session.check(["lvcreate", "-qq", "-y", "-n", "data", "-l", "100%PVS", vg, disks[0]])


def cut(
    session: Session, prefix: str, disk: str, first_bytes: int, second_bytes: int
) -> tuple[str, str]:
    """Two linear devices on a disk, for metadata and for data; the first is zeroed."""
    first, second = f"{prefix}-cmeta", f"{prefix}-cdata"
    sectors = first_bytes // 512, second_bytes // 512
    _create(session, first, f"0 {sectors[0]} linear /dev/{disk} 2048")
    _create(session, second, f"0 {sectors[1]} linear /dev/{disk} {2048 + sectors[0]}")
    for name in (first, second):
        session.write(f"/dev/mapper/{name}", "\0" * 65536)
    return f"/dev/mapper/{first}", f"/dev/mapper/{second}"


def create(session: Session, name: str, disk: str, line: str) -> None:
    """A device as large as a disk from a table line without its start and length."""
    _create(session, name, f"0 {session.read(f'/sys/block/{disk}/size')} {line}")


def _create(session: Session, name: str, table: str) -> None:
    session.check(["dmsetup", "create", *_NO_UDEV_OPTIONS, name, "--table", table])
    session.check(["dmsetup", "mknodes", name])


def find(session: Session, name: str, *disks: str) -> Made:
    """Look at a volume that was just made of these disks."""
    table = session.check(["dmsetup", "table", name]).split()
    places = _PARTS[table[2]]
    dev_ts = {part: table[place] for part, place in places.items()}
    dev_ts["volume"] = session.read(f"/sys/block/{_kernel_name(session, name)}/dev")
    kernel_names = {part: _block(session, dev_t) for part, dev_t in dev_ts.items()}
    return Made(
        dev_ts,
        kernel_names,
        names_above(session, *disks),
        _disk_below(session, dev_ts["metadata"]) if table[2] == "cache" else None,
    )


def _kernel_name(session: Session, name: str) -> str:
    real = session.resolve(f"/dev/mapper/{name}")
    if real is None:
        raise LabError(f"no device {name} in the guest")
    number = session.check(["dmsetup", "info", "-c", "--noheadings", "-o", "minor", name])
    return f"dm-{int(number)}"


def _block(session: Session, dev_t: str) -> str:
    real = session.resolve(f"/sys/dev/block/{dev_t}")
    if real is None:
        raise LabError(f"no block device {dev_t} in the guest")
    return real.rpartition("/")[2]


def _disk_below(session: Session, dev_t: str) -> tuple[str, int, int]:
    """Through linear devices of one segment each: the disk, first sector, sectors."""
    block = _block(session, dev_t)
    if not block.startswith("dm-"):
        return block, 0, int(session.read(f"/sys/block/{block}/size"))
    name = session.read(f"/sys/block/{block}/dm/name")
    _, sectors, target, below, start = session.check(["dmsetup", "table", name]).split()
    if target != "linear":
        raise LabError(f"{name} is not linear but {target}")
    disk, first, _ = _disk_below(session, below)
    return disk, first + int(start), int(sectors)


def _above(session: Session, block: str) -> list[str]:
    """Kernel names of all devices on top of a device, the topmost first."""
    holders = session.check(f"ls /sys/block/{block}/holders 2>/dev/null || true").split()
    found: list[str] = []
    for holder in holders:
        found += [*_above(session, holder), holder]
    return list(dict.fromkeys(found))


def names_above(session: Session, *disks: str) -> frozenset[str]:
    """The device-mapper names of all devices on top of these disks."""
    blocks = [block for disk in disks for block in _above(session, disk)]
    names = session.read_many(f"/sys/block/{block}/dm/name" for block in blocks)
    return frozenset(name for name in names.values() if name is not None)


def lvm_values(session: Session, lvm_name: str) -> dict[str, str]:
    """What LVM's metadata says of a volume's cache, empty if it has no such volume."""
    fields = ["segtype", "cache_mode", "cache_policy", "cache_settings", "chunk_size"]
    done = session.run(["lvs", "--reportformat", "json", "-o", ",".join(fields), lvm_name])
    if done.rc != 0:
        return {}
    row = json.loads(done.stdout)["report"][0]["lv"][0]
    return {f"lvm:{name}": str(value) for name, value in row.items()}


def remove(session: Session, *disks: str) -> None:
    """Remove all devices on top of these disks, without writing back."""
    for disk in disks:
        for block in _above(session, disk):
            _remove(session, block)


def forget(session: Session, vg: str, *disks: str) -> None:
    """Wipe the disks' first MiB: signatures, LVM's metadata; and what LVM left in /dev."""
    for disk in disks:
        session.check(["dd", "if=/dev/zero", f"of=/dev/{disk}", "bs=1M", "count=1", "status=none"])
    session.check(["rm", "-rf", "/run/lvm/hints", f"/dev/{vg}"])


def _remove(session: Session, block: str) -> None:
    folder = f"/sys/block/{block}/dm"
    name, suspended = session.read_many([f"{folder}/name", f"{folder}/suspended"]).values()
    if name is None:
        return
    if suspended == "1":
        session.run(["dmsetup", "resume", *_NO_UDEV_OPTIONS, name])
    words = ["dmsetup", "remove", *_NO_UDEV_OPTIONS, "--retry", name]
    if session.run(words, timeout_s=90).rc != 0:
        session.check([*words[:2], "--force", *words[2:]], timeout_s=90)
    session.run(["rm", "-f", f"/dev/mapper/{name}"])


def cache_check(session: Session, where: tuple[str, int, int]) -> str:
    """Return the errors that cache_check reports for metadata on a disk; empty for none."""
    disk, first, sectors = where
    # The tool reads past the page cache, which a file in memory does not allow.
    name = f"{disk}-cache-check"
    _create(session, name, f"0 {sectors} linear /dev/{disk} {first}")
    done = session.run(["cache_check", f"/dev/mapper/{name}"])
    remove(session, disk)
    return f"exit {done.rc}: {done.stdout}{done.stderr}".strip() if done.rc else ""

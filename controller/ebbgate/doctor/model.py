# SPDX-License-Identifier: GPL-2.0-only
"""Advice, and the facts that it is based on. Pure.

Good advice depends on the kind of disk: one drive gains from a short queue, an array needs a long
one, and what a virtual disk needs only its host knows. SCSI's vendor and model tell them apart:
SATA drives have the vendor `ATA`, and arrays and hypervisors use their own names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final

from ebbgate.knobs.catalog import CONGESTED, CUTOFF, PERCENT, TRIGGER_GC
from ebbgate.model.status import VolumeStatus
from ebbgate.model.volume import NO_USERS, Device, DiskUsers, Volume, VolumeState
from ebbgate.units import MIB


class DiskKind(StrEnum):
    """`unknown`: gets the same careful advice as an array."""

    SINGLE = "single disk"
    ARRAY = "array"
    VIRTUAL = "virtual disk"
    UNKNOWN = "unknown"


_VIRTUAL_NAME: Final = re.compile(r"(vd|xvd|rbd|nbd|ublkb|loop)")
_VIRTUAL: Final = re.compile(
    r"qemu|vmware|virtual disk|vbox|persistentdisk|elastic block store|nutanix", re.I
)
_ARRAY: Final = re.compile(
    r"raid|perc\b|logical volume|^(lsi|avago|broadcom|adaptec|areca|3ware|mscc)\b|lio-org|^iet\b"
    r"|netapp|^(emc|dgc|pure|3pardata|nimble|compelnt|eqlogic|synology|qnap|datacore)\b"
    r"|truenas|freenas|scst|^hitachi +open|^ibm +(2145|2107|flashsystem)|^hpe? +(msa|p2000|open)",
    re.I,
)
_DRIVE: Final = re.compile(
    r"^(ata|seagate|hgst|hitachi|wdc?|western digital|toshiba|fujitsu|samsung|micron|intel|kioxia"
    r"|ibm-esxs)\b",
    re.I,
)
_DRIVE_NAME: Final = re.compile(r"(nvme|mmcblk|hd[a-z])")


def disk_kind(name: str, vendor: str | None, model: str | None) -> DiskKind:
    """`name`: of the whole disk; `vendor`, `model`: as sysfs has them, None where it has none."""
    words = f"{(vendor or '').strip()} {(model or '').strip()}".strip()
    if _VIRTUAL_NAME.match(name) or _VIRTUAL.search(words):
        return DiskKind.VIRTUAL
    if _ARRAY.search(words):
        return DiskKind.ARRAY
    if _DRIVE.match(words) or _DRIVE_NAME.match(name):
        return DiskKind.SINGLE
    return DiskKind.UNKNOWN


class Weight(StrEnum):
    """How much it matters. `fault`: data or tuning is at risk; `advice`: a measurement supports it,
    or it is right for any load; `note`: information, or not supported by a measurement.
    """

    FAULT = "fault"
    ADVICE = "advice"
    NOTE = "note"


SEVERITY: Final[Mapping[Weight, str]] = {
    Weight.FAULT: "Problem",
    Weight.ADVICE: "Recommended",
    Weight.NOTE: "Info",
}
"""The weight as people read it."""


@dataclass(frozen=True, slots=True)
class Change:
    """What `ebbgate apply` does: sets knobs that ebbgate tunes anyway, or runs one LVM command that
    is safe while the volume is in use; `undo_argv` undoes it.
    """

    knobs: tuple[tuple[str, str], ...] = ()
    argv: tuple[str, ...] = ()
    undo_argv: tuple[str, ...] = ()


CUTOFF_STOCK: Final = 4 * MIB
PERCENT_STOCK: Final = 10
KNOB_CHANGES: Final[Mapping[str, Change]] = {
    "EBB-204": Change(((TRIGGER_GC, "1"),)),
    "EBB-205": Change(tuple((knob, "0") for knob in CONGESTED)),
    **dict.fromkeys(("EBB-206", "EBB-213"), Change(((CUTOFF, str(CUTOFF_STOCK)),))),
    **dict.fromkeys(("EBB-209", "EBB-210", "EBB-211"), Change(((PERCENT, str(PERCENT_STOCK)),))),
}
"""By number: the change of each advice that sets knobs."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One recommendation, problem or information.

    `text`: whole sentences. `command`: to paste into a shell; empty if there is none. `lasts`:
    whether it survives a reboot, empty without a command; `keep`: a line for the file that `lasts`
    names. `undo`: undoes a command for which there is no `change`. `evidence`: what was measured
    here, empty without a daemon; `effect`: what to expect. `change`: None if only the
    administrator can do it.
    """

    id: str
    weight: Weight
    about: str
    text: str
    command: str = ""
    lasts: str = ""
    keep: str = ""
    undo: str = ""
    evidence: str = ""
    effect: str = ""
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class Drive:
    """A whole disk that several volumes may use, as sysfs shows it.

    `depth_settable`: whether root can set its queue depth. `cache_file`: switches its volatile
    write cache; empty unless that is on. `users`: what else is on it.
    """

    sata: bool = False
    depth_settable: bool = False
    cache_file: str = ""
    users: DiskUsers = NO_USERS


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the rules look at. `disks`: below the backing device, often itself;
    `cache_disks`: below the cache's devices.

    `kinds`: by device name; `whole_disks`: the disk of each device that is a partition; `drives`:
    by the name of the disk. `owned`: knobs that ebbgate has set, or may have set. `discards`: cache
    devices with `discard` on; `io_errors`: counts by device name. `cachevol`: whether one LV has
    data and metadata of dm-cache; None: unknown. `multipath`: by the name of a path, the multipath
    device whose scheduler serves in place of the path's. `encrypted`: devices of dm-crypt below the
    backing device; `kernel`: its release, such as 6.1.0-56-amd64.
    `status`: the daemon's status of the volume, empty without one.
    """

    volume: Volume
    state: VolumeState
    disks: tuple[Device, ...]
    cache_disks: tuple[Device, ...] = ()
    discards: tuple[str, ...] = ()
    owned: frozenset[str] = frozenset()
    io_errors: dict[str, int] = field(default_factory=dict)
    status: VolumeStatus = field(default_factory=VolumeStatus)
    kinds: Mapping[str, DiskKind] = field(default_factory=dict)
    whole_disks: Mapping[str, str] = field(default_factory=dict)
    drives: Mapping[str, Drive] = field(default_factory=dict)
    cachevol: bool | None = None
    multipath: Mapping[str, Device] = field(default_factory=dict)
    encrypted: tuple[str, ...] = ()
    kernel: str = ""

    def set_by_hand(self, knob: str) -> int | None:
        """Return a knob's value; None if ebbgate has set it, or may have, or if it is unknown."""
        value = self.state.knobs.get(knob, "")
        return int(value) if value.isdigit() and knob not in self.owned else None

    def kind(self, device: str) -> DiskKind:
        """Return what kind of disk a device is or belongs to."""
        return self.kinds.get(device, DiskKind.UNKNOWN)

    def disk(self, device: str) -> str:
        """Return the disk of a device: partitions have no queue."""
        return self.whole_disks.get(device, device)

    def drive(self, device: str) -> Drive:
        """Return what is known of the disk of a device."""
        return self.drives.get(self.disk(device), Drive())

    @property
    def queues(self) -> tuple[tuple[Device, Device], ...]:
        """Return each device whose I/O scheduler serves the disks, once, and a disk of it."""
        found = {(self.multipath.get(self.disk(each.name), each)).name: each for each in self.disks}
        by_name = {each.name: each for each in (*self.disks, *self.multipath.values())}
        return tuple((by_name[name], disk) for name, disk in found.items())

    @property
    def several_disks(self) -> bool:
        """Whether the backing device is known to have more than one disk."""
        return len(self.queues) > 1 or any(
            self.kind(device.name) is DiskKind.ARRAY for device in self.disks
        )


def device_document(device: Device) -> dict[str, Any]:
    """Return a device and its queue."""
    number = f"{device.devno[0]}:{device.devno[1]}"
    return {**asdict(device), "devno": number, "schedulers": list(device.schedulers)}


def write_command(value: str | int, *files: str) -> str:
    """Return a command that writes a value into files of root; `> file` would not use sudo."""
    # Kernel names may have a `!` for a slash, which an interactive shell expands.
    return f"echo {value} | sudo tee {shlex.join(files)}"


def udev_rule(disk: str, attribute: str, value: str | int) -> str:
    """Return a udev rule that sets an attribute of a disk whenever it appears."""
    return f'ACTION=="add|change", KERNEL=="{device_name(disk)}", ATTR{{{attribute}}}="{value}"'


def device_name(disk: str) -> str:
    """Return the name of a disk below /dev, which udev uses, too: `etherd!e1.0` in sysfs."""
    return disk.replace("!", "/")


LASTS_UDEV: Final = (
    "It lasts until the next boot. To keep it, put this line into"
    " /etc/udev/rules.d/60-ebbgate.rules (match ENV{ID_SERIAL} instead of KERNEL if disk names"
    " change from boot to boot):"
)
LASTS_LVM: Final = "It survives reboots: LVM keeps the setting in its metadata."


LASTS_KNOB: Final = (
    "Set by hand, it lasts until the next boot or until the volume is stopped. Applied with"
    " ebbgate, it survives reboots and lasts until it is released."
)
"""For a bcache knob that `ebbgate apply` can set."""
LASTS_SYSFS: Final = "It lasts until the next boot or until the volume is stopped."

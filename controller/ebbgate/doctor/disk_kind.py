# SPDX-License-Identifier: GPL-2.0-only
"""Tells single drives, arrays (controller or network) and virtual disks apart. Pure.

Good advice depends on it: one drive gains from a short queue, an array needs a long one, and what a
virtual disk needs only its host knows. SCSI's vendor and model tell: SATA drives have the vendor
`ATA`, and arrays and hypervisors use their own names.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final


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

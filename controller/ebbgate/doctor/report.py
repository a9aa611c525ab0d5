# SPDX-License-Identifier: GPL-2.0-only
"""Collects the facts on one volume and builds its report. I/O: reads sysfs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from ebbgate.doctor.cost import EMPTY_RUN_NS, Cost
from ebbgate.doctor.model import SEVERITY, Advice, DiskKind, Drive, Facts, disk_kind
from ebbgate.kernel.sysfs import CLASS_BLOCK, Sysfs
from ebbgate.knobs.catalog import find_knob
from ebbgate.knobs.places import knob_path, knobs_of
from ebbgate.model.status import KnobStatus, VolumeStatus
from ebbgate.model.volume import DiskUsers, Volume, VolumeState
from ebbgate.probes.block import physical_devices, stack_below, whole_disk
from ebbgate.probes.disk_users import DeviceUsers, disk_users

_DM_CRYPT: Final = re.compile("CRYPT-(?!INTEGRITY-|VERITY-)")
"""The uuid of a device of dm-crypt; cryptsetup has two more kinds of devices."""


def lockdown(sysfs: Sysfs) -> str | None:
    """Return the level to which the kernel is locked down; None if it is not."""
    found = re.search(r"\[(\w+)\]", sysfs.read_text("/sys/kernel/security/lockdown") or "")
    return None if found is None or found[1] == "none" else found[1]


def facts(
    sysfs: Sysfs,
    volume: Volume,
    state: VolumeState,
    owned: Mapping[str, KnobStatus],
    status: VolumeStatus,
    users: DeviceUsers | None = None,
) -> Facts:
    """Collect what the advice is based on.

    `owned`: knobs with their owners; `status`: the daemon's; `users`: of this machine.
    """
    ours = frozenset(name for name, knob in owned.items() if _may_be_ours(name, knob.owner))
    # Values read at the same time as their owners: later ones may be ebbgate's own.
    values = {name: value for name, knob in owned.items() if (value := knob.value)}
    state = replace(state, knobs={**state.knobs, **values})
    caches = [device.name for device in volume.caches]
    discards = (
        name for name in caches if sysfs.read_text(CLASS_BLOCK / name / "bcache/discard") == "1"
    )
    errors = {
        name: sysfs.read_int(CLASS_BLOCK / name / "bcache/io_errors") or 0
        for name in (volume.backing.name, *caches)
    }
    disks = physical_devices(sysfs, volume.backing.name)
    below = (physical_devices(sysfs, name) for name in caches)
    cache_disks = {device.name: device for found in below for device in found}
    names = [device.name for device in (*disks, *volume.caches)] + list(cache_disks)
    whole = {name: whole_disk(sysfs, name) for name in names}
    wholes = sorted({whole[each.name] for each in disks})
    return Facts(
        volume,
        state,
        disks,
        tuple(cache_disks.values()),
        tuple(discards),
        ours,
        errors,
        status,
        kinds={name: _kind(sysfs, whole[name]) for name in names},
        whole_disks=whole,
        drives={
            name: _drive(sysfs, name, _users(sysfs, name, volume, users or DeviceUsers()))
            for name in wholes
        },
        cachevol=_cachevol(sysfs, volume),
        multipath=dict(volume.multipath),
        encrypted=tuple(_encrypted(sysfs, volume)),
        kernel=os.uname().release,
    )


def _may_be_ours(knob: str, owner: str) -> bool:
    """Return whether ebbgate has set a knob, or may have: its values are no choice of a person."""
    if owner == "unknown":
        row = find_knob(knob)
        return row is not None and row.written
    return owner in ("ebbgate", "left behind")


def _kind(sysfs: Sysfs, disk: str) -> DiskKind:
    here = CLASS_BLOCK / disk / "device"
    vendor, model = (sysfs.read_text(here / name) for name in ("vendor", "model"))
    return disk_kind(disk, vendor, model)


def _drive(sysfs: Sysfs, disk: str, users: DiskUsers) -> Drive:
    device = f"/sys/block/{disk}/device"
    caches = (
        path
        for path in sysfs.glob(f"{device}/scsi_disk/*/cache_type")
        if (sysfs.read_text(path) or "").startswith("write back")
    )
    return Drive(
        sata=(sysfs.read_text(f"{device}/vendor") or "").strip() == "ATA",
        depth_settable=sysfs.may_be_written(f"{device}/queue_depth"),
        cache_file=str(next(caches, "")),
        users=users,
    )


def _users(sysfs: Sysfs, disk: str, volume: Volume, users: DeviceUsers) -> DiskUsers:
    """Return what else is on one disk."""
    disks = tuple(each for each in volume.disks if each.name == disk)
    return disk_users(sysfs, replace(volume, disks=disks), users)


def _encrypted(sysfs: Sysfs, volume: Volume) -> Iterator[str]:
    """Yield the names that dm-crypt's devices below a volume have."""
    for name in stack_below(sysfs, volume.backing.devno):
        here = CLASS_BLOCK / name / "dm"
        if _DM_CRYPT.match(sysfs.read_text(here / "uuid") or ""):
            yield sysfs.read_text(here / "name") or name


def _cachevol(sysfs: Sysfs, volume: Volume) -> bool | None:
    """LVM calls the metadata of a cachevol `vg-fast_cvol-cmeta`, that of a cache pool
    `vg-fast_cpool_cmeta`; None for other names.
    """
    if volume.metadata is None:
        return None
    name = sysfs.read_text(CLASS_BLOCK / volume.metadata.name / "dm/name") or ""
    if name.endswith("-cmeta"):
        return True
    return False if name.endswith("_cmeta") else None


def knob_documents(
    sysfs: Sysfs,
    volume: Volume,
    owned: Mapping[str, KnobStatus],
    *,
    writes: bool = True,
) -> list[dict[str, Any]]:
    """Return every knob that this kernel has, with its value and whether ebbgate may write it.

    `touch`: `tuned` (in enforce), `shown` (never written), `manual` (changed by someone else) or
    `read-only` (this process may not write it; not reported if it never `writes` any).
    """
    rows = []
    for knob in knobs_of(volume):
        path = knob_path(volume, knob.name)
        if path is None or not sysfs.exists(path):
            continue
        mine = owned.get(knob.name, KnobStatus())
        touch = "tuned" if knob.written else "shown"
        if mine.owner == "manual":
            touch = "manual"
        elif writes and knob.written and not sysfs.writable(path):
            touch = "read-only"
        rows.append(
            {
                "name": knob.name,
                "value": mine.value if knob.readable else None,
                "original": mine.original,
                "owner": mine.owner,
                "touch": touch,
                "about": knob.about,
                "path": path,
            }
        )
    return rows


def cost_document(cost: Cost) -> dict[str, Any]:
    """Return the probe's cost per program and event."""
    return {
        "pid": cost.pid,
        "counting": cost.counting,
        "why": cost.why,
        "window_ns": cost.window_ns,
        "runs": cost.runs,
        "ns_per_run": cost.ns_per_run,
        "empty_run_ns": EMPTY_RUN_NS,
        "programs": [
            {
                **asdict(program),
                "ns_per_run": program.run_ns / program.runs if program.runs else None,
            }
            for program in cost.programs
        ],
    }


def advice_document(advice: Advice) -> dict[str, Any]:
    """Return one advice; `apply`: whether `ebbgate apply` can carry it out."""
    return {
        "id": advice.id,
        "weight": str(advice.weight),
        "severity": SEVERITY[advice.weight],
        "about": advice.about,
        "text": advice.text,
        "evidence": advice.evidence,
        "effect": advice.effect,
        "command": advice.command,
        "lasts": advice.lasts,
        "keep": advice.keep,
        "undo": advice.undo,
        "apply": advice.change is not None,
    }

# SPDX-License-Identifier: GPL-2.0-only
"""Which knobs a volume has, and where each of them is. Pure."""

from __future__ import annotations

from dataclasses import replace

from ebbgate.knobs.catalog import BY_NAME, KNOBS, find_knob, knob_row
from ebbgate.knobs.knob import Knob, KnobPlace
from ebbgate.model.volume import Device, Volume


def knobs_of(volume: Volume) -> tuple[Knob, ...]:
    """Return every knob that the volume may have and show; those of its disks by each name."""
    return tuple(
        named
        for knob in KNOBS
        if volume.kind in knob.kinds and knob.listed
        for named in (_of_disks(volume, knob) if knob.per_disk else (knob,))
    )


def _of_disks(volume: Volume, knob: Knob) -> tuple[Knob, ...]:
    """All disks or none: one deep queue in an array is enough to keep requests waiting."""
    devices = _devices(volume, knob)
    if any(getattr(each, knob.name) is None for each in devices):
        return ()
    return tuple(replace(knob, name=f"{knob.name}:{each.name}") for each in devices)


def _devices(volume: Volume, knob: Knob) -> tuple[Device, ...]:
    return volume.disks if knob.place is KnobPlace.DISK else volume.queues


def knob_path(volume: Volume, name: str) -> str | None:
    """Return the knob's file, or `dm:REF/SETTING`; None where the volume does not have it now.

    Raises KeyError for a name that is not in the catalogue.
    """
    knob = knob_row(name)
    if volume.kind not in knob.kinds:
        return None
    if knob.per_disk:
        disk = name.partition(":")[2]
        mine = any(disk == each.name for each in _devices(volume, knob))
        return _disk_path(disk, knob) if mine else None
    folder = place_folder(volume, knob.place)
    return f"{folder}/{name}" if folder else None


def is_path_of(name: str, path: str) -> bool:
    """Is it the path of this knob, of any volume?"""
    base, _, disk = name.partition(":")
    knob = find_knob(name)
    if knob is not None and knob.per_disk:
        return path == _disk_path(disk, knob)
    # A knob that only a newer version knows is still restored.
    known = knob is not None or f"{base}:" not in BY_NAME
    return known and path.rpartition("/")[2] == base


def disk_knobs(volume: Volume, name: str) -> tuple[str, ...]:
    """Return the names of a knob of all its disks; empty where one of them lacks it."""
    if volume.kind not in BY_NAME[f"{name}:"].kinds:
        return ()
    return tuple(knob.name for knob in _of_disks(volume, BY_NAME[f"{name}:"]))


def _disk_path(disk: str, knob: Knob) -> str:
    folder = "device" if knob.place is KnobPlace.DISK else "queue"
    return f"/sys/block/{disk}/{folder}/{knob.name}"


def place_folder(volume: Volume, place: KnobPlace) -> str | None:
    """Return the folder of the knobs of `place`; None for a set while no cache is attached.

    A knob of a disk has no folder of the volume.
    """
    if place is KnobPlace.BACKING:
        return f"/sys/block/{volume.name}/bcache"
    if place is KnobPlace.QUEUE:
        return f"/sys/block/{volume.kernel_name}/queue"
    if place is KnobPlace.MESSAGE:
        return f"dm:{dm_reference(volume)}" if volume.mapping else None
    if not volume.set_uuid:
        return None
    internal = "/internal" if place is KnobPlace.CACHE_SET_INTERNAL else ""
    return f"/sys/fs/bcache/{volume.set_uuid}{internal}"


def dm_reference(volume: Volume) -> str:
    """Return the name of the dm device for the kernel: by uuid where it has one; names change."""
    assert volume.mapping is not None
    uuid = volume.mapping.uuid
    return f"uuid={uuid}" if uuid else volume.mapping.dm_name

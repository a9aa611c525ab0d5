# SPDX-License-Identifier: GPL-2.0-only
"""Builds what is known of a volume now, from the daemon and from sysfs. I/O: reads both."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from ebbgate.cli.context import Context
from ebbgate.cli.daemon_status import Link
from ebbgate.cli.unmanaged import Unmanaged, unmanaged
from ebbgate.doctor.model import device_document
from ebbgate.model.status import KnobStatus, VolumeStatus
from ebbgate.model.status_json import status_to_json
from ebbgate.model.volume import STATE_LEVELS, Volume, VolumeState
from ebbgate.probes.volume_state import read_state
from ebbgate.units import sectors_to_bytes


@dataclass(frozen=True, slots=True)
class VolumeView:
    """A volume as it is now.

    `status`: the daemon's, or what sysfs has. `age_ns`: how old the daemon's is; None without one.
    `unmanaged`: what is said in its place.
    """

    volume: Volume
    state: VolumeState
    status: VolumeStatus
    age_ns: int | None
    unmanaged: Unmanaged

    @property
    def live(self) -> bool:
        """Whether the status is the daemon's."""
        return self.age_ns is not None

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        status = status_to_json(self.status)
        # Of sysfs alone, only what sysfs can know.
        known = status if self.live else {key: status[key] for key in ("mode", *STATE_LEVELS)}
        volume = self.volume
        document: dict[str, Any] = {
            "volume": volume.name,
            "title": volume.title,
            "uuid": volume.uuid or None,
            "kind": str(volume.kind),
            "live": self.live,
            **known,
            "size_bytes": volume.size_bytes,
            "backing": device_document(volume.backing),
            "caches": [device_document(device) for device in volume.caches],
            "knobs": status["knobs"],
        }
        if volume.mapping is not None:
            document["mapping"] = _mapping_document(volume, self.state)
        return document | ({"age_ns": self.age_ns} if self.live else {})


def view_volume(context: Context, link: Link, volume: Volume) -> VolumeView:
    """Return the daemon's status of a volume; what it does not know, or all, is from sysfs.

    Without a status knobs have two more owners: `left behind`, by a daemon that has ended, and
    `unknown`.
    """
    now_ns, state = context.wall_ns(), read_state(context.sysfs, volume, time.monotonic_ns())
    found = link.volume(volume.name, now_ns)
    status = found.status if found else VolumeStatus()
    levels = {each: getattr(state, each) for each in STATE_LEVELS if getattr(status, each) is None}
    owner = "kernel" if found or link.owners_known(volume.name) else "unknown"
    knobs = dict(status.knobs) or {
        name: KnobStatus(value, owner=owner) for name, value in state.knobs.items()
    }
    for entry in link.left_behind:
        if entry.volume == volume.name and entry.knob in knobs:
            value = knobs[entry.knob].value
            knobs[entry.knob] = KnobStatus(value, entry.original, owner="left behind")
    status = replace(
        status, volume=volume.name, title=volume.title, kind=volume.kind, knobs=knobs, **levels
    )
    age_ns = now_ns - found.at_unix_ns if found else None
    return VolumeView(volume, state, status, age_ns, unmanaged(link, volume.name))


def _mapping_document(volume: Volume, state: VolumeState) -> dict[str, Any]:
    """Return names, parts and kernel status of a dm volume."""
    assert volume.mapping is not None
    return {
        "dm_name": volume.mapping.dm_name,
        "lvm_name": volume.mapping.lvm_name or None,
        "kernel_name": volume.kernel_name,
        "block_bytes": sectors_to_bytes(volume.mapping.block_sectors),
        "metadata": device_document(volume.metadata) if volume.metadata else None,
        "status": asdict(state.dm) if state.dm else None,
    }


def daemon_document(link: Link) -> dict[str, Any]:
    """Return whether a daemon runs, and its own status, as JSON."""
    return {
        **(status_to_json(link.daemon) if link.daemon else {}),
        "alive": link.alive,
        "pid": link.pid,
        "age_ns": link.age_ns,
        "answers": link.alive and link.answers,
        "left_behind": [
            {"volume": entry.volume, "knob": entry.knob, "original": entry.original}
            for entry in link.left_behind
        ],
    }


def hidden_document(context: Context) -> dict[str, Any]:
    """Return whether dm volumes are hidden from this process, and why."""
    why = context.sysfs.dm.blocked()
    if not why:
        return {"hidden": False, "hidden_why": None}
    root = context.euid() == 0
    step = "run this where /dev/mapper/control can be opened" if root else "run this as root"
    volumes = "dm-cache and dm-writecache volumes, if any, are not shown"
    return {"hidden": True, "hidden_why": f"cannot query device-mapper ({why}): {volumes}; {step}"}

# SPDX-License-Identifier: GPL-2.0-only
"""Builds a volume's status from the daemon's document or from sysfs. I/O: reads both."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from ebbgate.cli.context import Context
from ebbgate.cli.daemon_status import Link
from ebbgate.doctor.model import device_document
from ebbgate.model.status import DAEMON
from ebbgate.model.volume import STATE_LEVELS, Volume, VolumeState
from ebbgate.probes.volume_state import read_state
from ebbgate.units import sectors_to_bytes


def volume_document(context: Context, link: Link, volume: Volume) -> dict[str, Any]:
    """Return the daemon's status of a volume; without a daemon, what sysfs has.

    `live` tells which one it is. Unknown values are null.
    """
    live = link.volume(volume.name, context.wall_ns())
    state = read_state(context.sysfs, volume, time.monotonic_ns())
    document: dict[str, Any] = {
        "volume": volume.name,
        "title": volume.title,
        "kind": str(volume.kind),
        "live": live is not None,
        "mode": None,
        "size_bytes": volume.size_bytes,
        **{name: getattr(state, name) for name in STATE_LEVELS},
        "backing": device_document(volume.backing),
        "caches": [device_document(device) for device in volume.caches],
        "knobs": {
            name: {"value": value, "original": None, "owner": "kernel"}
            for name, value in state.knobs.items()
        },
    }
    if volume.mapping is not None:
        document["mapping"] = mapping_document(volume, state)
    if live is not None:
        document.update(live.document)
        document["age_ns"] = context.wall_ns() - live.at_unix_ns
    for entry in link.left_behind:
        if entry.volume == volume.name and entry.knob in document["knobs"]:
            knob = document["knobs"][entry.knob]
            knob.update(original=entry.original, owner="left behind")
    return document


def mapping_document(volume: Volume, state: VolumeState) -> dict[str, Any]:
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
    """Return whether a daemon runs, and its own status."""
    status = link.statuses.get(DAEMON)
    return {
        **(status.document if status and link.alive else {}),
        "alive": link.alive,
        "pid": link.pid,
        "answers": link.alive and link.answers,
        "left_behind": [
            {"volume": entry.volume, "knob": entry.knob, "original": entry.original}
            for entry in link.left_behind
        ],
    }

# SPDX-License-Identifier: GPL-2.0-only
"""A device as `status`, `doctor` and the dashboard tell of it. Pure."""

from __future__ import annotations

from typing import Any

from ebbgate.model.volume import Device


def device_document(device: Device) -> dict[str, Any]:
    """A device and its queue."""
    return {
        "name": device.name,
        "devno": f"{device.devno[0]}:{device.devno[1]}",
        "size_bytes": device.size_bytes,
        "rotational": device.rotational,
        "scheduler": device.scheduler,
        "schedulers": list(device.schedulers),
        "nr_requests": device.nr_requests,
        "queue_depth": device.queue_depth,
    }

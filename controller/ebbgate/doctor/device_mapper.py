# SPDX-License-Identifier: GPL-2.0-only
"""Texts for a device-mapper that cannot be queried, with the next step. Pure."""

from __future__ import annotations

_VOLUMES = "dm-cache and dm-writecache volumes"


def of_daemon(why: str) -> str:
    """Return the text for the daemon; `why` as DeviceMapper.blocked gives it."""
    return (
        f"ebbgated cannot query device-mapper ({why}): {_VOLUMES} are not tuned; check"
        " DeviceAllow= and CapabilityBoundingSet= (systemctl cat ebbgated), then run: systemctl"
        " restart ebbgated"
    )


def of_this_process(why: str, *, root: bool) -> str:
    """Return the text for the command line."""
    step = "run this where /dev/mapper/control can be opened" if root else "run this as root"
    return f"cannot query device-mapper ({why}): {_VOLUMES}, if any, are not shown; {step}"

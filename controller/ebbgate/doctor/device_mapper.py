# SPDX-License-Identifier: GPL-2.0-only
"""What to say where device-mapper cannot be asked, each time with the next step. Pure."""

from __future__ import annotations

_VOLUMES = "dm-cache and dm-writecache volumes"


def of_daemon(why: str) -> str:
    """The daemon cannot ask it; `why` as DeviceMapper.blocked gives it."""
    return (
        f"ebbgated cannot ask device-mapper ({why}): {_VOLUMES} are not tuned; check DeviceAllow= "
        "and CapabilityBoundingSet= (systemctl cat ebbgated), then: systemctl restart ebbgated"
    )


def of_this_process(why: str, *, root: bool) -> str:
    """The command itself cannot ask it."""
    step = "run it where /dev/mapper/control may be opened" if root else "run it as root"
    return f"device-mapper cannot be asked ({why}): {_VOLUMES}, if any, are not shown; {step}"

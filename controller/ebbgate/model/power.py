# SPDX-License-Identifier: GPL-2.0-only
"""Whether the disks below a volume turn. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum


class PowerState(StrEnum):
    """The power state of a disk.

    `idle`: it turns and saves some power. `standby`: it does not turn, the next request waits for
    seconds. `unknown`: nothing is known, so never take it for one of the others.
    """

    ACTIVE = "active"
    IDLE = "idle"
    STANDBY = "standby"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DiskPower:
    """A power state. `why`: the reason that it is unknown, or empty."""

    state: PowerState
    why: str = ""


NOT_ASKED = DiskPower(PowerState.UNKNOWN, "not asked yet")
_MOST_AWAKE_FIRST = (PowerState.ACTIVE, PowerState.UNKNOWN, PowerState.IDLE, PowerState.STANDBY)


def of_all(disks: Collection[DiskPower]) -> DiskPower:
    """Return the state of the disk that is most awake. A disk of unknown state may be active."""
    if not disks:
        return DiskPower(PowerState.UNKNOWN, "no disk is known below this volume")
    return min(disks, key=lambda disk: _MOST_AWAKE_FIRST.index(disk.state))

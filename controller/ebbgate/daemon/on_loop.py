# SPDX-License-Identifier: GPL-2.0-only
"""Says why a file is on no cached volume, where a loop device is below it. I/O: sysfs, reads."""

from __future__ import annotations

from ebbgate.errors import ActuationError
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.probes.block import loops_below


def refuse_on_loop(sysfs: Sysfs, path: str, devno: tuple[int, int]) -> None:
    """Raise ActuationError if a loop device is below the device of a file.

    `devno`: as the worker found it. It has followed loop devices that it can follow.
    """
    for name, file in loops_below(sysfs, devno).items():
        raise ActuationError(
            f"{path} is on {name}, a loop device of {file}; its place in that file is not known:"
            " btrfs, device-mapper or md is between them",
            f"name the loop device's file instead: {file}",
        )

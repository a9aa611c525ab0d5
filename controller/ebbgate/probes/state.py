# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel says of a volume, whatever drives its cache. I/O: reads only."""

from __future__ import annotations

from collections.abc import Collection

from ebbgate.kernel.sysfs import Sysfs
from ebbgate.model.volume import Kind, Volume, VolumeState
from ebbgate.probes.bcache_state import read_bcache_state
from ebbgate.probes.dm_state import read_mapped_state


def read_state(
    sysfs: Sysfs,
    volume: Volume,
    now_ns: int,
    previous: VolumeState | None = None,
    fresh: Collection[str] = (),
) -> VolumeState:
    """The volume's state; what is missing makes its field None.

    `previous`, `fresh`: see `read_bcache_state`; a mapped volume is always read whole.
    """
    if volume.kind is Kind.BCACHE:
        return read_bcache_state(sysfs, volume, now_ns, previous, fresh)
    return read_mapped_state(sysfs, volume, now_ns)

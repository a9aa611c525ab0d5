# SPDX-License-Identifier: GPL-2.0-only
"""The knobs of a mapped volume that ebbgate tunes or shows: where they are. Pure.

From drivers/md/dm-cache-target.c and dm.c of Linux 6.1; 6.12 is the same here. dm-cache takes one
setting while it runs, by message; everything else of it needs another table. dm-writecache takes
none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ebbgate.kernel.device_mapper import UUID_REF
from ebbgate.knobs.knob import Form, Knob, Place
from ebbgate.model.volume import Kind, Volume

THRESHOLD: Final = "migration_threshold"
MAX_SECTORS: Final = "max_sectors_kb"
TABLE: Final = "table"
FLUSH: Final = "flush"
KNOBS: Final[tuple[Knob, ...]] = (
    Knob(THRESHOLD, Place.MESSAGE, Form.PLAIN, True, "idle destage under way at once, sectors"),
    Knob(MAX_SECTORS, Place.QUEUE, Form.PLAIN, True, "longest request, KiB; under a block: split"),
)
FLUSH_KNOB: Final = Knob(FLUSH, Place.MESSAGE, Form.TRIGGER, False, "by `ebbgate clean` alone")
TABLE_KNOB: Final = Knob(TABLE, Place.MESSAGE, Form.PLAIN, False, "loaded by `ebbgate clean` alone")
"""No knobs to look at or to tune; but they are written, and the table is put back, as if."""


def knob_path(volume: Volume, knob: str) -> Path | None:
    """The knob's file, or `dm:REF/SETTING`; None where this kind of volume has no such knob."""
    if volume.mapping is None or (volume.kind is Kind.DM_CACHE) == (knob == FLUSH):
        return None
    if knob == MAX_SECTORS:
        return Path("/sys/block") / volume.kernel_name / "queue" / knob
    return Path(f"dm:{reference(volume)}") / knob


def reference(volume: Volume) -> str:
    """How device-mapper is told which device: by uuid where it has one, since names change."""
    assert volume.mapping is not None
    uuid = volume.mapping.uuid
    return f"{UUID_REF}{uuid}" if uuid else volume.mapping.dm_name

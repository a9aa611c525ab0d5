# SPDX-License-Identifier: GPL-2.0-only
"""The knobs of any volume, whatever drives its cache. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ebbgate.model.volume import Kind, Volume
from ebbgate.probes import bcache_knobs, dm_knobs
from ebbgate.probes.knob import Knob

_KNOBS: Final[Mapping[Kind, tuple[Knob, ...]]] = {
    Kind.BCACHE: bcache_knobs.KNOBS,
    Kind.DM_CACHE: dm_knobs.KNOBS,
    Kind.DM_WRITECACHE: (),
}
_ACTIONS: Final = (dm_knobs.TABLE_KNOB, dm_knobs.FLUSH_KNOB)
BY_NAME: Final = {knob.name: knob for knobs in (*_KNOBS.values(), _ACTIONS) for knob in knobs}


def knobs_of(volume: Volume) -> tuple[Knob, ...]:
    """Every knob that volumes of this kind may have."""
    return _KNOBS[volume.kind]


def knob_path(volume: Volume, knob: str) -> Path | None:
    """The knob's file, or `dm:REF/SETTING`; None for one that this volume does not have now."""
    if volume.kind is Kind.BCACHE:
        return bcache_knobs.knob_path(volume, knob)
    return dm_knobs.knob_path(volume, knob)


def same_value(knob: str, written: str, seen: str) -> bool:
    """Is `seen` (rounded by the kernel to one decimal where it is a size) what we wrote?"""
    if written == seen:
        return True
    try:
        ours, theirs = int(written), int(seen)
    except ValueError:
        return False
    return (
        knob in BY_NAME and BY_NAME[knob].form.rounded and abs(ours - theirs) <= max(1, 0.06 * ours)
    )

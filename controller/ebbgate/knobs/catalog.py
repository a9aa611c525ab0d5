# SPDX-License-Identifier: GPL-2.0-only
"""The knobs of any volume, whatever drives its cache. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ebbgate.knobs import bcache, dm_cache
from ebbgate.knobs.knob import Knob
from ebbgate.model.volume import Kind, Volume

_KNOBS: Final[Mapping[Kind, tuple[Knob, ...]]] = {
    Kind.BCACHE: bcache.KNOBS,
    Kind.DM_CACHE: dm_cache.KNOBS,
    Kind.DM_WRITECACHE: (),
}
_ACTIONS: Final = (dm_cache.TABLE_KNOB, dm_cache.FLUSH_KNOB)
BY_NAME: Final = {knob.name: knob for knobs in (*_KNOBS.values(), _ACTIONS) for knob in knobs}


def knobs_of(volume: Volume) -> tuple[Knob, ...]:
    """Every knob that volumes of this kind may have."""
    return _KNOBS[volume.kind]


def knob_path(volume: Volume, knob: str) -> Path | None:
    """The knob's file, or `dm:REF/SETTING`; None for one that this volume does not have now."""
    if volume.kind is Kind.BCACHE:
        return bcache.knob_path(volume, knob)
    return dm_cache.knob_path(volume, knob)


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

# SPDX-License-Identifier: GPL-2.0-only
"""Detects that another table of a dm volume was loaded after ebbgate's writes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ebbgate.model.dm import CacheStatus
from ebbgate.model.volume import VolumeState


def table_reloaded(
    before: VolumeState | None, now: VolumeState, originals: Mapping[str, str]
) -> bool:
    """Was a table loaded? Then the knobs have the kernel's or the table's values, not a user's.

    dm-cache counts promotions and demotions from the last load, and takes its threshold from the
    table. Where nothing was counted yet, only values as they were before us tell of a load.
    """
    then, new = before.dm if before else None, now.dm
    if not isinstance(then, CacheStatus) or not isinstance(new, CacheStatus):
        return False
    if new.promotions < then.promotions or new.demotions < then.demotions:
        return bool(originals)
    if then.promotions or then.demotions:
        return False
    held = originals.items()
    return bool(held) and all(now.knobs.get(knob) == original for knob, original in held)

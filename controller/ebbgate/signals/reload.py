# SPDX-License-Identifier: GPL-2.0-only
"""Detects that another table of a dm volume was loaded after ebbgate's writes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ebbgate.model.dm import CacheStatus
from ebbgate.model.volume import VolumeState


def table_reloaded(
    before: VolumeState | None, now: VolumeState, originals: Mapping[str, str]
) -> bool:
    """Return whether a table was loaded; if so the knobs have its or the kernel's values.

    dm-cache counts promotions and demotions from the last load, and takes its threshold from the
    table. Before anything was counted, only original values show that a table was loaded.
    """
    then, new = before.dm if before else None, now.dm
    if not isinstance(then, CacheStatus) or not isinstance(new, CacheStatus):
        return False
    if new.promotions < then.promotions or new.demotions < then.demotions:
        return bool(originals)
    if then.promotions or then.demotions:
        return False
    return bool(originals) and originals.items() <= now.knobs.items()

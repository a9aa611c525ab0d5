# SPDX-License-Identifier: GPL-2.0-only
"""Whether a mapped volume's table was loaded anew behind our writes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ebbgate.model.dm import CacheStatus
from ebbgate.model.volume import VolumeState


def loaded_anew(before: VolumeState | None, now: VolumeState, originals: Mapping[str, str]) -> bool:
    """Was a table like the old one loaded? Then the kernel's values are back, by no hand.

    dm-cache counts promotions from the last load, and takes its threshold from the table.
    """
    then, new = before.dm if before else None, now.dm
    if not isinstance(then, CacheStatus) or not isinstance(new, CacheStatus):
        return False
    if (new.promotions, new.demotions) >= (then.promotions, then.demotions) > (0, 0):
        return False
    held = originals.items()
    return bool(held) and all(now.knobs.get(knob) == original for knob, original in held)

# SPDX-License-Identifier: GPL-2.0-only
"""Whether users' writes are mostly synchronous, over some time. Pure.

bcache caches such writes up to a higher level of its cache (`forecast`). Beside a database the page
cache writes a few old pages every 5 s, so the share of a single second jumps, and the room for
dirty data would jump with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ebbgate.model.records import Arrivals
from ebbgate.units import NS_PER_S

HALF_LIFE_NS: Final = 30 * NS_PER_S
"""After this time a write counts half: some flushes of the page cache lie in it."""
SHARE_MIN: Final = 0.90
SHARE_KEPT_MIN: Final = 0.85
"""Hysteresis: between the two bounds the answer stays what it was."""


@dataclass(frozen=True, slots=True)
class SyncWrites:
    """Decayed counts of write requests, and whether most are synchronous (not without any)."""

    ios: float = 0.0
    sync_ios: float = 0.0
    mostly: bool = False


def between(before: Arrivals, now: Arrivals) -> Arrivals:
    """Return the requests that came from one count to the next."""
    return Arrivals(now.ios - before.ios, now.bytes - before.bytes, now.sync_ios - before.sync_ios)


def counted(found: SyncWrites, new: Arrivals, elapsed_ns: int) -> SyncWrites:
    """Take in the writes of this time."""
    if not new.ios:
        # Nothing is forgotten while nobody writes.
        return found
    keep = 0.5 ** (elapsed_ns / HALF_LIFE_NS)
    ios = keep * found.ios + new.ios
    sync_ios = keep * found.sync_ios + new.sync_ios
    least = SHARE_KEPT_MIN if found.mostly else SHARE_MIN
    return SyncWrites(ios, sync_ios, sync_ios >= least * ios)

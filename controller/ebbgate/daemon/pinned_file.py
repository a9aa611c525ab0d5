# SPDX-License-Identifier: GPL-2.0-only
"""What is known of one pinned file. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ebbgate.model.pin import Pin, PinState, PinStatus
from ebbgate.text import SHOWN_MAX, clean_text
from ebbgate.units import HOUR_NS, MINUTE_NS, doubled
from ebbgate.warm.pinning import Need

_RETRY_NS: Final = MINUTE_NS
_RETRY_NS_MAX: Final = HOUR_NS
"""A process that hangs in the kernel cannot be ended, so that there must not be many."""
_ELSEWHERE_NS: Final = HOUR_NS
"""Until a file is looked at again that lies on another device: its volume may have moved."""

Layout = tuple[int, int, int]
"""Bytes and pieces of a file, and a number that changes with their places."""


@dataclass(slots=True)
class PinnedFile:
    """What is known of a pinned file.

    `job`: the warm-up under way, or 0. `warmed`: how many there were since it was hot. `first`: the
    number of the place at which the next round begins, since misses may have ended the last one.
    `failures`: so many in a row; `retry_ns`: not touched before that. `elsewhere_ratio`: share of
    the last touches that the cached volume did not see. `elsewhere`: the layout of a file of which
    it saw none, and until when that is taken for granted.
    """

    state: PinState = PinState.ABSENT
    why: str = "not looked at yet"
    size_bytes: int | None = None
    cache_bytes: int = 0
    reads: int = 0
    hit_ratio: float | None = None
    touched_unix_ns: int | None = None
    job: int = 0
    warmed: int = 0
    warmed_ns: int = 0
    first: int = 0
    failures: int = 0
    retry_ns: int = 0
    elsewhere_ratio: float = 0.0
    elsewhere: tuple[Layout, int] | None = None

    def set_need(self, need: Need) -> None:
        """Keep what it takes of the cache."""
        self.size_bytes, self.cache_bytes, self.reads = (
            need.size_bytes,
            need.cache_bytes,
            need.reads,
        )

    def fail(self, why: str, now_ns: int) -> None:
        """Keep that it could not be touched, and when to try again."""
        self.state, self.why = PinState.ABSENT, why
        self.retry_ns = now_ns + doubled(_RETRY_NS, self.failures, _RETRY_NS_MAX)
        self.failures += 1

    def is_elsewhere(self, layout: Layout, now_ns: int) -> bool:
        """Return whether it was found on another device a short time ago, in the same layout."""
        if self.elsewhere is None:
            return False
        known, until_ns = self.elsewhere
        return known == layout and now_ns < until_ns

    def set_elsewhere(self, volume: str, layout: Layout, now_ns: int) -> None:
        """Keep that reads of it do not reach its volume, in whose cache it takes nothing then."""
        if not self.is_elsewhere(layout, now_ns):
            self.elsewhere = layout, now_ns + _ELSEWHERE_NS
        self.state = PinState.ELSEWHERE
        self.why = f"its data is not on {volume}: see ebbgate layout show"
        self.set_need(Need())
        self.hit_ratio = None

    def status(self, pin: Pin, cache_bytes: int | None) -> PinStatus:
        """Return what people see of it."""
        known = cache_bytes and self.size_bytes is not None
        return PinStatus(
            id=pin.id,
            path=clean_text(pin.path, SHOWN_MAX),
            state=self.state,
            who=pin.who,
            why=clean_text(self.why, SHOWN_MAX),
            size_bytes=self.size_bytes,
            cache_ratio=self.cache_bytes / cache_bytes if known and cache_bytes else None,
            hit_ratio=self.hit_ratio,
            since_unix_ns=pin.at_unix_ns,
            touched_unix_ns=self.touched_unix_ns,
        )

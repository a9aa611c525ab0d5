# SPDX-License-Identifier: GPL-2.0-only
"""Cleans a dm volume on request: when that ends, and how long it takes. Pure.

dm-cache writes nothing back while misses come: its policy smq waits for a second without any. The
policy `cleaner` writes back under any load, promotes nothing, forgets how hot blocks were, and
takes another table. So it runs only on request, has an end, and is undone after it.

dm-writecache has the message `flush`, which returns when all dirty data is written back. It leaves
nothing behind, and nothing ends it early.
"""

from __future__ import annotations

from dataclasses import dataclass

from ebbgate.model.dm import CLEANER, CacheStatus, WritecacheStatus
from ebbgate.model.volume import Kind, Volume, VolumeState
from ebbgate.units import NS_PER_S, format_bytes, format_ns

_GRACE_NS = 10 * NS_PER_S
"""Loading a table takes a second or two, and longer while users keep the device busy."""


@dataclass(frozen=True, slots=True)
class Cleaning:
    """A cleaning under way.

    - `until_ns`: it ends then at the latest.
    - `seen`: the policy was seen; for dm-writecache: the message has returned.
    - `ended`: why it is over, while the old table is being loaded.
    """

    since_ns: int
    until_ns: int
    who: str
    dirty_bytes: int
    seen: bool = False
    ended: str = ""


def why_not_clean(volume: Volume, state: VolumeState | None) -> str:
    """Return why this volume cannot be cleaned now; empty if it can."""
    if volume.kind is Kind.BCACHE:
        return "bcache writes back by itself, also under load"
    if state is None or state.dm is None or state.dirty_bytes is None:
        return "its state is unknown"
    if state.state not in ("dirty", "clean"):
        return f"it is {state.state}"
    if isinstance(state.dm, CacheStatus) and state.dm.policy == CLEANER:
        return "the cleaner policy is already loaded, but not by ebbgate"
    if state.cache_mode == "passthrough":
        return "the cache is in passthrough mode, so nothing is dirty"
    return "it is clean" if state.dirty_bytes == 0 else ""


def ending(cleaning: Cleaning, state: VolumeState, now_ns: int) -> str:
    """Return why it is over; empty while it goes on."""
    if isinstance(state.dm, WritecacheStatus):
        return _flushed(cleaning, state, now_ns)
    if isinstance(state.dm, CacheStatus) and state.dm.policy != CLEANER:
        if cleaning.seen:
            return "another table was loaded meanwhile"
        if now_ns - cleaning.since_ns > _GRACE_NS:
            return "the cleaner was not loaded"
    elif state.dirty_bytes == 0 and cleaning.seen:
        return f"clean after {format_ns(now_ns - cleaning.since_ns)}"
    if now_ns >= cleaning.until_ns:
        left = "an unknown amount" if state.dirty_bytes is None else format_bytes(state.dirty_bytes)
        return f"its time is over with {left} dirty"
    return ""


def _flushed(cleaning: Cleaning, state: VolumeState, now_ns: int) -> str:
    """`seen`: the message has returned."""
    if cleaning.seen or state.dirty_bytes == 0:
        return f"flushed after {format_ns(now_ns - cleaning.since_ns)}"
    if now_ns >= cleaning.until_ns:
        return "its time is over; the kernel keeps flushing, which cannot be stopped"
    return ""


def eta_s(cleaning: Cleaning, dirty_bytes: int | None, now_ns: int) -> float | None:
    """Return the seconds until it is clean at the mean rate so far; None if nothing moved yet."""
    if dirty_bytes is None or now_ns <= cleaning.since_ns:
        return None
    gone = cleaning.dirty_bytes - dirty_bytes
    if gone <= 0:
        return None
    return dirty_bytes * (now_ns - cleaning.since_ns) / NS_PER_S / gone

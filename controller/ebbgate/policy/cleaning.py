# SPDX-License-Identifier: GPL-2.0-only
"""Cleaning a dm-cache volume because a person asked for it: when it is over, how long it takes.
Pure.

dm-cache writes nothing back while misses come, however long: its policy smq waits for a second
without any. The policy `cleaner` does under any load, promotes nothing, and forgets how hot blocks
were; it takes another table. So it is a person's choice, has an end, and is undone after it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ebbgate.model.dm import CacheStatus
from ebbgate.model.volume import Kind, Volume, VolumeState
from ebbgate.units import NS_PER_S, format_bytes, format_ns

POLICY = "cleaner"
_GRACE_NS = 10 * NS_PER_S
"""To load a table takes a second or two, and longer while users keep the device busy."""


@dataclass(frozen=True, slots=True)
class Cleaning:
    """A cleaning under way. `until_ns`: it is given up then; `seen`: the policy was there; `ended`:
    why it is over, while the old table is being loaded.
    """

    since_ns: int
    until_ns: int
    who: str
    dirty_bytes: int
    seen: bool = False
    ended: str = ""


def refusal(volume: Volume, state: VolumeState | None) -> str:
    """Why this volume cannot be cleaned now; empty when it can."""
    if volume.kind is not Kind.DM_CACHE:
        return f"{volume.kind} has no cleaner policy"
    if state is None or not isinstance(state.dm, CacheStatus) or state.dirty_bytes is None:
        return "its state is unknown"
    if state.state not in ("dirty", "clean"):
        return f"it is {state.state}"
    if state.dm.policy == POLICY:
        return "somebody else has loaded the cleaner already"
    if state.cache_mode == "passthrough":
        return "a cache in passthrough is clean"
    return "it is clean" if state.dirty_bytes == 0 else ""


def ending(cleaning: Cleaning, state: VolumeState, now_ns: int) -> str:
    """Why it is over; empty while it goes on."""
    if isinstance(state.dm, CacheStatus) and state.dm.policy != POLICY:
        if cleaning.seen:
            return "another table was loaded meanwhile"
        if now_ns - cleaning.since_ns > _GRACE_NS:
            return "the cleaner was not loaded"
    elif state.dirty_bytes == 0 and cleaning.seen:
        return f"clean after {format_ns(now_ns - cleaning.since_ns)}"
    if now_ns >= cleaning.until_ns:
        left = "an unknown rest" if state.dirty_bytes is None else format_bytes(state.dirty_bytes)
        return f"its time is over with {left} dirty"
    return ""


def eta_s(cleaning: Cleaning, dirty_bytes: int | None, now_ns: int) -> float | None:
    """Seconds until it is clean at the mean pace so far; None where nothing has moved yet."""
    if dirty_bytes is None or now_ns <= cleaning.since_ns:
        return None
    gone = cleaning.dirty_bytes - dirty_bytes
    if gone <= 0:
        return None
    return dirty_bytes * (now_ns - cleaning.since_ns) / NS_PER_S / gone

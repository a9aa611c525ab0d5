# SPDX-License-Identifier: GPL-2.0-only
"""Pinned files: what people want to be kept in the cache, and what they see of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CACHE_SHARE_MAX: Final = 0.25
"""Of the cache, for all pinned files of a volume; the setting `pin_limit` changes it."""


class PinState(StrEnum):
    """`warming`: a warm-up reads it. `hot`: the last touches were hits. `cold`: they were not, and
    it is warmed again. `absent`: it cannot be reached now. `too_large`: beyond the limits by now.
    `elsewhere`: no touch has reached the cached volume.
    """

    WARMING = "warming"
    HOT = "hot"
    COLD = "cold"
    ABSENT = "absent"
    TOO_LARGE = "too_large"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class Pin:
    """A file that is pinned until somebody unpins it, or it is gone.

    `id`: 0 before it is kept. `inode` and `generation` tell it from another file of the same path;
    the latter is None where the file system has none. `mount`: where its file system was mounted,
    which tells a file that is gone from one whose file system is not mounted; None for a pin of a
    release that did not ask. `device_uuid`: of the volume (Volume.uuid); empty while it is unknown.
    """

    volume: str
    path: str
    inode: int
    generation: int | None
    who: str
    at_unix_ns: int
    mount: str | None = None
    id: int = 0
    device_uuid: str = ""

    @property
    def owner(self) -> str:
        """Return what tells its volume from others: the uuid, or the name where it is unknown."""
        return self.device_uuid or self.volume


@dataclass(frozen=True, slots=True)
class PinStatus:
    """A pinned file, for people.

    - `why`: why it is in this state; of a hot file, how much of it is on another device, if any.
    - `size_bytes`: what of it can be cached; None before it was opened.
    - `cache_ratio`: share of the cache that this takes: of dm-cache in whole blocks.
    - `hit_ratio`: share of the last touches that were hits, without those of another device; None
      before the first.
    - `touched_unix_ns`: when they ended.
    """

    id: int
    path: str
    state: PinState
    who: str = ""
    why: str = ""
    size_bytes: int | None = None
    cache_ratio: float | None = None
    hit_ratio: float | None = None
    since_unix_ns: int = 0
    touched_unix_ns: int | None = None

# SPDX-License-Identifier: GPL-2.0-only
"""What is to be moved into a cache, and what became of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Promotion:
    """Chunks (`model.heat`) that are to be moved into the cache now.

    - `chunks`: in the order of their worth: the first are the most important.
    - `time_share`: share of time (0..1) in which the mover may read. It reads for seconds at a time
      and rests for seconds, so that users' latency in both can be compared.
    """

    chunks: tuple[int, ...]
    time_share: float


@dataclass(frozen=True, slots=True)
class ChunksMoved:
    """A report of the mover, at least once a second while it reads; an event of the engine.

    - `moved`: chunks that were read and are in the cache.
    - `failed`: chunks that could not be read, or are not in the cache.
      For bcache a sample tells which of the two: one chunk stands for all that were read with it.
    - `busy_ns`: how long the mover's reads took in all since the last report.
    """

    at_ns: int
    moved: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    busy_ns: int = 0


class MoverState(StrEnum):
    """`waiting`: stands back for the reason that is given. `idle`: there is nothing to move."""

    MOVING = "moving"
    WAITING = "waiting"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class MoverStatus:
    """What the mover of a volume does, and what it has done since the daemon follows the volume.

    `why`: why it waits. `other_promotions`: blocks that users' misses have brought into a dm-cache;
    None where the kernel counts none. `promotion_holds`: how often reads of the mover and of
    warm-ups were stopped because more of these came beside them.
    """

    state: MoverState = MoverState.IDLE
    why: str = ""
    moved_chunks: int = 0
    failed_chunks: int = 0
    busy_ns: int = 0
    other_promotions: int | None = None
    promotion_holds: int = 0


class ChunkState(StrEnum):
    """What became of a chunk that was chosen."""

    PENDING = "pending"
    MOVED = "moved"
    HELD_OUT = "held out"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class HotChunk:
    """A chunk that is worth a move. `group`: the file it belongs to, or empty."""

    chunk: int
    state: ChunkState
    miss_iops: float
    group: str = ""


@dataclass(frozen=True, slots=True)
class HotGroup:
    """How many chunks of a file are worth a move; the name is empty for those of no file."""

    name: str
    chunks: int


@dataclass(frozen=True, slots=True)
class PromotionStatus:
    """What promote_hot does.

    - `phase`, `reason`: of the strategy. `mover`, `mover_why`: see `MoverStatus`.
    - `moved_bytes`, `failed_bytes`, `busy_ns`: since the daemon follows the volume. For bcache the
      first two are an estimate from a sample (`ChunksMoved`).
    - `pending_bytes`: chosen and still to be moved; `held_out_bytes`: left out to compare.
    - `saved_ns`, `saved_error_ns`: disk time that moves have saved so far, as measured, with its
      error; `cost_ns`: what they have cost. None before anything was measured.
    - `write_budget_left_bytes`: what may still be written to the cache today (`ssd_writes`); None
      without that limit, or unknown.
    - `other_promotions`, `promotion_holds`: see `MoverStatus`.
    - `groups`, `chunks`: of what is chosen, those with the most first.
    """

    phase: str = "unknown"
    reason: str = ""
    mover: MoverState = MoverState.IDLE
    mover_why: str = ""
    moved_bytes: int = 0
    failed_bytes: int = 0
    busy_ns: int = 0
    time_share: float | None = None
    pending_bytes: int = 0
    held_out_bytes: int = 0
    saved_ns: float | None = None
    saved_error_ns: float | None = None
    cost_ns: float | None = None
    write_budget_left_bytes: float | None = None
    other_promotions: int | None = None
    promotion_holds: int = 0
    groups: tuple[HotGroup, ...] = ()
    chunks: tuple[HotChunk, ...] = ()

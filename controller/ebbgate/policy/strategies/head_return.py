# SPDX-License-Identifier: GPL-2.0-only
"""When a disk's heads are brought back to where users read, after write-back in a gap. Pure.

Write-back leaves the heads where it wrote last, and the request that ends the gap waits for the way
back: in the simulation, where dirty data lies everywhere and users read an eighth of a disk, for
2.6 ms of 8.7. Once nothing of it is under way in a gap, one small read where users read moves the
heads there before users return. It is asked for each time the gate was open: where the gate rests
before a likely return, and where all is clean. A disk with a write cache goes on to write that, and
takes the heads away again. So there it is asked for twice: after half of the time that the cache
may take, since users may return early, and close to its end. It is for gaps of some seconds: in the
lab less was drained with it in gaps of 0.6 s, so a policy has to ask for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ebbgate.model.heat import CHUNK_BYTES, HEAD_READ_BYTES
from ebbgate.policy.strategies.gap_use import GapUse

_PARTS: Final = (0.5, 0.9)
"""Of the time that a disk's own cache may take: when the reads are asked for."""
_SPREAD_CHUNKS: Final = 16
"""A disk has tracks that it has read of late in its own cache, and does not move for them."""


@dataclass(frozen=True, slots=True)
class HeadReturn:
    """Whether the heads are where write-back has left them.

    - `away`: the gate was open in this gap, and reads are still to be asked for since then.
    - `calm_since_ns`: since when nothing of write-back is under way; 0: something may be.
    - `asked`: how many were asked for since then. `count`: how many ever.
    """

    away: bool = False
    calm_since_ns: int = 0
    asked: int = 0
    count: int = 0


def follow(
    head: HeadReturn, gap: GapUse, now_ns: int, *, idle: bool, drains: bool, over: bool
) -> HeadReturn:
    """Ask for reads once nothing of write-back has been under way for long enough.

    `idle`: no requests of users come, which move the heads themselves; `drains`: the gate is open;
    `over`: nothing of write-back is under way.
    """
    if drains or not idle:
        moved = HeadReturn(away=idle, count=head.count)
        return head if moved == head else moved
    if not head.away or not over:
        return head
    if not head.calm_since_ns:
        head = replace(head, calm_since_ns=now_ns)
    hidden_ns = gap.hidden_ns if gap.fill is None else gap.fill.expected_ns
    if now_ns - head.calm_since_ns < _PARTS[head.asked] * hidden_ns:
        return head
    asked, count = head.asked + 1, head.count + 1
    if asked == len(_PARTS) or not hidden_ns:
        return HeadReturn(count=count)
    return replace(head, asked=asked, count=count)


def forget(head: HeadReturn) -> HeadReturn:
    """Return the state while nothing is known: a disk may sleep by the time that something is."""
    return HeadReturn(count=head.count)


def page_offset_bytes(chunk: int, count: int, volume_bytes: int) -> int:
    """Return where to read for the read of this number, close to a chunk and within the volume.

    Each read has another chunk and another page than those before it.
    """
    chunks = max(1, volume_bytes // CHUNK_BYTES)
    near = chunk - _SPREAD_CHUNKS // 2 + 5 * count % _SPREAD_CHUNKS
    pages = min(CHUNK_BYTES, volume_bytes) // HEAD_READ_BYTES
    within = 37 * count % max(1, pages)
    return min(max(0, near), chunks - 1) * CHUNK_BYTES + within * HEAD_READ_BYTES

# SPDX-License-Identifier: GPL-2.0-only
"""Which disks hold destage back by themselves, once their own queue is shallow. Pure.

bcache destages in the idle I/O class while writeback_percent is 0. An I/O scheduler serves that
class last, but only among the requests that it still has: what the disk has taken no scheduler
reorders. With a few requests in the disk the rest waits in the scheduler. bfq then waits for the
next request of a reader and serves the idle class five times a second, so what a gap has left
hardly delays a returning request. mq-deadline serves the idle class between two requests of a
reader: there, and with none, the disk keeps its own depth. In the lab a shallow queue drained less
under mq-deadline, and what a gap had left delayed more requests. dm-crypt gives writes no class
until 6.8 (EBB-110); which scheduler is better above such a kernel was not settled.

All disks below a volume must be alike: the slowest of an array is waited for. A gap of one volume
is none of another on the same disk, so shared disks keep deep queues. dm-cache's destage has no
idle class; there a shallow queue only lets a returning request pass it.
"""

from __future__ import annotations

from typing import Final

from ebbgate.knobs.catalog import QUEUE_DEPTH, SCHEDULER
from ebbgate.model.frame import Frame

HOLDS_BACK: Final = "bfq"


def holds_back(frame: Frame) -> bool:
    """Return whether each disk has bfq, a depth that ebbgate may set, and no other volume."""
    depths = {name for name in frame.knobs if name.startswith(f"{QUEUE_DEPTH}:")}
    if not depths or not depths.isdisjoint(frame.foreign_knobs) or frame.disk_users.volumes:
        return False
    # A multipath device has the scheduler, each path to it a depth.
    words = {word for name, word in frame.knobs.items() if name.startswith(f"{SCHEDULER}:")}
    return words == {HOLDS_BACK}


def described(frame: Frame) -> str:
    """Return schedulers, depths and who shares the disks: `bfq, depth 8`; empty where unknown."""
    words, depths = _values(frame, SCHEDULER), _values(frame, QUEUE_DEPTH)
    if not words:
        return ""
    shared = f", shared with {frame.disk_users}" if str(frame.disk_users) else ""
    return f"{words}, {f'depth {depths}' if depths else 'no depth to set'}{shared}"


def _values(frame: Frame, knob: str) -> str:
    found = {value for name, value in frame.knobs.items() if name.startswith(f"{knob}:")}
    return " and ".join(sorted(found))

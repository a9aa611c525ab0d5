# SPDX-License-Identifier: GPL-2.0-only
"""When write-back under load has written back all that had waited. Pure.

While users write, a cache may never be clean, so that does not tell. The kernel writes in the order
of addresses, round and round (bcache), or the oldest first (dm-cache). So after as much was written
back as was dirty at the begin, what is dirty came later, but for a little.
"""

from __future__ import annotations

from dataclasses import dataclass

from ebbgate.model.frame import Frame
from ebbgate.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class Sweep:
    """`left_bytes`: still to be written back, at `at_ns`. `done_ns`: the end of the last sweep."""

    left_bytes: float = 0.0
    at_ns: int = 0
    done_ns: int = 0


def begin(sweep: Sweep, frame: Frame) -> Sweep:
    """Return the state at the begin of write-back under load."""
    return Sweep(float(frame.dirty_bytes or 0), frame.at_ns, sweep.done_ns)


def on_frame(sweep: Sweep, frame: Frame) -> Sweep:
    """Take in what was written back since the last frame; the next sweep follows the last one."""
    rate = frame.destage_bytes_per_s or 0.0
    left_bytes = sweep.left_bytes - rate * (frame.at_ns - sweep.at_ns) / NS_PER_S
    if left_bytes > 0:
        return Sweep(left_bytes, frame.at_ns, sweep.done_ns)
    return begin(Sweep(done_ns=frame.at_ns), frame)

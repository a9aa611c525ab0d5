# SPDX-License-Identifier: GPL-2.0-only
"""Writes knobs; with the length of a disk's queue, how much of it write-back may take. I/O: sysfs.

With each write of `nr_requests` the kernel sets how many requests mq-deadline takes that nobody
waits for (`iosched/async_depth`): three quarters of the length or, in newer kernels, all of it. But
it takes the length before the write (block/blk-mq.c, blk_mq_update_nr_requests: seen in the lab
with 6.1). So a longer queue would hold no more write-back than the shorter one did; back at its
original length the scheduler would have the depth for ebbgate's, and what a person has chosen would
be lost.
"""

from __future__ import annotations

from typing import Final

from ebbgate.actuators.scheduler_switch import is_length
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.knobs.catalog import IOSCHED, NR_REQUESTS

_ASYNC_DEPTH: Final = f"{IOSCHED}/async_depth"


def write_value(sysfs: Sysfs, knob: str, path: str, value: str) -> None:
    """Write a knob. With the length of a queue the depth stays the kernel's share of it, or the
    number that a person has chosen. Raises OSError.
    """
    if not is_length(knob):
        sysfs.write_text(path, value)
        return
    depth_path = path.removesuffix(NR_REQUESTS) + _ASYNC_DEPTH
    length, depth = sysfs.read_int(path), sysfs.read_int(depth_path)
    sysfs.write_text(path, value)
    new_length = sysfs.read_int(path)
    if length is None or depth is None or new_length is None:
        return
    wanted = _depth_of(new_length, length, depth)
    if sysfs.read_int(depth_path) in (None, wanted):
        # Another scheduler by now has none.
        return
    sysfs.write_text(depth_path, str(wanted))


def _depth_of(new_length: int, length: int, depth: int) -> int:
    if depth == length:
        return new_length
    return _three_quarters(new_length) if depth == _three_quarters(length) else depth


def _three_quarters(length: int) -> int:
    return max(1, length * 3 // 4)

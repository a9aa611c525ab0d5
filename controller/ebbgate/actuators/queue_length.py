# SPDX-License-Identifier: GPL-2.0-only
"""Writes knobs, and the length of a disk's queue without a trace in its scheduler. I/O: sysfs.

With each write of `nr_requests` the kernel sets how many requests mq-deadline takes that nobody
waits for (`iosched/async_depth`): to three quarters of the length or, in newer kernels, to all of
it; and it is the length before the write (block/blk-mq.c, blk_mq_update_nr_requests: seen in the
lab with 6.1). So back at the original length the scheduler would have the depth for ebbgate's, and
what a person has chosen would be lost.
"""

from __future__ import annotations

from typing import Final

from ebbgate.actuators.scheduler_switch import is_length
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.knobs.catalog import IOSCHED, NR_REQUESTS

_ASYNC_DEPTH: Final = f"{IOSCHED}/async_depth"


def write_value(sysfs: Sysfs, knob: str, path: str, value: str) -> None:
    """Write a knob. Of the length of a queue, keep the depth unless it is the kernel's for the
    length before. Raises OSError.
    """
    if not is_length(knob):
        sysfs.write_text(path, value)
        return
    depth_path = path.removesuffix(NR_REQUESTS) + _ASYNC_DEPTH
    length, depth = sysfs.read_int(path), sysfs.read_int(depth_path)
    sysfs.write_text(path, value)
    if length is None or depth is None or depth in (length, max(1, length * 3 // 4)):
        return
    if sysfs.read_int(depth_path) in (None, depth):
        # Another scheduler by now has none.
        return
    sysfs.write_text(depth_path, str(depth))

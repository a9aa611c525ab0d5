# SPDX-License-Identifier: GPL-2.0-only
"""A disk's heads are brought back on a real bcache, and nobody takes that read for load.

I/O: the guest.
"""

from __future__ import annotations

import pytest

from tests.bench import gap_drain
from tests.bench.product import PYTHON, STATE_DIR, Product
from tests.lab.bcache_stack import BcacheStack
from tests.lab.session import Session

DIRTY = gap_drain.Pieces(kib=64, dirty_mib=420, range_mib=512)
BURSTS = 12
RHYTHM = ("--bursts", str(BURSTS), "--reads", "30", "--gap-s", "1.2")
# The bracket keeps the shell from finding itself.
WORKER = "pgrep -f 'ebbgate.warm.[w]orker'"
READ_BYTES = f"sed -n 's/^read_bytes: //p' /proc/$({WORKER})/io"
PRIORITY = f"""{PYTHON} -c 'import ctypes, sys
print(ctypes.CDLL(None).syscall(252, 1, int(sys.argv[1])))' $({WORKER})"""
"""ioprio_get(2) of a process."""
WARM_PRIORITY = "24581"
"""EB_WARM_IOPRIO (bpf/record.h): the probe counts no reads of this priority as load."""


def output(guest: Session, command: str) -> str:
    """What a command prints in the guest; empty where there is no worker."""
    return guest.run(["sh", "-c", command]).stdout.strip()


def misses(product: Product, stack: BcacheStack) -> int:
    """How many of users' requests missed the cache where it is known; told every 10 s."""
    return int(product.live(stack.volume).get("heat", {}).get("misses", 0))


@pytest.mark.parametrize("head_return", [1, pytest.param(0, marks=pytest.mark.full)])
def test_pages_are_read_after_write_back_in_gaps(guest: Session, head_return: int) -> None:
    guest.run(["rm", "-rf", STATE_DIR])
    settings = {**gap_drain.QUIET_CACHE, **gap_drain.OFF, "sequential_cutoff": 0}
    with (
        BcacheStack(guest, settings=settings) as stack,
        gap_drain.shallow_policy(guest, 0, settings=f"head_return: {head_return}"),
        gap_drain.Foreground(stack, 3, *RHYTHM) as foreground,
    ):
        stack.expect_changed("writeback_rate")
        foreground.fill(DIRTY)
        with Product(guest) as product:
            product.wait_until(lambda: misses(product, stack) > 0, 60, "misses to be known")
            result = foreground.finish(180)
            found, priority = int(output(guest, READ_BYTES) or 0), output(guest, PRIORITY)
    assert sum(before - left for before, left in result["gaps"]) > 0, "nothing was written back"
    if head_return:
        assert 4096 <= found <= 3 * BURSTS * 4096
        assert priority == WARM_PRIORITY
    else:
        assert found == 0

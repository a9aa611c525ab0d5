# SPDX-License-Identifier: GPL-2.0-only
"""A disk's heads are brought back on a real bcache, and nobody takes that read for load.

I/O: the guest.
"""

from __future__ import annotations

import pytest

from tests.bench import gap_drain
from tests.bench.product import STATE_DIR, Product
from tests.lab.bcache_stack import BcacheStack
from tests.lab.session import Session

DIRTY = gap_drain.Pieces(kib=64, dirty_mib=420, range_mib=512)
BURSTS = 12
RHYTHM = ("--bursts", str(BURSTS), "--reads", "30", "--gap-s", "1.2")
# The bracket keeps the shell from finding itself.
READ_BYTES = "sed -n 's/^read_bytes: //p' /proc/$(pgrep -f 'ebbgate.warm.[w]orker')/io"
BUSY_EDGES = "SELECT count(*) FROM edges WHERE kind = 'busy'"


def read_bytes(guest: Session) -> int:
    """What the process that reads has had read from devices; 0 while there is none."""
    found = guest.run(["sh", "-c", READ_BYTES])
    return int(found.stdout or 0)


def misses(product: Product, stack: BcacheStack) -> int:
    """How many of users' requests missed the cache where it is known; told every 10 s."""
    return int(product.live(stack.volume)["heat"]["misses"])


@pytest.mark.parametrize("head_return", [1, 0])
def test_one_page_is_read_in_each_foreseen_gap(guest: Session, head_return: int) -> None:
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
            found, (edges,) = read_bytes(guest), product.rows(BUSY_EDGES)[0]
    assert all(before > left for before, left in result["gaps"]), "a gap without write-back"
    # A read that was taken for load would end the gap, and close the gate.
    assert edges <= BURSTS + 2
    if head_return:
        assert BURSTS // 3 * 4096 <= found <= 3 * BURSTS * 4096
    else:
        assert found == 0

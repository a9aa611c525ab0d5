# SPDX-License-Identifier: GPL-2.0-only
"""Runs in the guest: has a disk write out its own cache, again and again in each gap of a volume.

Arguments: the disk, the volume, seconds from the end of a flush to the next.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

QUIET_S = 0.05


def main() -> None:
    """Until killed."""
    disk = os.open(f"/dev/{sys.argv[1]}", os.O_RDONLY)
    stat, pause_s = Path("/sys/block", sys.argv[2], "stat"), float(sys.argv[3])
    before = ""
    while True:
        now = stat.read_text()
        in_flight = now.split()[8]
        if now == before and in_flight == "0":
            os.fsync(disk)
            time.sleep(pause_s)
        before = now
        time.sleep(QUIET_S)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-only
"""Runs in the guest: the unpaced gate, for comparison. Polls the volume's own counters every 5 ms;
after 50 ms without a request writeback_percent goes to 0, at the next request back to 40.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

QUIET_S = 0.05


def main() -> None:
    """Until killed."""
    knobs, stat = Path(sys.argv[1]), Path("/sys/block", sys.argv[2], "stat")
    seen: tuple[str, ...] = ()
    since, wide = time.monotonic(), False
    while True:
        fields = stat.read_text().split()
        now, in_flight = time.monotonic(), fields[8]
        counts = (fields[0], fields[4])
        if counts != seen or in_flight != "0":
            seen, since = counts, now
            if wide:
                (knobs / "writeback_percent").write_text("40")
                (knobs / "writeback_rate").write_text("1")
                wide = False
        elif not wide and now - since > QUIET_S:
            (knobs / "writeback_percent").write_text("0")
            (knobs / "writeback_running").write_text("1")
            wide = True
        time.sleep(0.005)


if __name__ == "__main__":
    main()

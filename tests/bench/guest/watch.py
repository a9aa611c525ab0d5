# SPDX-License-Identifier: GPL-2.0-only
"""Runs in the guest: one line of JSON per period with the dirty level and what ebbgate says of it.

Reads the daemon's live document where there is one; ends when it is killed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

UNITS = {"k": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}


def dirty_mib(path: Path) -> float:
    """The dirty level that the kernel prints (`420.3M`)."""
    text = path.read_text().strip()
    return float(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else float(text) / 2**20


def live(history: Path, volume: str) -> dict[str, Any]:
    """Regime, gate and sentence of the volume; empty without a daemon."""
    # A daemon that is just starting has no file yet, or one without tables.
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(f"file:{history}?mode=ro", uri=True)) as connection,
    ):
        query = "SELECT document FROM live WHERE volume = ?"
        for (text,) in connection.execute(query, (volume,)):
            document = json.loads(text)
            return {"regime": document["regime"], "gate": document["gate"], "now": document["now"]}
    return {}


def main() -> None:
    """Report until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("volume")
    parser.add_argument("--history", type=Path, required=True, help="the daemon's history.db")
    parser.add_argument("--period-s", type=float, default=0.5)
    options = parser.parse_args()
    # Behind everything that is measured.
    os.nice(10)
    dirty = Path("/sys/block") / options.volume / "bcache" / "dirty_data"
    while True:
        moment = {"dirty_mib": dirty_mib(dirty), **live(options.history, options.volume)}
        print(json.dumps(moment), flush=True)
        time.sleep(options.period_s)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-only
"""The daemons of many machines, as far as ebbgate-web sees them:
python -m tests.bench.fleet_machines FOLDER MACHINES VOLUMES

I/O: FOLDER/N/history.db with N from 0, FOLDER/N/control.sock. Each history is one of recordings
(tests/web_history.py), a day long where N is even, else of minutes; from then on each status is
written anew every second, as a daemon does. Prints a line when all are there; until SIGTERM.
"""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from ebbgate.store.db import Store
from ebbgate.store.intent_rows import IntentRow
from tests.control_harness import Outcome, answering
from tests.web_history import Filler, fill

LONG_H, SHORT_H = 24.0, 0.1


def make(folder: Path, machines: int, volumes: int) -> list[Filler]:
    """Make the histories: two different ones, each copied."""
    now_s = int(time.time())
    fillers: list[Filler] = []
    for number in range(machines):
        if number < 2:
            filler = fill(folder / str(number), volumes, (LONG_H, SHORT_H)[number], now_s)
            filler.store.close()
        else:
            (folder / str(number)).mkdir()
            shutil.copy(folder / str(number % 2) / "history.db", folder / str(number))
        parts = fillers[0].parts if fillers else filler.parts
        fillers.append(Filler(Store.open(folder / str(number) / "history.db"), parts))
    return fillers


def write_statuses(filler: Filler, at_s: int) -> None:
    """Write what a daemon writes each second of its volumes and itself."""
    with filler.store.batch():
        for part in filler.parts:
            filler.live(part, at_s)
        filler.daemon(at_s)


def _outcome(_: IntentRow) -> Outcome:
    return False, "nothing is tuned here"


def main() -> None:
    """Make the machines, then write their statuses."""
    folder, machines, volumes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    fillers = make(folder, machines, volumes)
    with ExitStack() as exits:
        for number in range(machines):
            exits.enter_context(answering(folder / str(number) / "control.sock", _outcome))
        print("ready", flush=True)
        while True:
            at_s = int(time.time())
            for filler in fillers:
                write_statuses(filler, at_s)
            time.sleep(max(0.0, at_s + 1 - time.time()))


if __name__ == "__main__":
    main()

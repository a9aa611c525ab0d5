# SPDX-License-Identifier: GPL-2.0-only
"""The variant `files` of kill9-random: the daemon's own processes on a machine of files.

I/O: processes of this machine. A start takes a second here and not ten, so two hundred kills are a
matter of minutes. Every other one comes at any moment from the first instruction on, also into a
start that puts back what the kill before it left; the others come once decisions are made.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from tests.fake_machine import machine
from tests.lab import host
from tests.lab.wait import wait_until
from tests.programs import ENVIRONMENT

LONGEST_S = 3.0
VOLATILE = ("writeback_rate", "trigger_gc")
"""The kernel writes the first one itself; the second one holds nothing."""


class FileMachine:
    """One folder; the daemon dies and lives in it."""

    def __init__(self, folder: Path, *, idle: bool = False) -> None:
        self.folder = folder
        self.log = folder / "log"
        machine.make(folder, ["lab-gap-drain"], idle=idle)
        self.originals = machine.knobs(folder)

    def argv(self, *words: str) -> Sequence[str | Path]:
        """A process of this machine."""
        return ["env", ENVIRONMENT, *machine.argv(self.folder, *words)]

    def start(self) -> host.Running:
        """A daemon with a log of its own."""
        self.log.write_bytes(b"")
        return host.start(self.argv("daemon"), self.log)

    def wait_for_decision(self) -> None:
        """Until the daemon that was started last has said one."""
        wait_until(lambda: ": idle_destage: " in self.log.read_text(), 60, "a decision")

    def changed(self) -> list[str]:
        """Files that are not as they were."""
        now = machine.knobs(self.folder)
        steady = {file for file in self.originals if Path(file).name not in VOLATILE}
        return sorted(file for file in steady if now.get(file) != self.originals[file])

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Of the history as it lies there; none where no daemon came so far as to make one."""
        path = self.folder / "state" / "history.db"
        try:
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as history:
                return history.execute(query).fetchall()
        except sqlite3.OperationalError:
            if path.exists():
                raise
            return []

    def life(self, random: Random, *, restart: bool) -> tuple[dict[str, float], str, float]:
        """A daemon's, from its first instruction to what is left after its death; its log, and
        when it was killed (CLOCK_REALTIME, ms).
        """
        daemon = self.start()
        if restart:
            self.wait_for_decision()
        # The moment is what is random; there is nothing to wait for.
        time.sleep(random.uniform(0.0, LONGEST_S))
        touched, killed_ms = len(self.changed()), time.time_ns() / 1e6
        daemon.kill()
        daemon.wait()
        log = self.log.read_text()
        if restart:
            following = self.start()
            self.wait_for_decision()
            host.stop(following, 30)
        else:
            host.run(self.argv("restore"))
        sound = self.rows("PRAGMA integrity_check") in ([("ok",)], [])
        left = len(self.changed())
        found = {"touched": touched, "left": left, "damaged": not sound}
        return {name: float(value) for name, value in found.items()}, log, killed_ms

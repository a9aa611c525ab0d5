# SPDX-License-Identifier: GPL-2.0-only
"""A history to write at any time: samples by the second, and maintenance with a clock to move.

I/O: SQLite in a folder of the test.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from ebbgate.model.frame import Frame
from ebbgate.store import samples
from ebbgate.store.connection import open_writer
from ebbgate.store.db import Store
from ebbgate.store.limits import HistoryLimits
from ebbgate.store.maintenance import Maintenance
from ebbgate.store.rollup import Row
from ebbgate.store.schema import HISTORY
from ebbgate.units import DAY_NS, MIB, NS_PER_S
from tests.builders import frame

LIMITS = HistoryLimits(256 * MIB, 30 * DAY_NS)
T0_NS = 1_800_000_000_000_000_000
"""The beginning of an hour."""


class StoreHarness:
    """A store, its maintenance, and two clocks: `wall_ns` can be set, `mono_ns` only advances."""

    def __init__(self, folder: Path, limits: HistoryLimits = LIMITS) -> None:
        self.path = folder / "history.db"
        self._open(limits)
        self.wall_ns = T0_NS
        self.mono_ns = 0

    def sample(self, *frames: Frame, at_ns: int | None = None, mode: str | None = None) -> None:
        """Add frames of this second, or of another one."""
        at = self.wall_ns if at_ns is None else at_ns
        self.store.add_samples([(each, at) for each in frames], mode)

    def seconds(self, count: int, name: str = "bcache0", **signals: Any) -> None:
        """Add this many samples, one a second; the clock advances."""
        with self.store.batch():
            for _ in range(count):
                self.sample(frame(name, **signals))
                self.go_on(NS_PER_S)

    def go_on(self, duration_ns: int) -> None:
        """Advance both clocks."""
        self.wall_ns += duration_ns
        self.mono_ns += duration_ns

    def maintain(self) -> None:
        """Run all maintenance that is due."""
        while self.store.maintain(self.maintenance, self.wall_ns, self.mono_ns):
            pass

    def restart(self, limits: HistoryLimits = LIMITS) -> None:
        """Close and reopen the store, as a new daemon does."""
        self.store.close()
        self._open(limits)

    def _open(self, limits: HistoryLimits) -> None:
        self.connection = open_writer(self.path, HISTORY)
        self.store = Store(self.connection)
        self.maintenance = Maintenance(limits)

    def rows(self, span_ns: int, volume: str = "bcache0") -> list[Row]:
        """Return samples of a span, oldest first."""
        with closing(sqlite3.connect(self.path)) as connection:
            return samples.read(connection, volume, 0, 1 << 62, span_ns)

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        found: int = self.query(f"SELECT count(*) FROM {table}")[0][0]
        return found

    def query(self, statement: str, parameters: Iterable[object] = ()) -> list[sqlite3.Row]:
        """Query the file as another program would."""
        with closing(sqlite3.connect(self.path)) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute(statement, tuple(parameters)).fetchall()

    def size_bytes(self) -> int:
        """Return the size of the file and its log."""
        return sum(each.stat().st_size for each in self.path.parent.glob("history.db*"))

# SPDX-License-Identifier: GPL-2.0-only
"""Deletes old rows by age, and by size the cheapest first. I/O: SQLite.

By age, with the defaults: edges 6 hours, decisions 1 day (those for which a knob was written: 7
days), samples of a second 6 hours, of a minute and knob writes 30 days (`history_age`), samples of
an hour, tallies and requests twelve times that.

By size, whatever their age: the oldest rows of the cheapest tier first. Tier by tier, rows keep
half of their time, then a quarter and so on, but no less than the tier's floor; where that is not
enough, the floors are halved in turn. Rows with a time in the future were written with a wrong
clock: age never deletes them, size treats them as old.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ebbgate.store.limits import HistoryLimits
from ebbgate.store.rollup import SECOND_NS
from ebbgate.units import DAY_NS, HOUR_NS, MINUTE_NS

_ROWS: Final = 128
"""Deleted in one transaction: a few milliseconds."""
_SHRINK: Final = (2, 4, 8, 16, 32, 64)
_BELOW: Final = (2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Tier:
    """Rows of equal worth. `keep_ns`: the longest time, never more than `ages` times the setting.

    `key`: the columns that identify a row; `where`: which rows of the table, with a parameter
    `:volume` where `by_volume`.
    """

    table: str
    key: str
    where: str
    floor_ns: int
    keep_ns: int | None = None
    ages: int = 1
    by_volume: bool = True

    def kept_ns(self, limits: HistoryLimits) -> int:
        """Return how long these rows are kept if the size allows it."""
        most_ns = self.ages * limits.age_ns
        return most_ns if self.keep_ns is None else min(self.keep_ns, most_ns)


def _samples(span_ns: int, floor_ns: int, keep_ns: int | None = None, ages: int = 1) -> Tier:
    where = f"volume = :volume AND span_ns = {span_ns}"
    if span_ns == SECOND_NS:
        # What is not rolled up yet must not be deleted.
        where += f""" AND NOT EXISTS (SELECT 1 FROM rollup_due AS due
            WHERE due.span_ns = {MINUTE_NS} AND due.volume = samples.volume
            AND due.at_unix_ns = samples.at_unix_ns - samples.at_unix_ns % {MINUTE_NS})"""
    return Tier("samples", "volume, span_ns, at_unix_ns", where, floor_ns, keep_ns, ages)


TIERS: Final = (
    Tier("edges", "id", "volume = :volume", HOUR_NS, 6 * HOUR_NS),
    Tier("decisions", "id", "acted = 0", HOUR_NS, DAY_NS, by_volume=False),
    _samples(SECOND_NS, HOUR_NS, 6 * HOUR_NS),
    Tier("decisions", "id", "acted = 1", HOUR_NS, 7 * DAY_NS, by_volume=False),
    Tier("actions", "id", "volume = :volume", DAY_NS),
    _samples(MINUTE_NS, DAY_NS),
    _samples(HOUR_NS, 30 * DAY_NS, ages=12),
    Tier("tallies", "volume, at_unix_ns, what, strategy, knob, outcome", "volume = :volume",
         30 * DAY_NS, ages=12),
    Tier("intents", "id", "resolved_unix_ns IS NOT NULL", DAY_NS, ages=12, by_volume=False),
)  # fmt: skip
"""The cheapest first."""


def delete_by_age(connection: sqlite3.Connection, limits: HistoryLimits, now_ns: int) -> int:
    """Delete some rows that are too old; return how many."""
    names = volumes(connection)
    for tier in TIERS:
        gone = delete_rows(connection, tier, names, now_ns - tier.kept_ns(limits), older=True)
        if gone:
            return gone
    return 0


def delete_by_size(connection: sqlite3.Connection, limits: HistoryLimits, now_ns: int) -> int:
    """Delete some of the oldest rows of the cheapest tier; return how many.

    To be called while the file is too large.
    """
    names = volumes(connection)
    for tier, keep_ns in _ladder(limits):
        gone = delete_rows(connection, tier, names, now_ns - keep_ns, older=True)
        gone = gone or delete_rows(connection, tier, names, now_ns + keep_ns, older=False)
        if gone:
            return gone
    return 0


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return the size of the used pages."""
    return (_pragma(connection, "page_count") - free_pages(connection)) * page_bytes(connection)


def free_pages(connection: sqlite3.Connection) -> int:
    """Return the number of unused pages."""
    return _pragma(connection, "freelist_count")


def page_bytes(connection: sqlite3.Connection) -> int:
    """Return the size of a page."""
    return _pragma(connection, "page_size")


def volumes(connection: sqlite3.Connection) -> list[str]:
    """Return every volume with records; one index look-up each."""
    found: set[str] = set()
    for table in ("samples", "actions", "edges", "tallies"):
        name = ""
        while True:
            row = connection.execute(f"SELECT min(volume) FROM {table} WHERE volume > ?", (name,))
            name = row.fetchone()[0]
            if name is None:
                break
            found.add(name)
    return sorted(found)


def _ladder(limits: HistoryLimits) -> Iterator[tuple[Tier, int]]:
    for divisor in _SHRINK:
        for tier in TIERS:
            yield tier, max(tier.kept_ns(limits) // divisor, tier.floor_ns)
    for divisor in _BELOW:
        for tier in TIERS:
            yield tier, tier.floor_ns // divisor
    for tier in TIERS:
        yield tier, 0


def delete_rows(
    connection: sqlite3.Connection, tier: Tier, names: list[str], bound_ns: int, *, older: bool
) -> int:
    """Delete some rows of a tier before (or after) a time; return how many."""
    comparison, order = ("<", "ASC") if older else (">", "DESC")
    statement = f"""DELETE FROM {tier.table} WHERE ({tier.key}) IN (
        SELECT {tier.key} FROM {tier.table} WHERE {tier.where} AND at_unix_ns {comparison} :bound
        ORDER BY at_unix_ns {order} LIMIT {_ROWS})"""
    for volume in names if tier.by_volume else ("",):
        gone = connection.execute(statement, {"volume": volume, "bound": bound_ns}).rowcount
        if gone:
            return gone
    return 0


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value

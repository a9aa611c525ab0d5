# SPDX-License-Identifier: GPL-2.0-only
"""Reads rows of samples as documents, quickly: an hour has 3600. I/O: SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from ebbgate.store.rollup import COLUMNS, IOS, MEASURED, SECOND_NS, Row

_GIVEN: Final = ("volume", "span_ns")
_LATENCY: Final = "latency"
_SHORT: Final = tuple(column for column in MEASURED if column not in (*_GIVEN, _LATENCY))
_LONG: Final = tuple(column for column in COLUMNS if column not in (*_GIVEN, _LATENCY))


def read(
    connection: sqlite3.Connection,
    volume: str,
    since_unix_ns: int,
    until_unix_ns: int,
    span_ns: int,
    *,
    latency: bool = False,
) -> list[Row]:
    """Return the volume's samples of one span in `[since, until)`, oldest first."""
    # In rows of a second, columns that are not measured have the same value in every row.
    columns = _SHORT if span_ns == SECOND_NS else _LONG
    columns += (_LATENCY,) if latency else ()
    cursor = connection.cursor()
    cursor.row_factory = None
    rows = cursor.execute(
        f"""SELECT {", ".join(columns)} FROM samples WHERE volume = ? AND span_ns = ?
            AND at_unix_ns >= ? AND at_unix_ns < ? ORDER BY at_unix_ns""",
        (volume, span_ns, since_unix_ns, until_unix_ns),
    ).fetchall()
    left_out = (*columns, _LATENCY)
    same: Row = dict.fromkeys(column for column in COLUMNS if column not in left_out)
    same |= {"volume": volume, "span_ns": span_ns}
    if span_ns == SECOND_NS:
        same |= {"samples": 1, "covered_ns": span_ns, "known": "{}"}
    return _parsed(columns, rows, same)


def hit_ratio(texts: Sequence[str]) -> float | None:
    """Return the share of reads with all data in the cache; None without reads.

    `texts`: the column `paths` of the rows.
    """
    hits = reads = 0
    for taken in json.loads(f"[{','.join(texts)}]"):
        for name, figures in taken.items():
            if name.startswith("read "):
                ios = figures[IOS] or 0
                reads += ios
                hits += ios if name == "read hit" else 0
    return hits / reads if reads else None


def _parsed(columns: tuple[str, ...], rows: list[tuple[Any, ...]], same: Row) -> list[Row]:
    """Parse all paths in one go, and equal texts only once."""
    number = columns.index("paths")
    paths = json.loads(f"[{','.join([row[number] for row in rows])}]")
    names, constant = (*columns, *same), tuple(same.values())
    seen: dict[str, Any] = {}
    documents_in = ("missing", "known", *(each for each in columns if each == _LATENCY))
    documents = []
    for row, taken in zip(rows, paths, strict=True):
        document = dict(zip(names, row + constant, strict=True))
        document["paths"] = taken
        for column in documents_in:
            text = document[column]
            if text is not None and text not in seen:
                seen[text] = json.loads(text)
            document[column] = seen.get(text)
        documents.append(document)
    return documents

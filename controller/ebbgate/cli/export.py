# SPDX-License-Identifier: GPL-2.0-only
"""Writes rows of the history as CSV or JSON, row by row to save memory. I/O: writes to a stream."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, Final

from ebbgate.cli.output import json_text
from ebbgate.store.rollup import COLUMNS
from ebbgate.text import clean_lines

_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "samples": COLUMNS,
    "decisions": (
        *("id", "volume", "at_unix_ns", "acted"),
        *("gate", "gate_strategy", "sequential_cutoff_bytes", "cutoff_strategy"),
        *("split_requests", "congestion_bypass", "collect_garbage", "proposals"),
        *("promotion", "promotion_strategy"),
    ),
    "actions": (
        *("id", "decision_id", "volume", "at_unix_ns"),
        *("knob", "old", "new", "strategy", "reason"),
        *("outcome", "read_back", "error", "latency_ns"),
    ),
}


def write_rows(
    kind: str, rows: Iterable[Mapping[str, Any]], out: IO[str], *, as_json: bool
) -> None:
    """Write rows of a kind (samples, decisions, actions). In CSV an unknown value is empty."""
    if as_json:
        _write_json(rows, out)
        return
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS[kind])
    for row in rows:
        writer.writerow([_cell(row.get(column)) for column in _COLUMNS[kind]])


def csv_figures(volumes: Iterable[Mapping[str, Any]], out: IO[str]) -> None:
    """Write a report as CSV, one figure per line: `volume,figure,value`."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("volume", "figure", "value"))
    for volume in volumes:
        for figure, value in _flat("", {k: v for k, v in volume.items() if k != "volume"}):
            shown = "unknown" if value is None else value
            writer.writerow([_cell(each) for each in (volume["volume"], figure, shown)])


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _flat(f"{prefix}.{key}" if prefix else key, part)
    elif isinstance(value, list):
        for number, part in enumerate(value):
            name, rest = _named(part, number)
            yield from _flat(f"{prefix}.{name}", rest)
    else:
        yield prefix, value


def _named(part: Any, number: int) -> tuple[str, Any]:
    """Return a name for a row of a list, and the rest of the row.

    A row with a time is named by its number, since the same event may occur twice.
    """
    if not isinstance(part, Mapping) or "at_unix_ns" in part:
        return str(number), part
    about = [key for key in ("strategy", "knob", "path") if key in part]
    rest = {key: value for key, value in part.items() if key not in about}
    return ".".join(str(part[key]) for key in about), rest


def _write_json(rows: Iterable[Mapping[str, Any]], out: IO[str]) -> None:
    """Write one array, one row per line."""
    before = "["
    for row in rows:
        out.write(f"{before}\n{json_text(row)}")
        before = ","
    out.write("\n]\n" if before == "," else "[]\n")


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value)
    return clean_lines(value) if isinstance(value, str) else value

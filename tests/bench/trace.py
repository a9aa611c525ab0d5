# SPDX-License-Identifier: GPL-2.0-only
"""Reads block traces. I/O: reads them; zstd.

A trace is CSV with the columns t_us,op,offset,size,dev, plain or compressed (.zst). None is
shipped: `make bench S=NAME TRACE=FILE`, or several files in quotes.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ebbgate.units import NS_PER_US
from tests.bench.context import Context
from tests.lab import host
from tests.lab.errors import LabError, NoLab

_COLUMNS = ["t_us", "op", "offset", "size", "dev"]


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a trace."""

    at_ns: int
    read: bool
    offset: int
    bytes: int
    device: str


def traces_of(context: Context, scenario: str) -> dict[str, Path]:
    """Return the traces of a run by name."""
    if not context.traces:
        raise LabError(
            "it needs a block trace, and none is shipped; next: make bench"
            f" S={scenario} TRACE=FILE (CSV or .csv.zst with the columns {','.join(_COLUMNS)})"
        )
    return {path.name.split(".")[0]: path for path in context.traces}


def lines_of(path: Path) -> list[str]:
    """Return the lines of a trace."""
    try:
        if path.suffix != ".zst":
            return path.read_text().splitlines()
        if host.find("zstd") is None:
            raise NoLab(f"{path} is compressed; next: install zstd")
        path.stat()
        return host.run(["zstd", "-dcq", "--", path]).splitlines()
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error


def requests_of(lines: Iterable[str]) -> Iterator[Request]:
    """Parse the lines of a trace."""
    rows = csv.reader(lines)
    header = next(rows, [])
    if header != _COLUMNS:
        raise LabError(f"not a trace: its first line is not {','.join(_COLUMNS)}")
    for number, row in enumerate(rows, start=2):
        try:
            at_us, op, offset, size, device = row
            at_ns = int(at_us) * NS_PER_US
            yield Request(at_ns, op == "R", int(offset), int(size), device)
        except ValueError as error:
            raise LabError(f"line {number}: {error}") from error

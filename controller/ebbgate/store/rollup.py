# SPDX-License-Identifier: GPL-2.0-only
"""Merges samples of a volume to rows of a minute or an hour. Pure.

Unknown is never zero: an unknown value has no part in a mean, a sum or a maximum, and what was
never known stays unknown. By column:

    mean of what is known   rates, `dirty_bytes`, `in_use_ratio`, `backing_depth_ios`
                            `idle`, `clean_ratio`: as shares (0..1) of the time
    minimum                 `time_to_full_s`: how near to full it came
    maximum                 `dirty_bytes_max`, `time_to_clean_s`
    sum                     `bypass_bytes`, `gap_destage_bytes`, `samples`, `covered_ns`, and
                            `latency` by bucket
    the last known          `cache_bytes`, and in `missing` the reason of each signal
    what held longest       `regime`; unknown only where it always was
    where all agree         `mode`
    from merged paths       `hit_ratio`

A path (`read hit`) is a list: requests and bytes, as sums; p50 and p99 in ns, as means weighted by
requests, since percentiles cannot be merged exactly; and, in longer spans, the p99 of the worst
second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, Final

from ebbgate.store.latency import merge_latency
from ebbgate.units import HOUR_NS, MINUTE_NS, NS_PER_S

Row = dict[str, Any]
"""A row of `samples` by column, with `paths`, `missing`, `known` and `latency` as documents.

`latency` only where the query asked for it.
"""

Figures = Sequence[int | None]
Paths = Mapping[str, Figures]
IOS, BYTES, P50, P99, P99_WORST = range(5)

SECOND_NS: Final = NS_PER_S
SOURCE_NS: Final[Mapping[int, int]] = {MINUTE_NS: SECOND_NS, HOUR_NS: MINUTE_NS}
"""The span of a roll-up -> the span of the rows that it is made of."""

COLUMNS: Final = (
    *("volume", "span_ns", "at_unix_ns", "regime", "idle"),
    *("read_iops", "read_bytes_per_s", "write_iops", "write_bytes_per_s"),
    *("hit_ratio", "bypass_bytes", "destage_bytes_per_s", "dirty_in_bytes_per_s"),
    *("dirty_bytes", "cache_bytes", "in_use_ratio", "backing_depth_ios"),
    *("time_to_full_s", "time_to_clean_s", "paths", "missing", "samples", "covered_ns", "known"),
    *("mode", "dirty_bytes_max", "clean_ratio", "gap_destage_bytes", "latency"),
)
"""Of the table `samples`, in its order."""

MEASURED: Final = (*COLUMNS[: COLUMNS.index("samples")], "mode", "latency", "gap_destage_bytes")
"""Columns of a sample of a second; the others have defaults there."""

MEANS: Final = (
    *("idle", "read_iops", "read_bytes_per_s", "write_iops", "write_bytes_per_s"),
    *("destage_bytes_per_s", "dirty_in_bytes_per_s", "dirty_bytes"),
    *("in_use_ratio", "backing_depth_ios", "clean_ratio"),
)
_WHOLE: Final = frozenset({"dirty_bytes", "bypass_bytes", "gap_destage_bytes"})
"""Rounded to whole bytes."""


def bucket_ns(at_unix_ns: int, span_ns: int) -> int:
    """Return the start of the minute or hour that contains a time."""
    return at_unix_ns - at_unix_ns % span_ns


def usual_apart_ns(at_unix_ns: Sequence[int]) -> float:
    """Return how far samples of a second are apart: a second, or a tick that is longer.

    `at_unix_ns`: their times, ascending. The median, so that holes do not count.
    """
    apart = [later - earlier for earlier, later in pairwise(at_unix_ns)]
    return max(median(apart), SECOND_NS) if apart else SECOND_NS


def merge(rows: Sequence[Row], at_unix_ns: int, span_ns: int) -> Row:
    """Merge rows of one volume and of the next shorter span, oldest first; at least one."""
    rows = _completed(rows, span_ns) if rows[0]["span_ns"] == SECOND_NS else rows
    paths = merge_paths(row["paths"] for row in rows)
    merged: Row = dict.fromkeys(COLUMNS)
    merged |= {
        "volume": rows[0]["volume"],
        "span_ns": span_ns,
        "at_unix_ns": at_unix_ns,
        "regime": _longest(rows),
        "mode": _agreed(rows),
        "hit_ratio": hit_ratio(paths),
        "cache_bytes": _last(rows, "cache_bytes"),
        "dirty_bytes_max": max(_known(rows, "dirty_bytes_max"), default=None),
        "time_to_full_s": min(_known(rows, "time_to_full_s"), default=None),
        "time_to_clean_s": max(_known(rows, "time_to_clean_s"), default=None),
        "bypass_bytes": _total(rows, "bypass_bytes"),
        "gap_destage_bytes": _total(rows, "gap_destage_bytes"),
        "paths": paths,
        "latency": merge_latency(row.get("latency") for row in rows),
        "missing": {signal: why for row in rows for signal, why in row["missing"].items()},
        "samples": sum(row["samples"] for row in rows),
        "covered_ns": min(span_ns, sum(row["covered_ns"] for row in rows)),
    }
    known = {column: sum(weight(row, column) for row in rows) for column in MEANS}
    merged |= {column: mean(rows, column) for column in MEANS}
    merged["known"] = {c: n for c, n in known.items() if n != merged["samples"]}
    return merged


def weight(row: Row, column: str) -> int:
    """Return how many samples of a row have a known value in a column."""
    if row[column] is None:
        return 0
    known: int = row["known"].get(column, row["samples"])
    return known


def mean(rows: Iterable[Row], column: str) -> float | None:
    """Return the mean of the known values of a column; None without any."""
    weighed = [(row[column], known) for row in rows if (known := weight(row, column))]
    if not weighed:
        return None
    total = sum(value * known for value, known in weighed)
    value: float = total / sum(known for _, known in weighed)
    return round(value) if column in _WHOLE else value


def merge_paths(parts: Iterable[Paths]) -> dict[str, Figures]:
    """Return each path once, sorted by name."""
    by_path: dict[str, list[Figures]] = {}
    for paths in parts:
        for name, figures in paths.items():
            by_path.setdefault(name, []).append(figures)
    return {name: _merged_path(found) for name, found in sorted(by_path.items())}


def hit_ratio(paths: Paths) -> float | None:
    """Return the share of reads with all data in the cache; None without reads."""
    total = sum(figures[IOS] or 0 for name, figures in paths.items() if name.startswith("read "))
    return (paths.get("read hit", (0,))[IOS] or 0) / total if total else None


def _completed(rows: Sequence[Row], span_ns: int) -> list[Row]:
    """Return samples of a second with the columns that only longer rows have.

    With a slow tick a sample covers the time to the next one. Its rates are multiplied by that
    time; its counts are of all of it already.
    """
    apart_ns = usual_apart_ns([row["at_unix_ns"] for row in rows])
    each_ns = min(round(apart_ns), span_ns)
    return [_complete(row, each_ns) for row in rows]


def _complete(row: Row, covered_ns: int) -> Row:
    dirty = row["dirty_bytes"]
    return row | {
        "covered_ns": covered_ns,
        "dirty_bytes_max": dirty,
        "clean_ratio": None if dirty is None else float(dirty == 0),
        "gap_destage_bytes": _gap_destage(row, covered_ns),
    }


def _gap_destage(row: Row, covered_ns: int) -> float | None:
    """Return what was destaged in gaps; in samples of older releases by their last moment."""
    destage, known = row["destage_bytes_per_s"], row["gap_destage_bytes"]
    if destage is None or known is not None:
        return None if known is None else float(known)
    return None if row["idle"] is None else destage * covered_ns / NS_PER_S * row["idle"]


def _merged_path(parts: Sequence[Figures]) -> Figures:
    worst = [part[-1] for part in parts if part[-1] is not None]
    return [
        sum(part[IOS] or 0 for part in parts),
        sum(part[BYTES] or 0 for part in parts),
        _by_requests(parts, P50),
        _by_requests(parts, P99),
        max(worst, default=None),
    ]


def _by_requests(parts: Sequence[Figures], which: int) -> int | None:
    known = [(value, ios) for part in parts if (value := part[which]) and (ios := part[IOS])]
    if not known:
        return None
    return round(sum(value * ios for value, ios in known) / sum(ios for _, ios in known))


def _known(rows: Sequence[Row], column: str) -> list[Any]:
    return [row[column] for row in rows if row[column] is not None]


def _total(rows: Sequence[Row], column: str) -> int | None:
    known = _known(rows, column)
    return round(sum(known)) if known else None


def _last(rows: Sequence[Row], column: str) -> Any:
    known = _known(rows, column)
    return known[-1] if known else None


def _longest(rows: Sequence[Row]) -> str:
    held: Counter[str] = Counter()
    for row in rows:
        held[row["regime"]] += row["samples"] if row["regime"] != "unknown" else 0
    return max(held, key=lambda regime: (held[regime], regime))


def _agreed(rows: Sequence[Row]) -> str | None:
    modes = set(_known(rows, "mode"))
    return modes.pop() if len(modes) == 1 else None

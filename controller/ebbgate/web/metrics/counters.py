# SPDX-License-Identifier: GPL-2.0-only
"""What was counted of a volume since it is followed: counters and histograms. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ebbgate.signals.histogram import COARSE_BUCKETS, coarse_edge_us
from ebbgate.units import NS_PER_S, SECTOR_BYTES
from ebbgate.web.metrics.exposition import Buckets, Page, number
from ebbgate.web.metrics.gauges import Document, mapping

_SHORTEST_US: Final = 8
_EDGES_US: Final = [coarse_edge_us(bucket) for bucket in range(COARSE_BUCKETS)]
_IO_BUCKETS: Final = [
    bucket
    for bucket, edge_us in enumerate(_EDGES_US[:-1])
    if edge_us >= _SHORTEST_US and int(edge_us).bit_count() == 1
]
"""From 8 us to 67 s, one to an octave: twice as many would double the series of each volume."""
_IO_EDGES_S: Final = [_EDGES_US[bucket] / 1e6 for bucket in _IO_BUCKETS]

# Of the probe's histograms by powers of two: bucket i is [2^i, 2^(i+1)) us, or 512 times 2^i bytes.
_GAP_BUCKETS: Final = range(9, 31)
_GAP_EDGES_S: Final = [(2 << bucket) / 1e6 for bucket in _GAP_BUCKETS]
_RUN_BUCKETS: Final = range(2, 22)
_RUN_EDGES_BYTES: Final = [float(SECTOR_BYTES * (2 << bucket)) for bucket in _RUN_BUCKETS]


def add_totals(page: Page, name: str, totals: Document) -> None:
    """All that is known; a daemon of an older version counts nothing."""
    volume = {"volume": name}
    for way, flow in sorted(mapping(totals.get("paths")).items()):
        op, _, path = way.partition(" ")
        _add_flow(page, {**volume, "op": op, "path": path}, mapping(flow))
    for reason, flow in sorted(mapping(totals.get("bypass")).items()):
        page.add("ebbgate_bypass_bytes", {**volume, "reason": reason}, mapping(flow).get("bytes"))
    for op, counts in sorted(mapping(totals.get("run_bytes")).items()):
        runs = Buckets(_RUN_EDGES_BYTES, list(_merged(_counts(counts), _RUN_BUCKETS)), None)
        page.add_histogram("ebbgate_seq_run_bytes", {**volume, "op": op}, runs)
    _add_gaps(page, volume, totals)
    page.add("ebbgate_destage_bytes", volume, mapping(totals.get("destage")).get("bytes"))
    for what, lost in sorted(mapping(totals.get("lost")).items()):
        page.add("ebbgate_probe_lost", {**volume, "what": what}, lost)
    _add_own(page, volume, totals)


def _add_flow(page: Page, labels: Document, flow: Document) -> None:
    total_ns = number(flow.get("latency_sum_ns"))
    page.add("ebbgate_io_bytes", labels, flow.get("bytes"))
    if total_ns is not None:
        counts = list(_merged(_counts(flow.get("latency_counts")), _IO_BUCKETS))
        page.add_histogram(
            "ebbgate_io_seconds", labels, Buckets(_IO_EDGES_S, counts, total_ns / NS_PER_S)
        )


def _add_gaps(page: Page, volume: Document, totals: Document) -> None:
    sum_ns = number(totals.get("gap_sum_ns"))
    if sum_ns is not None:
        counts = list(_merged(_counts(totals.get("gap_counts")), _GAP_BUCKETS))
        gaps = Buckets(_GAP_EDGES_S, counts, sum_ns / NS_PER_S)
        page.add_histogram("ebbgate_idle_gap_seconds", volume, gaps)


def _add_own(page: Page, volume: Mapping[str, Any], totals: Document) -> None:
    """What ebbgate itself did."""
    changes = totals.get("knob_changes")
    for change in map(mapping, changes if isinstance(changes, list) else ()):
        labels = {**volume, "knob": change.get("knob", ""), "actor": change.get("actor", "")}
        page.add("ebbgate_knob_changes", labels, change.get("count"))
    page.add("ebbgate_decisions", volume, totals.get("decisions"))
    for setting, trips in sorted(mapping(totals.get("guard_trips")).items()):
        page.add("ebbgate_guard_trips", {**volume, "setting": setting}, trips)
    since_ns = number(totals.get("since_unix_ns"))
    if since_ns is not None:
        page.add("ebbgate_counting_since_timestamp_seconds", volume, since_ns / NS_PER_S)


def _counts(value: Any) -> Sequence[int]:
    known = isinstance(value, list) and all(type(count) is int for count in value)
    return value if known else ()


def _merged(counts: Sequence[int], buckets: Iterable[int]) -> Iterator[int]:
    """The counts up to and with each of these buckets, and those after the last."""
    begin = 0
    for bucket in buckets:
        yield sum(counts[begin : bucket + 1])
        begin = bucket + 1
    yield sum(counts[begin:])

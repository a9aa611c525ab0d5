# SPDX-License-Identifier: GPL-2.0-only
"""The metrics of one volume: levels, states, knobs, counters, histograms. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ebbgate.knobs.values import metric_value
from ebbgate.model.decision import GateKind
from ebbgate.model.dm import DmHealth
from ebbgate.model.frame import Regime
from ebbgate.model.promotion import PromotionStatus
from ebbgate.model.status import TimedFlowTotals, VolumeStatus, VolumeTotals
from ebbgate.model.volume import DISKLESS, Mode
from ebbgate.signals.histogram import COARSE_BUCKETS, coarse_edge_us
from ebbgate.units import NS_PER_S, SECTOR_BYTES
from ebbgate.web.metrics.families import Buckets, Labels, Page, number

HOLD: Final = "hold"
_OTHER: Final = "other"
_MODES: Final = (*map(str, Mode), HOLD)
_GATES: Final = tuple(map(str, GateKind))
_REGIMES: Final = tuple(map(str, Regime))
# bcache's words (drivers/md/bcache/sysfs.c), then those of dm volumes.
_STATES: Final = (
    *("no cache", "clean", "dirty", "inconsistent", "suspended"),
    *(str(each) for each in DmHealth if each is not DmHealth.OK),
    _OTHER,
)
_LEVELS: Final = {
    "ebbgate_dirty_data_bytes": "dirty_bytes",
    "ebbgate_dirty_room_bytes": "room_bytes",
    "ebbgate_cache_size_bytes": "cache_bytes",
    "ebbgate_in_use_ratio": "in_use_ratio",
    "ebbgate_time_to_full_seconds": "time_to_full_s",
    "ebbgate_time_to_clean_seconds": "time_to_clean_s",
    "ebbgate_backing_queue_requests": "backing_depth_ios",
}
_SCALES: Final = {"0.25": -2, "0.5": -1, "1": 0, "2": 1, "4": 2}
"""Sizes of the cache whose hit ratio is modelled, by their octave."""
_ABOUT: Final = ("kind", "title", "policy", "overlay", "cache_mode")


def add_volume(page: Page, name: str, status: VolumeStatus) -> None:
    """Add what is known of the volume now: levels, states, knobs."""
    volume = {"volume": name}
    # An empty label is the same as none, so an unknown title makes no other series.
    about = {key: getattr(status, key) or "" for key in _ABOUT}
    page.add("ebbgate_volume", {**volume, **about}, 1)
    for metric, key in _LEVELS.items():
        page.add(metric, volume, getattr(status, key))
    page.add_ns("ebbgate_idle_wait_seconds", volume, status.wait_ns)
    page.add_ns("ebbgate_disturbance_seconds", volume, status.disturbance_ns)
    _add_states(page, volume, status)
    if status.promotion is not None:
        _add_promotion(page, volume, status.promotion)
    for scale, octaves in _SCALES.items():
        hits = status.miss_ratio.hit_ratio(octaves) if status.miss_ratio else None
        page.add("ebbgate_modelled_hit_ratio", {**volume, "scale": scale}, hits)
    for knob, about_knob in sorted(status.knobs.items()):
        found = metric_value(knob, about_knob.value)
        if found is not None:
            unit, value = found
            page.add("ebbgate_knob_value", {**volume, "knob": knob, "unit": unit}, value)
        manual = about_knob.owner == "manual"
        # Of a value that is no number, such as an I/O scheduler, only what somebody has changed.
        if found is not None or manual:
            page.add("ebbgate_knob_manual", {**volume, "knob": knob}, manual)


def _add_promotion(page: Page, volume: Labels, status: PromotionStatus) -> None:
    page.add("ebbgate_promoted_bytes", volume, status.moved_bytes)
    page.add("ebbgate_promotion_failed_bytes", volume, status.failed_bytes)
    page.add_ns("ebbgate_promotion_busy_seconds", volume, status.busy_ns)
    page.add_ns("ebbgate_promotion_saved_seconds", volume, status.saved_ns)
    page.add_ns("ebbgate_promotion_saved_error_seconds", volume, status.saved_error_ns)
    page.add("ebbgate_promotion_time_share", volume, status.time_share)
    page.add("ebbgate_promotion_pending_bytes", volume, status.pending_bytes)
    page.add("ebbgate_promotion_write_budget_bytes", volume, status.write_budget_left_bytes)
    page.add("ebbgate_promotion_other_blocks", volume, status.other_promotions)
    page.add("ebbgate_promotion_holds", volume, status.promotion_holds)


def _add_states(page: Page, volume: Labels, status: VolumeStatus) -> None:
    page.add_states("ebbgate_mode", volume, _MODES, HOLD if status.frozen else status.mode)
    # Not the driver's word; to an alert a volume without a disk is one that has failed.
    state = str(DmHealth.FAILED) if status.state == DISKLESS else status.state
    state = state if state in (None, *_STATES) else _OTHER
    page.add_states("ebbgate_volume_state", volume, _STATES, state)
    page.add_states("ebbgate_regime", volume, _REGIMES, status.regime)
    gate = status.gate.kind if status.gate else None
    page.add_states("ebbgate_gate_state", volume, _GATES, gate)


# ---- counters -----------------------------------------------------------------------------------
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


def add_totals(page: Page, name: str, totals: VolumeTotals) -> None:
    """Add what was counted since the volume is followed; an older daemon counts nothing."""
    volume = {"volume": name}
    for way, flow in sorted((totals.paths or {}).items()):
        op, _, path = way.partition(" ")
        _add_flow(page, {**volume, "op": op, "path": path}, flow)
    for reason, bypass in sorted((totals.bypass or {}).items()):
        page.add("ebbgate_bypass_bytes", {**volume, "reason": reason}, bypass.bytes)
    for op, counts in sorted((totals.run_bytes or {}).items()):
        runs = Buckets(_RUN_EDGES_BYTES, _merged(counts, _RUN_BUCKETS), None)
        page.add_histogram("ebbgate_seq_run_bytes", {**volume, "op": op}, runs)
    sum_ns = number(totals.gap_sum_ns)
    if sum_ns is not None:
        gaps = _merged(totals.gap_counts or (), _GAP_BUCKETS)
        buckets = Buckets(_GAP_EDGES_S, gaps, sum_ns / NS_PER_S)
        page.add_histogram("ebbgate_idle_gap_seconds", volume, buckets)
    if totals.destage is not None:
        page.add("ebbgate_destage_bytes", volume, totals.destage.bytes)
    for what, lost in sorted((totals.lost or {}).items()):
        page.add("ebbgate_probe_lost", {**volume, "what": what}, lost)
    _add_own(page, volume, totals)


def _add_flow(page: Page, labels: Labels, flow: TimedFlowTotals) -> None:
    page.add("ebbgate_io_bytes", labels, flow.bytes)
    total_ns = number(flow.latency_sum_ns)
    if total_ns is not None:
        counts = _merged(flow.latency_counts, _IO_BUCKETS)
        buckets = Buckets(_IO_EDGES_S, counts, total_ns / NS_PER_S)
        page.add_histogram("ebbgate_io_seconds", labels, buckets)


def _add_own(page: Page, volume: Labels, totals: VolumeTotals) -> None:
    """Add what ebbgate itself did."""
    for each in totals.knob_changes:
        labels = {**volume, "knob": each.knob, "actor": each.actor}
        page.add("ebbgate_knob_changes", labels, each.count)
    page.add("ebbgate_decisions", volume, totals.decisions)
    page.add_ns("ebbgate_dirty_age_seconds", volume, totals.dirty_age_ns)
    if totals.cache_writes is not None:
        writes = totals.cache_writes
        labels = {**volume, "device": writes.device}
        page.add("ebbgate_cache_written_bytes", labels, writes.bytes)
    for setting, rollbacks in sorted(totals.rollbacks.items()):
        page.add("ebbgate_rollbacks", {**volume, "setting": setting}, rollbacks)
    page.add_ns("ebbgate_counting_since_timestamp_seconds", volume, totals.since_unix_ns)


def _merged(counts: Sequence[int], buckets: Sequence[int]) -> list[int]:
    """Return the counts up to and including each of these buckets, then those after the last."""
    ends = [bucket + 1 for bucket in buckets]
    return [sum(counts[begin:end]) for begin, end in pairwise([0, *ends, None])]

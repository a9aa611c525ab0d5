# SPDX-License-Identifier: GPL-2.0-only
"""Every metric (name, type, unit, meaning), and a collector of their samples. Pure.

Base units only; the words are node_exporter's where it has one. A value that is None is left out:
unknown is never zero. prometheus_client writes the text, in OpenMetrics and in the older format.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

from ebbgate.units import NS_PER_S

_LABEL_MAX: Final = 128
"""Characters of a label's value; no name of a volume or a rule is longer."""
_COUNT_MAX: Final = 1 << 63
"""No count of anything here is as large; some larger ones do not even fit into a float."""

Labels = Mapping[str, object]


class Type(StrEnum):
    """As OpenMetrics calls them; the older format writes `info` and `stateset` as gauges."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"
    STATESET = "stateset"


@dataclass(frozen=True, slots=True)
class Family:
    """`name` without `_total` and `_info`, but with its unit where it has one."""

    name: str
    type: Type
    help: str
    unit: str = ""


COUNTER, GAUGE, HISTOGRAM = Type.COUNTER, Type.GAUGE, Type.HISTOGRAM

FAMILIES: Final = (
    Family("ebbgate_up", GAUGE, "1: the daemon runs; 0: nothing is tuned, and only ages and sizes"
           " of files are shown."),
    Family("ebbgate_build", Type.INFO, "The version that serves this page."),
    Family("ebbgate_sample_age_seconds", GAUGE, "Age of the status of a volume. Beyond 30 s"
           " everything else of the volume is left out.", "seconds"),
    Family("ebbgate_start_time_seconds", GAUGE, "When the daemon started, Unix time.", "seconds"),
    Family("ebbgate_probe_state", Type.STATESET, "State of the probe."),
    Family("ebbgate_probe_restarts", COUNTER, "How often the probe was restarted."),
    Family("ebbgate_history_written", GAUGE, "1: the history can be written; 0: tuning continues"
           " without it."),
    Family("ebbgate_history_dropped", COUNTER, "Records lost while the history could not be"
           " written."),
    Family("ebbgate_history_file_bytes", GAUGE, "Size of the file of the history.", "bytes"),
    Family("ebbgate_history_log_bytes", GAUGE, "Size of the log of the history. It stays near"
           " 4 MiB unless a program keeps reading the history.", "bytes"),
    Family("ebbgate_history_limit_bytes", GAUGE, "Limit of file and log together"
           " (history_size).", "bytes"),
    Family("ebbgate_policy_problems", GAUGE, "Errors in policy files; `ebbgate status` names"
           " them."),
    # Of a volume:
    Family("ebbgate_volume", Type.INFO, "Kind, title and policy of a volume."),
    Family("ebbgate_mode", Type.STATESET, "Mode of the volume."),
    Family("ebbgate_volume_state", Type.STATESET, "State that the cache driver reports; `other`"
           " for an unknown one."),
    Family("ebbgate_regime", Type.STATESET, "Kind of load of users."),
    Family("ebbgate_gate_state", Type.STATESET, "Gate of write-back; released: the kernel's own"
           " settings."),
    Family("ebbgate_io_seconds", HISTOGRAM, "Latency of users' requests at the volume, by path"
           " through the cache. The sum is computed from the middles of the probe's buckets and is"
           " accurate to an eighth.", "seconds"),
    Family("ebbgate_io_bytes", COUNTER, "Bytes of users' requests that were answered.", "bytes"),
    Family("ebbgate_bypass_bytes", COUNTER, "Bytes that skipped the cache, by the kernel's reason.",
           "bytes"),
    Family("ebbgate_seq_run_bytes", HISTOGRAM, "Each byte of users' requests is one observation"
           " of the length that its sequential run had reached, so the count is bytes, too. A"
           " bucket holds the bytes of runs shorter than `le`, which a sequential cutoff of `le`"
           " would not bypass. There is no sum.", "bytes"),
    Family("ebbgate_idle_gap_seconds", HISTOGRAM, "Gaps between users' requests with nothing in"
           " flight; those under a millisecond may be missing.", "seconds"),
    Family("ebbgate_idle_wait_seconds", GAUGE, "Idle time after which write-back begins, learned"
           " from the gaps.", "seconds"),
    Family("ebbgate_disturbance_seconds", GAUGE, "How much longer requests took right after the"
           " last gap in which data was written back.", "seconds"),
    Family("ebbgate_dirty_data_bytes", GAUGE, "Data in the cache that is newer than the backing"
           " device.", "bytes"),
    Family("ebbgate_dirty_age_seconds", GAUGE, "How long there has been dirty data without a break,"
           " at most since the daemon follows the volume; missing while there is none.", "seconds"),
    Family("ebbgate_dirty_room_bytes", GAUGE, "Dirty data that still fits until the kernel stops"
           " caching writes.", "bytes"),
    Family("ebbgate_cache_size_bytes", GAUGE, "Size of the cache.", "bytes"),
    Family("ebbgate_modelled_hit_ratio", GAUGE, "Share of reads that a cache of `scale` times the"
           " size would hit, by a model: least recently used blocks of 4 KiB, from a sample.",
           "ratio"),
    Family("ebbgate_in_use_ratio", GAUGE, "Share of the cache in use, dirty or clean.", "ratio"),
    Family("ebbgate_time_to_full_seconds", GAUGE, "Time until the kernel stops caching writes, at"
           " this rate; 0 if it is full, missing while dirty data does not grow.", "seconds"),
    Family("ebbgate_time_to_clean_seconds", GAUGE, "Time until no dirty data is left, at this rate;"
           " missing while it does not shrink.", "seconds"),
    Family("ebbgate_destage_bytes", COUNTER, "Dirty data that reached the backing device.",
           "bytes"),
    Family("ebbgate_cache_written_bytes", COUNTER, "Written to the cache device since boot: data of"
           " users, copies from the backing device, metadata. Volumes may share a device.",
           "bytes"),
    Family("ebbgate_promoted_bytes", COUNTER, "Hot data that was moved into the cache.", "bytes"),
    Family("ebbgate_promotion_failed_bytes", COUNTER, "Hot data that could not be read, or that"
           " the cache did not take.", "bytes"),
    Family("ebbgate_promotion_busy_seconds", COUNTER, "How long the reads of these moves took.",
           "seconds"),
    Family("ebbgate_promotion_saved_seconds", GAUGE, "Disk time of users that moves have saved so"
           " far, measured against data that was held out. It falls where moves do harm.",
           "seconds"),
    Family("ebbgate_promotion_saved_error_seconds", GAUGE, "Error of"
           " ebbgate_promotion_saved_seconds.", "seconds"),
    Family("ebbgate_promotion_time_share", GAUGE, "Share of time in which hot data may be"
           " moved."),
    Family("ebbgate_promotion_pending_bytes", GAUGE, "Hot data that is still to be moved.",
           "bytes"),
    Family("ebbgate_promotion_write_budget_bytes", GAUGE, "What may still be written to the cache"
           " today before moves end (`ssd_writes` of the policy); negative if more was written.",
           "bytes"),
    Family("ebbgate_promotion_other_blocks", COUNTER, "Blocks that users' misses have brought into"
           " a dm-cache: its promotions less those of warm-ups and moves."),
    Family("ebbgate_promotion_holds", COUNTER, "How often reads of warm-ups and moves were stopped"
           " because users' misses were promoted more often beside them."),
    Family("ebbgate_backing_queue_requests", GAUGE, "Requests in flight at the backing device."),
    Family("ebbgate_knob_value", GAUGE, "Value of a kernel setting, in the base unit that the"
           " label names."),
    Family("ebbgate_knob_manual", GAUGE, "1: changed by someone else, so ebbgate leaves it alone"
           " until `ebbgate release`."),
    Family("ebbgate_knob_changes", COUNTER, "Writes that changed a knob, by strategy;"
           " override: a user set it; manual: someone else wrote it."),
    Family("ebbgate_decisions", COUNTER, "Decisions that differed from the previous one."),
    Family("ebbgate_rollbacks", COUNTER, "How often the rollback guard rolled a setting"
           " back because users waited longer after it."),
    Family("ebbgate_probe_lost", COUNTER, "Records that the probe dropped; streams: pushed out of"
           " its table, which a random load does all the time and which loses no bytes; reuse:"
           " samples for ebbgate_modelled_hit_ratio, which a fast load has too many of."),
    Family("ebbgate_counting_since_timestamp_seconds", GAUGE, "When the counters of the volume"
           " began, Unix time.", "seconds"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Buckets:
    """A histogram: `counts` by bucket, whose upper edges are `edges`; more counts than edges are
    above the last one. `total`: the sum of all values, None where it is unknown.
    """

    edges: Sequence[float]
    counts: Sequence[int]
    total: float | None


class Page(Collector):
    """Collects the samples of one page; a name that is not in the table is a bug."""

    def __init__(self) -> None:
        self._metrics = {
            each.name: Metric(each.name, each.help, each.type, each.unit) for each in FAMILIES
        }

    def collect(self) -> Iterable[Metric]:
        """Return the families that have a sample, in the order of the table."""
        return [each for each in self._metrics.values() if each.samples]

    def add(self, name: str, labels: Labels, value: object) -> None:
        """Add a sample if the value is a number."""
        known = number(value)
        if known is not None:
            suffix = {Type.COUNTER: "_total", Type.INFO: "_info"}
            self._put(name, suffix.get(Type(self._metrics[name].type), ""), labels, known)

    def add_ns(self, name: str, labels: Labels, value_ns: object) -> None:
        """Add a sample in seconds if the time or duration is a number."""
        known_ns = number(value_ns)
        if known_ns is not None:
            self.add(name, labels, known_ns / NS_PER_S)

    def add_states(
        self, name: str, labels: Labels, states: Iterable[str], state: str | None
    ) -> None:
        """Add a sample for each possible state if the current one is known; that one is 1."""
        for each in states if state is not None else ():
            self._put(name, "", {**labels, name: each}, float(each == state))

    def add_histogram(self, name: str, labels: Labels, buckets: Buckets) -> None:
        """Add cumulative buckets; count and sum only where the sum is known."""
        below = list(accumulate(buckets.counts))
        count = below[-1] if below else 0
        for index, edge in enumerate(buckets.edges):
            so_far = below[index] if index < len(below) else count
            self._put(name, "_bucket", {**labels, "le": repr(float(edge))}, so_far)
        self._put(name, "_bucket", {**labels, "le": "+Inf"}, count)
        if buckets.total is not None:
            self._put(name, "_count", labels, count)
            self._put(name, "_sum", labels, buckets.total)

    def text(self, *, openmetrics: bool) -> str:
        """Return the page in OpenMetrics, or in the older text format."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        page: bytes = (generate_openmetrics if openmetrics else generate_latest)(registry)
        return page.decode()

    def _put(self, name: str, suffix: str, labels: Labels, value: float) -> None:
        # Half of a surrogate pair cannot be written as UTF-8.
        cleaned = {
            key: str(each)[:_LABEL_MAX].encode("utf-8", "replace").decode()
            for key, each in labels.items()
        }
        self._metrics[name].add_sample(name + suffix, cleaned, value)


def number(value: object) -> float | None:
    """Return a value as a number that a metric can have; None for anything else."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int):
        return value if abs(value) < _COUNT_MAX else None
    return value if isinstance(value, float) and math.isfinite(value) else None

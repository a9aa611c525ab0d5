# SPDX-License-Identifier: GPL-2.0-only
"""Every metric: its name, type, unit and meaning. Pure data.

Base units only; the words are node_exporter's where it has one. What is decided by somebody else
(is the daemon there) comes first, then the daemon, then each volume.
"""

from __future__ import annotations

from typing import Final

from ebbgate.web.metrics.exposition import Family, Type

COUNTER, GAUGE, HISTOGRAM = Type.COUNTER, Type.GAUGE, Type.HISTOGRAM

_OF_ALL: Final = (
    Family("ebbgate_up", GAUGE, "1: the daemon is there; 0: nobody tunes, and all but ages and"
           " sizes of files is left out."),
    Family("ebbgate_build", Type.INFO, "The version that serves this page."),
    Family("ebbgate_sample_age_seconds", GAUGE, "Since the daemon last said anything of a volume."
           " Beyond 30 s everything else of the volume is left out.", "seconds"),
    Family("ebbgate_start_time_seconds", GAUGE, "When the daemon started, Unix time.", "seconds"),
    Family("ebbgate_probe_state", Type.STATESET, "What the probe does."),
    Family("ebbgate_probe_restarts", COUNTER, "How often the probe was started again."),
    Family("ebbgate_history_written", GAUGE, "1: the history can be written; 0: tuning goes on"
           " without it."),
    Family("ebbgate_history_dropped", COUNTER, "Records lost while the history could not be"
           " written."),
    Family("ebbgate_history_file_bytes", GAUGE, "Size of the history's file.", "bytes"),
    Family("ebbgate_history_log_bytes", GAUGE, "Size of the log of the history. It stays near"
           " 4 MiB unless a program keeps reading the history.", "bytes"),
    Family("ebbgate_history_limit_bytes", GAUGE, "What file and log may have together"
           " (history_size).", "bytes"),
    Family("ebbgate_policy_problems", GAUGE, "Errors in policy files; `ebbgate status` names"
           " them."),
)  # fmt: skip
_OF_A_VOLUME: Final = (
    Family("ebbgate_volume", Type.INFO, "What a volume is, and the policy that runs on it."),
    Family("ebbgate_mode", Type.STATESET, "How far ebbgate goes with the volume."),
    Family("ebbgate_volume_state", Type.STATESET, "The cache driver's own word for the volume;"
           " `other` for one that is not known here."),
    Family("ebbgate_regime", Type.STATESET, "What the load of users looks like."),
    Family("ebbgate_gate_state", Type.STATESET, "How destage is let through; released: the"
           " kernel's own settings."),
    Family("ebbgate_io_seconds", HISTOGRAM, "Latency of users' requests at the volume, by the way"
           " that they took through the cache. The sum is made of the middles of the probe's"
           " buckets and good to an eighth.", "seconds"),
    Family("ebbgate_io_bytes", COUNTER, "Bytes of users' requests that were answered.", "bytes"),
    Family("ebbgate_bypass_bytes", COUNTER, "Bytes that skipped the cache, by the kernel's reason.",
           "bytes"),
    Family("ebbgate_seq_run_bytes", HISTOGRAM, "Each byte of users' requests is one observation,"
           " of the length that its sequential run had reached: the count is bytes, too. A bucket"
           " holds the bytes of runs shorter than `le`, those which a sequential cutoff of `le`"
           " would not bypass. There is no sum.", "bytes"),
    Family("ebbgate_idle_gap_seconds", HISTOGRAM, "Gaps between users' requests with nothing in"
           " flight; those under a millisecond may be missing.", "seconds"),
    Family("ebbgate_idle_wait_seconds", GAUGE, "The quiet after which destage begins, learned from"
           " the gaps.", "seconds"),
    Family("ebbgate_dirty_data_bytes", GAUGE, "Data in the cache that is newer than the backing"
           " device.", "bytes"),
    Family("ebbgate_dirty_room_bytes", GAUGE, "What the kernel still takes as dirty data before it"
           " stops caching writes.", "bytes"),
    Family("ebbgate_cache_size_bytes", GAUGE, "Size of the cache.", "bytes"),
    Family("ebbgate_in_use_ratio", GAUGE, "Share of the cache in use, dirty or clean.", "ratio"),
    Family("ebbgate_time_to_full_seconds", GAUGE, "At this pace the kernel stops caching writes in"
           " so long; missing while the dirty data does not grow.", "seconds"),
    Family("ebbgate_time_to_clean_seconds", GAUGE, "At this pace no dirty data is left in so long;"
           " missing while it does not shrink.", "seconds"),
    Family("ebbgate_destage_bytes", COUNTER, "Dirty data that reached the backing device.",
           "bytes"),
    Family("ebbgate_backing_queue_requests", GAUGE, "Requests under way on the backing device."),
    Family("ebbgate_knob_value", GAUGE, "A setting of the kernel as it stands, in the base unit"
           " that the label names."),
    Family("ebbgate_knob_manual", GAUGE, "1: somebody else changed it, so ebbgate leaves it alone"
           " until `ebbgate release`."),
    Family("ebbgate_knob_changes", COUNTER, "Writes that changed a knob, by strategy; wish: a"
           " person asked ebbgate; manual: somebody wrote over ours."),
    Family("ebbgate_decisions", COUNTER, "Decisions that differed from the one before."),
    Family("ebbgate_guard_trips", COUNTER, "How often the no-regret guard took a setting back,"
           " since users waited longer after it."),
    Family("ebbgate_probe_lost", COUNTER, "What the probe could not count; streams: pushed out of"
           " its table, which a random load does all the time and which loses no bytes."),
    Family("ebbgate_counting_since_timestamp_seconds", GAUGE, "When the counters of the volume"
           " began, Unix time.", "seconds"),
)  # fmt: skip
FAMILIES: Final = (*_OF_ALL, *_OF_A_VOLUME)

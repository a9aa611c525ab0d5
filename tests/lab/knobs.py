# SPDX-License-Identifier: GPL-2.0-only
"""The knobs of a bcache volume, and how their values are read.

Pure. A knob's name is its path below /sys/block/<volume>/bcache/, in which `cache/` leads to the
cache set; `hdd:`, `ssd:` and `volume:` start a path below /sys/block/<that device>/.
"""

from __future__ import annotations

BACKING = (
    "sequential_cutoff",
    "cache_mode",
    "readahead_cache_policy",
    "writeback_percent",
    "writeback_rate_update_seconds",
    "writeback_rate_minimum",
    "writeback_rate_p_term_inverse",
    "writeback_rate_i_term_inverse",
    "writeback_consider_fragment",
    "writeback_rate_fp_term_low",
    "writeback_rate_fp_term_mid",
    "writeback_rate_fp_term_high",
    "writeback_delay",
    "writeback_running",
    "writeback_metadata",
    "stop_when_cache_set_failed",
    "io_error_limit",
    "io_disable",
    "label",
)

CACHE_SET = (
    "cache/congested_read_threshold_us",
    "cache/congested_write_threshold_us",
    "cache/journal_delay_ms",
    "cache/io_error_limit",
    "cache/io_error_halflife",
    "cache/errors",
    "cache/synchronous",
    "cache/internal/idle_max_writeback_rate",
    "cache/internal/gc_after_writeback",
    "cache/internal/copy_gc_enabled",
    "cache/internal/gc_always_rewrite",
    "cache/internal/btree_shrinker_disabled",
    "cache/internal/io_disable",
    "cache/cache0/cache_replacement_policy",
    "cache/cache0/discard",
)

QUEUES = tuple(
    f"{device}:queue/{name}"
    for device in ("volume", "hdd", "ssd")
    for name in ("scheduler", "nr_requests", "read_ahead_kb", "max_sectors_kb", "rotational")
)

# Not here: writeback_rate. The kernel's own control loop rewrites it every few seconds, so a new
# value says nothing about who touched it.
WATCHED = (*BACKING, *CACHE_SET, *QUEUES)

_UNITS = "kMGTPE"


def selected(text: str) -> str:
    """The chosen word of a knob that lists its choices: `none [mq-deadline]` is mq-deadline."""
    if "[" in text:
        return text.partition("[")[2].partition("]")[0]
    return text


def bytes_from_human(text: str) -> int:
    """Bytes from what bcache prints: 4.0M.

    The kernel keeps one digit after the point and cuts the rest (bch_hprint, util.c), so the
    true value is up to a tenth of the unit above the result.
    """
    number, unit = (text[:-1], text[-1]) if text[-1] in _UNITS else (text, "")
    whole, _, tenths = number.partition(".")
    scale: int = 1024 ** (_UNITS.index(unit) + 1 if unit else 0)
    return (int(whole) * 10 + int(tenths or 0)) * scale // 10

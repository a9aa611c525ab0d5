# SPDX-License-Identifier: GPL-2.0-only
"""The knobs of a bcache volume, and how their values are read.

Pure. A knob's name is its path below /sys/block/<volume>/bcache/, in which `cache/` leads to the
cache set; `hdd:`, `ssd:` and `volume:` start a path below /sys/block/<that device>/.
"""

from __future__ import annotations

from ebbgate.knobs.catalog import KNOBS
from ebbgate.knobs.knob import KnobPlace

# The kernel's own control loop rewrites writeback_rate every few seconds, so a new value says
# nothing about who touched it. The cutoffs are parameters of the module.
_NOT_COMPARED = ("writeback_rate", "cutoff_writeback", "cutoff_writeback_sync")
_FOLDERS = {
    KnobPlace.BACKING: "",
    KnobPlace.CACHE_SET: "cache/",
    KnobPlace.CACHE_SET_INTERNAL: "cache/internal/",
}
_IN_CATALOG = tuple(
    f"{_FOLDERS[knob.place]}{knob.name}"
    for knob in KNOBS
    if knob.place in _FOLDERS and knob.readable and knob.name not in _NOT_COMPARED
)

# Knobs that ebbgate neither shows nor writes: they must not change either.
_OTHERS = (
    "writeback_rate_fp_term_low",
    "writeback_rate_fp_term_mid",
    "writeback_rate_fp_term_high",
    "io_error_limit",
    "io_disable",
    "label",
    "cache/io_error_limit",
    "cache/io_error_halflife",
    "cache/errors",
    "cache/synchronous",
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
    for name in (
        "scheduler",
        "nr_requests",
        "read_ahead_kb",
        "max_sectors_kb",
        "rotational",
        "wbt_lat_usec",
    )
)

QUEUE_DEPTH = "hdd:device/queue_depth"
"""A virtio disk has none."""

SCHEDULER = "hdd:queue/scheduler"
TUNABLES = "hdd:queue/iosched/"
"""Which there are depends on the scheduler."""

WATCHED = (*_IN_CATALOG, *_OTHERS, *QUEUES, QUEUE_DEPTH)

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

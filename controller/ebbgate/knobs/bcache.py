# SPDX-License-Identifier: GPL-2.0-only
"""The knobs of a bcache volume that ebbgate tunes or shows: where they are, how they print. Pure.

From drivers/md/bcache/sysfs.c of Linux 6.1; 6.12 has the same set, 5.10 lacks the fragment terms.
Stores take plain decimal numbers only; some reads are rounded for humans (`bch_hprint`), so what is
read back is often not what was written, and not writable either.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ebbgate.knobs.knob import Form, Knob, Place
from ebbgate.model.volume import Volume

KNOBS: Final[tuple[Knob, ...]] = (
    Knob("sequential_cutoff", Place.BACKING, Form.SIZE, True, "run length that bypasses, bytes"),
    Knob(
        "writeback_percent", Place.BACKING, Form.PLAIN, True, "dirty level that the kernel aims at"
    ),
    Knob("writeback_rate", Place.BACKING, Form.RATE, True, "destage rate now, sectors/s"),
    Knob("writeback_rate_minimum", Place.BACKING, Form.PLAIN, True, "destage floor, sectors/s"),
    Knob(
        "writeback_rate_update_seconds", Place.BACKING, Form.PLAIN, True, "period of the rate loop"
    ),
    Knob("writeback_delay", Place.BACKING, Form.PLAIN, True, "pause after a full scan, s"),
    Knob("writeback_running", Place.BACKING, Form.PLAIN, True, "destage on; a write of 1 wakes it"),
    Knob(
        "writeback_rate_p_term_inverse", Place.BACKING, Form.PLAIN, False, "rate loop, proportional"
    ),
    Knob("writeback_rate_i_term_inverse", Place.BACKING, Form.PLAIN, False, "rate loop, integral"),
    Knob("writeback_consider_fragment", Place.BACKING, Form.PLAIN, False, "faster when fragmented"),
    Knob("writeback_metadata", Place.BACKING, Form.PLAIN, False, "nothing in the kernel reads it"),
    Knob(
        "cache_mode", Place.BACKING, Form.CHOICE, False, "persists; each change costs a disk write"
    ),
    Knob("readahead_cache_policy", Place.BACKING, Form.CHOICE, False, "what readahead may cache"),
    Knob(
        "stop_when_cache_set_failed", Place.BACKING, Form.CHOICE, False, "what a lost cache means"
    ),
    Knob(
        "congested_read_threshold_us",
        Place.SET,
        Form.PLAIN,
        True,
        "bypass a slower cache read, us",
    ),
    Knob("congested_write_threshold_us", Place.SET, Form.PLAIN, True, "bypass a slower write, us"),
    Knob("journal_delay_ms", Place.SET, Form.PLAIN, False, "delay of journal writes, ms"),
    Knob(
        "idle_max_writeback_rate", Place.INTERNAL, Form.PLAIN, True, "the kernel's own idle destage"
    ),
    Knob("trigger_gc", Place.INTERNAL, Form.TRIGGER, True, "a write collects garbage"),
    Knob("gc_after_writeback", Place.INTERNAL, Form.PLAIN, False, "collect garbage once clean"),
    Knob(
        "cutoff_writeback", Place.INTERNAL, Form.PLAIN, False, "stops caching async writes, percent"
    ),
    Knob(
        "cutoff_writeback_sync", Place.INTERNAL, Form.PLAIN, False, "stops caching writes, percent"
    ),
)
BY_NAME: Final = {knob.name: knob for knob in KNOBS}


def folder(volume: Volume, place: Place) -> Path | None:
    """The folder that holds the knobs of `place`; None for a set while no cache is attached."""
    if place is Place.BACKING:
        return Path("/sys/block") / volume.name / "bcache"
    if not volume.set_uuid:
        return None
    cache_set = Path("/sys/fs/bcache") / volume.set_uuid
    return cache_set / "internal" if place is Place.INTERNAL else cache_set


def knob_path(volume: Volume, knob: str) -> Path | None:
    """The knob's file; None for a knob of the cache set while no cache is attached.

    Raises KeyError for a name that is not in `KNOBS`.
    """
    place = BY_NAME[knob].place
    where = folder(volume, place)
    return where / knob if where is not None else None

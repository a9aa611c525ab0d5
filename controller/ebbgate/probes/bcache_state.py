# SPDX-License-Identifier: GPL-2.0-only
"""Reads what sysfs says of a bcache volume: dirty level, room and knobs. I/O: sysfs, reads only.

Each of these reads takes bcache's global register lock for a moment (SHOW_LOCKED in sysfs.c), so a
registration elsewhere may hold one up for seconds: call from a thread, never from an event loop.
The files that walk the btree or sort buckets (`bset_tree_stats`, `priority_stats`) are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ebbgate import units
from ebbgate.model.volume import Volume, VolumeState
from ebbgate.probes.bcache_knobs import (
    KNOBS,
    Form,
    Place,
    chosen,
    folder,
    knob_path,
    parse_value,
)
from ebbgate.sysfs import Sysfs

__all__ = ["knob_path", "read_knobs", "read_state"]


def read_state(
    sysfs: Sysfs, volume: Volume, now_ns: int, previous: VolumeState | None = None
) -> VolumeState:
    """The volume's state; a file that is missing makes its field None.

    With `previous`, only what the load itself moves is read (4 files instead of 25): knobs, cache
    mode and size are taken over, so a caller that ticks fast does a full read once a second.
    """
    own = _backing_folder(volume)
    return VolumeState(
        at_ns=now_ns,
        state=sysfs.read_text(own / "state"),
        cache_mode=previous.cache_mode if previous else _choice(sysfs, own / "cache_mode"),
        dirty_bytes=_size(sysfs, own / "dirty_data"),
        cache_bytes=previous.cache_bytes if previous else _cache_bytes(sysfs, volume),
        in_use_ratio=_in_use_ratio(sysfs, volume),
        knobs=_with_fresh_rate(sysfs, volume, previous) if previous else read_knobs(sysfs, volume),
    )


def read_knobs(sysfs: Sysfs, volume: Volume) -> Mapping[str, str]:
    """Every knob that this kernel has, by name, in the unit in which the kernel takes it."""
    found: dict[str, str] = {}
    for knob in KNOBS:
        path = knob_path(volume, knob.name) if knob.form is not Form.TRIGGER else None
        text = sysfs.read_text(path) if path else None
        if text is not None:
            found[knob.name] = parse_value(knob.form, text)
    return found


def _with_fresh_rate(sysfs: Sysfs, volume: Volume, previous: VolumeState) -> Mapping[str, str]:
    """The kernel's rate loop rewrites `writeback_rate` by itself; nothing else moves unasked."""
    text = sysfs.read_text(_backing_folder(volume) / "writeback_rate")
    if text is None:
        return previous.knobs
    return {**previous.knobs, "writeback_rate": parse_value(Form.RATE, text)}


def _backing_folder(volume: Volume) -> Path:
    where = folder(volume, Place.BACKING)
    assert where is not None
    return where


def _size(sysfs: Sysfs, path: Path) -> int | None:
    text = sysfs.read_text(path)
    try:
        return None if text is None else max(0, units.parse_hprint(text))
    except ValueError:
        return None


def _choice(sysfs: Sysfs, path: Path) -> str | None:
    text = sysfs.read_text(path)
    return None if text is None else chosen(text)


def _cache_bytes(sysfs: Sysfs, volume: Volume) -> int | None:
    """Buckets times their size, as the kernel's target does it (writeback.c:__calc_target_rate)."""
    where = folder(volume, Place.SET)
    if where is None:
        return None
    buckets = [sysfs.read_int(path) for path in sysfs.glob(str(where / "cache[0-9]*" / "nbuckets"))]
    bucket_bytes = _size(sysfs, where / "bucket_size")
    if not buckets or bucket_bytes is None or None in buckets:
        return None
    return bucket_bytes * sum(count for count in buckets if count is not None)


def _in_use_ratio(sysfs: Sysfs, volume: Volume) -> float | None:
    """The kernel compares `in_use` with its cutoffs and shows 100 minus it."""
    where = folder(volume, Place.SET)
    available = sysfs.read_int(where / "cache_available_percent") if where else None
    return None if available is None else (100 - available) / 100

# SPDX-License-Identifier: GPL-2.0-only
"""Reads what sysfs says of a bcache volume: dirty level, room and knobs. I/O: sysfs, reads only.

Each of these reads takes bcache's global register lock for a moment (SHOW_LOCKED in sysfs.c), so a
registration elsewhere may hold one up for seconds, as it does every write of a knob. The files that
walk the btree or sort buckets (`bset_tree_stats`, `priority_stats`) are left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

from ebbgate import units
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.knobs.catalog import BY_NAME, knob_path, knobs_of, place_folder
from ebbgate.knobs.knob import KnobPlace, ValueForm, parse_value
from ebbgate.model.volume import Volume, VolumeState


def read_bcache_state(
    sysfs: Sysfs,
    volume: Volume,
    now_ns: int,
    previous: VolumeState | None = None,
    fresh: Collection[str] = (),
) -> VolumeState:
    """The volume's state; a file that is missing makes its field None.

    With `previous`, only what the load itself moves and the `fresh` knobs are read (4 files instead
    of 25): the other knobs, cache mode and size are taken over, so a caller that ticks fast does
    without `previous` now and then.
    """
    state, dirty, available = _level_files(volume)
    knobs = _refreshed(sysfs, volume, previous, fresh) if previous else read_knobs(sysfs, volume)
    return VolumeState(
        at_ns=now_ns,
        state=sysfs.read_text(state),
        cache_mode=knobs.get("cache_mode"),
        dirty_bytes=_size(sysfs, dirty),
        cache_bytes=previous.cache_bytes if previous else _cache_bytes(sysfs, volume),
        in_use_ratio=_in_use_ratio(sysfs, available),
        knobs=knobs,
    )


def read_knobs(sysfs: Sysfs, volume: Volume) -> Mapping[str, str]:
    """Every knob that this kernel has, by name, in the unit in which the kernel takes it."""
    found: dict[str, str] = {}
    for name, form, path in _readable(volume):
        text = sysfs.read_text(path)
        if text is not None:
            found[name] = parse_value(form, text)
    return found


@lru_cache(maxsize=64)
def _readable(volume: Volume) -> tuple[tuple[str, ValueForm, str], ...]:
    """Name, form and file of every knob that can be read; putting paths together costs more than
    the reads.
    """
    paths = [(knob, knob_path(volume, knob.name)) for knob in knobs_of(volume)]
    return tuple(
        (knob.name, knob.form, path) for knob, path in paths if path is not None and knob.readable
    )


def _refreshed(
    sysfs: Sysfs, volume: Volume, previous: VolumeState, fresh: Collection[str]
) -> Mapping[str, str]:
    """The kernel's rate loop rewrites `writeback_rate` by itself; nothing else moves unasked."""
    found = dict(previous.knobs)
    for name, form, path in _readable(volume):
        if BY_NAME[name].kernel_writes or name in fresh:
            text = sysfs.read_text(path)
            if text is not None:
                found[name] = parse_value(form, text)
    return found


@lru_cache(maxsize=64)
def _level_files(volume: Volume) -> tuple[str, str, str | None]:
    """State, dirty data, and what is available of the cache (None while none is attached)."""
    own = place_folder(volume, KnobPlace.BACKING)
    cache_set = place_folder(volume, KnobPlace.CACHE_SET)
    available = f"{cache_set}/cache_available_percent" if cache_set else None
    return f"{own}/state", f"{own}/dirty_data", available


def _size(sysfs: Sysfs, path: str) -> int | None:
    text = sysfs.read_text(path)
    try:
        return None if text is None else max(0, units.parse_hprint(text))
    except ValueError:
        return None


def _cache_bytes(sysfs: Sysfs, volume: Volume) -> int | None:
    """Buckets times their size, as the kernel's target does it (writeback.c:__calc_target_rate)."""
    where = place_folder(volume, KnobPlace.CACHE_SET)
    if where is None:
        return None
    buckets = [sysfs.read_int(path) for path in sysfs.glob(f"{where}/cache[0-9]*/nbuckets")]
    bucket_bytes = _size(sysfs, f"{where}/bucket_size")
    if not buckets or bucket_bytes is None or None in buckets:
        return None
    return bucket_bytes * sum(count for count in buckets if count is not None)


def _in_use_ratio(sysfs: Sysfs, file: str | None) -> float | None:
    """The kernel compares `in_use` with its cutoffs and shows 100 minus it."""
    available = sysfs.read_int(file) if file else None
    return None if available is None else (100 - available) / 100

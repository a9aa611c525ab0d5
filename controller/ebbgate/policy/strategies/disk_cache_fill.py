# SPDX-License-Identifier: GPL-2.0-only
"""Follows how much a disk's own write cache holds, for write-back that it takes in at once. Pure.

A disk with a write cache takes some hundred blocks of dm-cache in a moment, and then writes them
for seconds, one seek each, between the reads of users who return. The kernel looks for an idle
device once a second, so how much is taken in varies from gap to gap, and no constant rest fits
(`disk_cache` is for bcache, which fills the cache in every gap). So the pieces are counted:

    held(t) = max(0, pieces begun * piece_ns - time passed)

`piece_ns` is a random write of a hard disk of 7200 rpm, and the time that its bytes take, times
`slowness`: what users felt after gaps raises that, gaps in which they felt nothing lower it, and a
gap that fills the cache shows it, since the disk then completes what its platters take. Pieces
also begin after the gate was told to rest, until the kernel knows: as many as in recent gaps are
expected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ebbgate.model.records import QueueSample
from ebbgate.units import MIB, NS_PER_MS, NS_PER_S

SEEK_NS: Final = 6 * NS_PER_MS
"""Half a turn, and a short way of the head: the disk sorts what it holds."""
TRANSFER_BYTES_PER_S: Final = 130 * MIB
_SLOWER_MIN, _SLOWER_MAX, _FASTER = 1.25, 1.5, 0.95
_SLOWNESS_MIN, _SLOWNESS_MAX = 0.2, 8.0
_PAUSE_NS: Final = NS_PER_S
"""After so long without a sample, what was begun meanwhile is not of this gap."""
_FORGET, _FORGET_BOUND = 0.8, 0.998
_SLOWER_ALONE: Final = 1.4
"""While nothing new comes, the disk has less to choose from, and each piece takes longer. One that
is left when users return delays one of their reads, and as many follow as are left.
"""
_CAPACITY_MARGIN: Final = 1.25
HELD_NS_MAX: Final = NS_PER_S // 2
"""So much may be held in a gap that may always end, until users showed whether they feel it. The
gate opens again once nothing is held, which the kernel notices up to a second later.
"""
_HELD_NS_LEAST, _HELD_NS_MOST = NS_PER_S // 10, 60 * NS_PER_S
_LESS, _MORE = 0.6, 1.25
DEPTH_IOS: Final = 8
"""Pieces at once: a cache that takes them in moments takes no more of many, and these all begin."""


@dataclass(frozen=True, slots=True)
class DiskCacheFill:
    """What is known of the disk's cache.

    - `held_ns`: how long the disk goes on with what it has. `piece_ns`: of one piece.
    - `limited`: the gate rested for it in this gap, so a gap that was not felt says something.
    - `late_ios`: pieces that began in this gap after the gate was told to rest; `late_usual_ios`:
      in recent gaps.
    - `most_ns`: what may be held in a gap that may always end.
    - `capacity_ios`: pieces that the cache holds; 0: unknown.
    - `bound`: `slowness` sinks no further, since users felt less; it is forgotten over some gaps.
    """

    held_ns: int = 0
    slowness: float = 1.0
    piece_ns: int = SEEK_NS
    limited: bool = False
    late_ios: int = 0
    late_usual_ios: float = 0.0
    bound: float = _SLOWNESS_MIN
    most_ns: int = HELD_NS_MAX
    capacity_ios: float = 0.0

    @property
    def expected_ns(self) -> int:
        """How long the disk would go on if the gate rested from now on."""
        return self.held_ns + round(self.late_usual_ios * self.piece_ns)


def on_queue(
    fill: DiskCacheFill,
    last: QueueSample | None,
    sample: QueueSample,
    piece_bytes: float,
    *,
    resting: bool = False,
) -> DiskCacheFill:
    """Take in a sample, `last`: the one before. All that is under way counts as begun."""
    piece_ns = round(fill.slowness * (SEEK_NS + piece_bytes / TRANSFER_BYTES_PER_S * NS_PER_S))
    if last is None or not 0 <= sample.at_ns - last.at_ns < _PAUSE_NS:
        return replace(fill, held_ns=sample.under_way_ios * piece_ns, piece_ns=piece_ns)
    begun = max(0, _begun(sample) - _begun(last))
    held_ns = max(0, fill.held_ns - (sample.at_ns - last.at_ns)) + begun * piece_ns
    if fill.capacity_ios:
        held_ns = min(held_ns, round((fill.capacity_ios + sample.under_way_ios) * piece_ns))
    late_ios = fill.late_ios + begun if resting else fill.late_ios
    return replace(fill, held_ns=held_ns, piece_ns=piece_ns, late_ios=late_ios)


def end(fill: DiskCacheFill) -> DiskCacheFill:
    """Return the state after a gap."""
    usual = max(float(fill.late_ios), _FORGET * fill.late_usual_ios)
    return replace(fill, late_ios=0, late_usual_ios=usual)


def calibrated(fill: DiskCacheFill, written_per_s: float, empties_ns: int) -> DiskCacheFill:
    """Return the state for a disk that was seen to write so many pieces; 0: it was not seen.

    `empties_ns`: how long it would take at that rate to write what its cache holds.
    """
    if written_per_s <= 0:
        return fill
    slowness = _SLOWER_ALONE * NS_PER_S / written_per_s / (fill.piece_ns / fill.slowness)
    slowness = min(_SLOWNESS_MAX, max(fill.bound, slowness))
    capacity_ios = _CAPACITY_MARGIN * empties_ns / NS_PER_S * written_per_s
    return replace(fill, slowness=slowness, capacity_ios=capacity_ios)


def unforeseen(fill: DiskCacheFill, felt: bool) -> DiskCacheFill:
    """Return the state after a gap whose end was not foreseen, and whether users felt it."""
    if not fill.limited:
        return fill
    most_ns = round((_LESS if felt else _MORE) * fill.most_ns)
    most_ns = min(_HELD_NS_MOST, max(_HELD_NS_LEAST, most_ns))
    return replace(fill, most_ns=most_ns, limited=False)


def slower(fill: DiskCacheFill, felt_ratio: float) -> DiskCacheFill:
    """Return the state after gaps that users felt; `felt_ratio`: how much over the target."""
    factor = min(_SLOWER_MAX, max(_SLOWER_MIN, felt_ratio))
    slowness = min(_SLOWNESS_MAX, factor * fill.slowness)
    bound = min(slowness, max(fill.bound, _SLOWER_MIN * fill.slowness))
    return replace(fill, slowness=slowness, bound=bound, limited=False)


def faster(fill: DiskCacheFill) -> DiskCacheFill:
    """Return the state after a gap that users did not feel."""
    if not fill.limited:
        return fill
    bound = max(_SLOWNESS_MIN, _FORGET_BOUND * fill.bound)
    slowness = max(bound, _FASTER * fill.slowness)
    return replace(fill, slowness=min(slowness, fill.slowness), bound=bound, limited=False)


def _begun(sample: QueueSample) -> int:
    return sample.done_ios + sample.under_way_ios

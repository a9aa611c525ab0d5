# SPDX-License-Identifier: GPL-2.0-only
"""Learns the miss-ratio curve of one volume from the probe's records. Pure."""

from __future__ import annotations

from typing import Final

from ebbgate.model.records import Direction, ReuseSamples, Tick
from ebbgate.model.status import CURVE_OCTAVES, MissRatioStatus
from ebbgate.signals.miss_ratio import BLOCK_BYTES, SAMPLED_OF, MissRatioCurve
from ebbgate.units import NS_PER_S

READS_MIN: Final = 256
"""With fewer sampled reads no curve is shown: they are those of 256 MiB."""
REFRESH_NS: Final = 10 * NS_PER_S
"""The curve is computed this often, which takes half a millisecond."""
_STEPS: Final = 4
"""Sizes per octave, up to four octaves below and above the present size."""
_RATIO_DIGITS: Final = 4


class VolumeCurve:
    """The curve of one volume; changes in place."""

    def __init__(self) -> None:
        self._curve = MissRatioCurve()
        self._since_ns: int | None = None
        self._sampled_reads = 0
        self._blocks_read = 0
        self._lost = 0
        self._shown = MissRatioStatus(0, 0, READS_MIN)
        self._due_ns = 0

    def on_samples(self, record: ReuseSamples) -> None:
        """Take references to sampled blocks."""
        for reference in record.references:
            write = reference & 1
            self._curve.refer(reference >> 1, read=not write)
            self._sampled_reads += not write

    def on_tick(self, tick: Tick) -> None:
        """Count all reads, which tells whether hot blocks are in the sample.

        Where samples were lost, the sample is taken to have its share of the reads.
        """
        if self._since_ns is None:
            self._since_ns = tick.at_ns
        reads = tick.arrivals[Direction.READ]
        blocks_read = max(reads.ios, reads.bytes // BLOCK_BYTES)
        lost = tick.lost.get("reuse", 0)
        complete = lost == self._lost
        new = blocks_read - self._blocks_read if complete else self._sampled_reads * SAMPLED_OF
        self._curve.count_reads(max(0, new))
        self._curve.advance(tick.at_ns)
        self._blocks_read, self._lost, self._sampled_reads = blocks_read, lost, 0

    def on_tracked(self) -> None:
        """Expect counters that begin at zero."""
        self._blocks_read = self._lost = self._sampled_reads = 0

    def status(self, cache_bytes: int | None, now_ns: int) -> MissRatioStatus:
        """Return the curve around the present size of the cache, as it was lately."""
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + REFRESH_NS
            self._shown = self._computed(cache_bytes, now_ns)
        return self._shown

    def observed_ns(self, now_ns: int) -> int:
        """Return for how long references were seen."""
        return 0 if self._since_ns is None else max(0, now_ns - self._since_ns)

    def _computed(self, cache_bytes: int | None, now_ns: int) -> MissRatioStatus:
        observed_ns = self.observed_ns(now_ns)
        sampled_reads = round(self._curve.reads)
        if not cache_bytes or sampled_reads < READS_MIN:
            return MissRatioStatus(observed_ns, sampled_reads, READS_MIN)
        steps = range(-CURVE_OCTAVES * _STEPS, CURVE_OCTAVES * _STEPS + 1)
        sizes = tuple(round(cache_bytes * 2 ** (step / _STEPS)) for step in steps)
        ratios = tuple(round(ratio, _RATIO_DIGITS) for ratio in self._curve.miss_ratios(sizes))
        return MissRatioStatus(observed_ns, sampled_reads, READS_MIN, sizes, ratios)

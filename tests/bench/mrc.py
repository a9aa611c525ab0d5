# SPDX-License-Identifier: GPL-2.0-only
"""`mrc`: how far the sampled miss-ratio curve is from the exact one. I/O: reads block traces.

All devices of a trace share one cache. The error is the mean of the differences at 100 sizes,
evenly spaced up to all blocks of the trace. Each repetition samples other blocks. Needs no lab.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

from ebbgate.signals.miss_ratio import BLOCK_BYTES, SAMPLED_OF, MissRatioCurve
from ebbgate.signals.reuse import BLOCKS_MAX
from tests.bench.context import Context, Scenario
from tests.bench.report import Report
from tests.bench.stack_distance import Reference, exact_curve
from tests.bench.trace import Request, lines_of, requests_of, traces_of

ERROR_GOAL = "<= 0.02"
_SIZES: Final = 100
_DEVICE_SHIFT: Final = 48
_GOLDEN: Final = 0x9E3779B97F4A7C15
_WORD: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Sampling:
    """One of `sampled_of` blocks is sampled, and `blocks_max` of them are remembered."""

    sampled_of: int = SAMPLED_OF
    blocks_max: int = BLOCKS_MAX


ARMS: Final[Mapping[str, Sampling]] = {
    "ebbgate": Sampling(),
    "small_table": Sampling(blocks_max=256),
    "one_of_16": Sampling(sampled_of=16),
}


def run(context: Context) -> Report:
    """Compare each arm with the exact curve of each trace."""
    runs: dict[str, list[dict[str, float]]] = {}
    ratios: dict[str, float] = {}
    notes = []
    for name, path in traces_of(context, "mrc").items():
        references = references_of(requests_of(lines_of(path)))
        exact = exact_curve(references)
        sizes = [exact.blocks * (i + 1) / _SIZES for i in range(_SIZES)]
        ratios_exact = exact.miss_ratios(sizes)
        notes.append(_summary(name, exact.reads, exact.blocks, ratios_exact))
        for arm, sampling in ARMS.items():
            found = []
            for repetition in range(context.repetitions):
                curve = sampled_curve(references, sampling, context.seed + repetition)
                found.append(_metrics(curve, sizes, ratios_exact))
                context.say(f"{name} {arm:12}" + _words(found[-1]))
            runs[f"{name}_{arm}"] = found
            ratios[f"{name}_{arm}_error"] = median(each["mean_error"] for each in found)
    goals = {each: ERROR_GOAL for each in ratios if each.endswith("_ebbgate_error")}
    return Report("mrc", runs, ratios, goals, notes)


def references_of(requests: Iterable[Request]) -> list[Reference]:
    """Return the blocks that the requests touch."""
    found = []
    for request in requests:
        if not request.bytes:
            continue
        base = int(request.device) << _DEVICE_SHIFT
        first = request.offset // BLOCK_BYTES
        end = -(-(request.offset + request.bytes) // BLOCK_BYTES)
        found += [(base + block, request.read) for block in range(first, end)]
    return found


def sampled_curve(
    references: Iterable[Reference], sampling: Sampling, seed: int = 1
) -> MissRatioCurve:
    """Learn the curve from a sample, as the daemon does. Seed 1: the probe's own choice."""
    curve = MissRatioCurve(sampling.sampled_of, sampling.blocks_max)
    reads = 0
    for block, read in references:
        reads += read
        if is_sampled(block, sampling.sampled_of, seed):
            curve.refer(block, read=read)
    curve.count_reads(reads)
    return curve


def is_sampled(block: int, sampled_of: int, seed: int = 1) -> bool:
    """Whether it is the one of its chunk that is sampled (bpf/reuse.h)."""
    chunk, place = divmod(block, sampled_of)
    return ((chunk + seed) * _GOLDEN & _WORD) * sampled_of >> 64 == place


def _metrics(
    curve: MissRatioCurve, sizes: Sequence[float], exact: Sequence[float]
) -> dict[str, float]:
    found = curve.miss_ratios([round(size * BLOCK_BYTES) for size in sizes])
    errors = [abs(one - other) for one, other in zip(found, exact, strict=True)]
    return {"mean_error": fmean(errors), "max_error": max(errors), "sampled_reads": curve.reads}


def _words(metrics: Mapping[str, float]) -> str:
    return "".join(f"  {name} {value:9.4f}" for name, value in metrics.items())


def _summary(name: str, reads: int, blocks: int, exact: Sequence[float]) -> str:
    tenths = " ".join(f"{ratio:.3f}" for ratio in exact[9::10])
    return f"{name}: {reads} reads and {blocks} blocks of 4 KiB; misses at tenths of them: {tenths}"


SCENARIO = Scenario(
    "mrc",
    "the miss-ratio curve is 0.02 from an exact simulation of real traces (TRACE=FILE)",
    1,
    run,
)

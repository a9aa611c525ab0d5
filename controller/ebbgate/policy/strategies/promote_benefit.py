# SPDX-License-Identifier: GPL-2.0-only
"""What moved chunks have brought, measured against chunks that were held out. Pure.

One of 16 chunks that are worth moving is left where it is, chosen by a hash that knows nothing of
its heat. Held-out and moved chunks differ in nothing else, so the difference of their misses after
the move is the gain, without bias. To compare like with like both are corrected by a factor of
their predictions, which earlier periods have fixed (control variate); that makes the error smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Final

from ebbgate.model.heat import HeatPeriod
from ebbgate.policy.strategies.promote_score import weighted
from ebbgate.units import NS_PER_S

HELD_OUT: Final = 16
"""One of so many eligible chunks is not moved."""
HORIZON_PERIODS: Final = 4
"""A move is expected to pay for this time, and its chunks are watched for it."""
STAND_DOWN_PERIODS: Final = 3
_CONTROLS_MIN: Final = 2
"""With fewer held-out chunks their mean says nothing."""
_NEWEST_WEIGHT: Final = 0.25
_FADE: Final = 0.1
"""Share of what was learned of predictions that is lost in a period without watched chunks."""
_RATIO_MAX: Final = 2.0
_MASK: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Watched:
    """A chunk that was moved or held out at `at_ns`. `rate`: predicted misses per second."""

    at_ns: int
    rate: float
    held_out: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """One period of all watched chunks, in disk time of users' misses.

    `gain_ns`, with its standard error `error_ns`: what the moved ones have saved. `cost_ns`: this
    period's part of the cost of moving them, with what they have displaced. `untouched`: misses of
    the held-out ones by predicted misses.
    """

    moved: int
    held_out: int
    gain_ns: float
    error_ns: float
    predicted_ns: float
    cost_ns: float
    untouched: float = 0.0


@dataclass(frozen=True, slots=True)
class Benefit:
    """What is known of the benefit.

    - `chunks`: watched; `misses`: theirs in the present period, which began at `began_ns`.
    - `ratio`: realised by predicted gain, averaged; `untouched`: see `Measured`.
    - `under`: judged periods in a row in which the averaged gain was below the cost.
    - `gain_ns`, `cost_ns`: averaged; None before anything was judged.
    - `total_*`: since the daemon follows the volume; errors are added up, as if they were the same
      in each period.
    """

    chunks: Mapping[int, Watched] = field(default_factory=dict)
    misses: Mapping[int, float] = field(default_factory=dict)
    began_ns: int = 0
    ratio: float = 1.0
    untouched: float = 0.0
    under: int = 0
    gain_ns: float | None = None
    cost_ns: float | None = None
    last: Measured | None = None
    total_gain_ns: float = 0.0
    total_error_ns: float = 0.0
    total_cost_ns: float = 0.0


@dataclass(frozen=True, slots=True)
class Costs:
    """`service_ns`: disk time of a miss; `move_ns`: of moving a chunk, which pays for `horizon_s`.

    `displaced_rate`: misses per second that each moved chunk causes, since another left for it.
    """

    service_ns: float
    move_ns: float
    displaced_rate: float
    horizon_s: float


def held_out(chunk: int, at_ns: int) -> bool:
    """Return whether a chunk on the list of this time is not moved (splitmix64)."""
    mixed = (chunk * 0x9E3779B97F4A7C15 + at_ns * 0xD1B54A32D192ED03 + 1) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return (mixed ^ (mixed >> 31)) % HELD_OUT == 0


def observe(
    benefit: Benefit, window: HeatPeriod, write_weight: float, unseen_ns: int = 0
) -> Benefit:
    """Count the misses of watched chunks in a window.

    `unseen_ns`: the time before it of which no misses are known; it counts for no period.
    """
    misses = dict(benefit.misses)
    for each in window.chunks:
        if each.chunk in benefit.chunks:
            misses[each.chunk] = misses.get(each.chunk, 0.0) + weighted(each, write_weight)
    began_ns = benefit.began_ns + unseen_ns if benefit.began_ns else window.started_ns
    return replace(benefit, misses=misses, began_ns=began_ns)


def watch(benefit: Benefit, found: Mapping[int, Watched]) -> Benefit:
    """Watch more chunks."""
    return replace(benefit, chunks={**benefit.chunks, **found}) if found else benefit


def close_period(benefit: Benefit, costs: Costs, now_ns: int) -> Benefit:
    """Judge the period that ends, and no longer watch chunks of long ago."""
    found = measure(benefit, costs, now_ns)
    if found is not None:
        benefit = _judge(benefit, found)
    ratio = benefit.ratio if benefit.chunks else benefit.ratio + _FADE * (1 - benefit.ratio)
    since_ns = now_ns - costs.horizon_s * NS_PER_S
    kept = {chunk: each for chunk, each in benefit.chunks.items() if each.at_ns > since_ns}
    return replace(benefit, chunks=kept, misses={}, began_ns=now_ns, ratio=ratio)


def measure(benefit: Benefit, costs: Costs, now_ns: int) -> Measured | None:
    """Compare moved with held-out chunks in the present period; None if there are too few."""
    residuals: dict[bool, list[float]] = {True: [], False: []}
    predicted, misses, seconds = {True: 0.0, False: 0.0}, {True: 0.0, False: 0.0}, 0.0
    for chunk, each in benefit.chunks.items():
        watched_s = (now_ns - max(benefit.began_ns, each.at_ns)) / NS_PER_S
        expected, found = each.rate * watched_s, benefit.misses.get(chunk, 0.0)
        seconds += 0.0 if each.held_out else watched_s
        predicted[each.held_out] += expected
        misses[each.held_out] += found
        residuals[each.held_out].append(found - benefit.untouched * expected)
    controls, moved = residuals[True], residuals[False]
    if len(controls) < _CONTROLS_MIN or len(moved) < _CONTROLS_MIN:
        return None
    (mean, variance), (mean_moved, variance_moved) = _moments(controls), _moments(moved)
    error = sqrt(variance / len(controls) + variance_moved / len(moved))
    scale = len(moved) * costs.service_ns
    cost_ns = costs.move_ns / costs.horizon_s + costs.displaced_rate * costs.service_ns
    return Measured(
        moved=len(moved),
        held_out=len(controls),
        gain_ns=(mean - mean_moved) * scale,
        error_ns=error * scale,
        predicted_ns=predicted[False] * costs.service_ns,
        cost_ns=cost_ns * seconds,
        untouched=misses[True] / predicted[True] if predicted[True] else 0.0,
    )


def _judge(benefit: Benefit, found: Measured) -> Benefit:
    gain_ns = _averaged(benefit.gain_ns, found.gain_ns)
    cost_ns = _averaged(benefit.cost_ns, found.cost_ns)
    ratio = benefit.ratio
    if found.predicted_ns > 0:
        realised = min(max(found.gain_ns / found.predicted_ns, 0.0), _RATIO_MAX)
        ratio = _averaged(ratio, realised)
    return replace(
        benefit,
        ratio=ratio,
        untouched=_averaged(benefit.untouched, found.untouched),
        under=benefit.under + 1 if gain_ns < cost_ns else 0,
        gain_ns=gain_ns,
        cost_ns=cost_ns,
        last=found,
        total_gain_ns=benefit.total_gain_ns + found.gain_ns,
        total_error_ns=benefit.total_error_ns + found.error_ns,
        total_cost_ns=benefit.total_cost_ns + found.cost_ns,
    )


def start_again(benefit: Benefit) -> Benefit:
    """Forget the verdict, so that promotion is tried again; what is watched stays."""
    return replace(benefit, ratio=1.0, under=0, gain_ns=None, cost_ns=None)


def _averaged(before: float | None, newest: float) -> float:
    return newest if before is None else before + _NEWEST_WEIGHT * (newest - before)


def _moments(values: Iterable[float]) -> tuple[float, float]:
    """Return the mean and the variance of at least two values."""
    found = list(values)
    mean = sum(found) / len(found)
    return mean, sum((each - mean) ** 2 for each in found) / (len(found) - 1)

# SPDX-License-Identifier: GPL-2.0-only
"""How each kind of volume is driven: the knobs of its gate, and the writes of each. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from ebbgate.actuators.bcache_steps import (
    GATE_KNOBS,
    Step,
    StepKind,
    base_steps,
    gate_steps,
    write,
)
from ebbgate.knobs.catalog import MAX_SECTORS, PERCENT, RATE, TABLE, THRESHOLD
from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.volume import Kind, Volume
from ebbgate.policy.cleaning import POLICY
from ebbgate.probes.dm_status import parse_cache_table
from ebbgate.units import KIB, sectors_to_bytes


@dataclass(frozen=True, slots=True)
class GatePlan:
    """The gate of one volume.

    `knobs`: all that it uses, in the order of their taking over; `base`: what must hold before;
    `quick`: once these are ours, a gate is a write or two; `steps`: the writes of a gate.
    """

    knobs: tuple[str, ...]
    base: tuple[Step, ...]
    quick: tuple[str, ...]
    steps: Callable[[Gate], tuple[Step, ...]]


BCACHE = GatePlan(GATE_KNOBS, base_steps(), (PERCENT, RATE), gate_steps)


def plan_for(volume: Volume) -> GatePlan:
    """The plan of this kind of volume; one without a gate gets no writes."""
    if volume.kind is Kind.BCACHE:
        return BCACHE
    if volume.kind is Kind.DM_CACHE and volume.mapping is not None:
        steps = partial(threshold_steps, volume.mapping.block_sectors)
        return GatePlan((THRESHOLD,), (), (THRESHOLD,), steps)
    return GatePlan((), (), (), lambda _: ())


def threshold_steps(block_sectors: int, gate: Gate) -> tuple[Step, ...]:
    """So many blocks may be under way; none through a closed gate.

    The kernel begins another one while those under way and that one are within the threshold
    (dm-cache-target.c, spare_migration_bandwidth). Raises ValueError for a gate of another kind.
    """
    if gate.kind is GateKind.CLOSED:
        return (write(THRESHOLD, 0),)
    if gate.kind is GateKind.PACED:
        return (write(THRESHOLD, max(1, gate.depth_ios) * block_sectors),)
    raise ValueError(f"no steps lead to a gate that is {gate.kind}")


def cleaner_step(volume: Volume) -> Step:
    """The volume's table with the policy that writes everything back, whatever the load."""
    mapping = volume.mapping
    assert mapping is not None
    table = parse_cache_table(mapping.params)
    kept = tuple(pair for pair in table.settings if pair[0] == THRESHOLD)
    params = replace(table, policy=POLICY, settings=kept).params()
    return Step(StepKind.WRITE, TABLE, f"0 {mapping.length_sectors} {mapping.target} {params}")


def split_steps(volume: Volume) -> tuple[Step, ...]:
    """Requests of half a cache block at most."""
    assert volume.mapping is not None
    half_kib = sectors_to_bytes(volume.mapping.block_sectors) // KIB // 2
    return (write(MAX_SECTORS, half_kib),)

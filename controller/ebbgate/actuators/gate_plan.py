# SPDX-License-Identifier: GPL-2.0-only
"""The gate of each kind of volume: its knobs, and the writes that set it. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ebbgate.actuators.bcache_steps import GATE_KNOBS, Step, base_steps, gate_steps, write
from ebbgate.knobs.catalog import (
    MAX_SECTORS,
    PERCENT,
    QUEUE_DEPTH,
    RATE,
    RUNNING,
    TABLE,
    THRESHOLD,
)
from ebbgate.knobs.places import disk_knobs
from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.dm import CLEANER
from ebbgate.model.volume import Kind, Volume
from ebbgate.probes.dm_status import parse_cache_table
from ebbgate.units import KIB, sectors_to_bytes

_CACHE_ALONE: Final = re.compile(r"(?P<head>0 \d+ cache) (?P<params>.+)")


@dataclass(frozen=True, slots=True)
class GatePlan:
    """The gate of one volume.

    `knobs`: all that it uses, in the order of the first write; `base`: writes that come before the
    first gate; `quick`: once these are owned, a gate takes a write or two; `steps`: those writes.
    `queues`: depth and longest request of the disks below, which a gate may ask to be small. They
    are no part of the gate: it works without them.
    """

    knobs: tuple[str, ...]
    base: tuple[Step, ...]
    quick: tuple[str, ...]
    steps: Callable[[Gate], tuple[Step, ...]]
    queues: tuple[str, ...] = ()


def plan_for(volume: Volume) -> GatePlan:
    """Return the plan for a volume; a kind without a gate gets no writes."""
    queues = (*disk_knobs(volume, QUEUE_DEPTH), *disk_knobs(volume, MAX_SECTORS))
    if volume.kind is Kind.BCACHE:
        return GatePlan(GATE_KNOBS, base_steps(), (PERCENT, RATE, RUNNING), gate_steps, queues)
    if volume.kind is Kind.DM_CACHE and volume.mapping is not None:
        steps = partial(threshold_steps, volume.mapping.block_sectors)
        return GatePlan((THRESHOLD,), (), (THRESHOLD,), steps, queues)
    return GatePlan((), (), (), lambda _: ())


def threshold_steps(block_sectors: int, gate: Gate) -> tuple[Step, ...]:
    """Return the write that bounds the blocks in flight; 0 for a closed or held gate.

    The kernel starts another block while it fits within the threshold with those in flight
    (dm-cache-target.c, spare_migration_bandwidth). Raises ValueError for a gate of another kind.
    """
    if gate.kind in (GateKind.CLOSED, GateKind.RESTING, GateKind.HELD):
        return (write(THRESHOLD, 0),)
    if gate.kind is GateKind.PACED:
        return (write(THRESHOLD, max(1, gate.depth_ios) * block_sectors),)
    raise ValueError(f"no steps lead to a gate that is {gate.kind}")


def cleaner_step(live: str) -> Step:
    """Return the load of the live table with the policy that writes back under any load.

    A table that was discovered before may be shorter, or have another mode. Raises ValueError for
    one that is not a cache's alone, or has that policy already.
    """
    table = _CACHE_ALONE.fullmatch(live)
    if table is None:
        raise ValueError("it no longer has the table of a cache")
    cache = parse_cache_table(table["params"])
    if cache.policy == CLEANER:
        raise ValueError("the cleaner policy is already loaded, but not by ebbgate")
    kept = tuple(pair for pair in cache.settings if pair[0] == THRESHOLD)
    params = replace(cache, policy=CLEANER, settings=kept).params()
    return Step(TABLE, f"{table['head']} {params}", made_from=live)


def split_steps(volume: Volume) -> tuple[Step, ...]:
    """Limit requests to half a cache block."""
    assert volume.mapping is not None
    half_kib = sectors_to_bytes(volume.mapping.block_sectors) // KIB // 2
    return (write(MAX_SECTORS, half_kib),)

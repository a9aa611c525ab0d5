# SPDX-License-Identifier: GPL-2.0-only
"""Settings of rules and limits, and their effect on each kind of cache. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ebbgate.knobs.catalog import BOUNDS, CUTOFF
from ebbgate.model.decision import Gate, GateKind, Proposal
from ebbgate.model.volume import Kind
from ebbgate.policy.language.diagnostic import Diagnostics, KindOnly
from ebbgate.policy.language.object_schema import Faults, FieldSchema, ObjectSchema
from ebbgate.policy.language.params import OFF
from ebbgate.policy.language.value_schemas import ChoiceSchema, Quantity, QuantitySchema, Schema
from ebbgate.policy.language.yaml_events import Node
from ebbgate.policy.limits import Bounds, Limits
from ebbgate.policy.quantity import EXAMPLES, SignalUnit
from ebbgate.policy.strategies.pace import DEPTH_WIDE_IOS
from ebbgate.units import GIB

DESTAGE_RATE: Final = "destage_rate"
DESTAGE_DEPTH: Final = "destage_depth"
SEQUENTIAL_CUTOFF: Final = "sequential_cutoff"
SSD_WRITES: Final = "ssd_writes"
CONGESTION_BYPASS: Final = "congestion_bypass"
MAX: Final = "max"
KERNEL: Final = "kernel"
HOLD: Final = "hold"
WRITECACHE_HAS_NONE: Final = "dm-writecache has no settings that can be changed while it is in use"
_DEPTH_MAX: Final = 64

_RATE = QuantitySchema(SignalUnit.RATE, 0, 1024 * GIB)
_DEPTH = QuantitySchema(SignalUnit.COUNT, 0, _DEPTH_MAX)
_CUTOFF = QuantitySchema(SignalUnit.SIZE, BOUNDS[CUTOFF].low, BOUNDS[CUTOFF].high)


@dataclass(frozen=True, slots=True)
class _RateSchema:
    """A rate of write-back, or a word. Only bcache has rates."""

    quantity: QuantitySchema

    def read(self, node: Node, key: str, diagnostics: Diagnostics) -> Quantity | None:
        value = self.quantity.read(node, key, diagnostics)
        if value and not isinstance(value, str):
            diagnostics.kind_only.append(KindOnly(node.position, key, Kind.BCACHE))
        return value

    def schema(self) -> Schema:
        return self.quantity.schema()

    def describe(self) -> str:
        return self.quantity.describe()


SET: Final[ObjectSchema[Mapping[str, Quantity]]] = ObjectSchema(
    "what a rule sets",
    (
        FieldSchema(
            DESTAGE_RATE,
            _RateSchema(QuantitySchema(SignalUnit.RATE, 0, _RATE.high, (MAX, KERNEL, HOLD))),
            "Rate of write-back, whatever users do. `max`: as fast as the kernel can (bcache: in"
            " the idle I/O class; dm-cache: 32 blocks at once); `0`: none (bcache still writes one"
            " piece every 2.5 s); `hold`: none at all, so that the disk can sleep, until the cache"
            " is nearly full or dirty data has waited for `dirty_age_max` (24 h without that"
            " objective); `kernel`: the kernel's own settings. dm-cache has no rates between"
            " these.",
            "20MiB/s",
        ),
        FieldSchema(
            DESTAGE_DEPTH,
            _DEPTH,
            "How many blocks may be written back at once; 0: none.",
            "4",
            of=Kind.DM_CACHE,
        ),
        FieldSchema(
            SEQUENTIAL_CUTOFF,
            _CUTOFF,
            "Length of a sequential run from which it bypasses the cache.",
            "1MiB",
            of=Kind.BCACHE,
        ),
        FieldSchema(
            CONGESTION_BYPASS,
            ChoiceSchema((OFF,), (False,)),
            "Requests do not bypass a cache device that the kernel considers congested. It stays"
            " off as long as the volume is in `enforce`.",
            OFF,
            of=Kind.BCACHE,
        ),
    ),
    least=1,
)


def _ordered(values: Mapping[str, float]) -> Faults:
    if "min" in values and "max" in values and values["min"] > values["max"]:
        yield "max", "min is greater than max", "swap them"


def _bounds(
    name: str, quantity: QuantitySchema, example: str, kind: Kind, about: str
) -> FieldSchema:
    record = ObjectSchema(
        f"the bounds of {name}",
        (
            FieldSchema("min", quantity, f"Lower limit of {name}.", example),
            FieldSchema("max", quantity, f"Upper limit of {name}.", example),
        ),
        _ordered,
        least=1,
    )
    return FieldSchema(name, record, about, f"{{max: {example}}}", of=kind)


@dataclass(frozen=True, slots=True)
class _UpperSchema:
    """An upper limit that stands alone, without `max`."""

    quantity: QuantitySchema

    def read(self, node: Node, key: str, diagnostics: Diagnostics) -> Mapping[str, Quantity] | None:
        value = self.quantity.read(node, key, diagnostics)
        return None if value is None else {"max": value}

    def schema(self) -> Schema:
        return self.quantity.schema()

    def describe(self) -> str:
        return self.quantity.describe()


LIMITS: Final[ObjectSchema[Mapping[str, Mapping[str, float]]]] = ObjectSchema(
    "limits",
    (
        _bounds(
            DESTAGE_RATE,
            _RATE,
            "100MiB/s",
            Kind.BCACHE,
            "Limits of the rate of write-back. `max` also limits write-back that would have no rate"
            " limit; with `min` it never stops.",
        ),
        _bounds(
            DESTAGE_DEPTH,
            _DEPTH,
            "8",
            Kind.DM_CACHE,
            "Limits of the blocks that may be written back at once.",
        ),
        _bounds(
            SEQUENTIAL_CUTOFF,
            _CUTOFF,
            "64MiB",
            Kind.BCACHE,
            "Limits of the sequential cutoff that a strategy or rule sets.",
        ),
        FieldSchema(
            SSD_WRITES,
            _UpperSchema(QuantitySchema(SignalUnit.ENDURANCE, 0.001, 100)),
            "How often a day as much may be written to the cache as it holds, by whomever. From"
            " then on promote_hot adds nothing; it is a limit on promote_hot only, and users'"
            " writes are not held back.",
            EXAMPLES[SignalUnit.ENDURANCE],
        ),
    ),
)


def proposal_of(strategy: str, why: str, settings: Mapping[str, Quantity], kind: Kind) -> Proposal:
    """Return the proposal of a rule that competes with those of the strategies.

    Settings without effect on this kind of cache are named in the reason.
    """
    faults = {name: _why_not(name, value, kind) for name, value in settings.items()}
    able = {name: value for name, value in settings.items() if not faults[name]}
    lost = "; ".join(fault for fault in faults.values() if fault)
    if not able:
        return Proposal(strategy, lost, unsupported=lost)
    gate = None
    if DESTAGE_RATE in able:
        gate = _rate_gate(able[DESTAGE_RATE], kind)
    elif DESTAGE_DEPTH in able:
        depth = int(able[DESTAGE_DEPTH])
        gate = Gate(GateKind.PACED, depth_ios=depth) if depth else Gate(GateKind.CLOSED)
    return Proposal(
        strategy,
        f"on: {why}" + (f" [{lost}]" if lost else ""),
        gate=gate,
        sequential_cutoff_bytes=_whole(able.get(SEQUENTIAL_CUTOFF)),
        congestion_bypass=False if CONGESTION_BYPASS in able else None,
    )


def limits_of(bounds: Mapping[str, Mapping[str, float]], kind: Kind) -> Limits:
    """Return the limits for this kind of cache, without those on settings that it lacks."""
    found = {
        name: Bounds(_whole(ends.get("min")), _whole(ends.get("max")))
        for name, ends in bounds.items()
        if name != SSD_WRITES and not _why_not(name, 1, kind)
    }
    return Limits(**found, ssd_writes_per_day=bounds.get(SSD_WRITES, {}).get("max"))


def _whole(value: Quantity | None) -> int | None:
    return None if value is None else int(value)


def _rate_gate(rate: Quantity, kind: Kind) -> Gate:
    if rate == KERNEL:
        return Gate(GateKind.RELEASED)
    if rate == HOLD:
        return Gate(GateKind.HELD)
    if rate == 0:
        return Gate(GateKind.CLOSED)
    if kind is Kind.DM_CACHE:
        return Gate(GateKind.PACED, depth_ios=DEPTH_WIDE_IOS)
    return Gate(GateKind.OPEN) if rate == MAX else Gate(GateKind.PACED, int(rate))


def _why_not(name: str, value: Quantity, kind: Kind) -> str:
    """Return why this kind of cache does not support a setting; empty if it does."""
    if kind is Kind.DM_WRITECACHE:
        return f"{name}: {WRITECACHE_HAS_NONE}"
    if kind is Kind.DM_CACHE:
        if name in (SEQUENTIAL_CUTOFF, CONGESTION_BYPASS):
            return f"{name}: dm-cache has no such setting"
        if name == DESTAGE_RATE and value not in (0, MAX, KERNEL, HOLD):
            return f"{name}: dm-cache has no rate; set destage_depth"
    if kind is Kind.BCACHE and name == DESTAGE_DEPTH:
        return f"{name}: bcache has no such setting; set destage_rate"
    return ""

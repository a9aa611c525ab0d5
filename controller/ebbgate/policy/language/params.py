# SPDX-License-Identifier: GPL-2.0-only
"""The parameters of each strategy, and how a policy's values are applied. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from ebbgate.model.volume import Kind
from ebbgate.policy.defaults import (
    IDLE_DESTAGE,
    PROMOTE_HOT,
    STREAM_BYPASS,
    default_policy,
    promote_params,
)
from ebbgate.policy.language.object_schema import Faults, ObjectSchema
from ebbgate.policy.language.param import Param, duration, ratio
from ebbgate.policy.language.value_schemas import (
    ListSchema,
    ParamValue,
    QuantitySchema,
    TextSchema,
)
from ebbgate.policy.quantity import SignalUnit
from ebbgate.policy.strategies.promote_share import SHARE_MIN
from ebbgate.units import GIB, HOUR_NS, KIB, MINUTE_NS, NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

AUTO: Final = "auto"
OFF: Final = "off"
KERNEL: Final = "kernel"
_BCACHE, _DM_CACHE = (Kind.BCACHE,), (Kind.DM_CACHE,)
ParamValues = Mapping[str, ParamValue]
Params = TypeVar("Params", bound="DataclassInstance")


DESTAGE: Final = (
    Param(
        "wait",
        duration(10 * NS_PER_MS, MINUTE_NS, AUTO),
        ("wait_ns",),
        "Idle time after which write-back starts; `auto` learns it from the gaps measured so far.",
    ),
    Param(
        "wait_min",
        duration(10 * NS_PER_MS, MINUTE_NS),
        ("wait", "min_ns"),
        "The shortest wait that `auto` learns.",
    ),
    Param(
        "wait_max",
        duration(10 * NS_PER_MS, MINUTE_NS),
        ("wait", "max_ns"),
        "The longest wait that `auto` learns.",
    ),
    Param(
        "wait_first",
        duration(10 * NS_PER_MS, MINUTE_NS),
        ("wait", "default_ns"),
        "The wait until enough gaps were measured to learn it.",
    ),
    Param(
        "disturbance_cost",
        duration(1 * NS_PER_MS, MINUTE_NS),
        ("wait", "disturbance_cost_ns"),
        "Cost of one delayed request after a gap, as time of write-back: a higher value makes the"
        " learned wait longer.",
    ),
    Param(
        "start_share",
        ratio(),
        ("start_ratio",),
        "Write-back starts in a gap if this share of the cache is dirty, and `start_size`; earlier"
        " with less room than `free_floor`.",
    ),
    Param(
        "start_size",
        QuantitySchema(SignalUnit.SIZE, 0, 1024 * GIB),
        ("start_bytes_min",),
        "Write-back starts in a gap if there is this much dirty data, and `start_share`.",
    ),
    Param(
        "free_floor",
        ratio(high=0.9),
        ("room_ratio_min",),
        "With less room for dirty data than this share of the cache, or none, and writes arriving,"
        " it is written back under load.",
    ),
    Param(
        "full_soon",
        duration(0, HOUR_NS),
        ("full_soon_s",),
        "Dirty data is written back under load if time_to_full, at the mean rates of 5 s, is less"
        " than this and the load has lasted for `burst`.",
        scale=NS_PER_S,
    ),
    Param(
        "burst",
        duration(0, HOUR_NS),
        ("burst_ns",),
        "A shorter load is absorbed, however fast it fills the cache.",
    ),
    Param(
        "light_share",
        ratio(),
        ("light_ratio",),
        "Without gaps, dirty data is written back under load while users keep the backing device"
        " less busy than this; 0: never.",
    ),
    Param(
        "light_after",
        duration(0, HOUR_NS),
        ("light_after_ns",),
        "How long there must have been no gap for `light_share`.",
    ),
    Param(
        "pressure_min",
        duration(0, MINUTE_NS),
        ("pressure_min_ns",),
        "Write-back under load lasts at least this long.",
    ),
    Param(
        "drain_share",
        ratio(),
        ("likely_share",),
        "More blocks are written back at once as long as this share of similar gaps lasts longer.",
        _DM_CACHE,
    ),
    Param(
        "queue_target",
        duration(NS_PER_MS, NS_PER_S),
        ("pace", "target_ns"),
        "Time that write-back under way may take in a gap whose end is not foreseen: about what a"
        " new request waits.",
        _DM_CACHE,
    ),
    Param(
        "queue_depth",
        QuantitySchema(SignalUnit.COUNT, 0, 32),
        ("queue_depth",),
        "In a gap each disk below the volume takes this many requests at once, if all of them are"
        " SCSI or SATA disks with the I/O scheduler bfq. 0: the disks' queues stay as they are.",
    ),
    Param(
        "nr_requests",
        QuantitySchema(SignalUnit.COUNT, 0, 2048),
        ("nr_requests",),
        "The I/O scheduler of each disk holds at least this many requests, and sorts them. 0: as"
        " many as ever.",
        _DM_CACHE,
    ),
    Param(
        "wbt_lat_usec",
        QuantitySchema(SignalUnit.COUNT, 0, 1_000_000, (KERNEL,)),
        ("wbt_lat_usec",),
        "The kernel's own throttling of writes to each disk, unless that is off, as with bfq. 0:"
        " none: more than 12 blocks are written back at once, which the scheduler sorts, and reads"
        " are slower beside other writes to the disk.",
        _DM_CACHE,
    ),
    Param(
        "disturbance",
        duration(NS_PER_MS, NS_PER_S, OFF),
        ("disturbance_ns",),
        "How much longer requests may take right after a gap. Where they took longer, less is"
        " written back in the next gaps. `off`: they may take any time.",
    ),
    Param(
        "head_return",
        QuantitySchema(SignalUnit.COUNT, 0, 1),
        ("head_return",),
        "1: once the write-back of a gap is over, a read of 4 KiB where users missed the cache of"
        " late brings the heads of a hard disk back, so that the next request does not wait for"
        " that. 0: none.",
    ),
    Param(
        "pressure_queue_target",
        duration(NS_PER_MS, NS_PER_S),
        ("pressure_pace", "target_ns"),
        "As `queue_target`, under load.",
    ),
    Param(
        "gc_share",
        ratio(OFF),
        ("gc_ratio",),
        "Start a garbage collection once clean buckets that still count as used are this share of"
        " the cache.",
        _BCACHE,
    ),
    Param(
        "gc_interval",
        duration(NS_PER_S, HOUR_NS),
        ("gc_interval_ns",),
        "The shortest time between two garbage collections.",
        _BCACHE,
    ),
)
STREAMS: Final = (
    Param(
        "stream_run",
        QuantitySchema(SignalUnit.SIZE, 64 * KIB, GIB),
        ("stream_run_bytes",),
        "A sequential run of at least this length is a stream.",
    ),
    Param(
        "random_run",
        QuantitySchema(SignalUnit.SIZE, 4 * KIB, GIB),
        ("random_run_bytes",),
        "A run shorter than this counts as random.",
    ),
    Param(
        "stream_rate",
        QuantitySchema(SignalUnit.RATE, 0, 1024 * GIB),
        ("stream_bytes_per_s_min",),
        "Slower streams are left to the kernel.",
    ),
    Param(
        "random_rate",
        QuantitySchema(SignalUnit.RATE, 0, 1024 * GIB),
        ("random_bytes_per_s_min",),
        "From this rate on, random writes take precedence over streams.",
    ),
    Param(
        "fill_target",
        ratio(OFF),
        ("fill_ratio_max",),
        "From this dirty_ratio on, no stream is absorbed; `off`: only `reserve` counts.",
    ),
    Param(
        "reserve",
        ratio(high=0.9),
        ("reserve_ratio",),
        "Share of the cache that streams leave free.",
    ),
    Param(
        "lookahead",
        duration(0, MINUTE_NS),
        ("lookahead_s",),
        "The room must last for this time at dirty_in_rate.",
        scale=NS_PER_S,
    ),
    Param(
        "hold",
        duration(0, HOUR_NS),
        ("hold_ns",),
        "Streams are kept out for this long after the reason is gone.",
    ),
    Param(
        "cutoff_min",
        QuantitySchema(SignalUnit.SIZE, 64 * KIB, GIB),
        ("cutoff_floor_bytes",),
        "The lowest sequential cutoff for keeping a stream out.",
        _BCACHE,
    ),
    Param(
        "cutoff_max",
        QuantitySchema(SignalUnit.SIZE, 64 * KIB, GIB),
        ("cutoff_ceiling_bytes",),
        "The highest sequential cutoff for keeping a stream out.",
        _BCACHE,
    ),
    Param(
        "cutoff_absorb",
        QuantitySchema(SignalUnit.SIZE, 64 * KIB, 4 * GIB - 1),
        ("cutoff_wide_bytes",),
        "The sequential cutoff while a stream is absorbed.",
        _BCACHE,
    ),
    Param(
        "promotions",
        QuantitySchema(SignalUnit.IOPS, 0, 1_000_000),
        ("promotions_per_s_max",),
        "With more promotions than this, streams are no longer kept out by request size.",
        _DM_CACHE,
    ),
    Param(
        "promotions_pause",
        duration(0, HOUR_NS),
        ("split_pause_ns",),
        "For how long they are then not kept out that way.",
        _DM_CACHE,
    ),
)
PROMOTE: Final = (
    Param(
        "files",
        ListSchema(TextSchema("an absolute path or pattern", r"/[^\t\n]{1,400}"), single=True),
        ("files",),
        "Files whose parts are scored together: a part that nobody has missed yet is moved, too,"
        " where its file is hot. Without any, each part of the volume is judged by its own"
        " misses.",
        example="/srv/db/base/*/*",
    ),
    Param(
        "time_share_max",
        QuantitySchema(SignalUnit.RATIO, SHARE_MIN, 0.8),
        ("time_share_max",),
        "The largest share of time in which data is moved. The share is learned from the p95 of"
        " users' reads.",
    ),
    Param(
        "cache_share_max",
        QuantitySchema(SignalUnit.RATIO, 0.001, 0.5),
        ("cache_ratio_max",),
        "The largest share of the cache that is filled in one period. After each 18th of a"
        " bcache moves pause, so that the kernel can collect garbage.",
    ),
    Param(
        "period",
        duration(20 * NS_PER_S, HOUR_NS),
        ("period_ns",),
        "After this time it is judged what moves have brought, and how much of the time they may"
        " take. What is moved is chosen every 10 s.",
    ),
)

_PARAMS: Final[Mapping[str, tuple[Param, ...]]] = {
    IDLE_DESTAGE: DESTAGE,
    STREAM_BYPASS: STREAMS,
    PROMOTE_HOT: PROMOTE,
}
_ORDERED: Final = {
    IDLE_DESTAGE: ("wait_min", "wait_max"),
    STREAM_BYPASS: ("cutoff_min", "cutoff_max"),
}
"""The first parameter may not be greater than the second, whichever of them is given."""


def _defaults(strategy: str, kind: Kind) -> object:
    policy = default_policy(kind)
    found = {IDLE_DESTAGE: policy.destage, STREAM_BYPASS: policy.streams}
    return promote_params(kind) if strategy == PROMOTE_HOT else found[strategy]


def _parameters_schema(strategy: str) -> ObjectSchema[ParamValues]:
    params = _PARAMS[strategy]
    # Of a parameter for both kinds: bcache's.
    defaults = {param.name: _defaults(strategy, param.kinds[0]) for param in params}
    known = {param.name: param.default(defaults[param.name]) for param in params}
    fields = tuple(param.field(defaults[param.name]) for param in params)
    low, high = _ORDERED.get(strategy, ("", ""))

    def check(values: ParamValues) -> Faults:
        ends = [values.get(name, known.get(name)) for name in (low, high)]
        figures = [each for each in ends if isinstance(each, float | int)]
        if figures != sorted(figures):
            unset = next((one for one in fields if one.name in {low, high} - values.keys()), None)
            wanted = f"set {unset.name}, too, which is {unset.default}" if unset else "swap them"
            yield high if high in values else low, f"{low} is greater than {high}", wanted

    return ObjectSchema(f"the parameters of {strategy}", fields, check)


STRATEGY_PARAMS: Final[Mapping[str, ObjectSchema[ParamValues]]] = {
    name: _parameters_schema(name) for name in _PARAMS
}


def with_values(params: Params, strategy: str, values: ParamValues, kind: Kind) -> Params:
    """Return the parameters with the values of a policy that have an effect on this kind."""
    for param in _PARAMS[strategy]:
        if param.name in values and kind in param.kinds:
            params = _with(params, param.path, _field_value(param, values[param.name]))
    return params


def _field_value(param: Param, value: ParamValue) -> float | tuple[str, ...] | None:
    """Convert a value to the unit of its field; None for `auto` and `off`."""
    if isinstance(value, str):
        return None
    return value / param.scale if param.scale > 1 and not isinstance(value, tuple) else value


def _with(params: Params, path: tuple[str, ...], value: float | tuple[str, ...] | None) -> Params:
    inner: object = value if len(path) == 1 else _with(getattr(params, path[0]), path[1:], value)
    return replace(params, **{path[0]: inner})

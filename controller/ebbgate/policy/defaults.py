# SPDX-License-Identifier: GPL-2.0-only
"""The policy without any configuration, by kind of volume, and what a kind cannot do. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from ebbgate.model.volume import Kind
from ebbgate.policy import ADAPTIVE
from ebbgate.policy.hold import AGE_NS_MAX
from ebbgate.policy.limits import Limits
from ebbgate.policy.rollback_guard import RollbackParams
from ebbgate.policy.rules import Rule
from ebbgate.policy.strategies.destage_state import DestageParams
from ebbgate.policy.strategies.pace import DEPTH_SORTED_IOS, DEPTH_WIDE_IOS
from ebbgate.policy.strategies.pace_state import PaceParams, ThrottleKind
from ebbgate.policy.strategies.promote_stop import PromoteParams
from ebbgate.policy.strategies.stream_bypass import StreamParams
from ebbgate.units import NS_PER_MS

IDLE_DESTAGE = "idle_destage"
STREAM_BYPASS = "stream_bypass"
PROMOTE_HOT = "promote_hot"
STRATEGIES = (IDLE_DESTAGE, STREAM_BYPASS)
"""In the order of a policy that names none; promote_hot is on only where a policy names it."""
STREAM_READS = "stream_bypass of reads"

_DM_CACHE_CANNOT: Final[Mapping[str, str]] = {
    STREAM_READS: (
        "stock dm-cache cannot keep a read stream out: a scan promotes the blocks it reads"
    )
}
_WRITECACHE_CANNOT: Final[Mapping[str, str]] = {
    IDLE_DESTAGE: (
        "dm-writecache takes its watermarks only with the table: its write-back cannot be held or "
        "released while the volume is in use"
    ),
    STREAM_BYPASS: "dm-writecache cannot let a stream bypass the cache",
    PROMOTE_HOT: "dm-writecache caches no reads",
}
_CANNOT: Final[Mapping[Kind, Mapping[str, str]]] = {
    Kind.BCACHE: {},
    Kind.DM_CACHE: _DM_CACHE_CANNOT,
    Kind.DM_WRITECACHE: _WRITECACHE_CANNOT,
}
_DM_WINDOW_NS = 100 * NS_PER_MS
"""Ten blocks of a slow disk. In some shorter windows none completes, and the mean of the others is
too high by a half.
"""
_DM_PACE = PaceParams(
    throttle=ThrottleKind.DEPTH,
    target_ns=36 * NS_PER_MS,
    depth_min_ios=1.0,
    depth_max_ios=16.0,
    depth_wide_ios=float(DEPTH_WIDE_IOS),
    depth_sorted_ios=float(DEPTH_SORTED_IOS),
    window_ns=_DM_WINDOW_NS,
)
_NR_REQUESTS = DEPTH_SORTED_IOS * 3 // 2
"""bfq and mq-deadline leave a quarter of them to requests that somebody waits for."""
_DM_PRESSURE_PACE = PaceParams(
    throttle=ThrottleKind.DEPTH,
    target_ns=10 * NS_PER_MS,
    depth_min_ios=1.0,
    depth_max_ios=4.0,
    window_ns=_DM_WINDOW_NS,
)


@dataclass(frozen=True, slots=True)
class Policy:
    """Which strategies are on, and their parameters.

    - `cannot`: strategies that this kind of volume cannot have, with the reason.
    - `rollback`: the bounds of the rollback guard.
    - `order`: of the strategies; `rules` come before them, `limits` apply to all.
    - `promotion`: None unless a policy names promote_hot.
    - `backing_scheduler`: for the disks below the volume; empty: they keep theirs.
    - `hold_ns_max`: the longest time for which a rule may hold dirty data back.
    - `overlay`: the schedule's entry that is in force; empty without one.
    """

    destage: DestageParams | None = field(default_factory=DestageParams)
    streams: StreamParams | None = field(default_factory=StreamParams)
    promotion: PromoteParams | None = None
    cannot: Mapping[str, str] = field(default_factory=dict)
    rollback: RollbackParams = field(default_factory=RollbackParams)
    name: str = ADAPTIVE
    order: tuple[str, ...] = STRATEGIES
    rules: tuple[Rule, ...] = ()
    limits: Limits = field(default_factory=Limits)
    overlay: str = ""
    backing_scheduler: str = ""
    hold_ns_max: int = AGE_NS_MAX


def default_policy(kind: Kind) -> Policy:
    """Return the policy of a volume of this kind without any configuration."""
    if kind is Kind.DM_WRITECACHE:
        return Policy(destage=None, streams=None, cannot=cannot(kind, STRATEGIES))
    if kind is Kind.DM_CACHE:
        # There is no garbage to collect, and a clean block is no less free than an empty one.
        destage = DestageParams(
            pace=_DM_PACE, pressure_pace=_DM_PRESSURE_PACE, nr_requests=_NR_REQUESTS, gc_ratio=None
        )
        streams = StreamParams(reads=False, by_size=True)
        return Policy(destage=destage, streams=streams, cannot=cannot(kind, STRATEGIES))
    return Policy()


def cannot(kind: Kind, strategies: Collection[str]) -> Mapping[str, str]:
    """Return what a kind of volume cannot have of these strategies, with the reason."""
    return {name: why for name, why in _CANNOT[kind].items() if name.split(" ")[0] in strategies}


def promote_params(kind: Kind) -> PromoteParams | None:
    """Return the parameters of promote_hot without any of a policy; None where it cannot be."""
    if PROMOTE_HOT in _CANNOT[kind]:
        return None
    return PromoteParams(by_cutoff=kind is Kind.BCACHE)

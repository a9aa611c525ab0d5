# SPDX-License-Identifier: GPL-2.0-only
"""Compiles a document for one kind of cache and one time. Pure.

It starts from the defaults, so an empty document changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ebbgate.model.volume import Kind
from ebbgate.policy.defaults import (
    IDLE_DESTAGE,
    PROMOTE_HOT,
    STRATEGIES,
    STREAM_BYPASS,
    Policy,
    cannot,
    default_policy,
    promote_params,
)
from ebbgate.policy.language.choose import LocalTime, entry_at
from ebbgate.policy.language.document import PolicyDocument, RuleText, StrategyUse
from ebbgate.policy.language.link import overlaid
from ebbgate.policy.language.params import with_values
from ebbgate.policy.language.settings import limits_of, proposal_of
from ebbgate.policy.limits import Limits
from ebbgate.policy.rules import Rule
from ebbgate.policy.strategies.destage_state import DestageParams
from ebbgate.policy.strategies.promote_stop import PromoteParams


def compile_policy(document: PolicyDocument, kind: Kind, at: LocalTime | None = None) -> Policy:
    """Compile a linked document; without a time the schedule is ignored."""
    entry = None if at is None else entry_at(document, at)
    if entry is not None and entry.overlay is not None:
        document = overlaid(document, entry.overlay)
    base = default_policy(kind)
    named = document.strategies
    uses = {use.name: use for use in (map(StrategyUse, STRATEGIES) if named is None else named)}
    limits = limits_of(document.limits, kind)
    return replace(
        base,
        destage=_destage(base, uses.get(IDLE_DESTAGE), document.objectives, limits, kind),
        streams=None
        if base.streams is None or STREAM_BYPASS not in uses
        else with_values(base.streams, STREAM_BYPASS, uses[STREAM_BYPASS].values, kind),
        promotion=_promotion(uses.get(PROMOTE_HOT), document.objectives, limits, kind),
        cannot=cannot(kind, uses),
        name=document.name,
        order=tuple(uses),
        rules=tuple(_rule(rule, kind) for rule in document.rules),
        limits=limits,
        overlay="" if entry is None else entry.name,
        backing_scheduler=document.backing_scheduler,
        hold_ns_max=document.objectives.get("dirty_age_max", base.hold_ns_max),
    )


def _destage(
    base: Policy,
    use: StrategyUse | None,
    objectives: Mapping[str, int],
    limits: Limits,
    kind: Kind,
) -> DestageParams | None:
    if base.destage is None or use is None:
        return None
    params = with_values(base.destage, IDLE_DESTAGE, use.values, kind)
    return replace(
        params,
        age_max_ns=objectives.get("dirty_age_max", params.age_max_ns),
        read_p99_max_ns=objectives.get("read_latency_p99"),
        write_p99_max_ns=objectives.get("write_latency_p99"),
        mean_rate_max_bytes_per_s=limits.destage_rate.high,
    )


def _promotion(
    use: StrategyUse | None, objectives: Mapping[str, int], limits: Limits, kind: Kind
) -> PromoteParams | None:
    base = promote_params(kind)
    if base is None or use is None:
        return None
    return replace(
        with_values(base, PROMOTE_HOT, use.values, kind),
        read_p99_max_ns=objectives.get("read_latency_p99"),
        write_p99_max_ns=objectives.get("write_latency_p99"),
        writes_per_day=limits.ssd_writes_per_day,
    )


def _rule(rule: RuleText, kind: Kind) -> Rule:
    return Rule(
        name=rule.name,
        when=rule.when,
        proposal=proposal_of(f"rule {rule.name}", rule.why, rule.settings, kind),
        # Both control the gate, so neither may change within the other's interval.
        settings=tuple(dict.fromkeys(_GATE.get(name, name) for name in rule.settings)),
        dwell_ns=rule.hold_ns,
        until=rule.until,
        cooldown_ns=rule.cooldown_ns,
        policy=rule.policy,
    )


_GATE = {"destage_rate": "gate", "destage_depth": "gate"}

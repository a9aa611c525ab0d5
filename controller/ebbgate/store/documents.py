# SPDX-License-Identifier: GPL-2.0-only
"""Values of the core as JSON documents, for the store and its readers. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from ebbgate.knobs.catalog import CUTOFF, MAX_SECTORS
from ebbgate.model.decision import PROMOTION, Decision, Gate, Proposal
from ebbgate.model.frame import Frame
from ebbgate.model.promotion import Promotion
from ebbgate.model.records import Direction

Document = dict[str, Any]
"""What `json.dumps` takes and `json.loads` gives: strings, numbers, lists, nested documents."""

SAMPLE_SPAN_NS: Final = 1_000_000_000
"""One row of the raw history stands for a second."""


_RANGES_MAX: Final = 128
_STATE_MAX: Final = 32
"""Characters; the state of a strategy is one word."""


def to_json(document: Mapping[str, Any] | list[Any]) -> str:
    """Return compact JSON with sorted keys, so that equal documents are equal texts."""
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def decision_document(decision: Decision) -> Document:
    """Return a decision with every proposal and the settings that each won."""
    document: Document = _plain(replace(decision, proposals=(), promotion=None))
    document["proposals"] = [
        {**_plain(replace(proposal, promotion=None)), "wins": wins(decision, proposal)}
        for proposal in decision.proposals
    ]
    if decision.promotion is not None:
        document["promotion"] = _promotion(decision.promotion)
    return document


def _promotion(promotion: Promotion) -> Document:
    """Return what is to be moved, in MiB from the start of the volume; not all of a long list."""
    ranges: list[list[int]] = []
    for chunk in sorted(promotion.chunks):
        if ranges and ranges[-1][1] == chunk:
            ranges[-1][1] += 1
        else:
            ranges.append([chunk, chunk + 1])
    return {
        "mib": len(promotion.chunks),
        "time_share": promotion.time_share,
        "ranges": ranges[:_RANGES_MAX],
    }


def _plain(value: Any) -> Any:
    """Convert as `dataclasses.asdict` does, several times faster: it copies no text."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    names: Iterable[str] | None = getattr(value, "__dataclass_fields__", None)
    return value if names is None else {name: _plain(getattr(value, name)) for name in names}


def wins(decision: Decision, proposal: Proposal) -> list[str]:
    """The settings in which this proposal decided."""
    won = []
    if decision.gate is not None and decision.gate_strategy == proposal.strategy:
        won.append("gate")
    if (
        decision.sequential_cutoff_bytes is not None
        and decision.cutoff_strategy == proposal.strategy
    ):
        won.append(CUTOFF)
    if decision.split_requests and proposal.split_requests:
        won.append(MAX_SECTORS)
    if proposal.promotion is not None and decision.promotion is not None:
        won.append(PROMOTION)
    won += [knob for knob, _ in proposal.knobs if knob not in won]
    return won


def gate_text(gate: Gate | None) -> str | None:
    """Return kind and pace: `paced 10485760`, `paced 4 at once`."""
    if gate is None:
        return None
    if gate.depth_ios:
        return f"{gate.kind} {gate.depth_ios} at once"
    return f"{gate.kind} {gate.rate_bytes_per_s}" if gate.rate_bytes_per_s else str(gate.kind)


def strategy_states(decision: Decision) -> dict[str, str]:
    """Return each strategy's state (`destage`, `bypass`) without the figures."""
    return {
        proposal.strategy: proposal.reason.partition(":")[0][:_STATE_MAX]
        for proposal in decision.proposals
        if not proposal.unsupported
    }


def path_figures(frame: Frame) -> Document:
    """Return requests, bytes, p50 and p99 in ns of each path that was taken, such as `read hit`.

    As lists, since an hour of them is read at once.
    """
    return {
        f"{direction} {path}": [latency.ios, latency.bytes, latency.p50_ns, latency.p99_ns]
        for (direction, path), latency in frame.paths.items()
    }


def hit_ratio(frame: Frame) -> float | None:
    """Return the share of reads with all data in the cache; None without reads."""
    ios = {path: part.ios for (op, path), part in frame.paths.items() if op is Direction.READ}
    total = sum(ios.values())
    return ios.get("hit", 0) / total if total else None


_OLD_STRATEGIES: Final = {"override": "wish", "rollback_guard": "no_regret"}
_STRATEGIES: Final = {old: new for new, old in _OLD_STRATEGIES.items()}


def strategy_name(name: str) -> str:
    """Return today's name of a strategy."""
    return _STRATEGIES.get(name, name)


def old_strategy_name(name: str | None) -> str | None:
    """Return the former name of a strategy; the same name if it has none."""
    return name if name is None else _OLD_STRATEGIES.get(name, name)


def current_row(row: Mapping[str, Any]) -> Document:
    """Return a decision or a knob write with today's names of strategies."""
    found = dict(row)
    for key in ("strategy", "gate_strategy", "cutoff_strategy"):
        if key in found:
            found[key] = strategy_name(found[key])
    if "proposals" in found:
        found["proposals"] = [current_row(each) for each in found["proposals"]]
    return found

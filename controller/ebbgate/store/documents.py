# SPDX-License-Identifier: GPL-2.0-only
"""Nouns of the core as JSON, the same for the store, the command line and any reader. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from ebbgate.model.decision import Decision, Gate, Proposal
from ebbgate.model.frame import Frame
from ebbgate.model.records import Direction

Document = dict[str, Any]
"""What `json.dumps` takes and `json.loads` gives: strings, numbers, lists, nested documents."""

SAMPLE_SPAN_NS: Final = 1_000_000_000
"""One row of the raw history stands for a second."""


_STAND_MAX: Final = 32
"""Letters of what a strategy is about: it is a word."""


def to_json(document: Mapping[str, Any] | list[Any]) -> str:
    """Compact and with sorted keys, so that equal documents are equal texts."""
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def decision_document(decision: Decision) -> Document:
    """A decision with every proposal and, for each, which settings it won."""
    document: Document = _plain(replace(decision, proposals=()))
    document["proposals"] = [
        {**_plain(proposal), "wins": wins(decision, proposal)} for proposal in decision.proposals
    ]
    return document


def _plain(value: Any) -> Any:
    """As `dataclasses.asdict`, which copies every text and so takes several times as long."""
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
        won.append("sequential_cutoff")
    if decision.split_requests and proposal.split_requests:
        won.append("max_sectors_kb")
    won += [knob for knob, _ in proposal.knobs if knob not in won]
    return won


def gate_text(gate: Gate | None) -> str | None:
    """`paced 10485760`, `paced 4 at once`: kind and pace, for the history's column."""
    if gate is None:
        return None
    if gate.depth_ios:
        return f"{gate.kind} {gate.depth_ios} at once"
    return f"{gate.kind} {gate.rate_bytes_per_s}" if gate.rate_bytes_per_s else str(gate.kind)


def strategy_states(decision: Decision) -> dict[str, str]:
    """`destage`, `bypass`: what each strategy is about, without the figures."""
    return {
        proposal.strategy: proposal.reason.partition(":")[0][:_STAND_MAX]
        for proposal in decision.proposals
        if not proposal.unsupported
    }


def path_figures(frame: Frame) -> Document:
    """`read hit` and every other path that was taken: requests, bytes, p50 and p99 in ns.

    A list by position: there are many, and an hour of them is read at once.
    """
    return {
        f"{direction} {path}": [latency.ios, latency.bytes, latency.p50_ns, latency.p99_ns]
        for (direction, path), latency in frame.paths.items()
    }


def hit_ratio(frame: Frame) -> float | None:
    """Share of reads that found all their data in the cache; None where nothing was read."""
    ios = {path: part.ios for (op, path), part in frame.paths.items() if op is Direction.READ}
    total = sum(ios.values())
    return ios.get("hit", 0) / total if total else None

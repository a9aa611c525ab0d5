# SPDX-License-Identifier: GPL-2.0-only
"""Converts statuses and rows of the history to models of the API. Pure: time is an argument."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from ebbgate import __version__
from ebbgate.doctor import remedy
from ebbgate.knobs.catalog import find_knob
from ebbgate.knobs.settable import may_be_set
from ebbgate.model.status import STATUS_STALE_NS
from ebbgate.policy.overrides import OVERRIDE
from ebbgate.store.queries import Live
from ebbgate.store.write_health import log_warning
from ebbgate.units import NS_PER_S
from ebbgate.web.models.base import Model
from ebbgate.web.models.history import Action, DecidedGate, Decision, ExplainedDecision
from ebbgate.web.models.live import (
    Availability,
    DaemonHealth,
    Health,
    PolicyStatus,
    ProbeStatus,
    Proposal,
    Volume,
)

M = TypeVar("M", bound=Model)
Document = Mapping[str, Any]
HIT_WINDOW_NS: Final = 300 * NS_PER_S
_MAY_BE_NEVER: Final = ("time_to_full_s", "time_to_clean_s")


def volume(live: Live, hit: float | None, now_unix_ns: int, daemon_alive: bool | None) -> Volume:
    """Return a volume. Raises ValidationError for a document of another version."""
    document = dict(live.document)
    never = [name for name in _MAY_BE_NEVER if document.get(name) == math.inf]
    document |= dict.fromkeys(never)
    known = (document.get("dirty_bytes"), document.get("room_bytes"))
    cutoff = None if None in known else sum(each for each in known if each is not None)
    document |= {
        "at_unix_s": live.at_unix_ns / NS_PER_S,
        "never": never,
        "hit_ratio_window_s": HIT_WINDOW_NS / NS_PER_S,
        "cutoff_dirty_bytes": cutoff,
        "dirty_floor_bytes": document.get("dirty_floor_bytes"),
        "knobs": _knobs(document.get("knobs")),
    }
    return Volume.read(document | time_fields(live, hit, now_unix_ns, daemon_alive))


def _knobs(knobs: Any) -> Any:
    """Add which knobs people can set; leave a document of another version as it is."""
    if not isinstance(knobs, dict):
        return knobs
    return {
        name: {**each, "settable": may_be_set(name)} if isinstance(each, dict) else each
        for name, each in knobs.items()
    }


def time_fields(
    live: Live, hit: float | None, now_unix_ns: int, daemon_alive: bool | None
) -> dict[str, Any]:
    """Return the fields of a volume that change with time alone."""
    age_ns = now_unix_ns - live.at_unix_ns
    return {
        "age_s": max(0.0, age_ns / NS_PER_S),
        "stale": age_ns > STATUS_STALE_NS or daemon_alive is False,
        "hit_ratio": hit,
    }


def health(
    daemon: Live | None,
    daemon_pid: int | None,
    alive: bool | None,
    history: Availability,
    intents: Availability,
    now_unix_ns: int,
) -> Health:
    """Return what works. `daemon_pid`: the process behind the control socket, if known."""
    status: Document = daemon.document if daemon else {}
    age_ns = now_unix_ns - daemon.at_unix_ns if daemon else None
    fresh = age_ns is not None and age_ns <= STATUS_STALE_NS
    return Health(
        now_unix_s=now_unix_ns / NS_PER_S,
        version=__version__,
        daemon=DaemonHealth(
            alive=alive,
            pid=daemon_pid or (status.get("pid") if fresh else None),
            version=status.get("version"),
            at_unix_s=daemon.at_unix_ns / NS_PER_S if daemon else None,
            age_s=None if age_ns is None else max(0.0, age_ns / NS_PER_S),
            started_unix_s=_seconds(status.get("started_unix_ns")),
            tick_s=_seconds(status.get("tick_ns")),
            probe=_part(ProbeStatus, status.get("probe")),
            policies=_part(PolicyStatus, status.get("policies")),
            errors=_errors(status, alive, fresh, _seconds(age_ns)),
        ),
        history=history,
        intents=intents,
    )


def _errors(status: Document, alive: bool | None, fresh: bool, age_s: float | None) -> list[str]:
    found = []
    if alive is False:
        found.append("the daemon is not running: nothing is measured or tuned")
    elif alive and not fresh:
        since = "has no status yet" if age_s is None else f"its status is {age_s:.0f} s old"
        found.append(f"the daemon runs, but {since}")
    history = status.get("history") or {}
    if history.get("written") is False:
        found.append(f"the history cannot be written: {(history.get('trouble') or {}).get('why')}")
    else:
        found += filter(None, [log_warning(history)])
    if status.get("intents_error"):
        found.append(f"requests are not accepted, or not saved: {status['intents_error']}")
    if why := status.get("device_mapper"):
        found.append(remedy.device_mapper_text(why))
    probe = status.get("probe") or {}
    if probe and probe.get("state") != "running":
        found.append(f"the probe: {probe.get('state')}")
    return [*found, *(status.get("policies") or {}).get("problems", ())]


def action(row: Document) -> Action:
    """Return a knob write."""
    shown = {
        "at_unix_s": row["at_unix_ns"] / NS_PER_S,
        "is_gate": row["strategy"] != OVERRIDE and _is_gate(row["knob"]),
        "latency_s": _seconds(row["latency_ns"]),
    }
    return Action.read({**row, **shown})


def _is_gate(knob: str) -> bool:
    """A row of an older version may name a knob that is not in the catalogue."""
    row = find_knob(knob)
    return row is not None and row.gate


def decision(row: Document, actions: Iterable[Document]) -> Decision:
    """Return a decision without its explanation."""
    return Decision(**_decided(row, actions))


def explained(row: Document, actions: Iterable[Document]) -> ExplainedDecision:
    """Return a decision with all comparisons."""
    proposals = [Proposal.read(each) for each in row["proposals"]]
    return ExplainedDecision(**_decided(row, actions), proposals=proposals)


def _decided(row: Document, actions: Iterable[Document]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "at_unix_s": row["at_unix_ns"] / NS_PER_S,
        "volume": row["volume"],
        "acted": bool(row["acted"]),
        "gate": _part(DecidedGate, row["gate"]),
        "gate_strategy": row["gate_strategy"],
        "sequential_cutoff_bytes": row["sequential_cutoff_bytes"],
        "cutoff_strategy": row["cutoff_strategy"],
        "reason": reason(row["proposals"]),
        "actions": [action(each) for each in actions],
    }


def reason(proposals: Iterable[Document]) -> str:
    """Return the reasons of the strategies that decided; of the first one if none did."""
    known = list(proposals)
    winners = [each["reason"] for each in known if each["wins"]]
    return "; ".join(winners or [each["unsupported"] or each["reason"] for each in known[:1]])


def _part(cls: type[M], document: object) -> M | None:
    """Return a part; None if it is missing or comes from another version."""
    try:
        return cls.read(document)
    except ValidationError:
        return None


def _seconds(duration_ns: float | None) -> float | None:
    return None if duration_ns is None else duration_ns / NS_PER_S

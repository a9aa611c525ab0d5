# SPDX-License-Identifier: GPL-2.0-only
"""What is in the history, as the API says it. Pure: time is an argument."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from ebbgate import __version__
from ebbgate.doctor import device_mapper
from ebbgate.knobs.catalog import BY_NAME
from ebbgate.knobs.settable import may_be_set
from ebbgate.model.status import STATUS_STALE_NS
from ebbgate.policy.overrides import OVERRIDE_NAMES
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
    """One volume. Raises ValidationError for a document of another version."""
    said = dict(live.document)
    never = [name for name in _MAY_BE_NEVER if said.get(name) == math.inf]
    said |= dict.fromkeys(never)
    known = (said.get("dirty_bytes"), said.get("room_bytes"))
    cutoff = None if None in known else sum(each for each in known if each is not None)
    said |= {
        "at_unix_s": live.at_unix_ns / NS_PER_S,
        "never": never,
        "hit_ratio_window_s": HIT_WINDOW_NS / NS_PER_S,
        "cutoff_dirty_bytes": cutoff,
        "dirty_floor_bytes": said.get("dirty_floor_bytes"),
        "knobs": _knobs(said.get("knobs")),
    }
    return Volume.read(said | passing(live, hit, now_unix_ns, daemon_alive))


def _knobs(told: Any) -> Any:
    """With what a person may ask for; a document of another version stays as it is."""
    if not isinstance(told, dict):
        return told
    return {
        name: {**each, "settable": may_be_set(name)} if isinstance(each, dict) else each
        for name, each in told.items()
    }


def passing(
    live: Live, hit: float | None, now_unix_ns: int, daemon_alive: bool | None
) -> dict[str, Any]:
    """The fields of a volume that change while the daemon says nothing new of it."""
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
    """What works. `daemon_pid`: the process that answers on the control socket, where known."""
    said: Document = daemon.document if daemon else {}
    age_ns = now_unix_ns - daemon.at_unix_ns if daemon else None
    fresh = age_ns is not None and age_ns <= STATUS_STALE_NS
    return Health(
        now_unix_s=now_unix_ns / NS_PER_S,
        version=__version__,
        daemon=DaemonHealth(
            alive=alive,
            pid=daemon_pid or (said.get("pid") if fresh else None),
            version=said.get("version"),
            at_unix_s=daemon.at_unix_ns / NS_PER_S if daemon else None,
            age_s=None if age_ns is None else max(0.0, age_ns / NS_PER_S),
            started_unix_s=_seconds(said.get("started_unix_ns")),
            tick_s=_seconds(said.get("tick_ns")),
            probe=_part(ProbeStatus, said.get("probe")),
            policies=_part(PolicyStatus, said.get("policies")),
            errors=_errors(said, alive, fresh, _seconds(age_ns)),
        ),
        history=history,
        intents=intents,
    )


def _errors(said: Document, alive: bool | None, fresh: bool, age_s: float | None) -> list[str]:
    found = []
    if alive is False:
        found.append("the daemon does not run: nothing is measured or tuned")
    elif alive and not fresh:
        since = "nothing yet" if age_s is None else f"its last word is {age_s:.0f} s old"
        found.append(f"the daemon runs, but {since}")
    history = said.get("history") or {}
    if history.get("written") is False:
        found.append(f"the history cannot be written: {(history.get('trouble') or {}).get('why')}")
    else:
        found += filter(None, [log_warning(history)])
    if said.get("intents_error"):
        found.append(f"requests are not accepted, or not kept: {said['intents_error']}")
    if why := said.get("device_mapper"):
        found.append(device_mapper.of_daemon(why))
    probe = said.get("probe") or {}
    if probe and probe.get("state") != "running":
        found.append(f"the probe: {probe.get('state')}")
    return [*found, *(said.get("policies") or {}).get("problems", ())]


def action(row: Document) -> Action:
    """A knob write."""
    return Action(
        id=row["id"],
        at_unix_s=row["at_unix_ns"] / NS_PER_S,
        volume=row["volume"],
        knob=row["knob"],
        is_gate=row["strategy"] not in OVERRIDE_NAMES and _is_gate(row["knob"]),
        old=row["old"],
        new=row["new"],
        strategy=row["strategy"],
        reason=row["reason"],
        outcome=row["outcome"],
        read_back=row["read_back"],
        error=row["error"],
        latency_s=_seconds(row["latency_ns"]),
        decision_id=row["decision_id"],
    )


def _is_gate(knob: str) -> bool:
    """A row of an older version may name a knob that is not in the catalogue."""
    return knob in BY_NAME and BY_NAME[knob].gate


def decision(row: Document, actions: Iterable[Document]) -> Decision:
    """A decision without its explanation."""
    return Decision(**_decided(row, actions))


def explained(row: Document, actions: Iterable[Document]) -> ExplainedDecision:
    """A decision with all that was compared."""
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
    """Why, by those that won; where nobody did, by the first."""
    known = list(proposals)
    winners = [each["reason"] for each in known if each["wins"]]
    return "; ".join(winners or [each["unsupported"] or each["reason"] for each in known[:1]])


def _part(cls: type[M], document: object) -> M | None:
    """None for a part that is missing, or comes from another version."""
    try:
        return cls.read(document)
    except ValidationError:
        return None


def _seconds(duration_ns: float | None) -> float | None:
    return None if duration_ns is None else duration_ns / NS_PER_S

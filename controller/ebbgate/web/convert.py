# SPDX-License-Identifier: GPL-2.0-only
"""Converts statuses and rows of the history to models of the API. Pure: time is an argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from ebbgate import __version__
from ebbgate.doctor import remedy
from ebbgate.knobs.catalog import find_knob
from ebbgate.knobs.settable import may_be_set
from ebbgate.model import forecast
from ebbgate.model.status import AbsentVolume, DaemonStatus, VolumeStatus
from ebbgate.model.status_json import status_to_json
from ebbgate.policy.overrides import OVERRIDE
from ebbgate.store.queries import TimedStatus
from ebbgate.store.write_health import log_warning
from ebbgate.units import NS_PER_S
from ebbgate.web.models import live as models
from ebbgate.web.models.base import Model
from ebbgate.web.models.history import Action, DecidedGate, Decision, ExplainedDecision
from ebbgate.web.models.live import Availability, DaemonHealth, Health, Volume

M = TypeVar("M", bound=Model)
Document = Mapping[str, Any]
HIT_WINDOW_NS: Final = 300 * NS_PER_S


def volume(
    live: TimedStatus[VolumeStatus], hit: float | None, now_unix_ns: int, daemon_alive: bool | None
) -> Volume:
    """Return a volume. Raises ValidationError if another version did not write all of it."""
    status = live.status
    never = forecast.never(status)
    dirty, room = status.dirty_bytes, status.room_bytes
    found = status_to_json(status) | dict.fromkeys(never)
    found |= {
        "at_unix_s": live.at_unix_ns / NS_PER_S,
        "never": never,
        "hit_ratio_window_s": HIT_WINDOW_NS / NS_PER_S,
        "cutoff_dirty_bytes": None if dirty is None or room is None else dirty + room,
        "knobs": {
            name: {**asdict(each), "settable": may_be_set(name)}
            for name, each in status.knobs.items()
        },
    }
    return Volume.read(found | time_fields(live, hit, now_unix_ns, daemon_alive))


def time_fields(
    live: TimedStatus[VolumeStatus], hit: float | None, now_unix_ns: int, daemon_alive: bool | None
) -> dict[str, object]:
    """Return the fields of a volume that change with time alone."""
    return {
        "age_s": max(0.0, (now_unix_ns - live.at_unix_ns) / NS_PER_S),
        "stale": not live.fresh(now_unix_ns) or daemon_alive is False,
        "hit_ratio": hit,
    }


def health(
    daemon: TimedStatus[DaemonStatus] | None,
    daemon_pid: int | None,
    alive: bool | None,
    history: Availability,
    intents: Availability,
    now_unix_ns: int,
) -> Health:
    """Return what works. `daemon_pid`: the process behind the control socket, if known."""
    status = daemon.status if daemon else DaemonStatus()
    age_ns = now_unix_ns - daemon.at_unix_ns if daemon else None
    fresh = daemon is not None and daemon.fresh(now_unix_ns)
    return Health(
        now_unix_s=now_unix_ns / NS_PER_S,
        version=__version__,
        daemon=DaemonHealth(
            alive=alive,
            pid=daemon_pid or (status.pid if fresh else None),
            version=status.version,
            at_unix_s=daemon.at_unix_ns / NS_PER_S if daemon else None,
            age_s=None if age_ns is None else max(0.0, age_ns / NS_PER_S),
            started_unix_s=seconds(status.started_unix_ns),
            tick_s=seconds(status.tick_ns),
            probe=_part(models.ProbeStatus, asdict(status.probe)),
            policies=_part(models.PolicyStatus, asdict(status.policies)),
            absent=None if status.absent is None else [_absent(each) for each in status.absent],
            absent_count=status.absent_count,
            errors=_errors(status, alive, fresh, seconds(age_ns)),
        ),
        history=history,
        intents=intents,
    )


def _absent(found: AbsentVolume) -> models.AbsentVolume:
    return models.AbsentVolume(
        volume=found.volume,
        uuid=found.uuid or None,
        why=found.why,
        kept=[
            models.KeptChoice(what=each.what, since_unix_s=seconds(each.since_unix_ns))
            for each in found.kept
        ],
        command=f"sudo {remedy.forget_command(found)}",
    )


def _errors(
    status: DaemonStatus, alive: bool | None, fresh: bool, age_s: float | None
) -> list[str]:
    found = []
    if alive is False:
        found.append("the daemon is not running: nothing is measured or tuned")
    elif alive and not fresh:
        # Without the age, which would make another sentence of it every second.
        since = "has no status yet" if age_s is None else "its status is old"
        found.append(f"the daemon runs, but {since}")
    trouble = status.history.trouble
    if status.history.written is False:
        found.append(f"the history cannot be written: {trouble.why if trouble else None}")
    elif warning := log_warning(status.history.log):
        found.append(warning)
    if status.intents_error:
        found.append(f"requests are not accepted, or not saved: {status.intents_error}")
    if status.device_mapper:
        found.append(remedy.device_mapper_text(status.device_mapper))
    if status.probe.state not in (None, "running"):
        found.append(f"the probe: {status.probe.state}")
    return [*found, *(status.policies.problems or ())]


def action(row: Document) -> Action:
    """Return a knob write."""
    shown = {
        "at_unix_s": row["at_unix_ns"] / NS_PER_S,
        "is_gate": row["strategy"] != OVERRIDE and _is_gate(row["knob"]),
        "latency_s": seconds(row["latency_ns"]),
    }
    return Action.read({**row, **shown})


def _is_gate(knob: str) -> bool:
    """A row of an older version may name a knob that is not in the catalogue."""
    row = find_knob(knob)
    return row is not None and row.gate


def decision(row: Document, actions: Iterable[Document]) -> Decision:
    """Return a decision without its explanation."""
    return Decision.read(_decided(row, actions))


def explained(row: Document, actions: Iterable[Document]) -> ExplainedDecision:
    """Return a decision with all comparisons."""
    return ExplainedDecision.read(_decided(row, actions))


def _decided(row: Document, actions: Iterable[Document]) -> dict[str, Any]:
    return {
        **row,
        "at_unix_s": row["at_unix_ns"] / NS_PER_S,
        "acted": bool(row["acted"]),
        "gate": _part(DecidedGate, row["gate"]),
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


def seconds(duration_ns: float | None) -> float | None:
    """Return a time or a duration in seconds; None if it is unknown."""
    return None if duration_ns is None else duration_ns / NS_PER_S

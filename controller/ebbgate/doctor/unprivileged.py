# SPDX-License-Identifier: GPL-2.0-only
"""Advice and the doctor's report for a process without root. I/O: reads only.

bcache's files in sysfs are readable by everyone, and the daemon's status has its measurements. Only
root can query device-mapper and BPF programs: what depends on them is reported as unknown, with the
reason.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ebbgate.doctor import cost, remedy, report
from ebbgate.doctor.advice import advise, without_repeats
from ebbgate.doctor.model import Advice, Facts, device_document
from ebbgate.doctor.remedy import Applied, ApplyRequest
from ebbgate.kernel.sysfs import BLOCK, CLASS_BLOCK, Sysfs
from ebbgate.knobs.places import knob_path, knobs_of
from ebbgate.model.status import DaemonStatus, KnobStatus, ProbeStatus, VolumeStatus
from ebbgate.model.volume import Mode, Volume, VolumeState
from ebbgate.probes.disk_users import PROC, DeviceUsers, devices_in_use
from ebbgate.probes.topology import discover
from ebbgate.probes.volume_state import read_state
from ebbgate.store.write_health import log_warning
from ebbgate.units import NS_PER_S

Document = dict[str, Any]

_ONLY_ROOT: Final = "only root can query device-mapper"
_OWNERS_UNKNOWN: Final = (
    "ebbgated gives no status of it, so ebbgate may have set knobs: no advice on these;"
    " run ebbgate doctor as root"
)
_NOT_MEASURED: Final = "ebbgated is not running: nothing is measured"


@dataclass(frozen=True, slots=True)
class FreshStatus:
    """Recent statuses. `daemon`: its own, None without one; `volumes`: by name."""

    daemon: DaemonStatus | None = None
    volumes: Mapping[str, VolumeStatus] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Inspected:
    """A volume as this process sees it."""

    volume: Volume
    state: VolumeState
    mode: Mode | None
    owned: Mapping[str, KnobStatus]
    facts: Facts


def advice(
    sysfs: Sysfs,
    status: FreshStatus,
    requests: Iterable[ApplyRequest] = (),
    proc: Path = PROC,
) -> Document:
    """Return all advice that applies now, what was applied and is in force, and what is unknown.

    `requests`: newest first.
    """
    inspected = _inspect_all(sysfs, proc, status)
    advised = without_repeats([advise(each.facts) for each in inspected])
    rows = [
        advice_row(found, each)
        for each, all_found in zip(inspected, advised, strict=True)
        for found in all_found
    ]
    overrides = {name: each.overrides for name, each in status.volumes.items()}
    return {
        "advice": rows,
        "applied": [_applied(each, status) for each in remedy.applied(requests, overrides)],
        "unknown": list(_unknown(sysfs, inspected, status)),
    }


def _applied(found: Applied, status: FreshStatus) -> Document:
    request = found.request
    return {
        "id": request.advice,
        "volume": request.volume,
        "title": status.volumes[request.volume].title or request.volume,
        "who": request.who,
        "at_unix_s": request.at_unix_ns / NS_PER_S,
        "knobs": [{"knob": knob, "value": value} for knob, value in found.knobs],
    }


def doctor(sysfs: Sysfs, proc: Path, status: FreshStatus) -> Document:
    """Return the doctor's report: kernel, probe, signals, cost, volumes, and what is missing."""
    inspected = _inspect_all(sysfs, proc, status)
    spent = cost.read(proc)
    probe = status.daemon.probe if status.daemon else ProbeStatus()
    signals = dict(probe.signals or {})
    unknown = list(_unknown(sysfs, inspected, status))
    btf = sysfs.exists("/sys/kernel/btf/vmlinux")
    return {
        "kernel": {"release": os.uname().release, "btf": btf},
        "probe": {
            "kind": probe.kind,
            "state": probe.state,
            "why": None if status.daemon else _NOT_MEASURED,
        },
        "signals": signals,
        "cost": report.cost_document(spent),
        "volumes": [_volume(sysfs, each) for each in inspected],
        "unknown": unknown,
        "missing": list(_missing(signals, spent, status, btf or probe.kind == "bcc")),
    }


def advice_row(found: Advice, inspected: _Inspected) -> Document:
    """Return one advice; `can_apply`: whether the daemon would apply it now."""
    volume, change = inspected.volume, found.change
    why_not = remedy.why_not(found, volume, inspected.mode)
    undo = remedy.undo_commands(change, volume) if change is not None else []
    document = report.advice_document(found)
    return {
        **document,
        **{name: document[name] or None for name in ("effect", "command", "lasts", "keep")},
        "volume": volume.name,
        "title": volume.title,
        "evidence": [found.evidence] if found.evidence else [],
        "can_apply": not why_not,
        "why_not": why_not or None,
        "undo": "; ".join(undo) or found.undo or None,
    }


def _inspect_all(sysfs: Sysfs, proc: Path, status: FreshStatus) -> list[_Inspected]:
    users = DeviceUsers(discover(sysfs), devices_in_use(proc))
    return [_inspect(sysfs, volume, status, users) for volume in users.volumes]


def _inspect(sysfs: Sysfs, volume: Volume, status: FreshStatus, users: DeviceUsers) -> _Inspected:
    state = read_state(sysfs, volume, time.monotonic_ns())
    live = status.volumes.get(volume.name, VolumeStatus())
    # Only root can read which knobs a daemon that was killed has left behind.
    owner = "kernel" if volume.name in status.volumes else "unknown"
    owned = live.knobs or {
        name: KnobStatus(value, owner=owner) for name, value in state.knobs.items()
    }
    facts = report.facts(sysfs, volume, state, owned, live, users)
    return _Inspected(volume, state, live.mode, owned, facts)


def _volume(sysfs: Sysfs, inspected: _Inspected) -> Document:
    volume = inspected.volume
    return {
        "volume": volume.name,
        "title": volume.title,
        "kind": str(volume.kind),
        "mode": inspected.mode,
        "state": inspected.state.state,
        "cache_mode": inspected.state.cache_mode,
        "backing": device_document(volume.backing),
        "caches": [device_document(device) for device in volume.caches],
        "knobs": report.knob_documents(sysfs, volume, inspected.owned, writes=False),
    }


def _unknown(sysfs: Sysfs, inspected: list[_Inspected], status: FreshStatus) -> Iterator[Document]:
    """Yield volumes that cannot be inspected and files that cannot be read, with the reason."""
    seen = {each.volume.name for each in inspected}
    blocked = sysfs.dm.blocked()
    hidden = [name for name in status.volumes if name not in seen]
    for name in hidden:
        title = status.volumes[name].title or name
        why = _ONLY_ROOT if blocked else "it is not in sysfs"
        yield _row(name, title, f"{why}: run ebbgate doctor {title}")
    if not hidden and blocked:
        yield _row(None, None, f"{_ONLY_ROOT}: whether it has cached volumes is not known")
    for each in inspected:
        if any(knob.owner == "unknown" for knob in each.owned.values()):
            yield _row(each.volume.name, each.volume.title, _OWNERS_UNKNOWN)
        closed = _unreadable(sysfs, each.volume)
        if closed:
            why = f"this process may not read {', '.join(closed)}: run ebbgate doctor as root"
            yield _row(each.volume.name, each.volume.title, why)


def _row(volume: str | None, title: str | None, why: str) -> Document:
    return {"volume": volume, "title": title, "why": why}


def _unreadable(sysfs: Sysfs, volume: Volume) -> list[str]:
    """Return files that the advice needs and that this process may not read."""
    own = BLOCK / volume.kernel_name / "bcache"
    paths = [own / "state", own / "dirty_data"]
    for knob in knobs_of(volume):
        path = knob_path(volume, knob.name)
        if path is not None and path.startswith("/") and knob.readable:
            paths.append(Path(path))
    for device in (volume.backing, *volume.caches):
        here = CLASS_BLOCK / device.name
        paths += [here / "bcache/io_errors", here / "bcache/discard", here / "queue/scheduler"]
    places = [(path, sysfs.locate(path)) for path in paths]
    return [str(path) for path, at in places if at.exists() and not os.access(at, os.R_OK)]


def _missing(
    signals: Mapping[str, str], spent: cost.Cost, status: FreshStatus, can_run: bool
) -> Iterator[str]:
    if not can_run:
        yield (
            "this kernel has no BTF type information (CONFIG_DEBUG_INFO_BTF): the probe needs"
            " ebbgate-probe-bcc and the kernel's headers"
        )
    if not status.daemon:
        yield f"signals: {_NOT_MEASURED}; start it: systemctl start ebbgated"
    elif not signals:
        yield "signals: the probe has not reported yet which signals this kernel supports"
    if status.daemon and status.daemon.device_mapper:
        yield remedy.device_mapper_text(status.daemon.device_mapper)
    for name, word in signals.items():
        if word != "ok":
            yield f"{name}: {word}"
    complaint = log_warning(status.daemon.history.log) if status.daemon else None
    if complaint:
        yield complaint
    if spent.why:
        yield f"cost per event: {spent.why}"

# SPDX-License-Identifier: GPL-2.0-only
"""Advice and the doctor's report as far as a process without rights can have them. I/O: reads only.

sysfs shows bcache's files to everybody, and what the daemon measures it says itself. Device-mapper
answers root alone, and so does the kernel's account of BPF programs: what depends on these is said
to be unknown, with the reason, and never guessed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ebbgate.doctor import cost, device_mapper, remedy, report
from ebbgate.doctor.advice import advise
from ebbgate.doctor.device import device_document
from ebbgate.doctor.model import SEVERITY, Advice, Facts
from ebbgate.doctor.remedy import Applied, ApplyRequest
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.knobs.catalog import knob_path, knobs_of
from ebbgate.model.volume import Volume, VolumeState
from ebbgate.probes.state import read_state
from ebbgate.probes.topology import discover
from ebbgate.store.write_health import log_complaint
from ebbgate.units import NS_PER_S

Document = dict[str, Any]

_ONLY_ROOT: Final = "device-mapper answers root alone"
_NOT_MEASURED: Final = "no daemon runs: nothing is measured"


@dataclass(frozen=True, slots=True)
class Said:
    """What the daemon says, where that is fresh. `daemon`: of itself, empty where none runs;
    `volumes`: by name, as `ebbgate.control.status_document` makes them.
    """

    daemon: Mapping[str, Any] = field(default_factory=dict)
    volumes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Looked:
    """A volume as this process sees it."""

    volume: Volume
    state: VolumeState
    live: Mapping[str, Any]
    facts: Facts

    @property
    def owned(self) -> Mapping[str, Any]:
        """Its knobs with their owners; without a daemon all are the kernel's."""
        return _owned(self.live, self.state)

    @property
    def mode(self) -> str | None:
        """How far ebbgate goes with it; None where nobody says."""
        return self.live.get("mode")


def advice(sysfs: Sysfs, said: Said, requests: Iterable[ApplyRequest] = ()) -> Document:
    """`advice`: all that holds now, volume by volume; `applied`: what people applied and what is
    still in force of it; `unknown`: what could not be looked at. `requests`: newest first.
    """
    looked = [_look(sysfs, volume, said) for volume in discover(sysfs)]
    rows = [advice_row(found, each) for each in looked for found in advise(each.facts)]
    overrides = {name: live.get("wishes") or () for name, live in said.volumes.items()}
    return {
        "advice": rows,
        "applied": [_applied(each, said) for each in remedy.applied(requests, overrides)],
        "unknown": list(_unknown(sysfs, looked, said)),
    }


def _applied(found: Applied, said: Said) -> Document:
    request = found.request
    return {
        "id": request.advice,
        "volume": request.volume,
        "title": str(said.volumes[request.volume].get("title") or request.volume),
        "who": request.who,
        "at_unix_s": request.at_unix_ns / NS_PER_S,
        "knobs": [{"knob": knob, "value": value} for knob, value in found.knobs],
    }


def doctor(sysfs: Sysfs, proc: Path, said: Said) -> Document:
    """The doctor's report: kernel, probe, signals, cost, volumes, and what is missing."""
    looked = [_look(sysfs, volume, said) for volume in discover(sysfs)]
    spent, probe = cost.read(proc), said.daemon.get("probe") or {}
    signals = dict(probe.get("signals") or {})
    unknown = list(_unknown(sysfs, looked, said))
    btf = sysfs.exists("/sys/kernel/btf/vmlinux")
    return {
        "kernel": {"release": os.uname().release, "btf": btf},
        "probe": {
            "kind": probe.get("kind"),
            "state": probe.get("state"),
            "why": None if said.daemon else _NOT_MEASURED,
        },
        "signals": signals,
        "cost": report.cost_document(spent),
        "volumes": [_volume(sysfs, each) for each in looked],
        "unknown": unknown,
        "missing": list(_missing(signals, spent, said, btf)),
    }


def advice_row(found: Advice, looked: _Looked) -> Document:
    """One advice; `can_apply`: would the daemon carry it out, as the volume is now?"""
    volume, change = looked.volume, found.change
    why_not = remedy.why_not(found, volume, looked.mode)
    undo = remedy.undo_commands(change, volume) if change is not None else []
    return {
        "id": found.id,
        "volume": volume.name,
        "title": volume.title,
        "weight": str(found.weight),
        "severity": SEVERITY[found.weight],
        "about": found.about,
        "text": found.text,
        "evidence": [found.evidence] if found.evidence else [],
        "effect": found.effect or None,
        "command": found.command or None,
        "lasts": found.lasts or None,
        "keep": found.keep or None,
        "can_apply": not why_not,
        "why_not": why_not or None,
        "undo": "; ".join(undo) or None,
    }


def _look(sysfs: Sysfs, volume: Volume, said: Said) -> _Looked:
    state = read_state(sysfs, volume, time.monotonic_ns())
    live = said.volumes.get(volume.name) or {}
    facts = report.facts(sysfs, volume, state, _owned(live, state), live)
    return _Looked(volume, state, live, facts)


def _owned(live: Mapping[str, Any], state: VolumeState) -> Mapping[str, Any]:
    kernel = {name: {"value": value, "owner": "kernel"} for name, value in state.knobs.items()}
    return live.get("knobs") or kernel


def _volume(sysfs: Sysfs, looked: _Looked) -> Document:
    volume = looked.volume
    return {
        "volume": volume.name,
        "title": volume.title,
        "kind": str(volume.kind),
        "mode": looked.mode,
        "state": looked.state.state,
        "cache_mode": looked.state.cache_mode,
        "backing": device_document(volume.backing),
        "caches": [device_document(device) for device in volume.caches],
        "knobs": report.knob_documents(sysfs, volume, looked.owned, writes=False),
    }


def _unknown(sysfs: Sysfs, looked: list[_Looked], said: Said) -> Iterator[Document]:
    """Volumes that cannot be looked at, and files that cannot be read, each with the reason."""
    seen = {each.volume.name for each in looked}
    blocked = sysfs.dm.blocked()
    hidden = [name for name in said.volumes if name not in seen]
    for name in hidden:
        live = said.volumes[name]
        title = str(live.get("title") or name)
        why = _ONLY_ROOT if blocked else "it is not in sysfs now"
        yield _row(name, title, f"{why}: run ebbgate doctor {title}")
    if not hidden and blocked:
        yield _row(None, None, f"{_ONLY_ROOT}: whether it has cached volumes here is not known")
    for each in looked:
        closed = _unreadable(sysfs, each.volume)
        if closed:
            why = f"this process may not read {', '.join(closed)}: run ebbgate doctor as root"
            yield _row(each.volume.name, each.volume.title, why)


def _row(volume: str | None, title: str | None, why: str) -> Document:
    return {"volume": volume, "title": title, "why": why}


def _unreadable(sysfs: Sysfs, volume: Volume) -> list[str]:
    """Files that the advice looks at, that are there, and that are closed to this process."""
    own = Path("/sys/block") / volume.kernel_name / "bcache"
    paths = [own / "state", own / "dirty_data"]
    for knob in knobs_of(volume):
        path = knob_path(volume, knob.name)
        if path is not None and path.startswith("/") and knob.readable:
            paths.append(Path(path))
    for device in (volume.backing, *volume.caches):
        here = Path("/sys/class/block") / device.name
        paths += [here / "bcache/io_errors", here / "bcache/discard", here / "queue/scheduler"]
    places = [(path, sysfs.locate(path)) for path in paths]
    return [str(path) for path, at in places if at.exists() and not os.access(at, os.R_OK)]


def _missing(signals: Mapping[str, str], spent: cost.Cost, said: Said, btf: bool) -> Iterator[str]:
    if not btf:
        yield "this kernel describes no types (CONFIG_DEBUG_INFO_BTF): no probe can run"
    if not said.daemon:
        yield f"signals: {_NOT_MEASURED}; start it: systemctl start ebbgated"
    elif not signals:
        yield "signals: the probe has not said yet which this kernel gives it"
    if why := said.daemon.get("device_mapper"):
        yield device_mapper.of_daemon(why)
    for name, word in signals.items():
        if word != "ok":
            yield f"{name}: {word}"
    complaint = log_complaint(said.daemon.get("history") or {})
    if complaint:
        yield complaint
    if spent.why:
        yield f"cost of an event: {spent.why}"

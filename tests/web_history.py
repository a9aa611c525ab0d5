# SPDX-License-Identifier: GPL-2.0-only
"""Makes a day of history for the web: python -m tests.web_history DIR [--volumes N] [--live]

I/O: writes history.db in DIR. The real loop processes the recordings of tests/replay again and
again, with rests in between, and the real store writes the result, which ends now. With --live it
continues second by second, as a daemon would, until it is interrupted; with --stopped it ends ten
minutes ago, as that of a daemon that was stopped then.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ebbgate import __version__
from ebbgate.knobs.catalog import CONGESTED
from ebbgate.model.decision import Action, Outcome, OutcomeKind
from ebbgate.model.override import IntentKind
from ebbgate.model.status import DAEMON, MissRatioStatus, VolumeStatus
from ebbgate.model.status_json import status_to_json
from ebbgate.model.volume import Mode
from ebbgate.policy.defaults import STREAM_BYPASS
from ebbgate.policy.other_knobs import FOUND, Source
from ebbgate.store.db import Store
from ebbgate.store.intent_rows import IntentRow
from ebbgate.store.limits import DEFAULT_LIMITS, HistoryLimits
from ebbgate.store.maintenance import Maintenance
from ebbgate.units import GIB, NS_PER_S
from tests.control_harness import Outcome as Answer
from tests.control_harness import answering
from tests.history_recorder import Tape, play
from tests.web_heat import heat_parts, warm_parts

_HOUR_S = 3600
_STOPPED_S = 600
_REST_S = 20
_RECORDINGS = (
    ("lab-gap-drain", Mode.ENFORCE),
    ("lab-mixed-stream", Mode.ADVISE),
    ("lab-dm-gap-drain", Mode.OBSERVE),
)
_LONG = "vg--backup--of--the--whole--department-archive--2019--with--a--name--that--is--long"
_LIMITS = HistoryLimits(4 * GIB, DEFAULT_LIMITS.age_ns)


@dataclass(frozen=True, slots=True)
class Part:
    """A volume of the history: its tape, and its delay against the others.

    `heat`: the parts of its document on misses and warm-ups, which the recordings lack.
    """

    name: str
    title: str
    tape: Tape
    mode: Mode
    late_s: int
    heat: dict[str, Any]

    @property
    def round_s(self) -> int:
        """Length of the tape and the rest after it."""
        return self.tape.length_ns // NS_PER_S + _REST_S


class Filler:
    """Writes the rows of the tapes, as the daemon's recorder would."""

    def __init__(self, store: Store, parts: Sequence[Part]) -> None:
        self.store = store
        self.parts = parts
        self.overrides: list[dict[str, Any]] = []
        self._rows: dict[tuple[str, int], int] = {}

    def second(self, part: Part, at_s: int, *, events: bool) -> None:
        """Write one second of one volume."""
        offset_ns = (at_s + part.late_s) % part.round_s * NS_PER_S
        wall_ns = at_s * NS_PER_S
        frames = _of_second(part.tape.frames, offset_ns)
        # During the rest, repeat the last frame of the tape.
        frame_ns, frame = (frames or part.tape.frames[-1:])[0]
        found = replace(frame, volume=part.name)
        self.store.add_samples([(found, wall_ns + frame_ns % NS_PER_S)], str(part.mode))
        if events:
            self._events(part, offset_ns, wall_ns)

    def _events(self, part: Part, offset_ns: int, wall_ns: int) -> None:
        for each in _of_second(part.tape.decisions, offset_ns):
            decision = replace(each[2], volume=part.name)
            number = self.store.add_decision(decision, wall_ns + each[0] % NS_PER_S)
            self._rows[part.name, each[1]] = number
        for at_ns, outcomes, latency_ns in _of_second(part.tape.written, offset_ns):
            named = [
                replace(each, action=replace(each.action, volume=part.name)) for each in outcomes
            ]
            row = self._rows.get((part.name, named[0].action.decision or 0)) if named else None
            self.store.add_outcomes(named, row, wall_ns + at_ns % NS_PER_S, latency_ns)
        for at_ns, edge, late_ns in _of_second(part.tape.edges, offset_ns):
            at_wall_ns = wall_ns + at_ns % NS_PER_S
            self.store.add_edge(replace(edge, volume=part.name), late_ns, at_wall_ns)

    def live(self, part: Part, at_s: int) -> None:
        """Write the live document of this second, or the last one of the tape."""
        offset_ns = (at_s + part.late_s) % part.round_s * NS_PER_S
        documents = _of_second(part.tape.documents, offset_ns) or [part.tape.documents[-1]]
        document = {**documents[-1][1], **part.heat, "volume": part.name, "title": part.title}
        if part.name == "bcache0":
            document["miss_ratio"] = _curve(document["cache_bytes"])
            document["overrides"] = [*document["overrides"], *self.overrides]
        self.store.set_live(part.name, document, at_s * NS_PER_S)

    def daemon(self, at_s: int) -> None:
        """Write the daemon's own status."""
        self.store.set_live(DAEMON, _daemon(at_s), at_s * NS_PER_S)

    def stop(self) -> None:
        """Drop every status, as the daemon does at an orderly end."""
        for name in (*(part.name for part in self.parts), DAEMON):
            self.store.drop_live(name)


def fill(folder: Path, count: int, hours: float, now_s: int) -> Filler:
    """Make a history that ends at `now_s` (Unix)."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        tapes = [(play(name, mode, Path(scratch) / name), mode) for name, mode in _RECORDINGS]
    filler = Filler(Store.open(folder / "history.db"), list(_parts(tapes, count)))
    for minute_s in range(now_s - round(hours * _HOUR_S), now_s, 60):
        _minute(filler, minute_s, now_s)
    _maintain(filler.store, now_s)
    for part in filler.parts:
        filler.live(part, now_s)
    filler.daemon(now_s)
    _add_intents(filler.store, now_s)
    _add_manual(filler.store, now_s)
    return filler


def _minute(filler: Filler, minute_s: int, now_s: int) -> None:
    """Write one minute; older samples are rarer, and each covers the time to the next."""
    age_s = now_s - minute_s
    step_s = 1 if age_s <= 1200 else 10 if age_s <= 6 * _HOUR_S else 30
    with filler.store.batch():
        for at_s in range(minute_s, min(minute_s + 60, now_s), step_s):
            for part in filler.parts:
                filler.second(part, at_s, events=age_s <= 900 or minute_s % 1800 < 60)
    filler.store.maintain(Maintenance(_LIMITS), minute_s * NS_PER_S, minute_s * NS_PER_S)


def _maintain(store: Store, now_s: int) -> None:
    maintenance = Maintenance(_LIMITS)
    while store.maintain(maintenance, now_s * NS_PER_S, now_s * NS_PER_S):
        pass


def _parts(tapes: Sequence[tuple[Tape, Mode]], count: int) -> Iterator[Part]:
    for number in range(count):
        tape, mode = tapes[number % len(tapes)]
        name, title = f"bcache{number}", f"bcache{number}"
        if number % len(tapes) == 2:
            name, title = f"vg-data{number}", f"vg/data{number}"
        if number == 5:
            name, title = _LONG, _LONG.replace("--", "-").replace("department-", "department/")
        heat = {**heat_parts(mode), **warm_parts()} if number < len(tapes) else {}
        yield Part(name, title, tape, mode, number * 7, heat)


def _of_second(rows: Sequence[Any], offset_ns: int) -> list[Any]:
    return [each for each in rows if offset_ns <= each[0] < offset_ns + NS_PER_S]


def _curve(cache_bytes: int) -> dict[str, Any]:
    """A miss-ratio curve; the recordings have none."""
    sizes = [round(cache_bytes * 2 ** (step / 4)) for step in range(-16, 17)]
    ratios = [0.95 - 0.8 / (1 + 2 ** (-step / 3)) for step in range(-16, 17)]
    status = MissRatioStatus(3 * _HOUR_S * NS_PER_S, 5000, 256, tuple(sizes), tuple(ratios))
    found = status_to_json(VolumeStatus(miss_ratio=status))["miss_ratio"]
    assert isinstance(found, dict)
    return found


def _daemon(at_s: int) -> dict[str, Any]:
    names = ("volume", "edges", "path", "bypass", "device", "class")
    return {
        "pid": os.getpid(),
        "version": __version__,
        "boot_id": "this boot",
        "started_unix_ns": (at_s - at_s % _HOUR_S) * NS_PER_S,
        "tick_ns": NS_PER_S // 4,
        "history": {"written": True, "dropped": 0, "trouble": None},
        "intents_error": "",
        "absent": [
            {
                "volume": "bcache0",
                "uuid": "0b1e5000-0000-4000-8000-000000000007",
                "why": "another volume has the name bcache0 now",
                "kept": [
                    {"what": "mode enforce", "since_unix_ns": 1_790_000_000 * NS_PER_S},
                    {"what": "writeback_percent 20", "since_unix_ns": None},
                ],
            }
        ],
        "absent_count": 1,
        "policies": {
            "folder": "/etc/ebbgate/policies.d",
            "names": [],
            "problems": [],
            "kept": True,
        },
        "probe": {
            "kind": "ebpf",
            "state": "running",
            "restarts": 0,
            "signals": dict.fromkeys(names, "ok"),
            "bad_lines": 0,
            "complaints": {},
        },
    }


def _add_intents(store: Store, now_s: int) -> None:
    intents: tuple[tuple[str, dict[str, Any], bool, str, int], ...] = (
        (IntentKind.MODE, {"mode": "enforce"}, True, "bcache0: mode enforce", 20 * _HOUR_S),
        (IntentKind.HOLD, {"on": True}, True, "bcache0: held until it is released", 2 * _HOUR_S),
        (IntentKind.HOLD, {"on": False}, True, "bcache0: hold ended", _HOUR_S),
        (IntentKind.DRAIN, {"for_ns": 600 * NS_PER_S}, False, "bcache0: it is clean", 300),
    )
    for number, (kind, args, ok, outcome, ago_s) in enumerate(intents, start=1):
        at_ns = (now_s - ago_s) * NS_PER_S
        store.add_intent(IntentRow(number, kind, "bcache0", args, "admin", at_ns))
        store.resolve_intent(number, at_ns + NS_PER_S, ok, outcome)


def _add_manual(store: Store, now_s: int) -> None:
    """Add a value of ebbgate, and one that somebody else wrote after it."""
    by_ebbgate = Source(STREAM_BYPASS, "a tenth of the bytes bypasses")
    for ago_s, kind, old, new, source in (
        (600, OutcomeKind.CHANGED, "4194304", "1048576", by_ebbgate),
        (300, OutcomeKind.MANUAL, None, "65536", FOUND),
    ):
        at_ns = (now_s - ago_s) * NS_PER_S
        written = Action("bcache0", "sequential_cutoff", old, new, *source)
        store.add_outcomes([Outcome(written, kind, at_ns, read_back=new)], None, at_ns)


def apply_advice(filler: Filler, now_s: int) -> None:
    """Add an applied advice on bcache0 that is still active."""
    at_ns = (now_s - 120) * NS_PER_S
    filler.overrides = [
        {
            "kind": "set",
            "knob": knob,
            "value": "0",
            "who": "admin",
            "since_unix_ns": at_ns,
            "until_unix_ns": None,
            "left_ns": None,
        }
        for knob in CONGESTED
    ]
    args = {"id": "EBB-205"}
    row = IntentRow(5, IntentKind.APPLY, "bcache0", args, "admin", at_ns)
    filler.store.add_intent(row)
    filler.store.resolve_intent(row.id, at_ns + NS_PER_S, True, "bcache0: both thresholds = 0")


def run_live(folder: Path, filler: Filler) -> None:
    """Continue second by second; requests are answered, not carried out."""
    last_s = int(time.time())
    with answering(folder / "control.sock", _outcome, filler.store, first=6):
        while True:
            time.sleep(0.1)
            now_s = int(time.time())
            for at_s in range(last_s + 1, now_s + 1):
                with filler.store.batch():
                    for part in filler.parts:
                        filler.second(part, at_s, events=True)
                        filler.live(part, at_s)
                    filler.daemon(at_s)
            last_s = now_s


def _outcome(request: IntentRow) -> Answer:
    return True, f"{request.volume or 'every volume'}: {request.kind}; nothing is tuned here"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Make a day of history for the web.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--volumes", type=int, default=3)
    parser.add_argument("--hours", type=float, default=24)
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--live", action="store_true", help="continue as a daemon would")
    end.add_argument("--stopped", action="store_true", help="end as a daemon that was stopped")
    options = parser.parse_args(argv)
    now_s = int(time.time()) - options.stopped * _STOPPED_S
    filler = fill(options.folder, options.volumes, options.hours, now_s)
    if options.stopped:
        filler.stop()
    if options.live:
        apply_advice(filler, now_s)
    print(f"{options.folder}: {options.volumes} volumes, {options.hours:g} hours", flush=True)
    try:
        if options.live:
            run_live(options.folder, filler)
    except KeyboardInterrupt:
        pass
    finally:
        filler.store.close()


if __name__ == "__main__":
    main()

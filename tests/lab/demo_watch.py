# SPDX-License-Identifier: GPL-2.0-only
"""Follows a volume of the guest, and the daemon's log, while the workload runs.

I/O: a thread that reads through the Session; a small script in the guest.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ebbgate.cli import format
from ebbgate.model.decision import GateKind
from ebbgate.model.status import GateStatus
from tests.bench.product import PYTHON, STATE_DIR
from tests.lab.demo_screen import Moment, Screen
from tests.lab.errors import LabError
from tests.lab.session import Session

_SCRIPT = Path(__file__).resolve().parents[1] / "bench" / "guest" / "watch.py"
_PERIOD_S = 0.4
_DECISION = re.compile(r"(\w+: (?:idle_destage|stream_bypass): .*)")


@dataclass(slots=True)
class Tail:
    """New whole lines of a file of the guest that grows."""

    session: Session
    path: str
    _offset: int = 0
    _rest: bytes = b""

    def lines(self) -> list[str]:
        """What was added since the last call."""
        data = self.session.read_bytes(self.path, offset=self._offset)
        self._offset += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [line.decode(errors="replace") for line in whole]


class Watch:
    """A context manager; `log` is the path of the daemon's log in the guest, if one runs."""

    def __init__(self, session: Session, volume: str, screen: Screen, log: str = "") -> None:
        self._screen = screen
        history = f"{STATE_DIR}/history.db" if log else "/nonexistent"
        argv = [PYTHON, str(_SCRIPT), volume, "--history", history]
        self._process = session.spawn(argv)
        self._samples = Tail(session, self._process.stdout_path)
        self._log = Tail(session, log) if log else None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self.decisions = 0
        """Lines of the log in which a strategy took another stand."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join(10)
        # A guest that is lost is the workload's error to report, not ours.
        with contextlib.suppress(LabError):
            self._process.kill()
            self._process.wait(10)

    def _follow(self) -> None:
        with contextlib.suppress(LabError, OSError):
            while not self._over.wait(_PERIOD_S):
                self._look()

    def _look(self) -> None:
        for line in self._log.lines() if self._log else ():
            if found := _DECISION.search(line):
                self.decisions += 1
                self._screen.decision(found[1])
        for line in self._samples.lines()[-1:]:
            self._screen.moment(moment_of(json.loads(line)))


def moment_of(sample: dict[str, Any]) -> Moment:
    """What the script in the guest has printed."""
    return Moment(
        sample["dirty_mib"],
        sample.get("regime", ""),
        _gate(sample.get("gate")),
        sample.get("now", ""),
    )


def _gate(document: dict[str, Any] | None) -> str:
    if not document:
        return ""
    figures = (document.get("rate_bytes_per_s"), document.get("depth_ios"))
    return format.gate(GateStatus(GateKind(document["kind"]), *figures))

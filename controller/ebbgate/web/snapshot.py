# SPDX-License-Identifier: GPL-2.0-only
"""The history and the daemon, as the web sees them. I/O: SQLite, reads; any thread.

A file that is missing, locked or damaged is an answer, not the end: the next look may be better.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Final

from ebbgate.config.settings import Config
from ebbgate.errors import EbbgateError, Unavailable
from ebbgate.model.status import STATUS_STALE_NS
from ebbgate.store.queries import Live
from ebbgate.store.queries_web import WebHistory
from ebbgate.units import NS_PER_S
from ebbgate.web import convert
from ebbgate.web.last_status import Told, of_rows
from ebbgate.web.liveness import Alive, Liveness
from ebbgate.web.metrics.page import HistoryFiles
from ebbgate.web.models.base import merged, to_json
from ebbgate.web.models.live import Health, Readable

_HITS_NS: Final = 5 * NS_PER_S
"""A ratio over minutes is not computed anew for each look."""
_DAEMON: Final = ""


@dataclass(frozen=True)
class Look:
    """What there is at one moment. `why`: the history cannot be read; then `told` is empty."""

    now_unix_ns: int
    told: Mapping[str, Told]
    hits: Mapping[str, float | None]
    daemon: Alive
    why: str | None

    @property
    def alive(self) -> bool | None:
        """Does the daemon run? None where that cannot be told."""
        said = self.live.get(_DAEMON)
        if self.daemon.running is None and said is not None:
            # No right to ask it: what it says of itself once a second is a sign of life, too.
            return True if self.now_unix_ns - said.at_unix_ns <= STATUS_STALE_NS else None
        return self.daemon.running

    @cached_property
    def essence(self) -> object:
        """What the volumes are: equal for looks between which nothing but time has passed."""
        return self.alive, self.why, {name: each.at_unix_ns for name, each in self.live.items()}

    @cached_property
    def live(self) -> Mapping[str, Live]:
        """The documents by volume; under the empty name what the daemon says of itself."""
        return {name: each.live for name, each in self.told.items()}

    @cached_property
    def volumes_json(self) -> bytes:
        """All of them as `Volumes`, made once for everybody who looks at the same time."""
        found: list[bytes] = []
        unreadable: list[str] = []
        for name, each in sorted(self.told.items()):
            if not name:
                continue
            if each.steady is None:
                unreadable.append(name)
                continue
            hit = self.hits.get(name)
            passing = convert.passing(each.live, hit, self.now_unix_ns, self.alive)
            found.append(merged(to_json(passing), each.steady))
        head = {
            "now_unix_s": self.now_unix_ns / NS_PER_S,
            "daemon_alive": self.alive,
            "history": self.why,
            "unreadable": unreadable,
        }
        return merged(to_json(head), b'{"volumes":[%s]}' % b",".join(found))

    @cached_property
    def health_json(self) -> bytes:
        """As the API says it, made once for everybody who looks at the same time."""
        return to_json(self.health())

    def health(self) -> Health:
        """As the API says it."""
        return convert.health(
            self.live.get(_DAEMON),
            self.daemon.pid,
            self.alive,
            Readable(ok=self.why is None, why=self.why),
            Readable(ok=self.daemon.why is None, why=self.daemon.why),
            self.now_unix_ns,
        )


class Databases:
    """Opened anew for each answer: a file that was replaced meanwhile is then the new one."""

    def __init__(self, config: Config, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self.config = config
        self.wall_ns = wall_ns
        self._liveness = Liveness(config.socket_path)
        self._looking = Lock()
        self._newest: tuple[Look | None, float] = (None, 0.0)
        self._told: Mapping[str, Told] = {}
        self._hits: dict[str, tuple[int, float | None]] = {}

    @contextmanager
    def history(self) -> Iterator[WebHistory]:
        """Raises EbbgateError."""
        with _told(self.config.history_path):
            opened = WebHistory.open(self.config.history_path)
            try:
                yield opened
            finally:
                opened.close()

    def files(self) -> HistoryFiles | None:
        """What the history takes on the disk; None where there is none, or it cannot be told."""
        path = self.config.history_path
        try:
            file_bytes = path.stat().st_size
        except OSError:
            return None
        try:
            log_bytes = path.with_name(f"{path.name}-wal").stat().st_size
        except OSError:
            # The daemon that ended last has folded it.
            log_bytes = 0
        return HistoryFiles(file_bytes, log_bytes, self.config.history.size_bytes)

    def look(self, max_age_s: float = 0.0) -> Look:
        """Never raises for what a database or the daemon is up to. Those who look at the same time
        share one look, and one that is no older than `max_age_s`.
        """
        with self._looking:
            newest, at_s = self._newest
            if newest is not None and time.monotonic() - at_s <= max_age_s:
                return newest
            found = self._look()
            self._newest = (found, time.monotonic())
            return found

    def _look(self) -> Look:
        told: Mapping[str, Told] = {}
        hits: dict[str, float | None] = {}
        why = None
        try:
            with self.history() as history:
                told = self._told = of_rows(history.live_rows(), self._told)
                hits = {name: self._hit_ratio(history, name) for name in told if name}
        except EbbgateError as error:
            why = error.message
        return Look(self.wall_ns(), told, hits, self._liveness.now(), why)

    def _hit_ratio(self, history: WebHistory, volume: str) -> float | None:
        now_ns = self.wall_ns()
        at_ns, known = self._hits.get(volume, (0, None))
        if abs(now_ns - at_ns) < _HITS_NS:
            return known
        found = history.hit_ratio(volume, now_ns - convert.HIT_WINDOW_NS, now_ns)
        self._hits[volume] = (now_ns, found)
        return found


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What SQLite says while it is asked, as an error with the next step."""
    try:
        yield
    except sqlite3.Error as error:
        raise Unavailable(f"{path.name} cannot be read now: {error}", "try again") from error

# SPDX-License-Identifier: GPL-2.0-only
"""The state of volumes and daemon at one moment, encoded once for all readers. I/O: SQLite, reads.

A file that is missing, locked or damaged is an answer, too: the next snapshot may be better. Any
thread may ask.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Final

from pydantic import ValidationError

from ebbgate.config.settings import Config
from ebbgate.errors import EbbgateError
from ebbgate.model.status import DAEMON, DaemonStatus, VolumeStatus
from ebbgate.store.queries import LiveRow, Statuses, TimedStatus
from ebbgate.store.queries_web import WebHistory
from ebbgate.units import NS_PER_S
from ebbgate.web import convert
from ebbgate.web.liveness import DaemonState, Liveness
from ebbgate.web.metrics.page import HistoryFiles
from ebbgate.web.models.base import merged, to_json
from ebbgate.web.models.live import Availability, Health

_HITS_NS: Final = 5 * NS_PER_S
"""How long a ratio over minutes is kept."""


class CachedStatus:
    """A status as the daemon wrote it, decoded once, and its JSON. Immutable."""

    def __init__(self, row: LiveRow) -> None:
        self.row = row

    @cached_property
    def daemon(self) -> TimedStatus[DaemonStatus]:
        """The status of the daemon itself."""
        return TimedStatus.read(DaemonStatus, self.row)

    @cached_property
    def volume(self) -> TimedStatus[VolumeStatus]:
        """The status of a volume."""
        return TimedStatus.read(VolumeStatus, self.row)

    @cached_property
    def steady_json(self) -> bytes | None:
        """The fields that stay until the daemon writes again, encoded once for all readers; None
        for a document of another version.
        """
        try:
            found = convert.volume(self.volume, None, self.row.at_unix_ns, None)
        except ValidationError:
            return None
        times = convert.time_fields(self.volume, None, self.row.at_unix_ns, None)
        return to_json({name: each for name, each in vars(found).items() if name not in times})


def cached_statuses(
    rows: Iterable[LiveRow], before: Mapping[str, CachedStatus]
) -> dict[str, CachedStatus]:
    """Return statuses by volume; unchanged ones are those of `before`."""
    found: dict[str, CachedStatus] = {}
    for row in rows:
        known = before.get(row.volume)
        found[row.volume] = known if known and known.row == row else CachedStatus(row)
    return found


@dataclass(frozen=True)
class Snapshot:
    """The state at one moment. `why`: the history cannot be read; then `statuses` is empty.

    `statuses`: by volume; under the empty name the daemon's own.
    """

    now_unix_ns: int
    statuses: Mapping[str, CachedStatus]
    hits: Mapping[str, float | None]
    daemon: DaemonState
    why: str | None

    @property
    def alive(self) -> bool | None:
        """Whether the daemon runs; None if unknown."""
        status = self.live.daemon
        if self.daemon.running is None and status is not None:
            # This process may not ask it, but it writes its own status once a second.
            return True if status.fresh(self.now_unix_ns) else None
        return self.daemon.running

    @cached_property
    def content_key(self) -> object:
        """Equal for snapshots between which only time has passed, and no status has become old."""
        times = {name: each.row.at_unix_ns for name, each in self.statuses.items()}
        own, now_ns = self.live.daemon, self.now_unix_ns
        stale = [name for name, each in self.live.volumes.items() if not each.fresh(now_ns)]
        return self.alive, self.why, times, stale, own is None or own.fresh(now_ns)

    @cached_property
    def live(self) -> Statuses:
        """The statuses of daemon and volumes."""
        own = self.statuses.get(DAEMON)
        volumes = {name: each.volume for name, each in self.statuses.items() if name != DAEMON}
        return Statuses.of(own.daemon if own else None, volumes)

    @cached_property
    def volumes_json(self) -> bytes:
        """All volumes as `Volumes`, encoded once for all readers."""
        found: list[bytes] = []
        unreadable: list[str] = []
        for name, each in sorted(self.statuses.items()):
            if name == DAEMON:
                continue
            if each.steady_json is None:
                unreadable.append(name)
                continue
            hit = self.hits.get(name)
            times = convert.time_fields(self.live.volumes[name], hit, self.now_unix_ns, self.alive)
            found.append(merged(to_json(times), each.steady_json))
        head = {
            "now_unix_s": self.now_unix_ns / NS_PER_S,
            "daemon_alive": self.alive,
            "history": self.why,
            "unreadable": unreadable,
        }
        return merged(to_json(head), b'{"volumes":[%s]}' % b",".join(found))

    @cached_property
    def health_json(self) -> bytes:
        """The health, encoded once for all readers."""
        return to_json(self.health())

    def health(self) -> Health:
        """Return the health as the API shows it."""
        return convert.health(
            self.live.daemon,
            self.daemon.pid,
            self.alive,
            Availability(ok=self.why is None, why=self.why),
            Availability(ok=self.daemon.why is None, why=self.daemon.why),
            self.now_unix_ns,
        )


class Databases:
    """Opens the history for each answer, so a file that was replaced is simply the new one."""

    def __init__(self, config: Config, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self.config = config
        self.wall_ns = wall_ns
        self._liveness = Liveness(config.socket_path)
        self._reading = Lock()
        self._newest: tuple[Snapshot | None, float] = (None, 0.0)
        self._statuses: Mapping[str, CachedStatus] = {}
        self._hits: dict[str, tuple[int, float | None]] = {}

    @contextmanager
    def history(self) -> Iterator[WebHistory]:
        """Raises EbbgateError, also for an error of SQLite or a damaged document."""
        with WebHistory.open(self.config.history_path) as opened:
            yield opened

    def files(self) -> HistoryFiles | None:
        """Return what the history takes on the disk; None if there is none, or it is unknown."""
        path = self.config.history_path
        try:
            file_bytes = path.stat().st_size
        except OSError:
            return None
        try:
            log_bytes = path.with_name(f"{path.name}-wal").stat().st_size
        except OSError:
            # The daemon that ended last has checkpointed its log into the file.
            log_bytes = 0
        return HistoryFiles(file_bytes, log_bytes, self.config.history.size_bytes)

    def snapshot(self, max_age_s: float = 0.0) -> Snapshot:
        """Return the state now; never raises for a broken database or daemon. Concurrent callers
        share one snapshot, also one that is no older than `max_age_s`.
        """
        with self._reading:
            newest, at_s = self._newest
            if newest is not None and time.monotonic() - at_s <= max_age_s:
                return newest
            found = self._read()
            self._newest = (found, time.monotonic())
            return found

    def _read(self) -> Snapshot:
        statuses: Mapping[str, CachedStatus] = {}
        hits: dict[str, float | None] = {}
        why = None
        try:
            with self.history() as history:
                statuses = self._statuses = cached_statuses(history.live_rows(), self._statuses)
                hits = {name: self._hit_ratio(history, name) for name in statuses if name}
        except EbbgateError as error:
            why = error.message
        return Snapshot(self.wall_ns(), statuses, hits, self._liveness.now(), why)

    def _hit_ratio(self, history: WebHistory, volume: str) -> float | None:
        now_ns = self.wall_ns()
        at_ns, known = self._hits.get(volume, (0, None))
        if abs(now_ns - at_ns) < _HITS_NS:
            return known
        found = history.hit_ratio(volume, now_ns - convert.HIT_WINDOW_NS, now_ns)
        self._hits[volume] = (now_ns, found)
        return found

# SPDX-License-Identifier: GPL-2.0-only
"""Keeps who owns the chunks of each volume whose policy names files for `promote_hot`.

A process reads files and mounts, since the daemon may not: see `layout.survey`.
I/O: device-mapper, on a thread; that process. On the event loop; what takes long is awaited.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ebbgate.background import BackgroundWorker
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.warm_process import WarmProcess
from ebbgate.errors import EbbgateError, Unavailable
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.layout.dm_table import without_secrets
from ebbgate.layout.survey import SECONDS_MAX
from ebbgate.layout.survey_answer import SurveyAnswer, Surveyed
from ebbgate.log_messages.volumes import LAYOUT_UNREADABLE
from ebbgate.model.heat import CHUNK_BYTES, VolumeLayout
from ebbgate.model.status import LayoutStatus
from ebbgate.model.volume import Volume
from ebbgate.policy.engine import Policy
from ebbgate.units import HOUR_NS, MINUTE_NS, NS_PER_S, doubled

_LOG = logging.getLogger(__name__)
_PERIOD_NS: Final = 300 * NS_PER_S
_RETRY_NS: Final = MINUTE_NS
_RETRY_NS_MAX: Final = HOUR_NS
"""A process that hangs in the kernel cannot be ended, so that there must not be many."""
_ANSWER_S: Final = 1.5 * SECONDS_MAX
_TRIES: Final = 3
_TABLES_MAX: Final = 1000

Start = Callable[[], Awaitable[WarmProcess]]
Tables = Mapping[str, list[tuple[int, int, str, str]]]


@dataclass(slots=True)
class _Reading:
    """The last time a layout was read. `failed`: why it could not be read; empty if it could.

    `failures`: so many in a row.
    """

    loop: VolumeLoop
    patterns: tuple[str, ...]
    began_ns: int
    ended_ns: int = 0
    failed: str = ""
    failures: int = 0

    def is_of(self, loop: VolumeLoop, patterns: tuple[str, ...]) -> bool:
        """Return whether it is still about this volume and these files."""
        return self.loop is loop and self.patterns == patterns

    @property
    def next_ns(self) -> int:
        """When the layout is due again."""
        if not self.failed:
            return self.began_ns + _PERIOD_NS
        return self.ended_ns + doubled(_RETRY_NS, self.failures - 1, _RETRY_NS_MAX)


class LayoutReader:
    """Reads one layout at a time. `volumes`: the daemon's loops by name."""

    def __init__(
        self,
        sysfs: Sysfs,
        volumes: Mapping[str, VolumeLoop],
        start: Start = WarmProcess.start,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._sysfs = sysfs
        self._volumes = volumes
        self._start = start
        self._now_ns = now_ns
        self._last: dict[str, _Reading] = {}
        self._tables = BackgroundWorker("tables")
        self._task: asyncio.Task[None] | None = None

    def poll(self) -> None:
        """Forget the layouts that no policy wants, and begin to read one that is due."""
        for name in self._last.keys() - self._volumes.keys():
            del self._last[name]
        due = [name for name, loop in self._volumes.items() if self._is_due(name, loop)]
        if due and (self._task is None or self._task.done()):
            # One that cannot be read keeps no other waiting.
            name = min(due, key=self._began_ns)
            loop, last = self._volumes[name], self._last.get(name)
            reading = _Reading(loop, _patterns(loop.policy), self._now_ns())
            if last is not None and last.is_of(loop, reading.patterns):
                reading.failures = last.failures
            self._last[name] = reading
            self._task = asyncio.create_task(self._read(reading))

    async def stop(self) -> None:
        """End the process that reads."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _began_ns(self, name: str) -> int:
        return self._last[name].began_ns if name in self._last else -1

    def _is_due(self, name: str, loop: VolumeLoop) -> bool:
        patterns, last = _patterns(loop.policy), self._last.get(name)
        if not patterns:
            self._last.pop(name, None)
            loop.signals.layout = loop.layout = None
            return False
        if last is None or not last.is_of(loop, patterns):
            return True
        if self._now_ns() < last.next_ns:
            return False
        age_ns = self._now_ns() - last.began_ns
        # Files of a volume that nobody uses stay where they are, and its disks may sleep.
        frame = loop.state.current_frame
        idle_ns = frame.idle_ns if frame else None
        return idle_ns is None or idle_ns < age_ns

    async def _read(self, reading: _Reading) -> None:
        loop = reading.loop
        before = loop.layout or LayoutStatus()
        try:
            found = await self._surveyed(loop.volume, reading.patterns)
        except (EbbgateError, OSError) as error:
            reading.failed = error.message if isinstance(error, EbbgateError) else str(error)
            reading.ended_ns, reading.failures = self._now_ns(), reading.failures + 1
            if reading.failed != before.error:
                _LOG.warning(LAYOUT_UNREADABLE, loop.volume.title, reading.failed)
            status = LayoutStatus(
                before.files, before.known_bytes, before.left_out, before.read_ns, reading.failed
            )
        else:
            now_ns = self._now_ns()
            reading.failures = 0
            layout = VolumeLayout(now_ns, found.groups, found.runs, found.inodes)
            status = LayoutStatus(
                found.files, found.known_bytes, found.left_out, now_ns, found.error
            )
        # The volume or its policy may have changed meanwhile.
        if self._last.get(loop.volume.name) is reading and _patterns(loop.policy):
            loop.layout = status
            if not reading.failed:
                loop.signals.layout = layout

    async def _surveyed(self, volume: Volume, patterns: tuple[str, ...]) -> Surveyed:
        """Read until nothing has changed meanwhile. Raises EbbgateError, OSError."""
        tables = await self._tables.run(self._read_tables)
        for _ in range(_TRIES):
            found = await self._asked(volume, patterns, tables)
            before, tables = tables, await self._tables.run(self._read_tables)
            if not found.changed and tables == before:
                return found
        raise Unavailable("the devices below the files change while they are read (pvmove?)")

    async def _asked(self, volume: Volume, patterns: tuple[str, ...], tables: Tables) -> Surveyed:
        process = await self._start()
        answer = SurveyAnswer(-(-volume.size_bytes // CHUNK_BYTES))
        try:
            async with asyncio.timeout(_ANSWER_S):
                process.send({"layout": patterns, "volume": volume.kernel_name, "tables": tables})
                while (found := answer.take(await process.event())) is None:
                    # An edge that waits goes first.
                    await asyncio.sleep(0)
                return found
        except TimeoutError as error:
            raise Unavailable(
                f"the files could not be read within {_ANSWER_S:g} s", "name fewer files"
            ) from error
        finally:
            await process.end()

    def _read_tables(self) -> Tables:
        """Return the tables of all dm devices; those that cannot be read are left out.

        A file that needs one of these is reported by its own error.
        """
        found = {}
        with suppress(OSError):
            for name in self._sysfs.dm_names()[:_TABLES_MAX]:
                with suppress(OSError, Unavailable):
                    rows = [without_secrets(target) for target in self._sysfs.dm.table(name)]
                    found[name] = [
                        (row.start_sectors, row.length_sectors, row.kind, row.params)
                        for row in rows
                    ]
        return found


def _patterns(policy: Policy) -> tuple[str, ...]:
    """Return the files that the policy names for `promote_hot`."""
    return policy.promotion.files if policy.promotion else ()

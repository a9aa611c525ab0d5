# SPDX-License-Identifier: GPL-2.0-only
"""Owns all overrides: gives them to the volumes and ends them in time, also after a restart.

I/O: `overrides.db`, through its writer. The event loop calls it; it never blocks. An override is on
the disk before it is in force. It ends at once and is ended on the disk later, so that a full disk
cannot keep a knob at a value whose time is over.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeVar

from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.chosen_modes import ChosenModes
from ebbgate.daemon.chosen_rows import forget_written, is_of, place_all, stable_uuid, title
from ebbgate.errors import EbbgateError
from ebbgate.intents.database import Loaded, OverrideDatabase
from ebbgate.log_messages.volumes import (
    OVERRIDE_ENDED,
    OVERRIDE_INVALID,
    OVERRIDE_SET_ASIDE,
    OVERRIDES_FAILED,
    OVERRIDES_FOLLOWED,
    OVERRIDES_OF_ANOTHER,
)
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import Mode, Volume
from ebbgate.policy.overrides import after_sleep, ends_ns, is_over

_LOG = logging.getLogger(__name__)
_RELOAD_NS: Final = 10_000_000_000
"""How often reading the database is repeated after a failure."""
T = TypeVar("T")


class Writer(Protocol):
    """Uses the database on a thread of its own."""

    error: str

    def submit(self, work: Callable[[OverrideDatabase], T]) -> Future[T]:
        """Return the result of `work`; the future raises EbbgateError."""


@dataclass(slots=True)
class OverrideRegistry:
    """All overrides, by number, and the modes that people chose. `volumes`: the loops by name.

    `manual`: what somebody else wrote. `loaded`: whether the database was read.
    """

    writer: Writer
    volumes: Mapping[str, VolumeLoop]
    wall_ns: Callable[[], int] = time.time_ns
    now_ns: Callable[[], int] = time.monotonic_ns
    active: dict[int, ActiveOverride] = field(default_factory=dict)
    chosen: ChosenModes = field(default_factory=ChosenModes)
    manual: dict[int, Override] = field(default_factory=dict)
    _adding: set[tuple[str, str]] = field(default_factory=set)
    _unsaved: dict[int, str] = field(default_factory=dict)
    _moved: dict[int, Override] = field(default_factory=dict)
    _saving: asyncio.Task[None] | None = None
    _loading: asyncio.Task[None] | None = None
    _tried_ns: int = 0
    loaded: bool = False
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    # ---- loading -------------------------------------------------------------------------------
    async def load(self, timeout_s: float = 10.0) -> None:
        """Read the database and put in force what it has. The modes of the configuration hold until
        that is done: a slow disk answers later, and `poll` repeats what failed.
        """
        await asyncio.wait({self._begin_to_load()}, timeout=timeout_s)

    def _begin_to_load(self) -> asyncio.Task[None]:
        self._tried_ns = self.now_ns()
        self._loading = self._begin(self._load())
        return self._loading

    async def _load(self) -> None:
        self.take_up(await self._on_disk(lambda database: database.load()))

    def take_up(self, found: Loaded) -> None:
        """Put in force what has been read, or taken out before."""
        self.loaded = True
        for text in found.set_aside:
            _LOG.error(OVERRIDE_INVALID, text)
        self.chosen.add_read(found.modes, found.mode_volumes, found.mode_times)
        for override in found.overrides:
            if override.kind is OverrideKind.MANUAL:
                self.manual[override.id] = override
            else:
                self.active[override.id] = self._taken_up(override)
        for name, loop in self.volumes.items():
            mode = self.chosen.of(loop.volume)
            if mode is not None and mode is not loop.mode:
                loop.set_mode(mode, f"mode {mode} was requested by a user")
            self.adopt(name)

    def adopt(self, name: str) -> None:
        """Apply the overrides of a volume that has come."""
        loop = self.volumes[name]
        loop.overrides.on_end = self.end
        self._place(loop.volume)
        for knob, override in self._manual_of(loop).items():
            if not loop.writer.restore_manual(knob, override.value, loop.last_seen):
                self._forget_manual(override, "the knob has another value now")
        self.poll()
        self._apply(name)

    def _place(self, volume: Volume) -> None:
        """Give a volume what was chosen for it under any name, and nothing of another volume."""
        followed = self.chosen.place(volume, self.volumes)
        rows = [*(each.override for each in self.active.values()), *self.manual.values()]
        found = place_all(rows, volume, self.volumes)
        for row in found.moved:
            self._moved[row.id] = row
            if row.id in self.manual:
                self.manual[row.id] = row
            else:
                # Its end stays: the wall clock may have been set since it was taken up.
                self.active[row.id] = replace(self.active[row.id], override=row)
        for row in found.twice:
            self.active.pop(row.id, None)
            self.manual.pop(row.id, None)
            self._unsaved[row.id] = "the volume has one that was made under another name"
        followed |= found.followed
        if followed:
            names = ", ".join(sorted(set(followed.values())))
            _LOG.warning(OVERRIDES_FOLLOWED, volume.name, names, ", ".join(followed))
        others = self.chosen.of_another(volume) + found.of_another
        if others:
            _LOG.warning(OVERRIDES_OF_ANOTHER, volume.name, ", ".join(others))

    # ---- changes -------------------------------------------------------------------------------
    async def keep(self, overrides: Sequence[Override]) -> tuple[Override, ...]:
        """Write all of them to the disk, or none; `enforce` puts them in force then.

        Raises EbbgateError.
        """
        wanted = tuple(self._identified(override) for override in overrides)
        adding = self.writer.submit(lambda database: database.add(wanted))
        try:
            return await asyncio.wrap_future(adding)
        except asyncio.CancelledError:
            adding.add_done_callback(self._unkeep)
            raise

    def _unkeep(self, adding: Future[tuple[Override, ...]]) -> None:
        """End on the disk what was written after its request was given up."""
        if adding.cancelled() or adding.exception() is not None:
            return
        late, wall = {each.id: "it timed out" for each in adding.result()}, self.wall_ns()
        with suppress(EbbgateError):
            self.writer.submit(lambda database: database.end(late, wall))

    def enforce(self, kept: Sequence[Override]) -> None:
        """Put overrides that are on the disk in force, in place of older ones."""
        for override in kept:
            for each in list(self.active.values()):
                old = each.override
                # A row without a uuid is of whatever volume has the name.
                owners = (override.owner, override.volume)
                if old.owner in owners and (old.kind, old.knob) == (override.kind, override.knob):
                    self._replace(old, override)
            self.active[override.id] = self._taken_up(override)
        for name in {override.volume for override in kept}:
            self._apply(name)

    def _replace(self, old: Override, new: Override) -> None:
        del self.active[old.id]
        loop = self._loop_of(old)
        if loop is not None:
            loop.overrides.ending(old, f"{new.who} made a newer request")

    def put_back(self, overrides: Sequence[Override]) -> None:
        """Put overrides in force again that others had replaced; their rows follow."""
        wanted = tuple(overrides)
        self.active |= {override.id: self._taken_up(override) for override in wanted}
        for name in {override.volume for override in wanted}:
            self._apply(name)
        with suppress(EbbgateError):
            self.writer.submit(lambda database: database.reopen(wanted))

    def of(self, volume: str) -> tuple[ActiveOverride, ...]:
        """Return the overrides in force for a volume, oldest first."""
        found = (each for each in self.active.values() if each.override.volume == volume)
        loop = self.volumes.get(volume)
        return tuple(each for each in found if loop is None or is_of(each.override, loop.volume))

    def end(self, override: Override, why: str) -> None:
        """End an override and undo what it did."""
        if self.active.pop(override.id, None) is None:
            return
        loop = self._loop_of(override)
        if loop is not None:
            loop.overrides.ending(override, why)
        _LOG.info(OVERRIDE_ENDED, override.volume, title(override), override.who, why)
        self._apply(override.volume)
        self._unsaved[override.id] = why
        self._save()

    def end_all(self, volume: str, why: str, kind: OverrideKind | None = None) -> None:
        """End all overrides of a volume, or those of one kind."""
        for each in self.of(volume):
            if kind in (None, each.override.kind):
                self.end(each.override, why)

    async def keep_mode(self, volume: str, mode: Mode) -> None:
        """Write the mode that a person chose to the disk. Raises EbbgateError: nothing is kept."""
        writing = self._write_mode(volume, mode)
        try:
            await asyncio.wrap_future(writing)
        except asyncio.CancelledError:
            before = self.modes.get(self._uuid(volume) or volume)
            writing.add_done_callback(lambda _: self._write_mode(volume, before))
            raise
        self.take_mode(volume, mode)

    def take_mode(self, volume: str, mode: Mode) -> None:
        """Take the mode that a person chose, which is not on the disk yet."""
        self.chosen.choose(self._uuid(volume), volume, mode, self.wall_ns())

    @property
    def modes(self) -> Mapping[str, Mode]:
        """The modes that people chose (ChosenModes.modes)."""
        return self.chosen.modes

    def _write_mode(self, volume: str, mode: Mode | None) -> Future[None]:
        wall, uuid = self.wall_ns(), self._uuid(volume)
        return self.writer.submit(lambda database: database.set_mode(volume, mode, wall, uuid))

    async def saved(self) -> None:
        """Wait until what has ended is ended on the disk.

        Raises EbbgateError if it is not: `poll` repeats it, but a restart before that would put it
        in force again.
        """
        while self._unsaved:
            # Shielded: a request that is given up must not cancel what others wait for.
            await asyncio.shield(self._save())

    def poll(self) -> None:
        """End overrides whose time is over; repeat what could not be read or written."""
        wall, now = self.wall_ns(), self.now_ns()
        loading = self._loading is not None and not self._loading.done()
        if not (self.loaded or loading) and now - self._tried_ns >= _RELOAD_NS:
            self._begin_to_load()
        for number, each in list(self.active.items()):
            if is_over(each, wall, now):
                self.end(each.override, self._overdue(each.override))
            elif number in self.active and (sooner := after_sleep(each, wall, now)) is not each:
                self.active[number] = sooner
                self._apply(each.override.volume)
        for name, loop in self.volumes.items():
            self._keep_manual(name, loop)
        if self._unsaved or self._moved or self.chosen.moved:
            self._save()

    # ---- what somebody else wrote --------------------------------------------------------------
    def _keep_manual(self, name: str, loop: VolumeLoop) -> None:
        """Keep which knobs somebody else wrote, so that a restart leaves them alone, too."""
        manual = frozenset(loop.writer.manual)
        knobs = loop.last_seen.knobs if loop.last_seen else {}
        for knob, override in self._manual_of(loop).items():
            if knob not in manual:
                self._forget_manual(override, "it is tuned by ebbgate again")
        ours = self._manual_of(loop)
        for knob in manual:
            value, known = knobs.get(knob), ours.get(knob)
            if value is None or (name, knob) in self._adding:
                continue
            if known is None or known.value != value:
                self._adding.add((name, knob))
                self._begin(self._add_manual(name, knob, value))

    async def _add_manual(self, name: str, knob: str, value: str) -> None:
        """Without its row the knob is left alone all the same, but only until a restart."""
        override = self._identified(
            Override(OverrideKind.MANUAL, name, "somebody", self.wall_ns(), knob=knob, value=value)
        )
        try:
            (kept,) = await self._on_disk(lambda database: database.add((override,)))
            for old in list(self.manual.values()):
                if old.owner in (kept.owner, name) and old.knob == knob:
                    del self.manual[old.id]
            self.manual[kept.id] = kept
        finally:
            self._adding.discard((name, knob))

    def _forget_manual(self, override: Override, why: str) -> None:
        del self.manual[override.id]
        self._unsaved[override.id] = why

    def _manual_of(self, loop: VolumeLoop) -> dict[str, Override]:
        """Return what is left alone of a volume, by knob."""
        return {row.knob: row for row in self.manual.values() if is_of(row, loop.volume)}

    # ---- the volumes ---------------------------------------------------------------------------
    def _loop_of(self, override: Override) -> VolumeLoop | None:
        """Return the volume of an override; None while it is absent."""
        loop = self.volumes.get(override.volume)
        return loop if loop is not None and is_of(override, loop.volume) else None

    def _uuid(self, volume: str) -> str:
        loop = self.volumes.get(volume)
        return stable_uuid(loop.volume) if loop is not None else ""

    def _identified(self, override: Override) -> Override:
        return replace(override, device_uuid=self._uuid(override.volume))

    def _overdue(self, override: Override) -> str:
        loop = self._loop_of(override)
        if loop is None:
            return "it expired while the volume was absent"
        return loop.overrides.unfinished(override) or "its time is over"

    def _taken_up(self, override: Override) -> ActiveOverride:
        return ActiveOverride(override, ends_ns(override, self.wall_ns(), self.now_ns()))

    def _apply(self, name: str) -> None:
        """Apply what is in force. If that fails, set overrides aside, the newest first, until the
        others can be applied.
        """
        loop = self.volumes.get(name)
        while loop is not None:
            mine = self.of(name)
            try:
                loop.freeze(any(each.override.kind is OverrideKind.HOLD for each in mine))
                loop.set_overrides(mine)
            except Exception as error:
                if not mine:
                    raise
                self._set_aside(mine[-1].override, error)
            else:
                return

    def _set_aside(self, override: Override, error: Exception) -> None:
        _LOG.error(
            OVERRIDE_SET_ASIDE,
            *(override.volume, title(override), override.who, error),
            exc_info=error,
        )
        del self.active[override.id]
        number, reason = override.id, f"it could not be applied: {error}"
        with suppress(EbbgateError):
            self.writer.submit(lambda database: database.set_aside(number, reason))

    # ---- the disk ------------------------------------------------------------------------------
    def _save(self) -> asyncio.Task[None]:
        """Begin to write what has ended, unless that is under way; a failure is repeated later."""
        if self._saving is None or self._saving.done():
            self._saving = self._begin(self._end_on_disk())
        return self._saving

    async def _end_on_disk(self) -> None:
        batch, wall = dict(self._unsaved), self.wall_ns()
        moved, modes = dict(self._moved), dict(self.chosen.moved)

        def write(database: OverrideDatabase) -> None:
            # First: of two rows for the same one may have ended.
            database.end(batch, wall)
            if moved or modes:
                database.place(moved.values(), modes)

        await self._on_disk(write)
        forget_written(self._unsaved, batch)
        forget_written(self._moved, moved)
        forget_written(self.chosen.moved, modes)

    async def _on_disk(self, work: Callable[[OverrideDatabase], T]) -> T:
        """Return the result of `work`. Raises EbbgateError."""
        return await asyncio.wrap_future(self.writer.submit(work))

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run a task whose end is not awaited."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        # The writer logs that the disk failed.
        if error is not None and not isinstance(error, EbbgateError):
            _LOG.error(OVERRIDES_FAILED, exc_info=error)

# SPDX-License-Identifier: GPL-2.0-only
"""The owner of all overrides: gives them to the volumes, ends them in time, over restarts too.

I/O: `overrides.db`, through its writer. The event loop calls it; it never blocks. An override that
makes ebbgate do more is on the disk before it is in force; one that is over is over at once, and on
the disk later: a full disk keeps no knob at a value whose time is over.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.errors import EbbgateError
from ebbgate.intents.database import Loaded, OverrideDatabase
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import Mode
from ebbgate.policy.overrides import ends_ns, is_over

_LOG = logging.getLogger(__name__)
_RELOAD_NS: Final = 10_000_000_000
"""How often a database that could not be read is tried again."""
T = TypeVar("T")


class Writer(Protocol):
    """Whoever uses the database, on a thread of its own."""

    error: str

    def submit(self, work: Callable[[OverrideDatabase], T]) -> Future[T]:
        """The result of `work`, or why it could not be done (EbbgateError)."""


@dataclass(slots=True)
class OverrideRegistry:
    """All overrides in force, and the modes that people chose. `volumes`: the loops by name."""

    writer: Writer
    volumes: Mapping[str, VolumeLoop]
    wall_ns: Callable[[], int] = time.time_ns
    now_ns: Callable[[], int] = time.monotonic_ns
    active: dict[int, ActiveOverride] = field(default_factory=dict)
    modes: dict[str, Mode] = field(default_factory=dict)
    _manual: dict[tuple[str, str], Override] = field(default_factory=dict)
    _adding: dict[tuple[str, str], tuple[str, Future[tuple[Override, ...]]]] = field(
        default_factory=dict
    )
    _unsaved: dict[int, str] = field(default_factory=dict)
    _saving: tuple[dict[int, str], Future[None]] | None = None
    _loading: Future[Loaded] | None = None
    _tried_ns: int = 0
    loaded: bool = False

    # ---- loading -------------------------------------------------------------------------------
    def load(self, timeout_s: float = 10.0) -> None:
        """Read the database, before the event loop runs; where that fails it is tried again by
        `poll`, and tuning goes on with the modes of the settings.
        """
        self._begin_to_load()
        with suppress(EbbgateError, TimeoutError):
            assert self._loading is not None
            self._loading.result(timeout_s)
        self._take_loaded()

    def _begin_to_load(self) -> None:
        self._tried_ns = self.now_ns()
        self._loading = self.writer.submit(lambda database: database.load())

    def _take_loaded(self) -> None:
        """What has been read by now is in force."""
        loading = self._loading
        if loading is None or not loading.done():
            return
        self._loading = None
        try:
            found = loading.result()
        except EbbgateError:
            return
        self.loaded = True
        for text in found.set_aside:
            _LOG.error("%s", text)
        self.modes = {**found.modes, **self.modes}
        for wish in found.overrides:
            if wish.kind is OverrideKind.MANUAL:
                self._manual[wish.volume, wish.knob] = wish
            else:
                self.active[wish.id] = self._taken_up(wish)
        for name, loop in self.volumes.items():
            mode = self.modes.get(name)
            if mode is not None and mode is not loop.mode:
                loop.set_mode(mode, f"mode {mode} was asked for by a person")
            self.adopt(name)

    def adopt(self, name: str) -> None:
        """A volume has come: its overrides are in force again, if they still are."""
        loop = self.volumes[name]
        loop.overrides.on_end = self.end
        for (volume, knob), wish in list(self._manual.items()):
            if volume == name and not loop.writer.restore_manual(knob, wish.value):
                self._forget_manual(wish, "the knob has another value now")
        self.poll()
        self._apply(name)

    # ---- changes -------------------------------------------------------------------------------
    async def keep(self, overrides: Sequence[Override]) -> tuple[Override, ...]:
        """All of them are on the disk, or none; `enforce` puts them in force then.

        Raises EbbgateError.
        """
        wanted = tuple(overrides)
        adding = self.writer.submit(lambda database: database.add(wanted))
        try:
            return await asyncio.wrap_future(adding)
        except asyncio.CancelledError:
            adding.add_done_callback(self._unkeep)
            raise

    def _unkeep(self, adding: Future[tuple[Override, ...]]) -> None:
        """Nobody waited until these were on the disk: no restart may put them in force."""
        if adding.cancelled() or adding.exception() is not None:
            return
        late = {wish.id: "it took too long" for wish in adding.result()}
        wall = self.wall_ns()
        with suppress(EbbgateError):
            self.writer.submit(lambda database: database.end(late, wall))

    def enforce(self, kept: Sequence[Override]) -> None:
        """Overrides that are on the disk are in force from now on, in place of older ones."""
        for wish in kept:
            for each in list(self.active.values()):
                old = each.override
                if (old.volume, old.kind, old.knob) == (wish.volume, wish.kind, wish.knob):
                    self._replace(old, wish)
            self.active[wish.id] = self._taken_up(wish)
        for name in {wish.volume for wish in kept}:
            self._apply(name)

    def _replace(self, old: Override, new: Override) -> None:
        del self.active[old.id]
        if old.volume in self.volumes:
            self.volumes[old.volume].overrides.ending(old, f"{new.who} made a newer request")

    def put_back(self, overrides: Sequence[Override]) -> None:
        """Overrides that were in force a moment ago are again, at once; their new rows follow."""
        wanted = tuple(overrides)
        for wish in wanted:
            self.active[wish.id] = self._taken_up(wish)
        for name in {wish.volume for wish in wanted}:
            self._apply(name)
        with suppress(EbbgateError):
            self.writer.submit(lambda database: database.reopen(wanted))

    def of(self, volume: str) -> tuple[ActiveOverride, ...]:
        """The overrides in force for a volume, oldest first."""
        return tuple(each for each in self.active.values() if each.override.volume == volume)

    def end(self, wish: Override, why: str) -> None:
        """An override is over, and what it wanted is undone."""
        if self.active.pop(wish.id, None) is None:
            return
        if wish.volume in self.volumes:
            self.volumes[wish.volume].overrides.ending(wish, why)
        _LOG.info("%s: %s of %s is over: %s", wish.volume, _title(wish), wish.who, why)
        self._apply(wish.volume)
        self._unsaved[wish.id] = why
        self._save()

    def end_all(self, volume: str, why: str, kind: OverrideKind | None = None) -> None:
        """All overrides of a volume (of one kind) are over."""
        for each in self.of(volume):
            if kind in (None, each.override.kind):
                self.end(each.override, why)

    async def keep_mode(self, volume: str, mode: Mode) -> None:
        """The mode that a person chose is on the disk. Raises EbbgateError, and nothing is kept."""
        writing = self._write_mode(volume, mode)
        try:
            await asyncio.wrap_future(writing)
        except asyncio.CancelledError:
            before = self.modes.get(volume)
            writing.add_done_callback(lambda _: self._write_mode(volume, before))
            raise
        self.modes[volume] = mode

    def _write_mode(self, volume: str, mode: Mode | None) -> Future[None]:
        wall = self.wall_ns()
        return self.writer.submit(lambda database: database.set_mode(volume, mode, wall))

    async def saved(self) -> None:
        """All that is over is marked so on the disk. Raises EbbgateError where it is not: then it
        is tried again, but a restart before that would put it in force again.
        """
        while True:
            self._save()
            if self._saving is None:
                return
            # Shielded: a request that is given up must not cancel what others wait for.
            await asyncio.shield(asyncio.wrap_future(self._saving[1]))

    def poll(self) -> None:
        """End what is over by the clock; try again what could not be read or written."""
        self._load_again()
        wall, now = self.wall_ns(), self.now_ns()
        for each in list(self.active.values()):
            if is_over(each, wall, now):
                self.end(each.override, self._overdue(each.override))
        for name, loop in self.volumes.items():
            self._keep_manual(name, loop)
        self._save()

    def _load_again(self) -> None:
        """Now and then, until the database could be read."""
        self._take_loaded()
        if self.loaded or self._loading is not None:
            return
        if self.now_ns() - self._tried_ns >= _RELOAD_NS:
            self._begin_to_load()

    # ---- what somebody else wrote --------------------------------------------------------------
    def _keep_manual(self, name: str, loop: VolumeLoop) -> None:
        """What somebody else wrote is left alone over a restart, too."""
        manual, knobs = (
            frozenset(loop.writer.manual),
            loop.last_seen.knobs if loop.last_seen else {},
        )
        for (volume, knob), wish in list(self._manual.items()):
            if volume == name and knob not in manual:
                self._forget_manual(wish, "it is ebbgate's again")
        for knob in manual:
            value, known = knobs.get(knob), self._manual.get((name, knob))
            if value is not None and (known is None or known.value != value):
                self._add_manual(name, knob, value)

    def _add_manual(self, name: str, knob: str, value: str) -> None:
        """Where it cannot be written it is left alone in any case: only a restart forgets it."""
        value_in_writing, adding = self._adding.get((name, knob), ("", None))
        if adding is not None and adding.done():
            del self._adding[name, knob]
            if adding.exception() is None:
                (self._manual[name, knob],) = adding.result()
                if value_in_writing == value:
                    return
        elif adding is not None:
            return
        wish = Override(
            OverrideKind.MANUAL, name, "somebody", self.wall_ns(), knob=knob, value=value
        )
        with suppress(EbbgateError):
            adding = self.writer.submit(lambda database: database.add((wish,)))
            self._adding[name, knob] = value, adding

    def _forget_manual(self, wish: Override, why: str) -> None:
        del self._manual[wish.volume, wish.knob]
        self._unsaved[wish.id] = why

    # ---- the volumes ---------------------------------------------------------------------------
    def _overdue(self, wish: Override) -> str:
        loop = self.volumes.get(wish.volume)
        if loop is None:
            return "its time was over while the volume was away"
        return loop.overrides.unfinished(wish) or "its time is over"

    def _taken_up(self, wish: Override) -> ActiveOverride:
        return ActiveOverride(wish, ends_ns(wish, self.wall_ns(), self.now_ns()))

    def _apply(self, name: str) -> None:
        """The volume follows what is in force. One override that cannot be applied is set aside:
        the newest first, until the others can.
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

    def _set_aside(self, wish: Override, error: Exception) -> None:
        _LOG.error(
            "%s: %s of %s is set aside: it cannot be applied: %s",
            *(wish.volume, _title(wish), wish.who, error),
            exc_info=error,
        )
        del self.active[wish.id]
        number, reason = wish.id, f"it could not be applied: {error}"
        with suppress(EbbgateError):
            self.writer.submit(lambda database: database.set_aside(number, reason))

    def _save(self) -> None:
        """Begin to write what is over, unless that is under way; a failure is tried again later."""
        if self._saving is not None and self._saving[1].done():
            batch, saving = self._saving
            self._saving = None
            if saving.exception() is None:
                for number in batch:
                    self._unsaved.pop(number, None)
        if self._saving is None and self._unsaved:
            batch, wall = dict(self._unsaved), self.wall_ns()
            with suppress(EbbgateError):
                self._saving = batch, self.writer.submit(lambda found: found.end(batch, wall))


def _title(wish: Override) -> str:
    return f"{wish.knob} {wish.value}" if wish.kind is OverrideKind.SET else f"the {wish.kind}"

# SPDX-License-Identifier: GPL-2.0-only
"""Keeps the wishes that last: gives them to the volumes, ends them in time, over restarts too.

I/O: the intents database. A wish ends for its volume first and in the database after that, so a
disk that is full keeps no knob at a value whose time is over.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ebbgate.loop import VolumeLoop
from ebbgate.model.wish import Standing, Wish, WishKind
from ebbgate.policy.wishes import ends_ns, is_over
from ebbgate.store.intents import Intents

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Keeper:
    """All wishes in force. `volumes`: the loops by name, as they come and go."""

    intents: Intents
    volumes: Mapping[str, VolumeLoop]
    wall_ns: Callable[[], int] = time.time_ns
    now_ns: Callable[[], int] = time.monotonic_ns
    standing: dict[int, Standing] = field(default_factory=dict)
    _manual: dict[tuple[str, str], Wish] = field(default_factory=dict)
    _unsaved: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._load()

    def use(self, intents: Intents) -> None:
        """From now on another database: its wishes are in force."""
        self.intents = intents
        self._load()
        for name in self.volumes:
            self.adopt(name)

    def _load(self) -> None:
        for wish in self.intents.wishes():
            if wish.kind is WishKind.MANUAL:
                self._manual[wish.volume, wish.knob] = wish
            else:
                self.standing[wish.id] = self._taken_up(wish)

    def adopt(self, name: str) -> None:
        """A volume has come: its wishes are in force again, if they still are."""
        hand = self.volumes[name].hand
        for (volume, knob), wish in list(self._manual.items()):
            if volume == name and not hand.still_manual(knob, wish.value):
                self._forget_manual(wish, "the knob has another value now")
        self.poll()
        self._tell(name)

    def add(self, wish: Wish) -> Wish:
        """A new wish, in place of an older one for the same."""
        kept = self.intents.add_wish(wish)
        for number, each in list(self.standing.items()):
            old = each.wish
            if (old.volume, old.kind, old.knob) == (kept.volume, kept.kind, kept.knob):
                del self.standing[number]
        self.standing[kept.id] = self._taken_up(kept)
        self._tell(kept.volume)
        return kept

    def of(self, volume: str) -> tuple[Standing, ...]:
        """The wishes in force for a volume, oldest first."""
        return tuple(each for each in self.standing.values() if each.wish.volume == volume)

    def end(self, wish: Wish, why: str) -> None:
        """A wish is over, and what it wanted is undone."""
        if self.standing.pop(wish.id, None) is None:
            return
        _LOG.info("%s: %s of %s is over: %s", wish.volume, _name(wish), wish.who, why)
        self._tell(wish.volume)
        self._unsaved[wish.id] = why
        self._save()

    def poll(self) -> None:
        """End what is over: by the clock, beaten by somebody else's write, or fulfilled."""
        wall, now = self.wall_ns(), self.now_ns()
        for each in list(self.standing.values()):
            loop = self.volumes.get(each.wish.volume)
            why = loop.wished.over.pop(each.wish.id, "") if loop else ""
            if not why and is_over(each, wall, now):
                why = self._overdue(each.wish, loop)
            if why:
                self.end(each.wish, why)
        for name, loop in self.volumes.items():
            self._keep_manual(name, loop)
        self._save()

    def _keep_manual(self, name: str, loop: VolumeLoop) -> None:
        """What somebody else wrote is left alone over a restart, too."""
        manual, knobs = frozenset(loop.hand.manual), loop.last_seen.knobs if loop.last_seen else {}
        for (volume, knob), wish in list(self._manual.items()):
            if volume == name and knob not in manual:
                self._forget_manual(wish, "it is ebbgate's again")
        for knob in manual:
            value, known = knobs.get(knob), self._manual.get((name, knob))
            if value is not None and (known is None or known.value != value):
                wish = Wish(
                    WishKind.MANUAL, name, "somebody", self.wall_ns(), knob=knob, value=value
                )
                try:
                    self._manual[name, knob] = self.intents.add_wish(wish)
                except sqlite3.Error as error:
                    # It is left alone in any case; only a restart would forget it.
                    _LOG.debug("%s: %s as manual is not kept yet: %s", name, knob, error)

    def _forget_manual(self, wish: Wish, why: str) -> None:
        del self._manual[wish.volume, wish.knob]
        self._unsaved[wish.id] = why

    def _overdue(self, wish: Wish, loop: VolumeLoop | None) -> str:
        if loop is None:
            return "its time was over while the volume was away"
        return loop.wished.unfinished(wish) or "its time is over"

    def _taken_up(self, wish: Wish) -> Standing:
        return Standing(wish, ends_ns(wish, self.wall_ns(), self.now_ns()))

    def _tell(self, name: str) -> None:
        loop = self.volumes.get(name)
        if loop is None:
            return
        mine = self.of(name)
        loop.hold(any(each.wish.kind is WishKind.HOLD for each in mine))
        loop.wish(mine)

    def _save(self) -> None:
        """What cannot be written now is written later: it is over in any case."""
        for number, why in list(self._unsaved.items()):
            try:
                self.intents.end_wish(number, why)
            except sqlite3.Error as error:
                _LOG.debug("the end of wish %d is not kept yet: %s", number, error)
                return
            del self._unsaved[number]


def _name(wish: Wish) -> str:
    return f"{wish.knob} {wish.value}" if wish.kind is WishKind.SET else f"the {wish.kind}"

# SPDX-License-Identifier: GPL-2.0-only
"""Carries out the wishes that last: a hold, a knob's value, a drain; and gives them back.

I/O: through the keeper and the volumes' loops. The event loop calls it; it never blocks, so what
became of a knob's write is looked at when it is asked for again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from ebbgate.actuators.asked import asked_value, beyond_limits, is_trigger
from ebbgate.actuators.bounds import say
from ebbgate.errors import ActuationError
from ebbgate.keeper import Keeper
from ebbgate.loop import VolumeLoop
from ebbgate.model.volume import Kind, Mode
from ebbgate.model.wish import Wish, WishKind
from ebbgate.policy.drain import plan_of, sentence
from ebbgate.policy.wishes import refusal
from ebbgate.store.intents import Intent
from ebbgate.units import format_ns

Knobs = tuple[tuple[str, str], ...]
"""Knobs with the values that they are to keep, both as a person writes them."""


@dataclass(frozen=True, slots=True)
class _Writing:
    """Wishes that one intent has made, all or none of them, and what to say once they are written.

    `before`: those that they took the place of.
    """

    wishes: tuple[Wish, ...]
    before: tuple[Wish, ...]
    said: str


@dataclass(slots=True)
class WishIntake:
    """`_writing`: intents whose knobs are being written."""

    keeper: Keeper
    _writing: dict[int, _Writing] = field(default_factory=dict)

    def under_way(self, intent: Intent) -> bool:
        """Was the intent begun, and is its end not known?"""
        return intent.id in self._writing

    def outcome(self, intent: Intent) -> tuple[bool, str] | None:
        """What became of the writes; None while they are under way."""
        writing = self._writing[intent.id]
        errors = [self._result(wish) for wish in writing.wishes]
        failed = next((at for at, error in enumerate(errors) if error), None)
        if failed is None:
            if None in errors:
                return None
            del self._writing[intent.id]
            return True, writing.said
        wish = writing.wishes[failed]
        why = f"{wish.knob} could not be written: {errors[failed]}"
        self._give_up(intent.id, why)
        return False, f"{wish.volume}: {why}"

    def forget_all_but(self, pending: Collection[int]) -> None:
        """The person did not wait for the end of these: nobody is to be surprised by it later."""
        for number in [each for each in self._writing if each not in pending]:
            self._give_up(number, "given up by the person who asked")

    def _result(self, wish: Wish) -> str | None:
        loop = self.keeper.volumes.get(wish.volume)
        return "the volume is gone" if loop is None else loop.wished.result(wish.knob)

    def _give_up(self, number: int, why: str) -> None:
        """Nothing is half done: all of its wishes end, and what they took the place of is back."""
        writing = self._writing.pop(number)
        self._end(writing.wishes, writing.before, why)

    def _end(self, wishes: Iterable[Wish], before: Iterable[Wish], why: str) -> None:
        wishes = tuple(wishes)
        for wish in wishes:
            self.keeper.end(wish, why)
        ended = {wish.knob for wish in wishes}
        for wish in before:
            if wish.knob in ended:
                self.keeper.add(wish)

    def hold(self, intent: Intent, name: str) -> str:
        """Freeze every knob, for a time or until it is released."""
        for_ns = intent.args.get("for_ns")
        wish = self._wish(WishKind.HOLD, intent, name, for_ns)
        self.keeper.add(wish)
        return f"{name}: held" + ("" if for_ns is None else f" for {format_ns(for_ns)}")

    def set(
        self, intent: Intent, loop: VolumeLoop, knobs: Knobs, for_ns: int | None, after: str = ""
    ) -> None:
        """Knobs keep these values, all or none of them; `after`: what else to say in the end.

        Raises UsageError and ActuationError, with nothing changed.
        """
        name, mine = loop.volume.name, dict(self._mine(loop))
        values = [(knob, asked_value(loop.volume, knob, text)) for knob, text in knobs]
        why_not = refusal(loop.last_seen)
        if loop.cleaning is not None:
            why_not = "it is being cleaned, under another table"
        if why_not:
            raise ActuationError(f"{loop.volume.title}: {why_not}", "see ebbgate status")
        lasting = [pair for pair in values if not is_trigger(pair[0])]
        wishes = [self._wish(WishKind.SET, intent, name, for_ns, pair) for pair in lasting]
        said = [_done(loop, knob, value, for_ns) for knob, value in values]
        before = tuple(mine[knob] for knob, _ in lasting if knob in mine)
        kept = self._kept(wishes, before)
        for knob, _ in values:
            if is_trigger(knob):
                loop.wished.trigger(knob, intent.who)
        text = "\n".join([*said, after] if after else said)
        self._writing[intent.id] = _Writing(kept, before, text)

    def _kept(self, wishes: list[Wish], before: tuple[Wish, ...]) -> tuple[Wish, ...]:
        """All of them, or none where the database takes one of them only."""
        kept: list[Wish] = []
        try:
            kept += (self.keeper.add(wish) for wish in wishes)
        except sqlite3.Error:
            self._end(kept, before, "it could not be kept whole")
            raise
        return tuple(kept)

    def _mine(self, loop: VolumeLoop) -> Iterator[tuple[str, Wish]]:
        for each in self.keeper.of(loop.volume.name):
            if each.wish.kind is WishKind.SET:
                yield each.wish.knob, each.wish

    def drain(self, intent: Intent, loop: VolumeLoop, for_ns: int) -> str:
        """Open the gate so far that all is clean in time."""
        title = loop.volume.title
        why_not = refusal(loop.last_seen)
        dirty = loop.last_seen.dirty_bytes if loop.last_seen else None
        if not why_not and not dirty:
            why_not = "how much is dirty is unknown" if dirty is None else "it is clean"
        if why_not:
            raise ActuationError(f"{title}: {why_not}", "see ebbgate status")
        self.keeper.add(self._wish(WishKind.DRAIN, intent, loop.volume.name, for_ns))
        frame = loop.state.frame
        plan = plan_of(frame, for_ns) if frame else None
        text = f"{loop.volume.name}: drains within {format_ns(for_ns)}"
        text += f"; {sentence(plan)}" if plan else ""
        if loop.volume.kind is Kind.DM_CACHE:
            text += (
                ". dm-cache waits for a second without I/O to the slow device; under a load that"
                f" never stops: ebbgate clean {title}"
            )
        return text

    def release(self, intent: Intent, loop: VolumeLoop, knob: str | None) -> str:
        """Give the knob (without a name: every one) back to the strategies."""
        name, told = loop.volume.name, []
        for each in self.keeper.of(name):
            wish = each.wish
            if knob in (None, wish.knob):
                self.keeper.end(wish, f"{intent.who} released it")
                told.append(f"{wish.knob or 'the ' + wish.kind} of {wish.who} is over")
        taken = loop.take_back(knob)
        told += [f"{each} is ebbgate's again" for each in taken]
        return f"{name}: {', '.join(told) or 'nothing to release'}"

    def _wish(
        self,
        kind: WishKind,
        intent: Intent,
        volume: str,
        for_ns: int | None,
        knob: tuple[str, str] = ("", ""),
    ) -> Wish:
        now = self.keeper.wall_ns()
        until = None if for_ns is None else now + for_ns
        return Wish(kind, volume, intent.who, now, until, *knob)


def _done(loop: VolumeLoop, knob: str, value: str, for_ns: int | None) -> str:
    """What is said once the knob is written."""
    name = loop.volume.name
    if is_trigger(knob):
        return f"{name}: {knob} was written; it leaves no value behind"
    last = "until it is released" if for_ns is None else f"for {format_ns(for_ns)}"
    done = f"{name}: {knob} = {say(knob, int(value))} {last}; no strategy gets it meanwhile"
    if knob in loop.hand.plan.knobs and loop.mode is Mode.ENFORCE:
        done += ", and the gate, of which it is a part, is left to the kernel"
    beyond = beyond_limits(loop.volume, knob, int(value), loop.policy.limits)
    if beyond:
        done += f"; this is {beyond} that policy {loop.policy.name} sets for strategies: you win"
    return done

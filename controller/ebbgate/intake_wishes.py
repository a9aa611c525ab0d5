# SPDX-License-Identifier: GPL-2.0-only
"""Carries out the wishes that last: a hold, a knob's value, a drain; and gives them back.

I/O: through the keeper and the volumes' loops. The event loop calls it; it never blocks, so what
became of a knob's write is looked at when it is asked for again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ebbgate.actuators.asked import asked_value, check_knob, drain_refusal, is_trigger
from ebbgate.actuators.bounds import say
from ebbgate.errors import ActuationError
from ebbgate.keeper import Keeper
from ebbgate.loop import VolumeLoop
from ebbgate.model.volume import Kind, Mode
from ebbgate.model.wish import Wish, WishKind
from ebbgate.policy.drain import plan_of, sentence
from ebbgate.policy.wishes import refusal
from ebbgate.store.intents import Intent
from ebbgate.units import NS_PER_S, format_ns

LONGEST_NS = 30 * 24 * 3600 * NS_PER_S
"""A wish for longer than a month is one without an end, and should say so."""


@dataclass(slots=True)
class WishIntake:
    """`_writing`: intents whose knob is being written, with what to say once it is."""

    keeper: Keeper
    _writing: dict[int, tuple[Wish, str]] = field(default_factory=dict)

    def under_way(self, intent: Intent) -> bool:
        """Was the intent begun, and is its end not known?"""
        return intent.id in self._writing

    def outcome(self, intent: Intent) -> tuple[bool, str] | None:
        """What became of the write; None while it is under way."""
        wish, text = self._writing[intent.id]
        loop = self.keeper.volumes.get(wish.volume)
        error = "the volume is gone" if loop is None else loop.wished.result(wish.knob)
        if error is None:
            return None
        del self._writing[intent.id]
        if not error:
            return True, text
        self.keeper.end(wish, f"{wish.knob} could not be written: {error}")
        return False, f"{wish.volume}: {wish.knob} could not be written: {error}"

    def forget_all_but(self, pending: Collection[int]) -> None:
        """The person did not wait for the end of these: nobody is to be surprised by it later."""
        for number in [each for each in self._writing if each not in pending]:
            wish, _ = self._writing.pop(number)
            self.keeper.end(wish, "given up by the person who asked")

    def hold(self, intent: Intent, name: str) -> str:
        """Freeze every knob, for a time or until it is released."""
        for_ns = intent.args.get("for_ns")
        wish = self._wish(WishKind.HOLD, intent, name, for_ns)
        self.keeper.add(wish)
        return f"{name}: held" + ("" if for_ns is None else f" for {format_ns(for_ns)}")

    def set(
        self, intent: Intent, loop: VolumeLoop, asked: tuple[str, str], for_ns: int | None
    ) -> str:
        """A knob keeps a value; `asked`: both as a person writes them."""
        (knob, text), name = asked, loop.volume.name
        value = asked_value(loop.volume, knob, text)
        why_not = refusal(loop.last_seen)
        if loop.cleaning is not None:
            why_not = "it is being cleaned, under another table"
        if why_not:
            raise ActuationError(f"{loop.volume.title}: {why_not}", "see ebbgate status")
        if is_trigger(knob):
            loop.wished.trigger(knob, intent.who)
            return f"{name}: {knob} was written; it leaves no value behind"
        wish = self.keeper.add(self._wish(WishKind.SET, intent, name, for_ns, (knob, value)))
        last = "until it is released" if for_ns is None else f"for {format_ns(for_ns)}"
        done = f"{name}: {knob} = {say(knob, int(value))} {last}; no strategy gets it meanwhile"
        if knob in loop.hand.plan.knobs and loop.mode is Mode.ENFORCE:
            done += ", and the gate, of which it is a part, is left to the kernel"
        self._writing[intent.id] = (wish, done)
        return ""

    def drain(self, intent: Intent, loop: VolumeLoop, for_ns: int) -> str:
        """Open the gate so far that all is clean in time."""
        title = loop.volume.title
        why_not = drain_refusal(loop.volume) or refusal(loop.last_seen)
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
        if knob is not None:
            check_knob(loop.volume, knob)
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
        for_ns: object,
        knob: tuple[str, str] = ("", ""),
    ) -> Wish:
        now = self.keeper.wall_ns()
        if for_ns is None:
            return Wish(kind, volume, intent.who, now, None, *knob)
        if not isinstance(for_ns, int) or for_ns <= 0:
            raise ValueError("for_ns")
        if for_ns > LONGEST_NS:
            raise ActuationError(
                f"{format_ns(for_ns)} is longer than 30 days", "leave the time out"
            )
        return Wish(kind, volume, intent.who, now, now + for_ns, *knob)

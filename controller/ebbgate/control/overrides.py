# SPDX-License-Identifier: GPL-2.0-only
"""What people wish of one volume, carried out: knobs are written and kept, a drain is watched.

I/O: through the driver. The event loop calls it; it never blocks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from ebbgate.actuators.bcache_steps import write
from ebbgate.actuators.knob_writer import KnobWriter, Reason
from ebbgate.control.knob_driver import KnobDriver
from ebbgate.knobs.catalog import BY_NAME, same_value
from ebbgate.knobs.values import format_value
from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.model.frame import Frame
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import VolumeState
from ebbgate.policy.engine import OverrideChange
from ebbgate.policy.overrides import OVERRIDE, override_text, unwritable_reason
from ebbgate.units import format_bytes, format_ns

_LOG = logging.getLogger(__name__)
_REFUSED = (OutcomeKind.FAILED, OutcomeKind.REFUSED, OutcomeKind.MANUAL)


class VolumeOverrides:
    """The overrides of one volume. `on_end`: called with one that is over, and the reason."""

    def __init__(self, driver: KnobDriver, now_ns: Callable[[], int]) -> None:
        self.standing: tuple[ActiveOverride, ...] = ()
        self.on_end: Callable[[Override, str], None] = _ignore
        self._driver = driver
        self._now_ns = now_ns
        self._failed: dict[str, str] = {}
        self._waiting: dict[int, Callable[[str], None]] = {}
        self._retry: set[str] = set()
        self._dirty: int | None = None

    @property
    def pins(self) -> bool:
        """Is a knob kept at a person's value?"""
        return bool(self._driver.hand.pinned)

    def take(self, standing: Iterable[ActiveOverride]) -> OverrideChange:
        """These are in force from now on: write what is new, put back what is no longer wished."""
        before, self.standing = self._sets(), tuple(standing)
        now = self._sets()
        for knob, old in before.items():
            if knob not in now:
                self._unpin(old)
        for knob, each in now.items():
            if knob not in before or before[knob].wish.id != each.wish.id:
                if knob in before:
                    self._answer(before[knob].wish.id, "another request has replaced it")
                self._pin(each)
        drains = [each for each in self.standing if each.wish.kind is OverrideKind.DRAIN]
        sets = tuple((each, format_value(knob, int(each.wish.value))) for knob, each in now.items())
        knobs = frozenset(self._driver.hand.plan.knobs)
        return OverrideChange(sets, knobs, drains[0] if drains else None)

    def when_written(self, number: int, call: Callable[[str], None]) -> None:
        """Call once when the knob of this override is written, or cannot be; with the error, empty
        without one. On the knobs' thread or the event loop's.
        """
        self._waiting[number] = call

    def abandon(self, why: str) -> None:
        """The volume is gone: nothing more is written."""
        for number in list(self._waiting):
            self._answer(number, why)

    def _answer(self, number: int, error: str) -> None:
        call = self._waiting.pop(number, None)
        if call is not None:
            call(error)

    def trigger(self, knob: str, who: str) -> None:
        """Start what a write of this knob starts; it leaves no value behind."""
        step, reason = write(knob, 1, always=True), Reason(OVERRIDE, f"{who} asked")
        self._driver.submit("trigger", lambda hand: hand.apply((step,), reason))

    def watch(self, seen: VolumeState, frame: Frame) -> None:
        """A look at the volume at which no knob was being written."""
        for each in () if unwritable_reason(seen) else tuple(self._sets().values()):
            try:
                self._watch_knob(each, seen)
            except Exception as error:
                _LOG.exception("%s: an override could not be applied", each.wish.volume)
                self.on_end(each.wish, f"it could not be applied: {error}")
        self._dirty = frame.dirty_bytes
        for each in self.standing:
            if each.wish.kind is OverrideKind.DRAIN and frame.dirty_bytes == 0:
                left = each.left_ns(frame.at_ns) or 0
                self.on_end(each.wish, f"clean, {format_ns(left)} before its time")

    def _watch_knob(self, each: ActiveOverride, seen: VolumeState) -> None:
        knob = each.wish.knob
        if knob not in self._driver.hand.pinned:
            return
        found = seen.knobs.get(knob)
        drifted = found is not None and not same_value(knob, each.wish.value, found)
        kernel = BY_NAME[knob].kernel_writes or self._lost(knob)
        if knob in self._retry or self._failed.get(knob) or (drifted and kernel):
            self._write(each)

    def unfinished(self, wish: Override) -> str:
        """What is left of a drain whose time has come; empty for other wishes."""
        if wish.kind is not OverrideKind.DRAIN:
            return ""
        left = "an unknown rest" if self._dirty is None else format_bytes(self._dirty)
        return f"its time is over with {left} dirty"

    def beaten(self, knobs: Iterable[str]) -> None:
        """Somebody else has written these knobs since: the wishes for them are over."""
        sets = self._sets()
        for knob in knobs:
            if knob in sets:
                self._driver.hand.pinned.discard(knob)
                self.on_end(sets[knob].wish, f"somebody else has written {knob} since")

    def _sets(self) -> dict[str, ActiveOverride]:
        return {e.wish.knob: e for e in self.standing if e.wish.kind is OverrideKind.SET}

    def _lost(self, knob: str) -> bool:
        """Is the original back by no one's hand: with another table, or put back to load one?"""
        mine = self._driver.hand.held.get(knob)
        return mine is None or mine.written == mine.original

    def _pin(self, standing: ActiveOverride) -> None:
        knob, hand = standing.wish.knob, self._driver.hand
        self._failed.pop(knob, None)
        hand.forget_manual(knob)
        hand.pinned.add(knob)
        # A strategy's own value stays until the person's is written: the knob is not let go.
        self._driver.let_go(knob, self._reason(standing), keep=True)
        # Written at the next look, which knows whether the volume's state allows it.
        self._retry.add(knob)

    def _unpin(self, standing: ActiveOverride) -> None:
        knob, hand = standing.wish.knob, self._driver.hand
        self._answer(standing.wish.id, "it was ended before the knob was written")
        self._failed.pop(knob, None)
        self._retry.discard(knob)
        ours = knob in hand.pinned
        hand.pinned.discard(knob)
        why = Reason(OVERRIDE, f"the wish of {standing.wish.who} is over")
        self._driver.let_go(knob, why, keep=not ours)

    def _write(self, standing: ActiveOverride) -> None:
        knob, reason = standing.wish.knob, self._reason(standing)
        self._retry.discard(knob)
        step = write(knob, standing.wish.value)

        def job(hand: KnobWriter) -> list[Outcome]:
            outcomes = hand.apply((step,), reason)
            self._keep(standing.wish, outcomes)
            return outcomes

        self._driver.submit(f"{OVERRIDE} {knob}", job)

    def _keep(self, wish: Override, outcomes: list[Outcome]) -> None:
        """On the knobs' thread."""
        for outcome in outcomes:
            if outcome.kind is OutcomeKind.TOO_SOON:
                self._retry.add(wish.knob)
                continue
            refused = outcome.kind in _REFUSED
            error = outcome.error or "somebody else has written it" if refused else ""
            self._failed[wish.knob] = error
            self._answer(wish.id, error)

    def _reason(self, standing: ActiveOverride) -> Reason:
        wish = standing.wish
        return Reason(
            OVERRIDE,
            override_text(standing, self._now_ns(), format_value(wish.knob, int(wish.value))),
        )


def _ignore(_wish: Override, _why: str) -> None:
    pass

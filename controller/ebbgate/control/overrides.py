# SPDX-License-Identifier: GPL-2.0-only
"""Applies the overrides of one volume: writes and keeps knobs, watches drains.

The registry (daemon.override_registry) owns the overrides.
I/O: through the driver. The event loop calls it; it never blocks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

from ebbgate.actuators.bcache_steps import Step, write
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.actuators.reason import Reason
from ebbgate.control.knob_driver import KnobDriver
from ebbgate.errors import ActuationError
from ebbgate.knobs.catalog import same_value
from ebbgate.knobs.values import format_value
from ebbgate.log_messages.volumes import OVERRIDE_NOT_APPLIED
from ebbgate.model.decision import NOT_WRITTEN, Outcome, OutcomeKind
from ebbgate.model.frame import Frame
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import VolumeState
from ebbgate.policy.engine import OverrideChange
from ebbgate.policy.overrides import OVERRIDE, override_text, unwritable_reason
from ebbgate.units import format_bytes, format_ns

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _Reply:
    """Whether a knob could be written: its future holds None or an ActuationError."""

    future: Future[None] = field(default_factory=Future)

    def report(self, outcomes: Iterable[Outcome]) -> None:
        """Take the result of a write, on the knobs' thread; one that came too soon is repeated."""
        for outcome in outcomes:
            if outcome.kind in NOT_WRITTEN:
                self.fail(outcome.error or "somebody else has written it")
            elif outcome.kind is not OutcomeKind.TOO_SOON:
                with suppress(InvalidStateError):
                    self.future.set_result(None)

    def fail(self, why: str) -> None:
        """Reply with an error, unless there was a reply already."""
        with suppress(InvalidStateError):
            self.future.set_exception(ActuationError(why))


class VolumeOverrides:
    """The overrides of one volume. `on_end`: called with one that is over, and the reason."""

    def __init__(self, driver: KnobDriver, now_ns: Callable[[], int]) -> None:
        self.active: tuple[ActiveOverride, ...] = ()
        self.on_end: Callable[[Override, str], None] = _ignore
        self._driver = driver
        self._now_ns = now_ns
        self._replies: dict[int, _Reply] = {}
        self._dirty_bytes: int | None = None

    def apply(self, active: Iterable[ActiveOverride]) -> OverrideChange:
        """Put these in force in place of the former ones; return what the engine must know."""
        before, self.active = self._sets(), tuple(active)
        now = self._sets()
        for knob, old in before.items():
            if knob not in now:
                self._unpin(old)
        for knob, each in now.items():
            if knob not in before or before[knob].override.id != each.override.id:
                self._pin(each)
        for number in self._replies.keys() - {each.override.id for each in self.active}:
            self._replies.pop(number).fail("the override ended first")
        drains = [each for each in self.active if each.override.kind is OverrideKind.DRAIN]
        sets = tuple(
            (each, format_value(knob, int(each.override.value))) for knob, each in now.items()
        )
        knobs = frozenset(self._driver.writer.plan.knobs)
        return OverrideChange(sets, knobs, drains[0] if drains else None)

    def first_write(self, override: Override) -> Future[None]:
        """Return the result of an override's first write: None, or an ActuationError."""
        reply = self._replies.get(override.id)
        if reply is None:
            reply = _Reply()
            reply.fail("it could not be applied")
        return reply.future

    def ending(self, override: Override, why: str) -> None:
        """Reply that an override ends before its knob was written; `apply` without it follows."""
        if override.id in self._replies:
            self._replies[override.id].fail(f"the override ended first: {why}")

    def abandon(self, why: str) -> None:
        """Give up every write that is still due: the volume is gone."""
        for reply in self._replies.values():
            reply.fail(why)

    def trigger(self, knob: str, who: str) -> Future[None]:
        """Write a knob that starts something and keeps no value; return the result."""
        reply = _Reply()

        def report(outcomes: list[Outcome]) -> None:
            reply.report(outcomes)
            reply.fail("it was just written")

        step = write(knob, 1, always=True)
        self._submit(step, Reason(OVERRIDE, f"requested by {who}"), report, lasts=False)
        return reply.future

    def watch(self, seen: VolumeState, frame: Frame) -> None:
        """Write what is due. `seen`: a look during which no knob was being written."""
        for each in () if unwritable_reason(seen) else tuple(self._sets().values()):
            try:
                if not self._is_due(each, seen):
                    continue
                if other := self._replaced_by(each):
                    self.on_end(each.override, f"a newer one of {other} is in force")
                else:
                    step = write(each.override.knob, each.override.value)
                    self._submit(step, self._reason(each), self._replies[each.override.id].report)
            except Exception as error:
                _LOG.exception(OVERRIDE_NOT_APPLIED, each.override.volume)
                self.on_end(each.override, f"it could not be applied: {error}")
        self._dirty_bytes = frame.dirty_bytes
        for each in self.active:
            if each.override.kind is OverrideKind.DRAIN and frame.dirty_bytes == 0:
                left = each.left_ns(frame.at_ns) or 0
                self.on_end(each.override, f"clean, {format_ns(left)} early")

    def _is_due(self, each: ActiveOverride, seen: VolumeState) -> bool:
        """Whether the knob has yet to be written, or the kernel has changed it since."""
        knob = each.override.knob
        if knob not in self._driver.writer.pinned:
            return False
        if not self._replies[each.override.id].future.done():
            return True
        found = seen.knobs.get(knob)
        return found is not None and not same_value(knob, each.override.value, found)

    def _replaced_by(self, each: ActiveOverride) -> str:
        """Return the volume of the same cache set for which a person has set the knob since."""
        written = self._replies[each.override.id].future.done()
        return self._driver.writer.replaced_by(each.override.knob) if written else ""

    def unfinished(self, override: Override) -> str:
        """Describe what is left of a drain whose time is over; empty for other overrides."""
        if override.kind is not OverrideKind.DRAIN:
            return ""
        dirty = self._dirty_bytes
        left = "an unknown amount" if dirty is None else format_bytes(dirty)
        return f"its time is over with {left} dirty"

    def on_conflict(self, knobs: Iterable[str]) -> None:
        """End the overrides of knobs that somebody else has written since."""
        sets = self._sets()
        for knob in knobs:
            if knob in sets:
                self._driver.writer.unpin(knob)
                self.on_end(sets[knob].override, f"somebody else has written {knob} since")

    def _sets(self) -> dict[str, ActiveOverride]:
        return {e.override.knob: e for e in self.active if e.override.kind is OverrideKind.SET}

    def _pin(self, each: ActiveOverride) -> None:
        """The knob is written at the next look, which knows whether the volume's state allows it.

        A strategy's value stays until then: the knob is not released.
        """
        knob, writer = each.override.knob, self._driver.writer
        writer.clear_manual(knob)
        writer.pinned.add(knob)
        self._replies[each.override.id] = _Reply()
        self._driver.unpin(knob, self._reason(each), keep=True)

    def _unpin(self, each: ActiveOverride) -> None:
        knob, writer = each.override.knob, self._driver.writer
        ours = knob in writer.pinned
        writer.unpin(knob)
        why = Reason(OVERRIDE, f"the override of {each.override.who} ended")
        self._driver.unpin(knob, why, keep=not ours)

    def _submit(
        self,
        step: Step,
        reason: Reason,
        report: Callable[[list[Outcome]], None],
        *,
        lasts: bool = True,
    ) -> None:
        """Write a knob on the worker's thread. `lasts`: only while its override is in force.

        The release at the end of an override goes before jobs that wait, and would not be repeated
        after this one.
        """

        def job(writer: KnobWriter) -> list[Outcome]:
            if lasts and step.knob not in writer.pinned:
                return []
            outcomes = writer.apply((step,), reason)
            report(outcomes)
            return outcomes

        self._driver.submit(f"{OVERRIDE} {step.knob}", job)

    def _reason(self, each: ActiveOverride) -> Reason:
        value = format_value(each.override.knob, int(each.override.value))
        return Reason(OVERRIDE, override_text(each, self._now_ns(), value))


def _ignore(_override: Override, _why: str) -> None:
    pass

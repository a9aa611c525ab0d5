# SPDX-License-Identifier: GPL-2.0-only
"""Carries out requests to apply an advice or to undo a knob write: both become overrides.

I/O: sysfs and the history, read beside the event loop; overrides, through the registry.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

from ebbgate.background import BackgroundWorker
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.override_intents import OverrideIntents
from ebbgate.doctor import remedy, report
from ebbgate.doctor.advice import advise
from ebbgate.doctor.model import Change
from ebbgate.errors import NotFound, UsageError
from ebbgate.intents.validation import Intent
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.knobs.settable import checked_value, is_trigger
from ebbgate.knobs.values import format_value
from ebbgate.model.decision import OutcomeKind
from ebbgate.model.status import KnobStatus, VolumeStatus
from ebbgate.model.volume import Kind, Mode
from ebbgate.policy.overrides import OVERRIDE
from ebbgate.probes.volume_state import read_state
from ebbgate.store.queries import KnobWrite, read_knob_write


class AdviceTarget(Protocol):
    """What is read; implemented by the daemon."""

    sysfs: Sysfs
    volumes: dict[str, VolumeLoop]


class AdviceIntents:
    """`history`: the file in which knob writes are recorded. `background`: reads it."""

    def __init__(
        self,
        target: AdviceTarget,
        history: Path,
        overrides: OverrideIntents,
        background: BackgroundWorker,
    ) -> None:
        self._target = target
        self._history = history
        self._overrides = overrides
        self._background = background

    async def apply(self, intent: Intent, loop: VolumeLoop) -> str:
        """Set what an advice says, all of it or nothing.

        Raises NotFound for one that does not hold now, UsageError for what a person has to do.
        """
        number, mode = intent.args.id, loop.mode
        change = await self._background.run(lambda: self._advised(number, loop, mode))
        undo = remedy.undo_commands(change, loop.volume)
        after = "\n".join(f"{remedy.UNDO}{each}" for each in undo) or remedy.NOTHING_LEFT
        values = [(knob, checked_value(loop.volume, knob, text)) for knob, text in change.knobs]
        return await self._overrides.set_all(intent, loop, values, after)

    async def undo(self, intent: Intent) -> str:
        """Restore the value that a knob had before one write of it.

        Raises NotFound for a write that is not recorded, UsageError for one that cannot be undone.
        """
        number = intent.args.action_id
        action = await self._background.run(lambda: read_knob_write(self._history, number))
        if action is None:
            raise NotFound(
                f"no knob write has the number {number}",
                "the history forgets them after a time; see ebbgate explain VOLUME --last 20",
            )
        loop = self._loop(intent, action)
        before = _before(action, loop)
        after = f"it was {format_value(action.knob, int(before))} before the write {number} of"
        after += (
            f" {action.strategy}\n{remedy.UNDO}ebbgate release {loop.volume.title} {action.knob}"
        )
        return await self._overrides.set_all(intent, loop, [(action.knob, before)], after)

    def _advised(self, number: str, loop: VolumeLoop, mode: Mode) -> Change:
        volume, names = loop.volume, tuple(loop.writer.owned)
        state = read_state(self._target.sysfs, volume, time.monotonic_ns())
        owned = {knob: KnobStatus(state.knobs.get(knob), owner="ebbgate") for knob in names}
        found = advise(report.facts(self._target.sysfs, volume, state, owned, VolumeStatus()))
        return remedy.by_daemon(remedy.advice_by_id(found, number, volume), volume, mode)

    def _loop(self, intent: Intent, action: KnobWrite) -> VolumeLoop:
        loop = self._target.volumes.get(action.volume)
        if loop is None:
            raise NotFound(f"{action.volume} is not present", "see ebbgate status")
        if intent.volume is not None and not loop.volume.is_called(intent.volume):
            raise UsageError(f"that write was to {loop.volume.title}, not to {intent.volume}")
        return loop


def _booted_unix_ns() -> int:
    """Return when this machine was booted, by the wall clock as it is now."""
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _before(action: KnobWrite, loop: VolumeLoop) -> str:
    """Return the value before the write, within the bounds. Raises UsageError if there is none."""
    volume, knob = loop.volume, action.knob
    if action.outcome != OutcomeKind.CHANGED:
        raise UsageError(f"that write of {knob} changed nothing ({action.outcome})")
    if volume.kind is Kind.BCACHE and action.at_unix_ns < _booted_unix_ns():
        # A boot numbers bcache devices anew, and resets what was written.
        raise UsageError(
            f"{action.volume} may have been another volume then: it was before the last boot",
            f"set the value: ebbgate set {volume.title} {knob}",
        )
    if is_trigger(knob):
        raise UsageError(f"a write of {knob} leaves no value behind: there is nothing to undo")
    if action.strategy != OVERRIDE and knob in loop.writer.plan.knobs:
        raise UsageError(
            f"{knob} is a part of the gate, which ebbgate changes many times a minute: undoing"
            " one write would only freeze it at an old value",
            f"stop it: ebbgate advise {volume.title}; or set a value:"
            f" ebbgate set {volume.title} {knob}",
        )
    if action.old is None:
        raise UsageError(f"the value of {knob} before that write is no longer known")
    try:
        return checked_value(volume, knob, action.old)
    except UsageError as error:
        back = f"if it was your value, this restores it: ebbgate release {volume.title} {knob}"
        raise UsageError(f"{error.message}; {error.hint}", back) from error

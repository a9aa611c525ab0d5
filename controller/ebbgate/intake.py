# SPDX-License-Identifier: GPL-2.0-only
"""Carries out what people asked for: intent rows in, outcomes back. I/O: the intents database."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from ebbgate.beside import Answer, Beside
from ebbgate.errors import ActuationError, EbbgateError, NotFound
from ebbgate.intake_changes import ChangeIntake
from ebbgate.intake_policies import PolicyIntake
from ebbgate.intake_wishes import WishIntake
from ebbgate.intents.validation import WAITS_NS, check
from ebbgate.keeper import Keeper
from ebbgate.loop import VolumeLoop
from ebbgate.model.volume import Mode
from ebbgate.model.wish import IntentKind, WishKind
from ebbgate.policy_book import PolicyBook
from ebbgate.store.intents import Intent, Intents
from ebbgate.sysfs import Sysfs
from ebbgate.units import format_ns

_LOG = logging.getLogger(__name__)
_TRY_EACH = 10
"""Of so many looks, one a second, one tries to open a database that could not be used."""


class Target(Protocol):
    """What the intake acts on: the daemon."""

    sysfs: Sysfs
    volumes: dict[str, VolumeLoop]

    @property
    def policies(self) -> PolicyBook:
        """Those that its volumes are under."""

    def restore_volume(self, name: str) -> str:
        """Put a volume's knobs back and leave it alone."""

    def follow_policies(self) -> None:
        """Take over what has changed in the folder of policies."""


class Intake:
    """Polls the intents; one that cannot be carried out gets its reason as the outcome.

    One that has waited for a daemon longer than `WAITS_NS` is not carried out any more. An
    answer that cannot be written is kept and written later; nothing is carried out twice. Where
    the database cannot be used, tuning goes on with the modes of the settings; `error` says so, and
    it is tried again now and then.
    """

    def __init__(self, state_dir: Path, target: Target) -> None:
        self._path = state_dir / "intents.db"
        self._target = target
        self.error = ""
        self._tries = 0
        self._intents = self._open() or Intents.in_memory()
        self.keeper = Keeper(self._intents, target.volumes)
        self._wishes = WishIntake(self.keeper)
        self._beside = Beside()
        policies = PolicyIntake(target, self._beside)
        history = state_dir / "history.db"
        changes = ChangeIntake(target, history, self._wishes, self._beside)
        self._answers: dict[int, Answer] = {}
        self._begun: set[int] = set()
        self._failing = False
        self._kinds: Mapping[str, Callable[[Intent, VolumeLoop], str]] = {
            IntentKind.MODE: self._mode,
            IntentKind.HOLD: self._hold,
            IntentKind.CLEAN: self._clean,
            IntentKind.RESTORE: self._restore,
            IntentKind.RELEASE: self._release,
            IntentKind.DRAIN: self._drain,
        }
        self._slow: Mapping[str, Callable[[Intent], Answer | None]] = {
            IntentKind.SET: self._set,
            IntentKind.APPLY: lambda intent: changes.apply(intent, self._loop(intent)),
            IntentKind.UNDO: changes.undo,
            IntentKind.POLICY_SAVE: policies.save,
            IntentKind.POLICY_REMOVE: policies.remove,
        }

    def mode_of(self, volume: str) -> Mode | None:
        """The mode a person chose last for this volume."""
        name = self._intents.modes().get(volume)
        return Mode(name) if name in tuple(Mode) else None

    def poll(self) -> None:
        """Carry out what is pending, and end the wishes that are over."""
        if self.error:
            self._open_again()
        try:
            self.keeper.poll()
            pending = self._intents.pending()
            waiting = {intent.id for intent in pending}
            self._wishes.forget_all_but(waiting)
            self._beside.forget_all_but(waiting)
            self._begun &= waiting
            for intent in pending:
                self._answer(intent)
        except sqlite3.Error as error:
            if not self._failing:
                _LOG.error("what people ask for cannot be read or answered: %s", error)
            self._failing = True
        else:
            self._failing = False

    def _open(self) -> Intents | None:
        try:
            opened = Intents.open(self._path)
        except EbbgateError as error:
            if not self.error:
                _LOG.error("what people ask for cannot be read; tuning goes on: %s", error)
            self.error = error.message
            return None
        self.error = ""
        return opened

    def _open_again(self) -> None:
        self._tries += 1
        opened = self._open() if self._tries % _TRY_EACH == 0 else None
        if opened is None:
            return
        _LOG.warning("what people ask for can be read again")
        self._intents = opened
        self.keeper.use(opened)
        for name, volume in self._target.volumes.items():
            mode = self.mode_of(name)
            if mode is not None and mode is not volume.mode:
                volume.set_mode(mode, f"mode {mode} was asked for by a person")

    def _answer(self, intent: Intent) -> None:
        if intent.id not in self._answers:
            answer = self._carry_out(intent)
            if answer is None:
                return
            self._answers[intent.id] = answer
            _LOG.info("intent %d (%s by %s): %s", intent.id, intent.kind, intent.who, answer[1])
        ok, text = self._answers[intent.id]
        self._intents.resolve(intent.id, text, ok)
        del self._answers[intent.id]

    def _carry_out(self, intent: Intent) -> Answer | None:
        """Done or refused, and the sentence for the person; None while it is under way."""
        if intent.id not in self._begun:
            waited_ns = self.keeper.wall_ns() - intent.at_unix_ns
            if waited_ns > WAITS_NS:
                waited = format_ns(waited_ns)
                return False, f"expired: nobody was there to carry it out for {waited}; ask again"
            self._begun.add(intent.id)
        try:
            if self._wishes.under_way(intent):
                return self._wishes.outcome(intent)
            loops = self._meant(intent)
            check(intent.kind, loops[0].volume if intent.volume else None, intent.args)
            if intent.kind in self._slow:
                return self._slow[intent.kind](intent)
            carry_out = self._kinds[intent.kind]
            return True, "; ".join(carry_out(intent, loop) for loop in loops) or "no volume here"
        except EbbgateError as error:
            return False, str(error)

    def _meant(self, intent: Intent) -> list[VolumeLoop]:
        """The volumes that are asked for: every one without a name. Raises NotFound."""
        loops = list(self._target.volumes.values())
        if intent.volume is None:
            return loops
        found = [loop for loop in loops if loop.volume.is_called(intent.volume)]
        if not found:
            raise NotFound(f"no such volume: {intent.volume}")
        return found[:1]

    def _loop(self, intent: Intent) -> VolumeLoop:
        """Of a kind that is for one volume."""
        return self._meant(intent)[0]

    def _mode(self, intent: Intent, loop: VolumeLoop) -> str:
        mode, name = Mode(intent.args["mode"]), loop.volume.name
        if mode is not Mode.ENFORCE:
            self._end_wishes(name, f"{intent.who} asked for {mode}")
        self._end_wishes(name, f"{intent.who} asked for {mode}", WishKind.HOLD)
        self._intents.set_mode(name, mode)
        loop.set_mode(mode, f"mode {mode} asked for by a person")
        return f"{name}: mode {mode}"

    def _hold(self, intent: Intent, loop: VolumeLoop) -> str:
        name = loop.volume.name
        if intent.args.get("on", True) is False:
            self._end_wishes(name, f"{intent.who} asked to go on", WishKind.HOLD)
            loop.hold(False)
            return f"{name}: goes on"
        return self._wishes.hold(intent, name)

    def _clean(self, intent: Intent, loop: VolumeLoop) -> str:
        return loop.clean(intent.args["within_ns"], intent.who)

    def _restore(self, intent: Intent, loop: VolumeLoop) -> str:
        name = loop.volume.name
        self._end_wishes(name, f"{intent.who} asked to restore")
        self._intents.set_mode(name, Mode.ADVISE)
        return self._target.restore_volume(name)

    def _release(self, intent: Intent, loop: VolumeLoop) -> str:
        return self._wishes.release(intent, loop, intent.args.get("knob"))

    def _set(self, intent: Intent) -> Answer | None:
        knobs = ((intent.args["knob"], intent.args["value"]),)
        self._wishes.set(intent, self._loop(intent), knobs, intent.args.get("for_ns"))
        return self._wishes.outcome(intent)

    def _drain(self, intent: Intent, loop: VolumeLoop) -> str:
        if loop.mode is not Mode.ENFORCE:
            title = loop.volume.title
            raise ActuationError(
                f"{title} is in {loop.mode}, in which the gate is left alone",
                f"first: ebbgate enforce {title}",
            )
        return self._wishes.drain(intent, loop, intent.args["for_ns"])

    def _end_wishes(self, name: str, why: str, kind: WishKind | None = None) -> None:
        for each in self.keeper.of(name):
            if kind in (None, each.wish.kind):
                self.keeper.end(each.wish, why)

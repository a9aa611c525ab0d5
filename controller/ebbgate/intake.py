# SPDX-License-Identifier: GPL-2.0-only
"""Carries out what people asked for: intent rows in, outcomes back. I/O: the intents database."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from ebbgate.errors import ActuationError, EbbgateError, UsageError
from ebbgate.intake_wishes import WishIntake
from ebbgate.keeper import Keeper
from ebbgate.loop import VolumeLoop
from ebbgate.model.volume import Mode
from ebbgate.model.wish import WishKind
from ebbgate.store.intents import Intent, IntentKind, Intents

_LOG = logging.getLogger(__name__)
_TRY_EACH = 10
"""Of so many looks, one a second, one tries to open a database that could not be used."""


class Target(Protocol):
    """What the intake acts on: the daemon."""

    volumes: dict[str, VolumeLoop]

    def restore_volume(self, name: str) -> str:
        """Put a volume's knobs back and leave it alone."""


class Intake:
    """Polls the intents; one that cannot be carried out gets its reason as the outcome.

    An answer that cannot be written is kept and written later; nothing is carried out twice. Where
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
        self._answers: dict[int, tuple[bool, str]] = {}
        self._failing = False
        self._kinds: Mapping[str, Callable[[Intent, str], str]] = {
            IntentKind.MODE: self._mode,
            IntentKind.HOLD: self._hold,
            IntentKind.CLEAN: self._clean,
            IntentKind.RESTORE: self._restore,
            IntentKind.RELEASE: self._release,
            IntentKind.SET: self._set,
            IntentKind.DRAIN: self._drain,
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
            self._wishes.forget_all_but({intent.id for intent in pending})
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

    def _carry_out(self, intent: Intent) -> tuple[bool, str] | None:
        """Done or refused, and the sentence for the person; None while it is under way."""
        names = [intent.volume] if intent.volume else list(self._target.volumes)
        unknown = [name for name in names if name not in self._target.volumes]
        if unknown:
            return False, f"no such volume: {unknown[0]}"
        carry_out = self._kinds.get(intent.kind)
        if carry_out is None:
            return False, _unknown(intent)
        try:
            if self._wishes.under_way(intent):
                return self._wishes.outcome(intent)
            texts = [carry_out(intent, name) for name in names]
        except EbbgateError as error:
            return False, str(error)
        except (KeyError, TypeError, ValueError):
            return False, _unknown(intent)
        if self._wishes.under_way(intent):
            return self._wishes.outcome(intent)
        return True, "; ".join(texts) or "no volume here"

    def _mode(self, intent: Intent, name: str) -> str:
        mode = Mode(_text(intent.args, "mode"))
        if mode is not Mode.ENFORCE:
            self._end_wishes(name, f"{intent.who} asked for {mode}")
        self._end_wishes(name, f"{intent.who} asked for {mode}", WishKind.HOLD)
        self._intents.set_mode(name, mode)
        self._target.volumes[name].set_mode(mode, f"mode {mode} asked for by a person")
        return f"{name}: mode {mode}"

    def _hold(self, intent: Intent, name: str) -> str:
        if not intent.args.get("on", True):
            self._end_wishes(name, f"{intent.who} asked to go on", WishKind.HOLD)
            self._target.volumes[name].hold(False)
            return f"{name}: goes on"
        return self._wishes.hold(intent, name)

    def _clean(self, intent: Intent, name: str) -> str:
        return self._target.volumes[name].clean(_duration(intent.args, "within_ns"), intent.who)

    def _restore(self, intent: Intent, name: str) -> str:
        self._end_wishes(name, f"{intent.who} asked to restore")
        self._intents.set_mode(name, Mode.ADVISE)
        return self._target.restore_volume(name)

    def _release(self, intent: Intent, name: str) -> str:
        knob = _text(intent.args, "knob") if intent.args.get("knob") else None
        return self._wishes.release(intent, self._target.volumes[name], knob)

    def _set(self, intent: Intent, name: str) -> str:
        if intent.volume is None:
            raise UsageError("a knob is set on one volume", "name it")
        knob, value = _text(intent.args, "knob"), _text(intent.args, "value")
        for_ns = None if intent.args.get("for_ns") is None else _duration(intent.args, "for_ns")
        return self._wishes.set(intent, self._target.volumes[name], (knob, value), for_ns)

    def _drain(self, intent: Intent, name: str) -> str:
        loop = self._target.volumes[name]
        if loop.mode is not Mode.ENFORCE:
            raise ActuationError(
                f"{name} is in {loop.mode}, in which the gate is left alone",
                f"first: ebbgate enforce {name}",
            )
        return self._wishes.drain(intent, loop, _duration(intent.args, "for_ns"))

    def _end_wishes(self, name: str, why: str, kind: WishKind | None = None) -> None:
        for each in self.keeper.of(name):
            if kind in (None, each.wish.kind):
                self.keeper.end(each.wish, why)


def _unknown(intent: Intent) -> str:
    return f"unknown intent: {intent.kind} {intent.args}"


def _text(args: Mapping[str, Any], name: str) -> str:
    """Raises KeyError, TypeError."""
    value = args[name]
    if not isinstance(value, str):
        raise TypeError(name)
    return value


def _duration(args: Mapping[str, Any], name: str) -> int:
    """Raises KeyError, TypeError, ValueError."""
    value = args[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(name)
    if value <= 0:
        raise ValueError(name)
    return value

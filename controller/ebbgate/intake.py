# SPDX-License-Identifier: GPL-2.0-only
"""Carries out what people asked for: intent rows in, outcomes back. I/O: the intents database."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Protocol

from ebbgate.errors import ActuationError
from ebbgate.loop import VolumeLoop
from ebbgate.model.volume import Mode
from ebbgate.store.intents import Intent, Intents

_LOG = logging.getLogger(__name__)


class Target(Protocol):
    """What the intake acts on: the daemon."""

    volumes: dict[str, VolumeLoop]

    def restore_volume(self, name: str) -> str:
        """Put a volume's knobs back and leave it alone."""


class Intake:
    """Polls the intents; one that cannot be carried out gets its reason as the outcome."""

    def __init__(self, state_dir: Path, target: Target) -> None:
        self._intents = Intents.open(state_dir / "intents.db")
        self._target = target

    def mode_of(self, volume: str) -> Mode | None:
        """The mode a person chose last for this volume."""
        name = self._intents.modes().get(volume)
        return Mode(name) if name else None

    def poll(self) -> None:
        """Carry out what is pending."""
        for intent in self._intents.pending():
            ok, text = self._carry_out(intent)
            _LOG.info("intent %d (%s by %s): %s", intent.id, intent.kind, intent.who, text)
            self._intents.resolve(intent.id, text, ok)

    def _carry_out(self, intent: Intent) -> tuple[bool, str]:
        names = [intent.volume] if intent.volume else list(self._target.volumes)
        unknown = [name for name in names if name not in self._target.volumes]
        if unknown:
            return False, f"no such volume: {unknown[0]}"
        try:
            texts = [self._one(intent, name) for name in names]
        except ActuationError as error:
            return False, str(error)
        done = [text for text in texts if text]
        if len(done) < len(texts):
            return False, f"unknown intent: {intent.kind} {intent.args}"
        return True, "; ".join(done) or "no volume here"

    def _one(self, intent: Intent, name: str) -> str:
        volume, kind, args = self._target.volumes[name], intent.kind, intent.args
        if kind == "mode" and args.get("mode") in tuple(Mode):
            mode = Mode(args["mode"])
            volume.set_mode(mode, f"mode {mode} asked for by a person")
            self._intents.set_mode(name, mode)
            return f"{name}: mode {mode}"
        if kind == "hold":
            on = bool(args.get("on", True))
            volume.hold(on)
            return f"{name}: {'held' if on else 'goes on'}"
        within_ns = args.get("within_ns")
        if kind == "clean" and isinstance(within_ns, int) and within_ns > 0:
            return volume.clean(within_ns, intent.who)
        if kind == "restore":
            self._intents.set_mode(name, Mode.ADVISE)
            return self._target.restore_volume(name)
        return ""

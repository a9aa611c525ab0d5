# SPDX-License-Identifier: GPL-2.0-only
"""Policies that people save and remove: kept, followed at once, answered. I/O: policy files.

The files are written beside the event loop: a disk that is slow to keep them holds no edge up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ebbgate import policy_shelf
from ebbgate.beside import Answer, Beside
from ebbgate.loop import VolumeLoop
from ebbgate.policy_book import PolicyBook
from ebbgate.store.intents import Intent


class Followed(Protocol):
    """Whose policies they are: the daemon's."""

    volumes: dict[str, VolumeLoop]

    @property
    def policies(self) -> PolicyBook:
        """Those that its volumes are under."""

    def follow_policies(self) -> None:
        """Take over what has changed in the folder."""


class PolicyIntake:
    """`beside`: where the files are written."""

    def __init__(self, target: Followed, beside: Beside) -> None:
        self._target = target
        self._beside = beside

    def save(self, intent: Intent) -> Answer | None:
        """None while it is under way. Raises ConfigError, ActuationError."""
        name, text = _words(intent.args)
        folder = self._target.policies.folder
        saved = self._beside.ask(intent.id, lambda: policy_shelf.save(folder, name, text))
        if saved is None:
            return None
        self._target.follow_policies()
        path = policy_shelf.path_of(folder, name)
        return True, f"policy {saved.name} is kept in {path}; {self._now_under(str(path))}"

    def remove(self, intent: Intent) -> Answer | None:
        """None while it is under way. Raises NotFound, ConfigError, ActuationError."""
        name = str(intent.args["name"])
        folder = self._target.policies.folder
        path = policy_shelf.path_of(folder, name)
        under = self._under(str(path))

        def work() -> list[str]:
            policy_shelf.remove(folder, name)
            return under

        were = self._beside.ask(intent.id, work)
        if were is None:
            return None
        self._target.follow_policies()
        text = f"{path} is removed; what it said is in {path.name}~"
        told = [
            f"{each.volume.title} is under {each.policy.name} now"
            for each in self._target.volumes.values()
            if each.volume.title in were
        ]
        return True, "; ".join([text, *told, *self._not_yet()])

    def _now_under(self, file: str) -> str:
        waits = self._not_yet()
        if waits:
            return waits[0]
        under = self._under(file)
        return f"now under it: {', '.join(under)}" if under else "no volume is under it"

    def _under(self, file: str) -> list[str]:
        book, loops = self._target.policies, self._target.volumes.values()
        return [loop.volume.title for loop in loops if book.file_of(loop.volume) == file]

    def _not_yet(self) -> list[str]:
        """Another file of the folder that is wrong keeps all of them from being followed."""
        problems = self._target.policies.problems
        if not problems:
            return []
        return [f"it is not in force before this is right, the last good ones stay: {problems[0]}"]


def _words(args: Mapping[str, object]) -> tuple[str, str]:
    return str(args["name"]), str(args["text"])

# SPDX-License-Identifier: GPL-2.0-only
"""Policies that people save and remove: kept, followed at once, answered. I/O: policy files.

The files are written and parsed beside the event loop.
"""

from __future__ import annotations

from typing import Protocol

from ebbgate.background import BackgroundWorker
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.policy_files import writer
from ebbgate.policy_files.active import ActivePolicies
from ebbgate.store.intent_rows import IntentRow


class Followed(Protocol):
    """Whose policies they are: the daemon's."""

    volumes: dict[str, VolumeLoop]

    @property
    def policies(self) -> ActivePolicies:
        """Those that its volumes are under."""

    async def follow_policies(self) -> None:
        """Take over what has changed in the folder."""


class PolicyIntents:
    """`background`: where the files are written."""

    def __init__(self, target: Followed, background: BackgroundWorker) -> None:
        self._target = target
        self._background = background

    async def save(self, intent: IntentRow) -> str:
        """Keep a policy and follow it. Raises ConfigError, ActuationError."""
        name, text = str(intent.args["name"]), str(intent.args["text"])
        folder = self._target.policies.folder
        saved = await self._background.run(lambda: writer.save(folder, name, text))
        await self._target.follow_policies()
        path = writer.path_of(folder, name)
        return f"policy {saved.name} is kept in {path}; {self._now_under(str(path))}"

    async def remove(self, intent: IntentRow) -> str:
        """Take a policy away. Raises NotFound, ConfigError, ActuationError."""
        name = str(intent.args["name"])
        folder = self._target.policies.folder
        path = writer.path_of(folder, name)
        were = self._under(str(path))
        await self._background.run(lambda: writer.remove(folder, name))
        await self._target.follow_policies()
        text = f"{path} is removed; what it said is in {path.name}~"
        told = [
            f"{each.volume.title} is under {each.policy.name} now"
            for each in self._target.volumes.values()
            if each.volume.title in were
        ]
        return "; ".join([text, *told, *self._not_yet()])

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

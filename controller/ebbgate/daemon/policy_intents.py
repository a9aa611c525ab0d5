# SPDX-License-Identifier: GPL-2.0-only
"""Carries out requests to save and remove policies. I/O: policy files, beside the event loop."""

from __future__ import annotations

from typing import Protocol

from ebbgate.background import BackgroundWorker
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.intents.validation import Intent
from ebbgate.policy_files import writer
from ebbgate.policy_files.active import ActivePolicies


class PolicyTarget(Protocol):
    """Whose policies are changed; implemented by the daemon."""

    volumes: dict[str, VolumeLoop]

    @property
    def policies(self) -> ActivePolicies:
        """The policies of its volumes."""

    async def follow_policies(self) -> None:
        """Apply what has changed in the folder."""


class PolicyIntents:
    """`background`: writes the files."""

    def __init__(self, target: PolicyTarget, background: BackgroundWorker) -> None:
        self._target = target
        self._background = background

    async def save(self, intent: Intent) -> str:
        """Save a policy and apply it. Raises ConfigError, ActuationError."""
        name, text = intent.args.name, intent.args.text
        folder = self._target.policies.folder
        saved = await self._background.run(lambda: writer.save(folder, name, text))
        await self._target.follow_policies()
        path = writer.path_of(folder, name)
        return f"policy {saved.name} is saved in {path}; {self._now_under(str(path))}"

    async def remove(self, intent: Intent) -> str:
        """Remove a policy. Raises NotFound, ConfigError, ActuationError."""
        name = intent.args.name
        folder = self._target.policies.folder
        path = writer.path_of(folder, name)
        were = self._under(str(path))
        await self._background.run(lambda: writer.remove(folder, name))
        await self._target.follow_policies()
        text = f"{path} is removed; its content is in {path.name}~"
        moved = [
            f"{each.volume.title} now uses {each.policy.name}"
            for each in self._target.volumes.values()
            if each.volume.title in were
        ]
        return "; ".join([text, *moved, *self._not_yet()])

    def _now_under(self, file: str) -> str:
        waits = self._not_yet()
        if waits:
            return waits[0]
        under = self._under(file)
        return f"used by: {', '.join(under)}" if under else "no volume uses it"

    def _under(self, file: str) -> list[str]:
        book, loops = self._target.policies, self._target.volumes.values()
        return [loop.volume.title for loop in loops if book.file_of(loop.volume) == file]

    def _not_yet(self) -> list[str]:
        """Return why no file of the folder is applied: one of them has an error."""
        problems = self._target.policies.problems
        if not problems:
            return []
        return [f"the former policies stay in force until this is corrected: {problems[0]}"]

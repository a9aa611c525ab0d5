# SPDX-License-Identifier: GPL-2.0-only
"""Gives each volume its policy. I/O: policy files, on a thread. On the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from ebbgate.background import BackgroundWorker
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.log_messages.service import POLICIES_UNREADABLE
from ebbgate.model.volume import Volume
from ebbgate.policy_files.active import ActivePolicies

_LOG = logging.getLogger("ebbgated")


class PolicyFollower:
    """Gives each volume the policy that the files and the time of day select.

    Reads on a thread of its own: parsing never delays the event loop. `volumes`: the daemon's,
    which adds and removes them.
    """

    def __init__(self, policies: ActivePolicies, volumes: Mapping[str, VolumeLoop]) -> None:
        self._policies = policies
        self._volumes = volumes
        self._keys: dict[str, tuple[object, ...]] = {}
        self._reader = BackgroundWorker("policies")
        self._following: asyncio.Task[None] | None = None

    def added(self, volume: Volume) -> None:
        """Note that a volume is about to get its policy."""
        self._keys[volume.name] = self._policies.key_of(volume)

    async def follow(self, *, again: bool = False) -> None:
        """Read what has changed in the folder and apply it. `again`: read every file."""
        policies = self._policies
        policies.take(await self._reader.run(lambda: policies.read(again=again)))
        self.apply()

    def begin(self, *, again: bool = False) -> None:
        """Begin to follow without waiting for it; one look at a time."""
        if again or self._following is None or self._following.done():
            self._following = asyncio.create_task(self._follow(again))

    async def _follow(self, again: bool) -> None:
        try:
            await self.follow(again=again)
        except Exception:
            _LOG.exception(POLICIES_UNREADABLE)

    def apply(self) -> None:
        """Apply policies that changed, and the time of a schedule."""
        for name, loop in self._volumes.items():
            key = self._policies.key_of(loop.volume)
            if key != self._keys.get(name):
                self._keys[name] = key
                loop.set_policy(self._policies.policy_of(loop.volume))

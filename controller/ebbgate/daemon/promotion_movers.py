# SPDX-License-Identifier: GPL-2.0-only
"""The movers of all volumes. I/O: sysfs, on a thread; the workers' processes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from ebbgate.background import BackgroundWorker
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.cache_facts import CacheFacts, read_cache_facts
from ebbgate.daemon.promotion_mover import PromotionMover
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.model.records import Edge


class PromotionMovers:
    """One mover for each volume. `volumes`: the daemon's loops by name."""

    def __init__(self, sysfs: Sysfs, volumes: Mapping[str, VolumeLoop]) -> None:
        self._sysfs = sysfs
        self._volumes = volumes
        self._movers: dict[str, PromotionMover] = {}
        self._reader = BackgroundWorker("promotions")

    def on_tick(self, name: str) -> None:
        """A volume was looked at."""
        loop = self._volumes.get(name)
        if loop is None:
            return
        mover = self._movers.get(name)
        if mover is None or mover.loop is not loop:
            if mover is not None:
                mover.end()
            mover = self._movers[name] = self._mover(loop)
        mover.on_tick()

    def on_edge(self, edge: Edge) -> None:
        """Users of a volume have returned or left."""
        if mover := self._movers.get(edge.volume):
            mover.on_edge(edge)

    def poll(self) -> None:
        """End the movers of volumes that are no longer followed."""
        for name in self._movers.keys() - self._volumes.keys():
            self._movers.pop(name).end()

    async def stop(self) -> None:
        """End all movers with the daemon."""
        await asyncio.gather(*(mover.stop() for mover in self._movers.values()))

    def _mover(self, loop: VolumeLoop) -> PromotionMover:
        async def facts() -> CacheFacts:
            return await self._reader.run(lambda: read_cache_facts(self._sysfs, loop.volume))

        return PromotionMover(loop, facts)

# SPDX-License-Identifier: GPL-2.0-only
"""Whether the daemon can ask device-mapper. I/O: the control device, the log."""

from __future__ import annotations

import asyncio
import logging

from ebbgate.dm import DeviceMapper

_LOG = logging.getLogger("ebbgated")


class MapperWatch:
    """`blocked`: why it cannot be asked; empty where it can."""

    def __init__(self) -> None:
        self.blocked = ""

    async def look(self, dm: DeviceMapper) -> None:
        """Ask, beside the event loop. Without it half of the product is missing: log it, once."""
        why = await asyncio.to_thread(dm.blocked)
        if why and why != self.blocked:
            _LOG.error("device-mapper cannot be asked (%s): its volumes are not tuned", why)
        self.blocked = why

# SPDX-License-Identifier: GPL-2.0-only
"""Whether the daemon can ask device-mapper. I/O: the log."""

from __future__ import annotations

import logging

_LOG = logging.getLogger("ebbgated")


class MapperWatch:
    """`blocked`: why it cannot be asked; empty where it can."""

    def __init__(self) -> None:
        self.blocked = ""

    def take(self, why: str) -> None:
        """What a look has found. Without device-mapper half of the product is missing: log it,
        once.
        """
        if why and why != self.blocked:
            _LOG.error("device-mapper cannot be asked (%s): its volumes are not tuned", why)
        self.blocked = why

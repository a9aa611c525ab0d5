# SPDX-License-Identifier: GPL-2.0-only
"""Looks up names of users. I/O: the user database, in a thread: it may be on a network."""

from __future__ import annotations

import asyncio
import pwd
from typing import Final

from ebbgate.background import BackgroundWorker
from ebbgate.errors import EbbgateError
from ebbgate.units import clean_text

_WAIT_S: Final = 1.0
_KEPT: Final = 256
_NAME_MAX: Final = 64


class UserNames:
    """Looks up each user once."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {0: "root"}
        self._worker = BackgroundWorker("users")

    async def name_of(self, uid: int) -> str:
        """Return the name of a user; `uid N` if there is none or the lookup takes too long."""
        known = self._names.get(uid)
        if known is not None:
            return known
        unknown = f"uid {uid}"
        try:
            async with asyncio.timeout(_WAIT_S):
                name = await self._worker.run(lambda: pwd.getpwuid(uid).pw_name)
        except (KeyError, TimeoutError, EbbgateError):
            return unknown
        if len(self._names) >= _KEPT:
            self._names = {0: "root"}
        self._names[uid] = clean_text(name, _NAME_MAX)
        return self._names[uid]

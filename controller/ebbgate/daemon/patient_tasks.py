# SPDX-License-Identifier: GPL-2.0-only
"""Tasks by name, each waited for only for a moment. Pure but for the event loop.

A look at a device may hang in the kernel for as long as another device takes to be registered.
Whoever looks at several devices in turn goes on with the next one then, and comes back to the one
that hangs once it has answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

PATIENCE_S: Final = 0.5
"""Looks take less than a millisecond; on a machine that is busy, a few tens."""


class PatientTasks:
    """At most one task of a name runs at a time."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._late: set[str] = set()

    async def run(self, name: str, begin: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Run it to its end; False where it, or an earlier one of the name, still runs after the
        time that it is waited for. One that was late is not waited for again until it has ended.

        Raises what the task, or an earlier one that was late, raised.
        """
        older = self._tasks.get(name)
        if older is not None and not await self._ended(name, older):
            return False
        # Somebody else who waited may have begun one by now: it is as new as one of our own.
        task = self._tasks.get(name)
        if task is None:
            task = self._tasks[name] = asyncio.create_task(begin())
        return await self._ended(name, task)

    async def stop(self) -> None:
        """Cancel what still runs."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ended(self, name: str, task: asyncio.Task[None]) -> bool:
        await asyncio.wait({task}, timeout=0 if name in self._late else self._patience_s)
        if not task.done():
            self._late.add(name)
            return False
        if self._tasks.get(name) is task:
            del self._tasks[name]
            self._late.discard(name)
            task.result()
        return True

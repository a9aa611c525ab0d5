# SPDX-License-Identifier: GPL-2.0-only
"""One task of a name at a time; one that is late is waited for once, and its error is not lost."""

from __future__ import annotations

import asyncio

import pytest

from ebbgate.background import PatientTasks


def test_those_who_ask_at_once_share_a_task_that_begins_after_they_asked() -> None:
    running, most, begun = 0, 0, 0

    async def work() -> None:
        nonlocal running, most, begun
        running, begun = running + 1, begun + 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1

    async def scenario() -> None:
        tasks = PatientTasks(5.0)
        asked = [tasks.run("bcache0", work) for _ in range(4)]
        assert await asyncio.gather(*asked) == [True] * 4

    asyncio.run(scenario())
    assert (begun, most) == (2, 1)


def test_one_that_is_late_raises_when_it_is_asked_for_next() -> None:
    async def scenario() -> None:
        tasks, let_go = PatientTasks(0.01), asyncio.Event()

        async def fails() -> None:
            await let_go.wait()
            raise ZeroDivisionError

        assert not await tasks.run("bcache0", fails)
        assert not await tasks.run("bcache0", fails)
        let_go.set()
        await asyncio.sleep(0.01)
        with pytest.raises(ZeroDivisionError):
            await tasks.run("bcache0", fails)

    asyncio.run(scenario())

# SPDX-License-Identifier: GPL-2.0-only
"""What takes long is done beside the loop, in its order, and what nobody waits for is skipped."""

from __future__ import annotations

import asyncio
from functools import partial
from threading import Event, get_ident

import pytest

from ebbgate.background import BackgroundWorker
from ebbgate.errors import NotFound, Unavailable

DEADLINE_S = 5.0


def test_jobs_are_done_in_their_order_on_another_thread() -> None:
    worker, done = BackgroundWorker("test"), list[int]()

    def work(number: int) -> int:
        done.append(number)
        return get_ident()

    jobs = [worker.submit(partial(work, number)) for number in range(5)]
    assert {job.result(DEADLINE_S) for job in jobs}.isdisjoint({get_ident()})
    assert done == list(range(5))


@pytest.mark.parametrize(
    ("error", "raised"),
    [(NotFound("gone"), NotFound), (OSError(5, "Input/output error"), Unavailable)],
)
def test_what_it_raises_is_raised_to_whoever_asked(
    error: Exception, raised: type[Exception]
) -> None:
    def work() -> None:
        raise error

    with pytest.raises(raised):
        asyncio.run(BackgroundWorker("test").run(work))


def test_a_job_that_nobody_waits_for_any_more_is_skipped() -> None:
    worker, free, done = BackgroundWorker("test"), Event(), list[int]()

    async def scenario() -> None:
        first = worker.submit(lambda: free.wait(DEADLINE_S))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await worker.run(lambda: done.append(1))
        free.set()
        assert await worker.run(lambda: 7) == 7
        assert first.done()

    asyncio.run(scenario())
    assert done == []


def test_too_many_jobs_are_refused() -> None:
    worker, free, begun = BackgroundWorker("test", 2), Event(), Event()

    def blocks() -> None:
        begun.set()
        free.wait(DEADLINE_S)

    worker.submit(blocks)
    begun.wait(DEADLINE_S)
    rest = [worker.submit(lambda: None) for _ in range(2)]
    with pytest.raises(Unavailable, match="2 jobs are waiting already"):
        worker.submit(lambda: None)
    free.set()
    assert [job.result(DEADLINE_S) for job in rest] == [None, None]

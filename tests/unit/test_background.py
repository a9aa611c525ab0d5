# SPDX-License-Identifier: GPL-2.0-only
"""Jobs run in order beside the event loop; tasks that are late are waited for once."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from threading import Event, get_ident

import pytest

from ebbgate.background import BackgroundWorker, PatientTasks
from ebbgate.errors import NotFound, Unavailable
from tests.background_workers import ended_background_workers

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
def test_its_exception_is_raised_to_the_caller(error: Exception, raised: type[Exception]) -> None:
    def work() -> None:
        raise error

    with pytest.raises(raised):
        asyncio.run(BackgroundWorker("test").run(work))


async def test_an_abandoned_job_is_skipped() -> None:
    worker, free, done = BackgroundWorker("test"), Event(), list[int]()
    first = worker.submit(lambda: free.wait(DEADLINE_S))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await worker.run(lambda: done.append(1))
    free.set()
    assert await worker.run(lambda: 7) == 7
    assert first.done()
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


def test_a_thread_that_cannot_be_started_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, done = BackgroundWorker("test"), list[int]()

    def refused(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        with pytest.raises(Unavailable, match="no thread can be started"):
            worker.submit(lambda: done.append(1))
    assert worker.submit(lambda: 7).result(DEADLINE_S) == 7
    assert done == [], "a job whose caller was told that it failed is not done later"


def test_no_thread_of_a_test_is_left_behind(request: pytest.FixtureRequest) -> None:
    """Each test of this tier runs in such a body."""
    assert "background_workers_end" in request.fixturenames
    before = set(threading.enumerate())
    with ended_background_workers():
        worker, idle = BackgroundWorker("test"), BackgroundWorker("without a job")
        worker.submit(lambda: None).result(DEADLINE_S)
        assert len(set(threading.enumerate()) - before) == 1
        idle.end()
    assert set(threading.enumerate()) <= before


# ---- tasks by name ------------------------------------------------------------------------------
async def test_simultaneous_callers_share_a_task_that_begins_after_their_calls() -> None:
    running, most, begun = 0, 0, 0

    async def work() -> None:
        nonlocal running, most, begun
        running, begun = running + 1, begun + 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1

    tasks = PatientTasks(5.0)
    asked = [tasks.run("bcache0", work) for _ in range(4)]
    assert await asyncio.gather(*asked) == [True] * 4
    assert (begun, most) == (2, 1)


async def test_tasks_that_hang_together_are_not_each_awaited_for_the_whole_time() -> None:
    tasks, begun, began_s = PatientTasks(0.2), list[int](), time.monotonic()

    async def hangs(number: int) -> None:
        begun.append(number)
        await asyncio.Event().wait()

    for number in range(20):
        assert not await tasks.run(f"bcache{number}", partial(hangs, number))
    assert time.monotonic() - began_s < 2.0
    assert begun == list(range(20))
    await tasks.stop()


async def test_a_late_result_raises_at_the_next_call() -> None:
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

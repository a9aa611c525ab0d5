# SPDX-License-Identifier: GPL-2.0-only
"""Work that may take long and that the event loop must not wait for. I/O: threads."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, Final, TypeVar

from ebbgate.errors import Unavailable

T = TypeVar("T")
_JOBS_MAX: Final = 64
PATIENCE_S: Final = 0.5
"""A look takes less than a millisecond; on a busy machine, tens of milliseconds."""
_LESS: Final = 10
"""While one task is late, others get this part of the time: they may wait for the same lock."""
_Job = tuple[Future[Any], Callable[[], Any]] | None
"""None: the thread ends."""


class BackgroundWorker:
    """Runs jobs in order on one daemon thread, which the first job starts.

    A kernel file or a disk may hang; the thread never keeps the program from ending.
    """

    def __init__(self, name: str, jobs_max: int = _JOBS_MAX) -> None:
        self._name = name
        self._jobs: queue.Queue[_Job] = queue.Queue(jobs_max)
        self._starting = Lock()
        self._thread: Thread | None = None

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue a job; one that is cancelled before its turn is skipped.

        Raises Unavailable if too many are waiting, or the thread cannot be started.
        """
        self._start()
        done: Future[T] = Future()
        try:
            self._jobs.put_nowait((done, work))
        except queue.Full as error:
            raise Unavailable(
                f"{self._jobs.maxsize} jobs are waiting already ({self._name})",
                "try again in a moment",
            ) from error
        return done

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None:
                return
            thread = Thread(target=self._run, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                # The next job tries again: one that did not start would keep all jobs for good.
                why = f"no thread can be started ({self._name}): {error}"
                raise Unavailable(why, "see TasksMax= and the free memory") from error
            self._thread = thread

    async def run(self, work: Callable[[], T]) -> T:
        """Return the result of a job. Raises what it raises, but OSError as Unavailable."""
        try:
            return await asyncio.wrap_future(self.submit(work))
        except OSError as error:
            raise Unavailable(f"it could not be read: {error}", "try again") from error

    def end(self) -> None:
        """End the thread after the jobs that wait."""
        with suppress(queue.Full):
            self._jobs.put_nowait(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            done, work = job
            if not done.set_running_or_notify_cancel():
                continue
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)
            # A result may be large: do not keep it until the next job.
            del job, done, work


class PatientTasks:
    """Runs tasks by name, at most one of a name at a time, and waits for each only for a moment.

    A look at a device may hang in the kernel for as long as another device takes to be registered.
    Whoever looks at several devices in turn goes on to the next one, and returns to the one that
    hangs once it has answered. What hangs together, as all volumes of bcache do, delays it little
    more than one: it could otherwise be late for the watchdog.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._late: set[str] = set()

    async def run(self, name: str, begin: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Run a task; return False if it, or an earlier one of the name, is not done in time.

        One that was late is not waited for again until it has ended. Raises what the task, or an
        earlier one that was late, raised.
        """
        older = self._tasks.get(name)
        if older is not None and not await self._ended(name, older):
            return False
        # Another caller that waited may have begun one by now, which is as new.
        task = self._tasks.get(name)
        if task is None:
            task = self._tasks[name] = asyncio.create_task(begin())
        return await self._ended(name, task)

    async def stop(self) -> None:
        """Cancel the tasks that still run."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ended(self, name: str, task: asyncio.Task[None]) -> bool:
        patience_s = self._patience_s / _LESS if self._late else self._patience_s
        await asyncio.wait({task}, timeout=0 if name in self._late else patience_s)
        if not task.done():
            self._late.add(name)
            return False
        if self._tasks.get(name) is task:
            del self._tasks[name]
            self._late.discard(name)
            task.result()
        return True

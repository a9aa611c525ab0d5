# SPDX-License-Identifier: GPL-2.0-only
"""Work that may take long, beside the event loop, which must not wait for it. I/O: one thread."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, Final, TypeVar

from ebbgate.errors import Unavailable

T = TypeVar("T")
_JOBS_MAX: Final = 64
_Job = tuple[Future[Any], Callable[[], Any]] | None
"""None: the thread ends."""


class BackgroundWorker:
    """Runs jobs in their order on one daemon thread, which is started by the first one.

    A file of the kernel or a disk may hang: the thread never keeps the program from ending.
    """

    def __init__(self, name: str, jobs_max: int = _JOBS_MAX) -> None:
        self._name = name
        self._jobs: queue.Queue[_Job] = queue.Queue(jobs_max)
        self._starting = Lock()
        self._thread: Thread | None = None

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Begin a job when its turn comes; one that was cancelled before is skipped.

        Raises Unavailable where too many are waiting.
        """
        done: Future[T] = Future()
        try:
            self._jobs.put_nowait((done, work))
        except queue.Full as error:
            raise Unavailable(
                f"{self._jobs.maxsize} jobs are waiting already ({self._name})",
                "try it again in a moment",
            ) from error
        with self._starting:
            if self._thread is None:
                self._thread = Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        return done

    async def run(self, work: Callable[[], T]) -> T:
        """The result of a job. Raises what it raises, but OSError as Unavailable."""
        try:
            return await asyncio.wrap_future(self.submit(work))
        except OSError as error:
            raise Unavailable(f"it could not be looked at: {error}", "try it again") from error

    def end(self) -> None:
        """Take no more jobs; the thread ends after those that wait."""
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
            # Not until the next job: a result may be large.
            del job, done, work

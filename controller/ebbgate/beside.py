# SPDX-License-Identifier: GPL-2.0-only
"""Work that may take long, beside the event loop, which must not wait for it. I/O: one thread.

What is asked of the disk or of many files of the kernel is begun at one look and answered at a
later one. One at a time, in the order in which it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

from ebbgate.errors import Unavailable

T = TypeVar("T")
Answer = tuple[bool, str]
"""Done or refused, and the sentences for the person."""


class Beside:
    """Jobs by number: begun when first asked for, their results taken once."""

    def __init__(self) -> None:
        self._jobs: dict[int, Future[Any]] = {}

    def ask(self, number: int, work: Callable[[], T]) -> T | None:
        """What `work` has returned (never None); None until it is done.

        Raises what it has raised; an OSError as Unavailable, so that a file of the kernel that is
        gone is an answer and no end of the daemon.
        """
        job = self._jobs.get(number)
        if job is None:
            if all(each.done() for each in self._jobs.values()):
                self._jobs[number] = _begun(work)
            return None
        if not job.done():
            return None
        del self._jobs[number]
        try:
            result: T = job.result()
        except OSError as error:
            raise Unavailable(f"it could not be looked at: {error}", "try it again") from error
        return result

    def forget_all_but(self, numbers: Collection[int]) -> None:
        """Nobody waits for the others any more."""
        for number in [each for each in self._jobs if each not in numbers]:
            if self._jobs[number].done():
                del self._jobs[number]


def _begun(work: Callable[[], Any]) -> Future[Any]:
    done: Future[Any] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    # A file of the kernel may hang; the end of the daemon must not wait for it.
    Thread(target=run, name="beside", daemon=True).start()
    return done

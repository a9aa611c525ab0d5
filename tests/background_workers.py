# SPDX-License-Identifier: GPL-2.0-only
"""Ends the threads of background workers that a test starts: the product's end with its process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest

from ebbgate import background
from ebbgate.background import BackgroundWorker

_PATIENCE_S = 2.0
"""A thread whose job hangs is left behind: it cannot be ended."""


@contextmanager
def ended_background_workers() -> Iterator[None]:
    """End all workers that are made in the body, and wait for their threads."""
    workers: list[BackgroundWorker] = []
    threads: list[Thread] = []
    make = BackgroundWorker.__init__

    def made(worker: BackgroundWorker, *arguments: Any, **named: Any) -> None:
        make(worker, *arguments, **named)
        workers.append(worker)

    def thread(*arguments: Any, **named: Any) -> Thread:
        threads.append(Thread(*arguments, **named))
        return threads[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BackgroundWorker, "__init__", made)
        patch.setattr(background, "Thread", thread)
        yield
    for worker in workers:
        worker.end()
    for each in threads:
        if each.ident is not None:
            each.join(_PATIENCE_S)

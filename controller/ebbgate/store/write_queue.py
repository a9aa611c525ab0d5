# SPDX-License-Identifier: GPL-2.0-only
"""Queues records for the history in order, bounded while it cannot be written.

I/O: through the store. One thread only.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ebbgate.errors import EbbgateError
from ebbgate.log_messages.history import HISTORY_RECORD_LOST
from ebbgate.store.connection import is_record_error
from ebbgate.store.db import Store

_LOG = logging.getLogger(__name__)
TASKS_MAX: Final = 2_000
"""Kept while nothing can be written: a few minutes of four volumes, a few MB."""
_BATCH_MAX: Final = 64
"""Tasks in one transaction, less than a MB, so that a little free space is enough for one."""


Task = Callable[[Store], None]
"""Writes one record."""


class Queued(NamedTuple):
    """A task; `lasting`: of those that are dropped, it is among the last."""

    task: Task
    lasting: bool = False


class WriteQueue:
    """The tasks that are not written yet, oldest first."""

    def __init__(self) -> None:
        self._tasks: list[Queued] = []

    def add(self, task: Queued) -> None:
        """Append a task."""
        self._tasks.append(task)

    def write(self, store: Store, newest: Sequence[Task], check: Callable[[], None]) -> None:
        """Write all tasks and, in the last transaction, `newest`.

        `check` is called before each part and raises where there is no room for it. Raises
        sqlite3.Error, OSError and EbbgateError; unwritten tasks then stay queued, but not `newest`.
        """
        while len(self._tasks) > _BATCH_MAX:
            check()
            write_now(store, [each.task for each in self._tasks[:_BATCH_MAX]])
            del self._tasks[:_BATCH_MAX]
        check()
        write_now(store, [*(each.task for each in self._tasks), *newest])
        self._tasks.clear()

    def trim(self) -> int:
        """Drop the oldest tasks where there are too many; return how many.

        What people asked for is kept before measurements.
        """
        excess = max(0, len(self._tasks) - TASKS_MAX)
        if excess:
            places = range(len(self._tasks))
            first = sorted(places, key=lambda place: (self._tasks[place].lasting, place))
            dropped = frozenset(first[:excess])
            self._tasks = [self._tasks[place] for place in places if place not in dropped]
        return excess


def write_now(store: Store, tasks: Sequence[Task]) -> None:
    """Write the tasks in one transaction."""
    with store.batch():
        for task in tasks:
            _carry_out(task, store)


def _carry_out(task: Task, store: Store) -> None:
    """Run a task; an error of its own costs only that task."""
    try:
        task(store)
    except sqlite3.Error as error:
        if not is_record_error(error):
            raise
        _LOG.exception(HISTORY_RECORD_LOST)
    except (OSError, EbbgateError):
        raise
    except Exception:
        _LOG.exception(HISTORY_RECORD_LOST)

# SPDX-License-Identifier: GPL-2.0-only
"""Records that wait to be written, in order; bounded while they cannot be. I/O: through the store.

One thread only.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

from ebbgate.errors import EbbgateError
from ebbgate.store.connection_manager import is_record_error
from ebbgate.store.db import Store

_LOG = logging.getLogger(__name__)
TASKS_MAX: Final = 2_000
"""Kept while nothing can be written: some minutes of four volumes, some megabytes."""
_BATCH_MAX: Final = 64
"""What waited for room is written in parts, of less than a megabyte each: a little room may do."""


Task = Callable[[Store], None]
"""Writes one record."""


class WriteQueue:
    """The tasks that are not written yet, oldest first."""

    def __init__(self) -> None:
        self._tasks: list[Task] = []

    def add(self, task: Task) -> None:
        """After all the others."""
        self._tasks.append(task)

    def write(self, store: Store, newest: Sequence[Task], check: Callable[[], None]) -> None:
        """All of them and, in the transaction of the last, `newest`. Raises sqlite3.Error, OSError
        and EbbgateError; what was not written then still waits, but for `newest`.

        `check` is called before each part and raises where there is no room for it.
        """
        while len(self._tasks) > _BATCH_MAX:
            check()
            _write(store, self._tasks[:_BATCH_MAX])
            del self._tasks[:_BATCH_MAX]
        check()
        _write(store, [*self._tasks, *newest])
        self._tasks.clear()

    @staticmethod
    def write_only(store: Store, newest: Sequence[Task]) -> None:
        """`newest` alone; the others go on waiting. Raises the same."""
        _write(store, newest)

    def trim(self) -> int:
        """Give the oldest up where there are too many; how many."""
        excess = max(0, len(self._tasks) - TASKS_MAX)
        del self._tasks[:excess]
        return excess


def _write(store: Store, tasks: Sequence[Task]) -> None:
    """One write to the disk, all of it or nothing."""
    with store.batch():
        for task in tasks:
            _carry_out(task, store)


def _carry_out(task: Task, store: Store) -> None:
    """A bug in one task costs that task, not those after it."""
    try:
        task(store)
    except sqlite3.Error as error:
        if not is_record_error(error):
            raise
        _LOG.exception("a record for the history was lost")
    except (OSError, EbbgateError):
        raise
    except Exception:
        _LOG.exception("a record for the history was lost")

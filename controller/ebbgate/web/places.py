# SPDX-License-Identifier: GPL-2.0-only
"""Places for requests that take long; a client has at most half of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from ebbgate.web.errors import ApiError

_RETRY_S: Final = 2


class Places:
    """`count` of them, an even number. `busy`: what to tell those who get none; they do not wait,
    since a request that waits keeps a thread from others.
    """

    def __init__(self, count: int, busy: str) -> None:
        self._count = count
        self._busy = busy
        self._held: Counter[str] = Counter()
        self._lock = Lock()

    @contextmanager
    def hold(self, client: str) -> Iterator[None]:
        """Hold a place. Raises ApiError if none is free for this client."""
        with self._lock:
            if self._held[client] >= self._count // 2 or self._held.total() >= self._count:
                raise ApiError(503, self._busy, "try again in a moment", retry_after_s=_RETRY_S)
            self._held[client] += 1
        try:
            yield
        finally:
            with self._lock:
                self._held[client] -= 1
                # No client is remembered that has gone.
                self._held += Counter()

# SPDX-License-Identifier: GPL-2.0-only
"""How often a client may ask: a bucket of tokens for each address. Pure: time is an argument."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

CLIENTS_MAX: Final = 4096
"""Addresses that are remembered: the one that was silent for longest is forgotten first."""


@dataclass(frozen=True, slots=True)
class Rate:
    """So many at once, and then so many a second."""

    burst: float
    per_s: float


READING: Final = Rate(2000, 500)
"""Two hundred browsers on one proxy are one address."""
CHANGING: Final = Rate(30, 5)
WRONG_TOKEN: Final = Rate(10, 0.2)
"""Guessing 256 bits is hopeless anyway; this is for a token that somebody chose by hand."""


class Limiter:
    """One kind of request, of all clients."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, now_s: float) -> float:
        """Take one; returns 0, or after how many seconds there will be one."""
        left = self._left(client, now_s)
        if left < 1:
            self._keep(client, left, now_s)
            return (1 - left) / self._rate.per_s
        self._keep(client, left - 1, now_s)
        return 0.0

    def wait_s(self, client: str, now_s: float) -> float:
        """The same without taking any."""
        left = self._left(client, now_s)
        return 0.0 if left >= 1 else (1 - left) / self._rate.per_s

    def _left(self, client: str, now_s: float) -> float:
        left, at_s = self._buckets.get(client, (self._rate.burst, now_s))
        return min(self._rate.burst, left + max(0.0, now_s - at_s) * self._rate.per_s)

    def _keep(self, client: str, left: float, now_s: float) -> None:
        self._buckets[client] = (left, now_s)
        self._buckets.move_to_end(client)
        if len(self._buckets) > CLIENTS_MAX:
            self._buckets.popitem(last=False)

# SPDX-License-Identifier: GPL-2.0-only
"""Divides time between bursts of reads and rests. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

from ebbgate.units import NS_PER_S

PERIOD_NS: Final = 10 * NS_PER_S
"""A burst and the rest after it: long enough to tell what users feel of the burst."""
REST_NS_MIN: Final = 3 * NS_PER_S
"""A rest is no shorter, with any share: a second of it at least can be measured."""
SHARE_MIN, SHARE_MAX = 0.01, 0.95


@dataclass(slots=True)
class DutyCycle:
    """Lets reads take a share of the time, in bursts: requests near to each other cost few seeks.

    A burst begins with full credit and goes on until that is used up; a read that took longer than
    the rest of it is paid for by a longer rest. `credit_ns`: time that reads may still take, as of
    `at_ns`.
    """

    share: float = SHARE_MIN
    credit_ns: float = 0.0
    at_ns: int = 0
    in_burst: bool = False

    def set_share(self, share: float) -> None:
        """Change the share from now on."""
        self.share = min(SHARE_MAX, max(SHARE_MIN, share))

    @property
    def period_ns(self) -> float:
        """Length of a burst and the rest after it."""
        return max(PERIOD_NS, REST_NS_MIN / (1 - self.share))

    def wait_ns(self, now_ns: int) -> int:
        """Return how long no read may be sent; 0: one may be sent now."""
        full_ns = self.share * (1 - self.share) * self.period_ns
        self.credit_ns = min(full_ns, self.credit_ns + self.share * (now_ns - self.at_ns))
        self.at_ns = now_ns
        self.in_burst = self.credit_ns > 0 if self.in_burst else self.credit_ns >= full_ns
        return 0 if self.in_burst else max(1, ceil((full_ns - self.credit_ns) / self.share))

    def spend(self, busy_ns: int) -> None:
        """Count a read."""
        self.credit_ns -= busy_ns

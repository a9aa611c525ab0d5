# SPDX-License-Identifier: GPL-2.0-only
"""Limits of each user on the control socket: connections, request rate, pending. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

from ebbgate.intents.protocol import (
    CONNECTIONS_MAX,
    CONNECTIONS_PER_UID,
    PENDING_PER_UID,
    REQUEST_BYTES,
    REQUESTS_BURST,
    REQUESTS_PER_S,
    ROOT_RESERVE,
)
from ebbgate.units import NS_PER_S

ROOT_UID = 0


@dataclass(slots=True)
class UserQuota:
    """What a user has in use. `tokens_ns`: a token bucket; a token is 1 s / REQUESTS_PER_S."""

    seen_ns: int
    connections: int = 0
    pending: int = 0
    tokens_ns: int = REQUESTS_BURST * (NS_PER_S // REQUESTS_PER_S)

    def take_tokens(self, count: int, now_ns: int) -> bool:
        """Take so many tokens if there are as many. Times are of CLOCK_MONOTONIC."""
        self._refill(now_ns)
        price_ns = count * (NS_PER_S // REQUESTS_PER_S)
        if self.tokens_ns < price_ns:
            return False
        self.tokens_ns -= price_ns
        return True

    def is_unused(self, now_ns: int) -> bool:
        """Whether this user has nothing in use and all tokens."""
        self._refill(now_ns)
        full = self.tokens_ns == REQUESTS_BURST * (NS_PER_S // REQUESTS_PER_S)
        return full and not self.connections and not self.pending

    def _refill(self, now_ns: int) -> None:
        most_ns = REQUESTS_BURST * (NS_PER_S // REQUESTS_PER_S)
        self.tokens_ns = min(most_ns, self.tokens_ns + now_ns - self.seen_ns)
        self.seen_ns = now_ns


@dataclass(slots=True)
class Quotas:
    """The quotas of all users, by uid."""

    users: dict[int, UserQuota] = field(default_factory=dict)

    def of(self, uid: int, now_ns: int) -> UserQuota:
        """Return the quota of a user; unused quotas are dropped."""
        found = self.users.get(uid)
        if found is None:
            self.users = {u: q for u, q in self.users.items() if not q.is_unused(now_ns)}
            found = self.users[uid] = UserQuota(now_ns)
        return found

    def connection_refusal(self, uid: int, now_ns: int) -> str:
        """Return why this user may not open another connection; empty if it may."""
        total = sum(each.connections for each in self.users.values())
        room = CONNECTIONS_MAX if uid == ROOT_UID else CONNECTIONS_MAX - ROOT_RESERVE
        if total >= room:
            return f"too many connections: {room} are open"
        if self.of(uid, now_ns).connections >= CONNECTIONS_PER_UID:
            return f"too many connections: this user has {CONNECTIONS_PER_UID} open"
        return ""

    def request_refusal(self, uid: int, now_ns: int, line_bytes: int = 0) -> str:
        """Count a request of this length; return why it is not allowed now, empty if it is."""
        user = self.of(uid, now_ns)
        count = max(1, ceil(line_bytes / REQUEST_BYTES))
        if not user.take_tokens(count, now_ns):
            so_long = f"; one of this length counts as {count}" if count > 1 else ""
            rate = f"at most {REQUESTS_PER_S} per second, {REQUESTS_BURST} at once"
            return f"too many requests: {rate}{so_long}"
        if user.pending >= PENDING_PER_UID:
            return f"too many requests: {PENDING_PER_UID} of this user are not finished yet"
        return ""

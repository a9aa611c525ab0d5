# SPDX-License-Identifier: GPL-2.0-only
"""Decides who gets a connection when there are too many. Pure: time is an argument.

A connection is *silent* while the client owes the next bytes: the rest of a request, or the next
one. Silent connections cost their client nothing, so they are closed first; a connection whose
request is being answered is closed only for a client that holds fewer than its owner.

What a client is: from another machine its address (of IPv6 its /64, since one machine may use all
of it; a socket of IPv6 has IPv4 clients as `::ffff:a.b.c.d`, which are taken for `a.b.c.d`). On the
loopback every user of the machine comes from the same address, and may come from any of
127.0.0.0/8, so an address says nothing there: the client is the user (uid) that owns the other end
of the connection. A proxy or an ssh tunnel is one client for everybody behind it, which is why a
client may have as much as half of all.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from ebbgate.units import KIB, MIB

CONNECTIONS_MAX: Final = 800
"""Total. Most systems let a process have 1024 files open; the rest is for databases and pages."""
CONNECTIONS_PER_CLIENT_MAX: Final = CONNECTIONS_MAX // 2
HEAD_TIMEOUT_S: Final = 10.0
"""From accept to the end of the first request's head."""
IDLE_TIMEOUT_S: Final = 20.0
"""From the end of an answer to the end of the next request's head."""
STUCK_TIMEOUT_S: Final = 30.0
"""How long a client may read (nearly) nothing of an answer that waits for it."""
UNSENT_BYTES_MAX: Final = 64 * MIB
"""Total of answers that wait for their clients in this process's memory."""
TAKEN_BYTES_MIN: Final = 64 * KIB
"""What a client must read of an answer within `STUCK_TIMEOUT_S`, unless less is left."""
_IPV6_PREFIX: Final = 64


class OpenConnection(Protocol):
    """A connection of the client `owner`. `silent_since_s`: None while the server is at work on a
    complete request.
    """

    @property
    def owner(self) -> str: ...

    @property
    def silent_since_s(self) -> float | None: ...


C = TypeVar("C", bound=OpenConnection)


@dataclass(frozen=True, slots=True)
class Room(Generic[C]):
    """Whether a new connection is accepted, and which open one is closed for it."""

    granted: bool
    close: C | None = None


def client_name(address: str, uid: int | None) -> str:
    """Return the client of a connection; `uid`: of the other end, if on this machine."""
    if uid is not None:
        return f"uid {uid}"
    try:
        parsed = plain_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and not parsed.is_loopback:
        return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))
    return "loopback" if parsed.is_loopback else str(parsed)


def plain_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address; the IPv4 address in one that is mapped to IPv6. Raises ValueError."""
    parsed = ipaddress.ip_address(text)
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return parsed if mapped is None else mapped


def make_room(
    connections: Sequence[C],
    client: str,
    *,
    most: int = CONNECTIONS_MAX,
    most_per_client: int = CONNECTIONS_PER_CLIENT_MAX,
) -> Room[C]:
    """Decide whether `client` gets one more connection, and what is closed for it.

    A client at its own limit pays with its own connections. Where the limit of all is reached, the
    client with the most connections pays: first with one that is silent.
    """
    counts = Counter(each.owner for each in connections)
    if counts[client] >= most_per_client:
        return _instead_of(_longest_silent(each for each in connections if each.owner == client))
    if len(connections) < most:
        return Room(granted=True)
    greediest, count = counts.most_common(1)[0]
    theirs = [each for each in connections if each.owner == greediest]
    silent = _longest_silent(theirs) or _longest_silent(connections)
    if silent is None and count > counts[client] + 1:
        silent = theirs[0]
    return _instead_of(silent)


def _instead_of(closing: C | None) -> Room[C]:
    return Room(granted=closing is not None, close=closing)


def _longest_silent(connections: Iterable[C]) -> C | None:
    silent = ((each.silent_since_s, each) for each in connections)
    found = [(since_s, each) for since_s, each in silent if since_s is not None]
    return min(found, key=lambda pair: pair[0])[1] if found else None

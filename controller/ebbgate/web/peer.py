# SPDX-License-Identifier: GPL-2.0-only
"""Finds the user at the other end of a loopback connection. I/O: a netlink socket.

The kernel is asked for one socket by its addresses (sock_diag(7)), which takes some microseconds
and no privilege. /proc/net/tcp has the same, but lists every socket of the machine each time.
"""

from __future__ import annotations

import socket
import struct
from typing import Any, Final

from ebbgate.web.connections import plain_address

_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_NLM_F_REQUEST: Final = 1
_TCP_ESTABLISHED: Final = 1
_ANY_STATE: Final = 0xFFFFFFFF
_NO_COOKIE: Final = 0xFFFFFFFF
_HEADER: Final = struct.Struct("=IHHII")
_REQUEST: Final = struct.Struct("=BBBBI")
_PORTS: Final = struct.Struct("!HH")
_INTERFACE_AND_COOKIE: Final = struct.Struct("=III")
_MESSAGE: Final = struct.Struct("=BBBB48xIIIII")
"""struct inet_diag_msg: family, state, timer, retransmits; (id); expires, queues, uid, inode."""


def loopback_uid(remote: Any, local: Any) -> int | None:
    """Return the user who owns the other end of a TCP connection; None if it is on another machine,
    is gone already, or the kernel has no sock_diag.

    `remote`, `local`: socket addresses as `getpeername` and `getsockname` have them.
    """
    try:
        address, own = plain_address(remote[0]), plain_address(local[0])
        if not address.is_loopback:
            return None
        there, here = (str(address), remote[1]), (str(own), local[1])
        family = socket.AF_INET6 if ":" in there[0] else socket.AF_INET
        return _parsed(_asked(_request(family, there, here)))
    except (OSError, ValueError, TypeError, LookupError, struct.error):
        return None


def _request(family: int, there: tuple[str, int], here: tuple[str, int]) -> bytes:
    sides = (socket.inet_pton(family, each[0]).ljust(16, b"\0") for each in (there, here))
    body = b"".join(
        (
            _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE),
            _PORTS.pack(there[1], here[1]),
            *sides,
            _INTERFACE_AND_COOKIE.pack(0, _NO_COOKIE, _NO_COOKIE),
        )
    )
    length = _HEADER.size + len(body)
    return _HEADER.pack(length, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0) + body


def _asked(request: bytes) -> bytes:
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
    with socket.socket(socket.AF_NETLINK, kind, _NETLINK_SOCK_DIAG) as netlink:
        netlink.send(request)
        # The kernel has answered when `send` returns: this never waits.
        return netlink.recv(4096, socket.MSG_DONTWAIT)


def _parsed(answer: bytes) -> int | None:
    kind = _HEADER.unpack_from(answer)[1]
    if kind != _SOCK_DIAG_BY_FAMILY:
        return None
    _, state, _, _, _, _, _, uid, _ = _MESSAGE.unpack_from(answer, _HEADER.size)
    # The kernel reports 0, which would be root, for a socket that nobody has open any more.
    return int(uid) if state == _TCP_ESTABLISHED else None

# SPDX-License-Identifier: GPL-2.0-only
"""Who may ask: by which name a browser called, and from which page. Pure.

A page of another site must neither change anything nor, by a name that it points at this machine
(DNS rebinding), read anything.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

_NAMES: Final = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})


def host_name(header: str) -> str | None:
    """The name or address of a Host header, without its port; None for what is none."""
    if not header or any(each in header for each in "/@?#\\ \t,"):
        return None
    try:
        parts = urlsplit(f"//{header}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname.rstrip(".") if parts.hostname else None


def host_allowed(header: str, listen: str, hosts: Collection[str]) -> bool:
    """Was this machine called by a name of its own? `listen`: the address that it listens on."""
    name = host_name(header)
    if name is None:
        return False
    if name in _NAMES or name in hosts:
        return True
    try:
        address = ipaddress.ip_address(name)
        listening = ipaddress.ip_address(listen)
    except ValueError:
        return False
    # Listening on all addresses, a machine cannot tell which are its own: these are to be named.
    return address.is_loopback or (address == listening and not listening.is_unspecified)


def same_origin(origin: str, host: str) -> bool:
    """Does the page of an Origin header come from where the request goes? By http or, from a proxy,
    https.
    """
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(host) and parts.netloc == host

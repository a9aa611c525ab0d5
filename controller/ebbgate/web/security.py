# SPDX-License-Identifier: GPL-2.0-only
"""Checks every request before the API: host, origin, token, size; sets headers. I/O: ASGI.

Plain ASGI, so that it sees each part of a stream and every error, whoever answers. A page of
another site must neither change anything nor, by a name that it points at this machine (DNS
rebinding), read anything.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ebbgate.config.web_settings import WebSettings, bearer, is_token
from ebbgate.errors import EbbgateError
from ebbgate.log_messages.service import WRONG_TOKEN
from ebbgate.web.errors import ApiError, api_error
from ebbgate.web.responses import refusal

_LOG = logging.getLogger(__name__)
BODY_BYTES_MAX: Final = 256 * 1024
BODY_TIMEOUT_S: Final = 20.0
"""How long a client may take to send a body."""
WRONG_TOKENS_LOG_S: Final = 60.0
"""At most one message on wrong tokens in this time: anybody can send any number of them."""
_LENGTH_DIGITS_MAX: Final = 18
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
ABORT: Final = "ebbgate.abort"
"""In the scope: what closes the connection at once, with all that waits in it."""
CLIENT: Final = "ebbgate.client"
"""In the scope: who asks (connections.py), which on the loopback is more than an address."""
TOKEN_RECHECK: Final = "ebbgate.token_recheck"
"""In the scope of a request that needed the token: a `TokenRecheck`."""
TokenRecheck = Callable[[], Awaitable[bool]]
"""Tells whether the token of a request is still valid. Raises ApiError if that is unknown."""
TOKEN_PATH: Final = "/api/v1/token"
_NAMES: Final = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})
# These take a body and change nothing.
QUESTIONS: Final = frozenset({"/api/v1/policies/check", "/api/v1/policies/dry-run"})


class Guard:
    """The application behind its checks."""

    def __init__(self, app: ASGIApp, settings: WebSettings) -> None:
        self._app = app
        self._settings = settings
        self._wrong_tokens = 0
        self._logged_s: float | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            # No web sockets here; without an answer the server refuses them.
            return
        send = _with_headers(send)
        try:
            body = await self._admit(scope, receive)
        except ApiError as error:
            answer: Response = refusal(error)
            await answer(scope, receive, send)
            return
        await self._app(scope, receive if body is None else _replay(body, receive), send)

    async def _admit(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the body of a request that has one. Raises ApiError for a refused request."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not host_allowed(hosts[0], self._settings.host, self._settings.hosts):
            hint = "use localhost, or add the name to hosts in [web] of ebbgate.toml"
            raise ApiError(421, "host name not allowed", hint)
        if _CONTROL.search(scope["path"]):
            # No path of ours has such characters, and no file system takes a null byte.
            raise ApiError(404, "no path has control characters", "see /api/v1/openapi.json")
        changes = scope["method"] not in _READS
        if changes:
            _check_source(headers, hosts[0])
        if self._needs_token(scope["path"], changes=changes):
            scope[TOKEN_RECHECK] = await self._check_token(headers, client_of(scope))
        return await _read_body(headers, receive) if changes else None

    def _needs_token(self, path: str, *, changes: bool) -> bool:
        if path == TOKEN_PATH or (changes and path not in QUESTIONS):
            return True
        # The pages themselves say nothing of the machine, and ask for the token.
        closed = self._settings.reading != "open"
        return closed and (path.startswith("/api/") or path == "/metrics")

    async def _check_token(self, headers: Headers, client: str) -> TokenRecheck:
        """Return the same check for later. Raises ApiError."""
        given = bearer(headers.get("authorization"))
        if given is None:
            raise ApiError(401, "this needs a token", "as root: ebbgate web-token")
        if not await self._is_token(given):
            self._log_wrong_token(client)
            raise ApiError(401, "the token is wrong", "as root: ebbgate web-token")
        return partial(self._is_token, given)

    async def _is_token(self, given: str) -> bool:
        """Raises ApiError if the token of this machine cannot be read."""
        try:
            return await asyncio.to_thread(is_token, given, self._settings.token_file)
        except EbbgateError as error:
            raise api_error(error) from error

    def _log_wrong_token(self, client: str) -> None:
        self._wrong_tokens += 1
        now_s = time.monotonic()
        if self._logged_s is None or now_s - self._logged_s >= WRONG_TOKENS_LOG_S:
            _LOG.warning(WRONG_TOKEN, client, self._wrong_tokens)
            self._logged_s, self._wrong_tokens = now_s, 0


def client_of(scope: Scope) -> str:
    """Return the client of a request; its address where the server says nothing better."""
    address = scope["client"][0] if scope.get("client") else ""
    return str(scope.get(CLIENT, address))


def host_name(header: str) -> str | None:
    """Return the name or address in a Host header, without port; None if it is malformed."""
    if not header or any(each in header for each in "/@?#\\ \t,"):
        return None
    try:
        parts = urlsplit(f"//{header}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname.rstrip(".") if parts.hostname else None


def host_allowed(header: str, listen: str, hosts: Collection[str]) -> bool:
    """Return whether a Host header names this machine. `listen`: the address it listens on."""
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
    # A machine that listens on all addresses cannot tell which are its own: hosts must name them.
    own = address == listening and not listening.is_unspecified
    return own or address.is_loopback or str(address) in hosts


def same_origin(origin: str, host: str) -> bool:
    """Return whether an Origin header names the host that the request goes to, by http or https
    (from a proxy).
    """
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(host) and parts.netloc == host


def _check_source(headers: Headers, host: str) -> None:
    """Raises ApiError for a request of a page of another site."""
    site = headers.get("sec-fetch-site", "same-origin")
    foreign = any(not same_origin(each, host) for each in headers.getlist("origin"))
    if foreign or site not in ("same-origin", "none"):
        raise ApiError(403, "a page of another site may not do this", "use ebbgate's own page")


async def _read_body(headers: Headers, receive: Receive) -> bytes:
    """Return the body. Raises ApiError if it is too large, or does not end in time."""
    length = headers.get("content-length", "0")
    too_large = ApiError(413, f"the body is larger than {BODY_BYTES_MAX} bytes", "send less")
    if not (length.isascii() and length.isdigit()):
        raise ApiError(400, "Content-Length is not a number", "send the length of the body")
    # int() raises for some thousand digits.
    if len(length) > _LENGTH_DIGITS_MAX or int(length) > BODY_BYTES_MAX:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ApiError(400, "the client went away")
                body += message.get("body", b"")
                if len(body) > BODY_BYTES_MAX:
                    raise too_large
                if not message.get("more_body"):
                    return bytes(body)
    except TimeoutError as error:
        raise ApiError(400, f"the body did not come within {BODY_TIMEOUT_S:g} s") from error


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body, which was read already, and then what follows."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
            # An answer holds for a moment only; static files set their own header.
            headers.setdefault("cache-control", "no-store")
            if message["status"] == 401:  # noqa: PLR2004 - a status is its own name
                headers["www-authenticate"] = "Bearer"
        await send(message)

    return send_with_headers

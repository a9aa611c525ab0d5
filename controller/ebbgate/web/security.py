# SPDX-License-Identifier: GPL-2.0-only
"""Stands before the whole API: who may ask, how often, how much; headers on all. I/O: ASGI.

Plain ASGI, so that it sees each part of a stream and every error, whoever answers.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from ebbgate.config.access_token import bearer, is_token
from ebbgate.config.web_settings import WebSettings
from ebbgate.errors import EbbgateError
from ebbgate.web.errors import ApiError, of_ours
from ebbgate.web.rate_limit import CHANGING, READING, WRONG_TOKEN, Limiter
from ebbgate.web.responses import refusal
from ebbgate.web.same_origin import host_allowed, same_origin

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_BYTES_MAX: Final = 256 * 1024
_BODY_S: Final = 20.0
"""How long a client may take to send a body."""
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
NO_STORE: Final = "no-store"
ABORT: Final = "ebbgate.abort"
"""In the scope: what closes the connection at once, with all that waits in it."""
CLIENT: Final = "ebbgate.client"
"""In the scope: who asks (connections.py), which on the loopback is more than an address."""
TOKEN_PATH: Final = "/api/v1/token"
# These take a body and change nothing.
QUESTIONS: Final = frozenset({"/api/v1/policies/check", "/api/v1/policies/dry-run"})


class Guard:
    """The application behind its guard."""

    def __init__(
        self, app: App, settings: WebSettings, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._settings = settings
        self._now_s = now_s
        self._reading = Limiter(READING)
        self._changing = Limiter(CHANGING)
        self._wrong = Limiter(WRONG_TOKEN)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            # No web sockets here; without an answer the server refuses them.
            return
        telling = _with_headers(send)
        try:
            body = await self._admit(scope, receive)
        except ApiError as error:
            answer: Response = refusal(error)
            await answer(scope, receive, telling)
            return
        await self._app(scope, receive if body is None else _said(body, receive), telling)

    async def _admit(self, scope: Scope, receive: Receive) -> bytes | None:
        """The body of a request that brings one. Raises ApiError for what may not pass."""
        headers = Headers(scope=scope)
        client = client_of(scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not host_allowed(hosts[0], self._settings.host, self._settings.hosts):
            raise ApiError(
                421,
                "this machine is not called by that name here",
                "use localhost, or add the name to hosts in [web] of ebbgate.toml",
            )
        self._limit(self._reading, client)
        if _CONTROL.search(scope["path"]):
            # No path of ours has such characters, and no file system takes a null byte.
            raise ApiError(404, "no path has control characters", "see /api/v1/openapi.json")
        changes = scope["method"] not in _READS
        if changes:
            self._limit(self._changing, client)
            _check_source(headers, hosts[0])
        if self._needs_token(scope["path"], changes=changes):
            await self._check_token(headers, client)
        if not changes:
            return None
        return await _read_body(headers, receive)

    def _limit(self, limiter: Limiter, client: str) -> None:
        wait_s = limiter.take(client, self._now_s())
        if wait_s:
            raise _too_many(wait_s)

    def _needs_token(self, path: str, *, changes: bool) -> bool:
        if path == TOKEN_PATH or (changes and path not in QUESTIONS):
            return True
        # The pages themselves say nothing of the machine, and ask for the token.
        closed = self._settings.reading != "open"
        return closed and (path.startswith("/api/") or path == "/metrics")

    async def _check_token(self, headers: Headers, client: str) -> None:
        wait_s = self._wrong.wait_s(client, self._now_s())
        if wait_s:
            raise _too_many(wait_s)
        given = bearer(headers.get("authorization"))
        try:
            right = given is not None and await asyncio.to_thread(
                is_token, given, self._settings.token_file
            )
        except EbbgateError as error:
            raise of_ours(error) from error
        if not right:
            if given is not None:
                self._wrong.take(client, self._now_s())
            what = "this needs a token" if given is None else "the token is wrong"
            raise ApiError(401, what, "as root: ebbgate web-token")


def client_of(scope: Scope) -> str:
    """Who asks; the address where the server in front says nothing better."""
    address = scope["client"][0] if scope.get("client") else ""
    return str(scope.get(CLIENT, address))


def _check_source(headers: Headers, host: str) -> None:
    """Raises ApiError for a page of another site."""
    origins = headers.getlist("origin")
    site = headers.get("sec-fetch-site", "same-origin")
    foreign = any(not same_origin(each, host) for each in origins)
    if foreign or site not in ("same-origin", "none"):
        raise ApiError(403, "a page of another site may not do this", "use ebbgate's own page")


async def _read_body(headers: Headers, receive: Receive) -> bytes:
    """Raises ApiError for more than is ever needed, or a client that comes to no end."""
    length = headers.get("content-length", "0")
    too_large = ApiError(413, f"the body is larger than {BODY_BYTES_MAX} bytes", "send less")
    if not (length.isascii() and length.isdigit()):
        raise ApiError(400, "Content-Length is not a number", "send the length of the body")
    # int() raises for some thousand digits.
    if len(length) > _LENGTH_DIGITS_MAX or int(length) > BODY_BYTES_MAX:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_S):
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
        raise ApiError(400, f"the body did not come within {_BODY_S:g} s") from error


def _said(body: bytes, receive: Receive) -> Receive:
    """The body that was read already, then what else comes."""
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _with_headers(send: Send) -> Send:
    async def telling(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            # What the API says is true for a moment; only static files say otherwise themselves.
            headers.setdefault("cache-control", NO_STORE)
            if message["status"] == 401:  # noqa: PLR2004 - a status is its own name
                headers["www-authenticate"] = "Bearer"
        await send(message)

    return telling


def _too_many(wait_s: float) -> ApiError:
    return ApiError(429, "too many requests", "wait a moment", retry_after_s=wait_s)

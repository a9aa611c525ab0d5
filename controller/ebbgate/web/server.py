# SPDX-License-Identifier: GPL-2.0-only
"""Runs uvicorn. I/O: a listening socket."""

from __future__ import annotations

import logging
import socket
from functools import partial
from types import FrameType
from typing import Any, Final, cast

import uvicorn

from ebbgate.errors import Unavailable
from ebbgate.log_messages.service import WEB_LISTENING
from ebbgate.web.app import Api
from ebbgate.web.connections import IDLE_TIMEOUT_S
from ebbgate.web.protocol import LimitedConnection

_LOG = logging.getLogger("ebbgate-web")
_BACKLOG: Final = 256


def serve(api: Api) -> int:
    """Serve until SIGTERM or SIGINT. Raises Unavailable if it cannot listen."""
    listening = listen(api.config.web.host, api.config.web.port)
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    server = server_of(api)
    _LOG.info(WEB_LISTENING, shown, port)
    server.run(sockets=[listening])
    return 0 if server.started else 1


def server_of(api: Api) -> uvicorn.Server:
    """Return the server, not yet running."""
    config = uvicorn.Config(
        api,
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        loop="asyncio",
        # uvicorn takes anything that makes a protocol, although it asks for a class.
        http=cast(Any, partial(LimitedConnection, connections={})),
        ws="none",
        lifespan="on",
        timeout_keep_alive=round(IDLE_TIMEOUT_S),
    )
    logging.getLogger("uvicorn.error").addFilter(_without_noise)
    server = uvicorn.Server(config)
    end = server.handle_exit

    def end_requests_first(sig: int, frame: FrameType | None) -> None:
        # An orderly end would wait for the streams forever.
        api.close()
        end(sig, frame)

    server.handle_exit = end_requests_first
    return server


_WEB_SOCKETS: Final = ("Unsupported upgrade request", "No supported WebSocket library")


def _without_noise(record: logging.LogRecord) -> bool:
    """Log one line for invalid HTTP, which anybody can send, where Debian 12's uvicorn logs a
    stack; and nothing for web sockets: uvicorn says to install what is switched off here.
    """
    message = record.getMessage()
    if message.startswith("Invalid HTTP request"):
        record.exc_info = None
    return not message.startswith(_WEB_SOCKETS)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises Unavailable."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        hint = "see who uses it: ss -ltnp; or choose another port with --listen"
        raise Unavailable(f"cannot listen on {host} port {port}: {error.strerror}", hint) from error
    return listening

# SPDX-License-Identifier: GPL-2.0-only
"""The access token of the web server. I/O: reads one file on each use."""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Final

from ebbgate.errors import ConfigError, PermissionDenied, Unavailable

LENGTH_MIN: Final = 20
_HINT: Final = "make one, as root: ebbgate web-token --new"


def read_token(path: Path) -> str:
    """Return the token. Raises Unavailable if there is none, PermissionDenied, ConfigError."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError as error:
        raise Unavailable(f"there is no token: {path} does not exist", _HINT) from error
    except PermissionError as error:
        raise PermissionDenied(
            f"no access to {path}", "run this as root or as a member of the group ebbgate"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}", _HINT) from error
    if len(text) < LENGTH_MIN or len(text.split()) != 1:
        raise ConfigError(f"{path} has no token of at least {LENGTH_MIN} characters", _HINT)
    return text


def is_token(given: str, path: Path) -> bool:
    """Whether it is the token, compared in constant time. Raises as `read_token`."""
    return hmac.compare_digest(given.encode(), read_token(path).encode())


def bearer(header: str | None) -> str | None:
    """Return the token of an Authorization header; None if it has none."""
    kind, _, value = (header or "").partition(" ")
    return value.strip() if kind.lower() == "bearer" and value.strip() else None

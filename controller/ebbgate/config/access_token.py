# SPDX-License-Identifier: GPL-2.0-only
"""The token that allows changes. I/O: reads one file, anew each time."""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Final

from ebbgate.errors import ConfigError, PermissionDenied, Unavailable

LENGTH_MIN: Final = 20
_HINT: Final = "make one, as root: ebbgate web-token --new"


def read_token(path: Path) -> str:
    """The token. Raises Unavailable where there is none, PermissionDenied, ConfigError."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError as error:
        raise Unavailable(f"there is no token: {path} does not exist", _HINT) from error
    except PermissionError as error:
        raise PermissionDenied(
            f"no access to {path}", "it is readable for root and the group ebbgate"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}", _HINT) from error
    if len(text) < LENGTH_MIN or len(text.split()) != 1:
        raise ConfigError(f"{path} holds no token of {LENGTH_MIN} letters or more", _HINT)
    return text


def is_token(given: str, path: Path) -> bool:
    """Is it the token? Takes as long whatever is given. The same errors."""
    return hmac.compare_digest(given.encode(), read_token(path).encode())


def bearer(header: str | None) -> str | None:
    """What an Authorization header brings; None without one of that kind."""
    kind, _, value = (header or "").partition(" ")
    return value.strip() if kind.lower() == "bearer" and value.strip() else None

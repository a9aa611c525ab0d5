# SPDX-License-Identifier: GPL-2.0-only
"""The settings of `ebbgate-web`: the table `[web]` of ebbgate.toml. I/O: the access token.

[web]
listen = "127.0.0.1:8380"              # address and port; see `reading` for others
token_file = "/etc/ebbgate/web-token"  # token for changes; see `ebbgate web-token`
ui_dir = "/usr/local/lib/ebbgate/webui"
reading = "open"                       # "token": reading needs it, too; required unless loopback
hosts = []                             # names and addresses allowed in browsers, besides localhost
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ebbgate.errors import ConfigError, PermissionDenied, Unavailable

LISTEN: Final = "127.0.0.1:8380"
TOKEN_FILE: Final = Path("/etc/ebbgate/web-token")
TOKEN_LENGTH_MIN: Final = 20
_HOSTS_HINT: Final = 'write for example hosts = ["nas.example.org"]'
_TOKEN_HINT: Final = "make one, as root: ebbgate web-token --new"
READINGS: Final = ("open", "token")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_PORT_MAX: Final = 65535
_NAME: Final = re.compile(r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
# The build folder of a source tree, and the folder of an installation.
_UI_DIRS: Final = (
    Path(__file__).resolve().parents[3] / "build" / "webui",
    Path(__file__).resolve().parents[2] / "webui",
)


class WebSettingsError(ValueError):
    """A wrong setting of the table. `hint`: the next step."""

    def __init__(self, key: str, what: str, hint: str) -> None:
        super().__init__(what)
        self.key = key
        self.what = what
        self.hint = hint


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The settings in force. `host`: an address, without brackets."""

    host: str = "127.0.0.1"
    port: int = 8380
    token_file: Path = TOKEN_FILE
    ui_dir: Path = _UI_DIRS[1]
    reading: str = "open"
    hosts: tuple[str, ...] = ()


KEYS: Final = ("listen", "token_file", "ui_dir", "reading", "hosts")


def default_ui_dir() -> Path:
    """Return the folder of the built pages; a source tree takes precedence."""
    return next((path for path in _UI_DIRS if path.is_dir()), _UI_DIRS[1])


def web_settings(table: Mapping[str, Any]) -> WebSettings:
    """Read a table whose keys were checked. Raises WebSettingsError."""
    host, port = parse_listen(table.get("listen", LISTEN))
    reading = table.get("reading", "open")
    if reading not in READINGS:
        raise WebSettingsError(
            "reading", f"unknown value {reading!r}", f"write one of {', '.join(READINGS)}"
        )
    settings = WebSettings(
        host=host,
        port=port,
        token_file=_path(table, "token_file", TOKEN_FILE),
        ui_dir=_path(table, "ui_dir", default_ui_dir()),
        reading=reading,
        hosts=_hosts(table.get("hosts", [])),
    )
    check_open(settings)
    return settings


def check_open(settings: WebSettings) -> None:
    """Raises WebSettingsError for settings that let everyone on the network read."""
    if settings.reading == "open" and not ipaddress.ip_address(settings.host).is_loopback:
        raise WebSettingsError(
            "listen",
            f"{settings.host} can be reached from other machines, and reading is open",
            'set reading = "token" (and, in `systemctl edit ebbgate-web`, IPAddressAllow=), or'
            " listen on 127.0.0.1 behind a proxy with TLS",
        )


def parse_listen(text: object, *, port_min: int = 1) -> tuple[str, int]:
    """`127.0.0.1:8380` or `[::1]:8380`. Raises WebSettingsError."""
    hint = f'write for example listen = "{LISTEN}"'
    if not isinstance(text, str):
        raise WebSettingsError("listen", f"{text!r} is not an address with a port", hint)
    host, colon, port = text.rpartition(":")
    if host == "localhost":
        host = "127.0.0.1"
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError as error:
        raise WebSettingsError("listen", f"{text!r} is not an address with a port", hint) from error
    if not colon or not _PORT.fullmatch(port) or not port_min <= int(port) <= _PORT_MAX:
        raise WebSettingsError("listen", f"{text!r} has no port from 1 to {_PORT_MAX}", hint)
    return str(address), int(port)


def _path(table: Mapping[str, Any], key: str, default: Path) -> Path:
    value = table.get(key, str(default))
    if not isinstance(value, str) or not value.startswith("/"):
        raise WebSettingsError(key, f"{value!r} is not an absolute path", "write a path in quotes")
    return Path(value)


def _hosts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise WebSettingsError("hosts", "is not a list", _HOSTS_HINT)
    return tuple(map(_host, value))


def _host(value: object) -> str:
    """Return a name in lower case, or an address, without brackets, as the standard writes it."""
    if not isinstance(value, str):
        raise WebSettingsError("hosts", f"{value!r} is not a host name", _HOSTS_HINT)
    try:
        return str(ipaddress.ip_address(value.removeprefix("[").removesuffix("]")))
    except ValueError:
        name = value.lower()
    if not _NAME.match(name):
        raise WebSettingsError("hosts", f"{value!r} is not a host name", _HOSTS_HINT)
    return name


def read_token(path: Path) -> str:
    """Return the token. Raises Unavailable if there is none, PermissionDenied, ConfigError."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError as error:
        raise Unavailable(f"there is no token: {path} does not exist", _TOKEN_HINT) from error
    except PermissionError as error:
        raise PermissionDenied(
            f"no access to {path}", "run this as root or as a member of the group ebbgate"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}", _TOKEN_HINT) from error
    if len(text) < TOKEN_LENGTH_MIN or len(text.split()) != 1:
        raise ConfigError(
            f"{path} has no token of at least {TOKEN_LENGTH_MIN} characters", _TOKEN_HINT
        )
    return text


def is_token(given: str, path: Path) -> bool:
    """Whether it is the token, compared in constant time. Raises as `read_token`."""
    return hmac.compare_digest(given.encode(), read_token(path).encode())


def bearer(header: str | None) -> str | None:
    """Return the token of an Authorization header; None if it has none."""
    kind, _, value = (header or "").partition(" ")
    return value.strip() if kind.lower() == "bearer" and value.strip() else None

# SPDX-License-Identifier: GPL-2.0-only
"""The settings of `ebbgate-web`: the table `[web]` of ebbgate.toml. Pure.

[web]
listen = "127.0.0.1:8380"              # address and port; of another machine's only with a token
token_file = "/etc/ebbgate/web-token"  # who may change something; see `ebbgate web-token`
ui_dir = "/usr/local/lib/ebbgate/webui"
reading = "open"                       # or "token": then nothing is read without it either
hosts = []                             # names by which browsers may call it, beside localhost
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

LISTEN: Final = "127.0.0.1:8380"
TOKEN_FILE: Final = Path("/etc/ebbgate/web-token")
READINGS: Final = ("open", "token")
_PORT_MAX: Final = 65535
_NAME: Final = re.compile(r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
# Beside the package where it is installed; the build folder of the source tree.
_UI_DIRS: Final = (
    Path(__file__).resolve().parents[3] / "build" / "webui",
    Path(__file__).resolve().parents[2] / "webui",
)


class BadWeb(ValueError):
    """A setting of the table is wrong. `key`: which; `hint`: what is right."""

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
    """Where the built pages are: those of a source tree before those of an installation."""
    return next((path for path in _UI_DIRS if path.is_dir()), _UI_DIRS[1])


def web_settings(table: Mapping[str, Any]) -> WebSettings:
    """The settings that a table says, whose keys are known. Raises BadWeb."""
    host, port = parse_listen(table.get("listen", LISTEN))
    reading = table.get("reading", "open")
    if reading not in READINGS:
        raise BadWeb("reading", f"no such way: {reading!r}", f"one of {', '.join(READINGS)}")
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
    """Raises BadWeb for settings that would show everybody on the network everything."""
    if settings.reading == "open" and not ipaddress.ip_address(settings.host).is_loopback:
        raise BadWeb(
            "listen",
            f"{settings.host} is not of this machine alone, and reading is open",
            'set reading = "token", or listen on 127.0.0.1 and let a proxy with TLS ask',
        )


def parse_listen(text: object, *, port_min: int = 1) -> tuple[str, int]:
    """`127.0.0.1:8380` or `[::1]:8380`. Raises BadWeb."""
    hint = f'write for example listen = "{LISTEN}"'
    if not isinstance(text, str):
        raise BadWeb("listen", f"{text!r} is no address with a port", hint)
    host, colon, port = text.rpartition(":")
    if host == "localhost":
        host = "127.0.0.1"
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError as error:
        raise BadWeb("listen", f"{text!r} is no address with a port", hint) from error
    if not colon or not port.isdigit() or not port_min <= int(port) <= _PORT_MAX:
        raise BadWeb("listen", f"{text!r} has no port from 1 to {_PORT_MAX}", hint)
    return str(address), int(port)


def _path(table: Mapping[str, Any], key: str, default: Path) -> Path:
    value = table.get(key, str(default))
    if not isinstance(value, str) or not value.startswith("/"):
        raise BadWeb(key, f"{value!r} is not an absolute path", "write a path in quotes")
    return Path(value)


def _hosts(value: object) -> tuple[str, ...]:
    hint = 'write for example hosts = ["nas.example.org"]'
    if not isinstance(value, list):
        raise BadWeb("hosts", "is not a list", hint)
    for each in value:
        if not isinstance(each, str) or not _NAME.match(each.lower()):
            raise BadWeb("hosts", f"{each!r} is no name of a machine", hint)
    return tuple(each.lower() for each in value)

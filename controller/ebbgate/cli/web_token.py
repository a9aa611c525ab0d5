# SPDX-License-Identifier: GPL-2.0-only
"""`web-token`: shows or renews the token that allows changes in the browser. I/O: one file."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ebbgate.cli.context import Context, Document, emit, with_context
from ebbgate.config.web_settings import read_token
from ebbgate.errors import PermissionDenied
from ebbgate.store.access import READ_MODE, group_id

if TYPE_CHECKING:
    from ebbgate.cli.page import Page

_BYTES = 32
_ROOT_ONLY = 0o600
_FOLDER_MODE = 0o755


@click.command("web-token")
@click.option("--new", is_flag=True, help="Make a new token; the old one is no longer valid.")
@with_context
def web_token(context: Context, new: bool) -> None:
    """Show the token that allows changes in the browser; --new makes a new one.

    Only root and the group ebbgate can read it. Whoever has it may change modes, settings and
    policies as with `ebbgate enforce` or `set`. The dashboard can be read without it, unless the
    settings say reading = "token".
    """
    path = context.config.web.token_file
    if new:
        context.need_root("ebbgate web-token --new")
        write_token(path, secrets.token_urlsafe(_BYTES))
    emit(context, {"token": read_token(path), "file": str(path)}, _draw)


def write_token(path: Path, token: str) -> None:
    """Replace the token atomically. Raises PermissionDenied."""
    group = group_id()
    fresh = path.with_name(f".{path.name}.new")
    try:
        _make_folder(path.parent)
        fresh.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(fresh, flags, _ROOT_ONLY), "w") as file:
            file.write(f"{token}\n")
            file.flush()
            os.fsync(file.fileno())
            if group is not None:
                os.fchown(file.fileno(), -1, group)
                os.fchmod(file.fileno(), READ_MODE)
        fresh.replace(path)
    except OSError as error:
        raise PermissionDenied(
            f"{path} cannot be written: {error.strerror}",
            "set another path: token_file under [web] in ebbgate.toml",
        ) from error


def _make_folder(path: Path) -> None:
    """Make the folder of the token if it is missing, so that ebbgate-web can enter it whatever the
    umask is. Raises OSError.
    """
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(_FOLDER_MODE)


def _draw(page: Page, document: Document) -> None:
    page.line(str(document["token"]))

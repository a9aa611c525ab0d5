# SPDX-License-Identifier: GPL-2.0-only
"""`pin`, `unpin`, `pins`: files that stay in the cache. I/O: the control socket; the history."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from ebbgate.cli import format
from ebbgate.cli.context import Context, Document, absolute_path, emit, with_context
from ebbgate.cli.daemon_status import look
from ebbgate.cli.intents import ask, draw_outcome
from ebbgate.cli.snapshot import daemon_document
from ebbgate.cli.status import draw_unknown
from ebbgate.model.override import IntentKind
from ebbgate.model.status_json import status_to_json

if TYPE_CHECKING:
    from ebbgate.cli.page import Page


_NUMBER: Final = re.compile(r"[0-9]{1,18}")


@click.command()
@click.argument("path", type=click.Path(readable=False))
@with_context
def pin(context: Context, path: str) -> None:
    """Keep the file PATH in the cache of its volume until it is unpinned or gone.

    A job reads it into the cache first. From then on ebbgate reads a little of it now and then,
    which the kernel takes for use: of bcache each half of a bucket, before much of the cache was
    replaced; of dm-cache each block, once a minute. If parts fall out all the same, they are warmed
    again: after a minute, and less and less often if they do not stay. A file on a part of its
    device that is not cached is `elsewhere` and is not warmed again (see `ebbgate layout show`).
    Pinned files take at most a quarter of the cache (`pin_limit` in the settings) and 500 short
    reads a second of the cache device. A pin lasts across restarts. It ends when the file is
    deleted or replaced by another one; a file system or bind mount that is not mounted only makes
    it wait.
    """
    args = {"path": absolute_path(path)}
    emit(context, ask(context, IntentKind.PIN, None, args), draw_outcome)


@click.command()
@click.argument("pin", type=click.Path(readable=False), metavar="PATH|NUMBER")
@with_context
def unpin(context: Context, pin: str) -> None:
    """End a pin, given by its path or by its number in `ebbgate pins`.

    What is in the cache stays there until the kernel needs the room.
    """
    number = _NUMBER.fullmatch(pin)
    args: dict[str, Any] = {"pin": int(pin)} if number else {"path": absolute_path(pin)}
    emit(context, ask(context, IntentKind.UNPIN, None, args), draw_outcome)


@click.command()
@with_context
def pins(context: Context) -> None:
    """List the pinned files of all volumes that ebbgated follows."""
    link, now_ns = look(context), context.wall_ns()
    found = [(each.title, pin) for each in link.volumes(now_ns) for pin in each.pins]
    found.sort(key=lambda each: each[1].id)
    document = {
        "pins": [{"volume": volume, **status_to_json(pin)} for volume, pin in found],
        "daemon": daemon_document(link),
    }

    def draw(page: Page, _drawn: Document) -> None:
        if not draw_unknown(page, link, now_ns) and not found:
            page.line("no file is pinned")
        for volume, pin in found:
            page.line(f"{volume}: {format.pin(pin)}")

    emit(context, document, draw)

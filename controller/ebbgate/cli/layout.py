# SPDX-License-Identifier: GPL-2.0-only
"""`layout show`: where files lie on cached volumes. I/O: reads only."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ebbgate.cli import format
from ebbgate.cli.context import (
    Context,
    Document,
    absolute_path,
    emit,
    print_error,
    with_context,
)
from ebbgate.cli.relations import Tables, table_options
from ebbgate.errors import EbbgateError, NotFound, PermissionDenied, Unavailable, UsageError
from ebbgate.layout import guest, guest_agent
from ebbgate.layout.images import ImageFormat
from ebbgate.layout.locate import Located, Locator, expand
from ebbgate.layout.mapping import Layer, Piece
from ebbgate.layout.mounts import Mounts
from ebbgate.layout.relation import Relation

if TYPE_CHECKING:
    from ebbgate.cli.page import Page

_RANGES_SHOWN: Final = 10


@click.group()
@with_context
def layout(_context: Context) -> None:
    """Show which data lies where on a cached volume: see `layout show`."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A file, and the relation that it belongs to."""

    located: Located
    relation: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the command line asks for."""

    path: tuple[str, ...]
    tables: Tables
    image: str | None
    agent: str | None
    disk: str

    def check(self) -> None:
        """Raises UsageError for words that do not go together, and NotFound for a relative path in
        a folder that was deleted.
        """
        if self.agent and (not self.image or len(self.path) != 1 or self.tables):
            raise UsageError(
                "--agent needs the one image of the guest's disk",
                "ebbgate layout show --image raw IMAGE --agent FILE",
            )
        if self.disk and not self.agent:
            raise UsageError(
                "--disk is a disk of a guest", "name what its agent says: --agent FILE"
            )
        if not self.path and not self.tables:
            raise UsageError("nothing to show", "name a file, a block device or a --relation")
        for each in self.path:
            absolute_path(each)


@layout.command()
def agent() -> None:
    """Print the program that tells where files of a guest lie, to be run in the guest.

    It needs Python 3.7 or newer and no installation:

    \b
    ebbgate layout agent | ssh GUEST python3 - '/var/lib/db/**' |
        ebbgate layout show --image raw IMAGE --agent -
    """
    sys.stdout.write(Path(guest_agent.__file__).read_text())


@layout.command()
@click.argument("path", nargs=-1, type=click.Path(readable=False))
@table_options
@click.option(
    "--image",
    type=click.Choice([*ImageFormat]),
    help="PATH is a disk image of this format: show where the guest's disk lies.",
)
@click.option(
    "--agent",
    metavar="FILE",
    help="What the guest whose disk is in this one image says of its files; `-`: stdin. See "
    "`ebbgate layout agent`.",
)
@click.option("--disk", default="", metavar="NAME", help="The disk's name in the guest (vda).")
@click.option("--ranges", "all_ranges", is_flag=True, help="Print every range, not only the first.")
@with_context
def show(
    context: Context,
    all_ranges: bool,
    path: tuple[str, ...],
    image: str | None,
    agent: str | None,
    disk: str,
    **tables: Any,
) -> int:
    """Show the layers below each file or block device, and its ranges of the cached volume.

    PATH may be a pattern in quotes, such as '/srv/db/**/*.ibd'. It must be on ext4 or XFS; the
    layers may be partitions, linear and striped LVM, dm-crypt and loop devices. Reading the tables
    of LVM needs root. A relation comes with its indexes. The exit code is that of the first file
    that cannot be mapped.
    """
    asked = _Asked(path, Tables(**tables), image, agent, disk)
    asked.check()
    locator = Locator(context.sysfs, Mounts(context.proc))
    found, errors = _locate(locator, asked)
    document = {
        "files": [_document(locator, each) for each in found],
        "errors": [{"message": each.message, "hint": each.hint} for each in errors],
    }

    def draw(page: Page, _drawn: Document) -> None:
        for number, each in enumerate(found):
            if number:
                page.gap()
            _draw(page, locator, each, all_ranges)

    if found or context.json:
        emit(context, document, draw)
    for error in errors:
        print_error(error, context.json)
    return errors[0].exit_code if errors else 0


def _locate(locator: Locator, asked: _Asked) -> tuple[list[_Found], list[EbbgateError]]:
    """One that cannot be mapped does not hide the others."""
    found: list[_Found] = []
    errors: list[EbbgateError] = []
    for each in _each(locator, asked):
        try:
            found.extend(each())
        except EbbgateError as error:
            errors.append(error)
    return found, errors


def _each(locator: Locator, asked: _Asked) -> Iterator[Callable[[], Iterable[_Found]]]:
    """Yield what finds a file, or the files of a relation or guest."""
    image = ImageFormat(asked.image) if asked.image else None
    if asked.agent and image:
        yield from _guest(locator, asked, image)
        return
    for path in expand(asked.path):
        yield partial(_file, locator, path, image)
    for name, ask in asked.tables.each():
        yield partial(_relation, locator, name, ask)


def _guest(
    locator: Locator, asked: _Asked, image: ImageFormat
) -> Iterator[Callable[[], Iterable[_Found]]]:
    said = _said(asked.agent or "")
    for error in said.errors:
        yield partial(_given, Unavailable(error, "see it in the guest"))
    path = Path(absolute_path(asked.path[0]))
    for each in locator.locate_guest(said, path, image, asked.disk):
        yield partial(_given, each)


def _said(file: str) -> guest.GuestLayout:
    try:
        with click.open_file(file, "rb") as opened:
            return guest.read_document(opened.fileno())
    except PermissionError as error:
        raise PermissionDenied(f"no access to {file}", "run this as root") from error
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}") from error


def _given(found: Located | EbbgateError) -> list[_Found]:
    if isinstance(found, EbbgateError):
        raise found
    return [_Found(found)]


def _file(locator: Locator, path: Path | EbbgateError, image: ImageFormat | None) -> list[_Found]:
    if isinstance(path, EbbgateError):
        raise path
    return [_Found(locator.locate(path, image))]


def _relation(locator: Locator, name: str, ask: Callable[[], tuple[Relation, ...]]) -> list[_Found]:
    """Ask for the files again at the end: VACUUM FULL and TRUNCATE give a relation new ones."""
    relations = ask()
    if not relations:
        why = f"{name} has no files: it is a view, a foreign table, or without partitions"
        raise NotFound(why, "name the tables that have its data")
    found = [
        _Found(locator.locate(file), relation.name, relation.kind)
        for relation in relations
        for file in relation.files
    ]
    if ask() != relations:
        raise Unavailable(f"the files of {name} change while they are read", "try again later")
    return found


def _title(locator: Locator, device: str) -> str:
    return locator.volumes[device].title


def _document(locator: Locator, found: _Found) -> dict[str, Any]:
    located = found.located
    return {
        "path": located.path,
        "relation": {"name": found.relation, "kind": found.kind} if found.relation else None,
        "size_bytes": located.layers[0].size_bytes,
        "layers": [_layer(each) for each in located.layers],
        "ranges": [
            {
                "offset_bytes": each.offset_bytes,
                "length_bytes": each.length_bytes,
                "volume": _title(locator, each.layer),
                "volume_bytes": each.layer_bytes,
            }
            for each in located.pieces
        ],
        "left_out": [
            {"offset_bytes": each.offset_bytes, "length_bytes": each.length_bytes, "why": each.why}
            for each in located.left_out
        ],
    }


def _layer(layer: Layer) -> dict[str, Any]:
    document = asdict(layer)
    del document["identity"]
    for segment in document["segments"]:
        del segment["fatal"]
    return document


def _draw(page: Page, locator: Locator, found: _Found, all_ranges: bool) -> None:
    located = found.located
    relation = f", {found.kind} {found.relation}" if found.relation else ""
    page.heading(located.path, f"{format.size(located.layers[0].size_bytes)}{relation}")
    page.table(("LAYER", ""), [_row(layer) for layer in located.layers])
    page.gap()
    shown = located.pieces if all_ranges else located.pieces[:_RANGES_SHOWN]
    page.table(
        ("OFFSET", "LENGTH", "RANGE OF THE VOLUME"),
        [_range(locator, piece) for piece in shown],
        right=("OFFSET", "LENGTH"),
    )
    more = len(located.pieces) - len(shown)
    if more:
        page.line(f"and {more} more ranges: --ranges prints all", "dim", indent=2)
    left_out: Counter[str] = Counter()
    for piece in located.left_out:
        left_out[piece.why] += piece.length_bytes
    for why, length_bytes in left_out.items():
        page.line(f"left out: {format.size(length_bytes)}, {why}", "yellow", indent=2)


def _row(layer: Layer) -> tuple[str, str]:
    about = layer.about if layer.about != layer.name else ""
    return str(layer.kind), f"{layer.name} ({about})" if about else layer.name


def _range(locator: Locator, piece: Piece) -> tuple[str, str, str]:
    end = piece.layer_bytes + piece.length_bytes
    place = f"{_title(locator, piece.layer)}:{piece.layer_bytes}-{end}"
    return str(piece.offset_bytes), str(piece.length_bytes), place

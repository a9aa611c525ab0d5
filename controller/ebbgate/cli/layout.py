# SPDX-License-Identifier: GPL-2.0-only
"""`layout show`: where files lie on cached volumes. I/O: reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ebbgate.cli import format
from ebbgate.cli.context import Context, Document, emit, print_error, with_context
from ebbgate.errors import EbbgateError, Unavailable, UsageError
from ebbgate.layout import postgres
from ebbgate.layout.images import ImageFormat
from ebbgate.layout.locate import Located, Locator, expand
from ebbgate.layout.mapping import Layer, Piece
from ebbgate.layout.mounts import Mounts

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


@layout.command()
@click.argument("path", nargs=-1, type=click.Path())
@click.option(
    "--relation",
    "relations",
    multiple=True,
    metavar="DB.TABLE",
    help="A table of PostgreSQL (also DB.SCHEMA.TABLE), with its partitions, TOAST and indexes.",
)
@click.option(
    "--postgres",
    "connection",
    default="",
    metavar="WORDS",
    help="How psql reaches PostgreSQL, such as 'host=/run/postgresql port=5433 user=me'; "
    "by default as the user postgres.",
)
@click.option(
    "--image",
    type=click.Choice([*ImageFormat]),
    help="PATH is a disk image of this format: show where the guest's disk lies.",
)
@click.option("--ranges", "all_ranges", is_flag=True, help="Print every range, not only the first.")
@with_context
def show(
    context: Context,
    path: tuple[str, ...],
    relations: tuple[str, ...],
    connection: str,
    image: str | None,
    all_ranges: bool,
) -> int:
    """Show the layers below each file or block device, and its ranges of the cached volume.

    PATH may be a pattern in quotes, such as '/srv/db/**/*.ibd'. It must be on ext4 or XFS; the
    layers may be partitions, linear and striped LVM, dm-crypt and loop devices. Reading the tables
    of LVM needs root. The exit code is that of the first file that cannot be mapped.
    """
    if not path and not relations:
        raise UsageError("nothing to show", "name a file, a block device or a --relation")
    locator = Locator(context.sysfs, Mounts(context.proc))
    files = _files(locator, path, ImageFormat(image) if image else None)
    found, errors = _locate([*files, *_relations(locator, relations, connection)])
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


Target = Callable[[], Iterable[_Found]]


def _files(
    locator: Locator, patterns: Iterable[str], image: ImageFormat | None
) -> Iterator[Target]:
    """Yield what finds each file."""
    for path in expand(patterns):
        yield partial(_file, locator, path, image)


def _relations(locator: Locator, names: Iterable[str], connection: str) -> Iterator[Target]:
    """Yield what finds the files of each relation."""
    for name in names:
        yield partial(_relation, locator, name, connection)


def _locate(targets: Iterable[Target]) -> tuple[list[_Found], list[EbbgateError]]:
    """One that cannot be mapped does not hide the others."""
    found: list[_Found] = []
    errors: list[EbbgateError] = []
    for target in targets:
        try:
            found.extend(target())
        except EbbgateError as error:
            errors.append(error)
    return found, errors


def _file(locator: Locator, path: Path | EbbgateError, image: ImageFormat | None) -> list[_Found]:
    if isinstance(path, EbbgateError):
        raise path
    return [_Found(locator.locate(path, image))]


def _relation(locator: Locator, name: str, connection: str) -> list[_Found]:
    """Ask for the files again at the end: VACUUM FULL and TRUNCATE give a relation new ones."""
    relations = postgres.relations(name, connection)
    found = [
        _Found(locator.locate(file), relation.name, relation.kind)
        for relation in relations
        for file in relation.files
    ]
    if postgres.relations(name, connection) != relations:
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

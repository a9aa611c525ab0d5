# SPDX-License-Identifier: GPL-2.0-only
"""`layout show`: where files lie on cached volumes. I/O: reads only."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from ebbgate.cli import format
from ebbgate.cli.context import Context, Document, emit, print_error, with_context
from ebbgate.errors import EbbgateError
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


@layout.command()
@click.argument("path", nargs=-1, required=True, type=click.Path())
@click.option("--ranges", "all_ranges", is_flag=True, help="Print every range, not only the first.")
@with_context
def show(context: Context, path: tuple[str, ...], all_ranges: bool) -> int:
    """Show the layers below each file or block device, and its ranges of the cached volume.

    PATH may be a pattern in quotes, such as '/srv/db/**/*.ibd'. It must be on ext4 or XFS; the
    layers may be partitions, linear and striped LVM, dm-crypt and loop devices. Reading the tables
    of LVM needs root. The exit code is that of the first file that cannot be mapped.
    """
    locator = Locator(context.sysfs, Mounts(context.proc))
    found, errors = _locate(locator, path)
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


def _locate(
    locator: Locator, patterns: tuple[str, ...]
) -> tuple[list[Located], list[EbbgateError]]:
    """One file that cannot be mapped does not hide the others."""
    found, errors = [], []
    for path in expand(patterns):
        try:
            if isinstance(path, EbbgateError):
                raise path
            found.append(locator.locate(path))
        except EbbgateError as error:
            errors.append(error)
    return found, errors


def _title(locator: Locator, device: str) -> str:
    return locator.volumes[device].title


def _document(locator: Locator, located: Located) -> dict[str, Any]:
    return {
        "path": located.path,
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


def _draw(page: Page, locator: Locator, located: Located, all_ranges: bool) -> None:
    page.heading(located.path, format.size(located.layers[0].size_bytes))
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

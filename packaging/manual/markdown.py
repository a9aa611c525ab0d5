# SPDX-License-Identifier: GPL-2.0-only
"""Writes Markdown of this project's READMEs into a manual page. Pure.

It knows what they use: headings, paragraphs, lists with dashes, tables, fenced code, comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from manual.troff import Page

_SECTION_LEVEL: Final = 2


def section(text: str, title: str) -> str:
    """Return the body of a section of level 2 or below, its subsections included."""
    found = re.search(rf"^(#+) {re.escape(title)}\n", text, re.M)
    assert found, f"no section {title!r}"
    rest = text[found.end() :]
    after = re.search(rf"^#{{1,{len(found[1])}}} (?!.*\$schema)", rest, re.M)
    return rest[: after.start()] if after else rest


def write(page: Page, text: str) -> None:
    """Add all blocks."""
    for block in _blocks(text):
        first = block[0]
        if first.startswith("```"):
            page.verbatim(block[1:])
        elif first.startswith("#"):
            level, _, title = first.partition(" ")
            (page.heading if len(level) <= _SECTION_LEVEL else page.subheading)(title)
        elif first.startswith("|"):
            _table(page, block)
        elif first.startswith("- "):
            for entry in re.split(r"^- ", "\n".join(block), flags=re.M)[1:]:
                page.bullet(entry)
        else:
            page.paragraph(" ".join(block))


def _blocks(text: str) -> Iterator[list[str]]:
    """Yield blocks; fenced code without its last line."""
    block: list[str] = []
    fenced = False
    for line in [*text.splitlines(), ""]:
        if fenced and line.startswith("```"):
            yield block
            block, fenced = [], False
        elif fenced:
            block.append(line)
        elif not line.strip() or line.startswith(("<!--", "#", "```")):
            if block:
                yield block
            fenced = line.startswith("```")
            block = [line] if fenced else []
            if line.startswith("#"):
                yield [line]
        elif block and line.startswith("|") != block[0].startswith("|"):
            yield block
            block = [line]
        else:
            block.append(line)


def _table(page: Page, rows: list[str]) -> None:
    """Write each row as an item: its meaning, then the other cells with their column's name."""
    columns, _, *rest = ([cell.strip() for cell in row.strip()[1:-1].split(" | ")] for row in rows)
    for cells in rest:
        if len(columns) == 2:  # noqa: PLR2004 - term and text
            page.item(_plain(cells[0]), [cells[1]])
            continue
        named = dict(zip(columns[1:], cells[1:], strict=True))
        meaning = named.pop("meaning", "")
        about = [f"{name.capitalize()}: {cell}" for name, cell in named.items()]
        page.item(_plain(cells[0]), [meaning, *about])


def _plain(text: str) -> str:
    """A term is bold as a whole."""
    return re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", text).replace("`", "")

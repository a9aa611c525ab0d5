# SPDX-License-Identifier: GPL-2.0-only
"""Prints headings, lines and plain tables that fit 80 columns. I/O: stdout.

No markup is interpreted, and unsafe characters are replaced.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ebbgate.text import clean_lines, clean_text

# Wider lines are hard to read even where the terminal has them.
_WIDTH_MAX = 120
_INDENT = 2
_GUTTER = 2
_LAST_MIN = 24

Cell = str | tuple[str, str]
"""A text, or a text and its style (`red`, `bold`, `dim`)."""


class Page:
    """Prints from top to bottom. Colours appear on terminals only; no meaning depends on them."""

    def __init__(self) -> None:
        width = min(shutil.get_terminal_size((80, 24)).columns, _WIDTH_MAX)
        self._console = Console(file=sys.stdout, width=width, highlight=False, soft_wrap=False)

    def heading(self, text: str, note: str = "") -> None:
        """Print a bold line, followed by `note` in plain type."""
        line = _text((text, "bold"))
        if note:
            line.append_text(_text((f"  {note}", "not bold")))
        self._console.print(line)

    def line(self, text: str, style: str = "", *, indent: int = 0) -> None:
        """Print text; it wraps at its indent."""
        width = max(1, self._console.width - indent)
        for part in textwrap.wrap(clean_lines(text), width) or [""]:
            self._console.print(Text(" " * indent + part, style=style))

    def command(self, text: str, *, indent: int = 0) -> None:
        """Print a line to be copied. It is never wrapped, so a terminal copies it as one line."""
        self._console.print(Text(" " * indent + clean_text(text)), soft_wrap=True)

    def gap(self) -> None:
        """Print an empty line."""
        self._console.print()

    def table(
        self, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, right: Sequence[str] = ()
    ) -> None:
        """Print a table; columns in `right` are right-aligned.

        The last column wraps; all do where the others leave it no room, so that no cell is cut.
        """
        cells = [[_text(cell) for cell in row] for row in rows]
        if not cells:
            return
        table = Table(box=None, padding=(0, _GUTTER, 0, 0), pad_edge=False, header_style="dim")
        wide = self._least_width(columns, cells) > self._console.width - _INDENT
        for number, column in enumerate(columns):
            table.add_column(
                _text(column),
                justify="right" if column in right else "left",
                no_wrap=not wide and number < len(columns) - 1,
                overflow="fold",
            )
        for row in cells:
            table.add_row(*row)
        self._console.print(Padding(table, (0, 0, 0, _INDENT), expand=False))

    def _least_width(self, columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> int:
        """Return the width of a table of which only the last column wraps, and not to shreds."""
        whole = zip(*([_text(column) for column in columns], *rows), strict=True)
        sizes = [[self._console.measure(cell) for cell in column] for column in whole]
        *first, last = sizes
        widths = [max(size.maximum for size in column) for column in first]
        words = max(size.minimum for size in last)
        widths.append(max(words, min(_LAST_MIN, max(size.maximum for size in last))))
        return sum(widths) + _GUTTER * len(first)

    def facts(self, rows: Iterable[tuple[str, Cell]]) -> None:
        """Print names and values, one per line; what is too long wraps, and nothing is cut."""
        table = Table(box=None, padding=(0, _GUTTER, 0, 0), pad_edge=False, show_header=False)
        table.add_column(style="dim", no_wrap=True, overflow="fold")
        table.add_column(overflow="fold")
        for name, cell in rows:
            table.add_row(_text(name), _text(cell))
        self._console.print(Padding(table, (0, 0, 0, _INDENT), expand=False))


def _text(cell: Cell) -> Text:
    text, style = (cell, "") if isinstance(cell, str) else cell
    return Text(clean_lines(text), style=style)

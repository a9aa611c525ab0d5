# SPDX-License-Identifier: GPL-2.0-only
"""Writes manual pages in man(7). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_MARK: Final = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<strong>[^*]+)\*\*"
    r"|(?<![\w*])\*(?P<em>[^*\s][^*]*)\*|\[(?P<link>[^]]+)\]\([^)]*\)"
)


def escape(text: str) -> str:
    """Return text that troff prints as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{text}" if text.startswith(".") else text


def inline(text: str) -> str:
    """Return one paragraph of Markdown: code and strong are bold, links lose their target."""
    out, end = [], 0
    for mark in _MARK.finditer(text):
        out.append(_prose(text[end : mark.start()]))
        bold = mark["code"] or mark["strong"]
        if bold:
            out.append(f"\\fB{escape(bold)}\\fR")
        elif mark["em"]:
            out.append(f"\\fI{escape(mark['em'])}\\fR")
        else:
            out.append(_prose(mark["link"].strip("`")))
        end = mark.end()
    out.append(_prose(text[end:]))
    line = "".join(out)
    return f"\\&{line}" if line.startswith(("'", ".")) else line


def _prose(text: str) -> str:
    """Hyphens of words stay hyphens; a dash before an option or between figures is a minus."""
    text = text.replace("\\", "\\e")
    return re.sub(r"(?<!\w)-|--", lambda found: found[0].replace("-", "\\-"), text)


class Page:
    """One page. Every text but that of `verbatim` and `item`'s term may have Markdown's marks."""

    def __init__(self, name: str, section: int, about: str, version: str) -> None:
        self.file: Final = f"{name}.{section}"
        self._lines = [
            '.\\" SPDX-License-Identifier: GPL-2.0-only',
            '.\\" Made from the code by packaging/manual; do not edit.',
            f'.TH {name.upper()} {section} "" "ebbgate {version}" "ebbgate"',
            ".nh",
            ".ad l",
            ".SH NAME",
            f"{escape(name)} \\- {inline(about)}",
        ]

    def heading(self, text: str) -> None:
        """Add a section."""
        self._lines.append(f'.SH "{escape(text.upper())}"')

    def subheading(self, text: str) -> None:
        """Add a subsection."""
        self._lines.append(f'.SS "{escape(text)}"')

    def paragraph(self, text: str) -> None:
        """Add a paragraph; line feeds in it do not matter."""
        self._lines += [".PP", inline(" ".join(text.split()))]

    def item(self, term: str, texts: Iterable[str]) -> None:
        """Add a term with its paragraphs."""
        self._lines += [".TP", f"\\fB{escape(term)}\\fR"]
        for number, text in enumerate(each for each in texts if each):
            self._lines += [*([".br"] if number else []), inline(" ".join(text.split()))]

    def bullet(self, text: str) -> None:
        """Add an entry of a list."""
        self._lines += [".IP \\(bu 2", inline(" ".join(text.split()))]

    def synopsis(self, text: str) -> None:
        """Add one line of a synopsis."""
        self._lines += [".PP", f"\\fB{escape(text)}\\fR"]

    def verbatim(self, lines: Iterable[str]) -> None:
        """Add lines that keep their breaks and spaces."""
        self._lines += [".PP", ".nf", ".RS 4", *map(escape, lines), ".RE", ".fi"]

    def text(self) -> str:
        """Return the source of the page."""
        return "\n".join(self._lines) + "\n"

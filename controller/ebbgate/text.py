# SPDX-License-Identifier: GPL-2.0-only
"""Makes text of unknown origin safe to show in a terminal. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

SHOWN_MAX: Final = 255
"""Characters of a path, or of a reason, in a status: it is published each second."""
_BMP_END: Final = 0x10000
_LOW_SURROGATE_BITS: Final = 10
_UNSAFE: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories that can change what a terminal or a log line shows."""


def clean_text(text: str, length_max: int = 0) -> str:
    """Return a text of another process in a form that is safe for a terminal and a log line.

    Control characters (C0, DEL, C1), line and paragraph separators, format characters
    (bidirectional overrides, zero-width) and surrogates become `?`; tabs and newlines become a
    space. A text longer than `length_max` characters (0: any length) is cut and ends with `...`.
    """
    if length_max and len(text) > length_max:
        text = text[: max(0, length_max - 3)] + "..."
    if text.isascii() and text.isprintable():
        return text
    return "".join(_clean_letter(letter) for letter in text)


def _clean_letter(letter: str) -> str:
    if letter in "\t\r\n":
        return " "
    return "?" if unicodedata.category(letter) in _UNSAFE else letter


def clean_lines(text: str) -> str:
    """Clean each line of a text; line feeds stay."""
    return "\n".join(map(clean_text, text.split("\n")))


def escape_json(document: str) -> str:
    r"""Escape unsafe characters of an encoded JSON document as `\uXXXX`, which changes no value.

    Outside of strings JSON has no such characters but line feeds, which stay.
    """
    if document.isascii() and "\x7f" not in document:
        return document
    return "".join(
        char if char == "\n" or clean_text(char) == char else "".join(_escapes(char))
        for char in document
    )


def _escapes(char: str) -> Iterator[str]:
    code = ord(char)
    if code >= _BMP_END:
        code -= _BMP_END
        yield f"\\u{0xD800 + (code >> _LOW_SURROGATE_BITS):04x}"
        code = 0xDC00 + (code & 0x3FF)
    yield f"\\u{code:04x}"

# SPDX-License-Identifier: GPL-2.0-only
"""Makes text of unknown origin safe to show in a terminal; see `units.clean_text`. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ebbgate.units import clean_text

_BMP_END: Final = 0x10000
_LOW_SURROGATE_BITS: Final = 10


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

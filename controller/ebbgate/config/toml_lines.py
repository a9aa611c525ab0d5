# SPDX-License-Identifier: GPL-2.0-only
"""Finds the lines of keys in a TOML document, since tomllib gives none. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Final

_HEADER: Final = re.compile(r"\s*(\[.*\])\s*(#.*)?")
_KEY: Final = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[^"'=#])+)=""")


def line_of(text: str, key: str) -> int | None:
    """Return the line, from 1, of a dotted key (`volume.bcache0.mode`), or of the table or inline
    table that has it; None if it is not found.
    """
    found: tuple[int, int] | None = None
    for number, path in _paths(text):
        if path == key:
            return number
        if key.startswith(f"{path}.") and (found is None or len(path) > found[0]):
            found = len(path), number
    return None if found is None else found[1]


def _paths(text: str) -> Iterator[tuple[int, str]]:
    """Yield each header and each key with its line, as a dotted path from the top."""
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        header, key = _HEADER.fullmatch(line), _KEY.match(line)
        if header is not None and (path := _path(header[1])):
            table = path
            yield number, path
        elif key is not None and (path := _path(f"{key[1]}= 0")):
            yield number, f"{table}.{path}" if table else path


def _path(line: str) -> str:
    """Return the only path of a line by itself; empty where it is none."""
    try:
        value: object = tomllib.loads(line)
    except (ValueError, RecursionError):
        return ""
    words = []
    while isinstance(value, dict | list) and len(value) == 1:
        if isinstance(value, dict):
            word, value = next(iter(value.items()))
            words.append(word)
        else:
            value = value[0]
    return ".".join(words)

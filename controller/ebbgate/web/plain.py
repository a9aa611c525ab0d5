# SPDX-License-Identifier: GPL-2.0-only
"""Dataclasses of the API to JSON and back. Pure.

JSON has no infinity: what never happens is null there and named in a field `never`.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints


class Mismatch(ValueError):
    """A document is not what a dataclass asks for; `where`: the path to the part of it."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}" if where else what)
        self.where = where
        self.what = what


def to_json(value: Any) -> bytes:
    """Compact JSON. Raises ValueError for what JSON does not know."""
    text = json.dumps(_plain(value), separators=(",", ":"), allow_nan=False)
    return text.encode()


def _plain(value: Any) -> Any:
    names: Mapping[str, Any] | None = getattr(value, "__dataclass_fields__", None)
    if names is not None:
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, list | tuple):
        # Columns are long and hold figures only.
        return [_plain(each) for each in value] if any(map(_nested, value)) else value
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


def _nested(value: Any) -> bool:
    return isinstance(value, list | tuple | dict) or is_dataclass(value)


def build(cls: Any, document: Any, where: str = "", *, strict: bool = False) -> Any:
    """The value of a type that a document says. Keys that it does not know are left out; with
    `strict` they are an error. Raises Mismatch.
    """
    if is_dataclass(cls) and isinstance(cls, type):
        return _build_class(cls, document, where, strict)
    origin, args = get_origin(cls), get_args(cls)
    if origin in (Union, types.UnionType):
        return _build_union(args, document, where, strict)
    if origin is list and isinstance(document, list):
        return [
            build(args[0], each, f"{where}[{number}]", strict=strict)
            for number, each in enumerate(document)
        ]
    if origin is dict and isinstance(document, dict):
        return {
            str(key): build(args[1], each, f"{where}.{key}", strict=strict)
            for key, each in document.items()
        }
    if isinstance(cls, type) and issubclass(cls, StrEnum):
        return _build_word(cls, document, where)
    if cls is Any or _is(cls, document):
        return document
    raise Mismatch(where, f"{json.dumps(document, default=str)[:40]} is not {_named(cls)}")


def _build_class(cls: Any, document: Any, where: str, strict: bool) -> Any:
    if not isinstance(document, dict):
        raise Mismatch(where, "is not an object")
    hints, wanted = _hints(cls), fields(cls)
    known = {each.name for each in wanted}
    prefix = f"{where}." if where else ""
    for key in document:
        if strict and key not in known:
            raise Mismatch(f"{prefix}{key}", f"no such key; known: {', '.join(sorted(known))}")
    values = {}
    for each in wanted:
        place = f"{prefix}{each.name}"
        if each.name in document:
            values[each.name] = build(hints[each.name], document[each.name], place, strict=strict)
        elif each.default is MISSING and each.default_factory is MISSING:
            raise Mismatch(place, "is missing")
    return cls(**values)


def _build_union(args: tuple[Any, ...], document: Any, where: str, strict: bool) -> Any:
    if document is None and type(None) in args:
        return None
    others = [each for each in args if each is not type(None)]
    for each in others[:-1]:
        try:
            return build(each, document, where, strict=strict)
        except Mismatch:
            continue
    return build(others[-1], document, where, strict=strict)


def _build_word(cls: type[StrEnum], document: Any, where: str) -> StrEnum:
    if document not in tuple(cls):
        raise Mismatch(where, f"is none of {', '.join(cls)}")
    return cls(document)


def _is(cls: Any, document: Any) -> bool:
    if cls is float:
        return isinstance(document, int | float) and not isinstance(document, bool)
    if cls is int:
        return isinstance(document, int) and not isinstance(document, bool)
    return isinstance(cls, type) and isinstance(document, cls)


def _named(cls: Any) -> str:
    names = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
    names |= {list: "a list", dict: "an object"}
    return names.get(get_origin(cls) or cls, str(cls))


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)

# SPDX-License-Identifier: GPL-2.0-only
"""Dataclasses of the API to JSON and back. Pure.

JSON has no infinity: what never happens is null there and named in a field `never`.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

Make = Callable[[Any], Any]


class Mismatch(ValueError):
    """A document is not what a dataclass asks for; `where`: the path to the part of it."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}" if where else what)
        self.where = where
        self.what = what

    def within(self, name: str) -> Mismatch:
        """The same, as a part of `name`."""
        apart = "" if not self.where or self.where.startswith("[") else "."
        return Mismatch(f"{name}{apart}{self.where}", self.what)


def to_json(value: Any) -> bytes:
    """Compact JSON. Raises ValueError for what JSON does not know."""
    # json's own encoder, in C, walks through all but the dataclasses.
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, default=plain)
    return text.encode()


def plain(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name. Raises TypeError for what is none."""
    cls: Any = type(value)
    return {name: getattr(value, name) for name in _names(cls)}


@cache
def _names(cls: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(cls))


def extended(document: bytes, more: bytes) -> bytes:
    """One object of two in JSON, neither of which is empty."""
    return b"%s,%s" % (document[:-1], more[1:])


def build(cls: Any, document: Any, *, strict: bool = False) -> Any:
    """The value of a type that a document says. Keys that it does not know are left out; with
    `strict` they are an error. Raises Mismatch.
    """
    return _maker(cls, strict)(document)


@cache
def _maker(cls: Any, strict: bool) -> Make:
    """What makes values of a type, put together once: live documents come by the dozen."""
    if is_dataclass(cls) and isinstance(cls, type):
        return _class_maker(cls, strict)
    origin, args = get_origin(cls), get_args(cls)
    if origin in (Union, types.UnionType):
        return _union_maker(args, strict)
    if origin is list:
        return _list_maker(cls, _maker(args[0], strict))
    if origin is dict:
        return _dict_maker(cls, _maker(args[1], strict))
    if isinstance(cls, type) and issubclass(cls, StrEnum):
        return _word_maker(cls)
    return _plain_maker(cls)


def _class_maker(cls: Any, strict: bool) -> Make:
    hints = get_type_hints(cls)
    known = {each.name: _maker(hints[each.name], strict) for each in fields(cls)}
    needed = [
        each.name
        for each in fields(cls)
        if each.default is MISSING and each.default_factory is MISSING
    ]

    def make(document: Any) -> Any:
        if not isinstance(document, dict):
            raise Mismatch("", "is not an object")
        values = {}
        for name, value in document.items():
            maker = known.get(name)
            if maker is not None:
                try:
                    values[name] = maker(value)
                except Mismatch as error:
                    raise error.within(name) from None
            elif strict:
                raise Mismatch(str(name), f"no such key; known: {', '.join(sorted(known))}")
        for name in needed:
            if name not in values:
                raise Mismatch(name, "is missing")
        return cls(**values)

    return make


def _union_maker(args: tuple[Any, ...], strict: bool) -> Make:
    makers = [_maker(each, strict) for each in args if each is not type(None)]
    nullable = type(None) in args

    def make(document: Any) -> Any:
        if document is None and nullable:
            return None
        for maker in makers[:-1]:
            try:
                return maker(document)
            except Mismatch:
                continue
        return makers[-1](document)

    return make


def _list_maker(cls: Any, item: Make) -> Make:
    def make(document: Any) -> Any:
        if not isinstance(document, list):
            raise _wrong(cls, document)
        found = []
        for number, each in enumerate(document):
            try:
                found.append(item(each))
            except Mismatch as error:
                raise error.within(f"[{number}]") from None
        return found

    return make


def _dict_maker(cls: Any, item: Make) -> Make:
    def make(document: Any) -> Any:
        if not isinstance(document, dict):
            raise _wrong(cls, document)
        found = {}
        for key, each in document.items():
            try:
                found[str(key)] = item(each)
            except Mismatch as error:
                raise error.within(str(key)) from None
        return found

    return make


def _word_maker(cls: type[StrEnum]) -> Make:
    def make(document: Any) -> Any:
        if document not in tuple(cls):
            raise Mismatch("", f"is none of {', '.join(cls)}")
        return cls(document)

    return make


def _plain_maker(cls: Any) -> Make:
    def make(document: Any) -> Any:
        if cls is Any or _is(cls, document):
            return document
        raise _wrong(cls, document)

    return make


def _wrong(cls: Any, document: Any) -> Mismatch:
    return Mismatch("", f"{json.dumps(document, default=str)[:40]} is not {_named(cls)}")


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

# SPDX-License-Identifier: GPL-2.0-only
"""JSON Schema of the answers, from their dataclasses. Pure.

Not left to pydantic: its two generations write different schemas for the same dataclass, and the
older one forgets that a field may be null. So the document is the same whatever is installed.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from ebbgate.web.models.field_doc import Of

Schema = dict[str, Any]
REF: Final = "#/components/schemas/"
_PLAIN: Final[Mapping[object, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


def components(*answers: type) -> dict[str, Schema]:
    """The schema of each dataclass and of all that they are made of, by name."""
    found: dict[str, Schema] = {}
    for each in answers:
        for cls in _classes(each):
            found.setdefault(cls.__name__, of_class(cls))
    return dict(sorted(found.items()))


def of_class(cls: type) -> Schema:
    """An object with every field described; one without a default is always there."""
    hints = get_type_hints(cls, include_extras=True)
    properties = {each.name: of_type(hints[each.name]) for each in fields(cls)}
    required = [
        each.name
        for each in fields(cls)
        if each.default is MISSING and each.default_factory is MISSING
    ]
    schema: Schema = {"type": "object", "properties": properties}
    if cls.__doc__:
        schema["description"] = " ".join(cls.__doc__.split())
    if required:
        schema["required"] = required
    return schema


def of_type(hint: Any) -> Schema:
    """The schema of one type; what `Annotated` says of it beside it."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        return _described(of_type(inner), next(each for each in notes if isinstance(each, Of)))
    if hint is Any:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if is_dataclass(hint) and isinstance(hint, type):
        return {"$ref": REF + hint.__name__}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"type": "string", "enum": [str(each) for each in hint]}
    return _of_generic(get_origin(hint), get_args(hint))


def _of_generic(origin: Any, args: tuple[Any, ...]) -> Schema:
    if origin in (Union, types.UnionType):
        return _either([of_type(each) for each in args])
    if origin is Literal:
        return {"type": "string", "enum": list(args)}
    if origin in (list, tuple):
        return {"type": "array", "items": of_type(args[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": of_type(args[1])}
    raise TypeError(f"no schema for {origin}")


def _either(schemas: list[Schema]) -> Schema:
    if all(set(each) == {"type"} for each in schemas):
        return {"type": [each["type"] for each in schemas]}
    return {"anyOf": schemas}


def _described(schema: Schema, of: Of) -> Schema:
    # A `$ref` may have neighbours since OpenAPI 3.1.
    described = {**schema, **(of.bounds or {}), "description": of.text}
    if of.unit:
        described["x-unit"] = of.unit
        described["description"] += f" Unit: {of.unit}."
    if of.example is not None:
        described["examples"] = [of.example]
    return described


def _classes(hint: Any) -> Iterator[type]:
    """The dataclass itself and those of its fields."""
    if is_dataclass(hint) and isinstance(hint, type):
        yield hint
        for each in get_type_hints(hint, include_extras=False).values():
            yield from _classes(each)
    for each in get_args(hint):
        yield from _classes(each)

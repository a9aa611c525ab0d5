# SPDX-License-Identifier: GPL-2.0-only
"""As much of JSON Schema as the schema of policies uses, on documents whose scalars are all text.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def fits(value: Any, schema: Schema, root: Schema) -> bool:
    """Does the value satisfy the schema? An unknown word of it is an error of the test."""
    for word, wanted in schema.items():
        if word in ("$schema", "$defs", "title", "description", "properties"):
            continue
        if not _WORDS[word](value, wanted, schema, root):
            return False
    return True


def _ref(value: Any, wanted: str, _schema: Schema, root: Schema) -> bool:
    target: Any = root
    for part in wanted.removeprefix("#/").split("/"):
        target = target[part]
    return fits(value, target, root)


def _type(value: Any, wanted: str, _schema: Schema, _root: Schema) -> bool:
    if wanted == "number":
        return isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value) is not None
    return isinstance(value, {"object": dict, "array": list, "string": str}[wanted])


def _no_others(value: Any, wanted: bool, schema: Schema, root: Schema) -> bool:
    assert wanted is False
    properties = schema["properties"]
    return isinstance(value, dict) and all(
        name in properties and fits(each, properties[name], root) for name, each in value.items()
    )


_WORDS: Mapping[str, Any] = {
    "$ref": _ref,
    "type": _type,
    "additionalProperties": _no_others,
    "anyOf": lambda v, wanted, _, root: any(fits(v, each, root) for each in wanted),
    "enum": lambda v, wanted, *_: isinstance(v, str) and v in map(str, wanted),
    "const": lambda v, wanted, *_: v == str(wanted),
    "pattern": lambda v, wanted, *_: re.search(wanted, v, re.DOTALL) is not None,
    "required": lambda v, wanted, *_: set(wanted) <= set(v),
    "minProperties": lambda v, wanted, *_: len(v) >= wanted,
    "items": lambda v, wanted, _, root: all(fits(each, wanted, root) for each in v),
    "minItems": lambda v, wanted, *_: len(v) >= wanted,
    "maxItems": lambda v, wanted, *_: len(v) <= wanted,
}

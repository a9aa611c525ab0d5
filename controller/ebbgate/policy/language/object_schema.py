# SPDX-License-Identifier: GPL-2.0-only
"""Schema of mappings with known keys. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from ebbgate.policy.language.diagnostic import (
    REMOVED,
    Diagnostics,
    KindOnly,
    known_words,
    nearest,
    new_name,
)
from ebbgate.policy.language.value_schemas import Schema, ValueSchema, under
from ebbgate.policy.language.yaml_events import Mapping, Node, Scalar


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """One key. `about`: what it does; `example`: a valid value; `default`: in words.

    `of`: the kind of cache on which it has an effect, empty for all.
    """

    name: str
    value: ValueSchema[object]
    about: str
    example: str
    required: bool = False
    default: str = ""
    of: str = ""


Values = TypeVar("Values")
Faults = Iterator[tuple[str, str, str]]
"""Key, fault and expectation of each value that does not fit the others."""


@dataclass(frozen=True, slots=True)
class ObjectSchema(Generic[Values]):
    """A mapping with these keys and no others. `check`: compares several of them.

    `Values` is the type of what is read: a TypedDict with the keys of `fields`.
    """

    what: str
    fields: tuple[FieldSchema, ...]
    check: Callable[[Values], Faults] | None = None
    least: int = 0

    def read(self, node: Node, key: str, diagnostics: Diagnostics) -> Values | None:
        if not isinstance(node, Mapping):
            listed = ", ".join(field.name for field in self.fields)
            diagnostics.add(
                node.position, key, f"not {self.what}", f"write a mapping with the keys {listed}"
            )
            return None
        before = diagnostics.count
        found: dict[str, object] = {}
        known = {field.name: field for field in self.fields}
        for name, value in node.entries:
            field = known.get(name.text)
            if field is None:
                self._unknown(name, key, diagnostics)
            else:
                full = under(key, name.text)
                found[name.text] = field.value.read(value, full, diagnostics)
                if field.of:
                    diagnostics.kind_only.append(KindOnly(name.position, full, field.of))
        self._missing(node, key, diagnostics)
        # The fields have read every value, so this is the only place that has to promise its type.
        values = cast(Values, found)
        if diagnostics.count == before and self.check is not None:
            positions = {name.text: value.position for name, value in node.entries}
            for name_, what, wanted in self.check(values):
                position = positions.get(name_, node.position)
                diagnostics.add(position, under(key, name_), what, wanted)
        return values

    def schema(self) -> Schema:
        properties = {
            field.name: {**field.value.schema(), "description": field.about}
            for field in self.fields
        }
        found: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        required = [field.name for field in self.fields if field.required]
        if required:
            found["required"] = required
        if self.least:
            found["minProperties"] = self.least
        return found

    def describe(self) -> str:
        return "a mapping, see below"

    def _unknown(self, name: Scalar, key: str, diagnostics: Diagnostics) -> None:
        names = [field.name for field in self.fields]
        what, near = f"unknown key in {self.what}", nearest(name.text, names)
        where = under(key, name.text if name.text.isprintable() else ascii(name.text))
        if renamed := new_name(name.text, names):
            diagnostics.add(name.position, where[:100], renamed, "rename it")
        elif where in REMOVED:
            diagnostics.removed.append((name.position, where))
        else:
            listed = known_words("keys", names, near)
            diagnostics.add(name.position, where[:100], what, listed, near)

    def _missing(self, node: Mapping, key: str, diagnostics: Diagnostics) -> None:
        there = {name.text for name, _ in node.entries}
        for field in self.fields:
            if field.required and field.name not in there:
                wanted = f"add for example `{field.name}: {field.example}`"
                diagnostics.add(node.position, under(key, field.name), "the key is missing", wanted)
        if len(node.entries) < self.least:
            listed = ", ".join(field.name for field in self.fields)
            diagnostics.add(
                node.position, key, f"{self.what} is empty", f"add at least one of {listed}"
            )

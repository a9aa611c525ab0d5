# SPDX-License-Identifier: GPL-2.0-only
"""Schemas of values: each reads a node and writes its JSON Schema. Pure.

A schema that cannot read a node adds a diagnostic and returns None; the result as a whole counts
only if there are no diagnostics.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from ebbgate.policy.language.diagnostic import Diagnostics, Position, nearest, quoted
from ebbgate.policy.language.yaml_events import Node, Scalar, Sequence
from ebbgate.policy.quantity import (
    FACTORS,
    NotAQuantity,
    SignalUnit,
    expected,
    parse_quantity,
    spell,
)

Schema = dict[str, object]
"""A JSON Schema."""
Quantity = float | str
"""A value in base units, or a word."""
ParamValue = Quantity | tuple[str, ...]
"""The value of a parameter: also a list."""
Item = TypeVar("Item")
Read_co = TypeVar("Read_co", covariant=True)


class ValueSchema(Protocol[Read_co]):
    """Reads nodes of one form."""

    def read(self, node: Node, key: str, diagnostics: Diagnostics) -> Read_co | None:
        """Return the value, or None after adding a diagnostic."""

    def schema(self) -> Schema:
        """Return the JSON Schema, for editors."""

    def describe(self) -> str:
        """Return unit and range for people."""


def scalar(node: Node, key: str, diagnostics: Diagnostics, wanted: str) -> str | None:
    """Return the text of a single value that is not empty."""
    if not isinstance(node, Scalar):
        kind = "a list" if isinstance(node, Sequence) else "a mapping"
        diagnostics.add(node.position, key, f"{kind} instead of a single value", wanted)
        return None
    if not node.text.strip():
        diagnostics.add(node.position, key, "the value is missing", wanted)
        return None
    return node.text.strip()


@dataclass(frozen=True, slots=True)
class Located:
    """A name and its position, for errors that are only found later."""

    text: str
    position: Position


@dataclass(frozen=True, slots=True)
class TextSchema:
    """Text that matches `pattern`, which `wanted` describes."""

    wanted: str
    pattern: str = r".{1,500}"

    def read(self, node: Node, key: str, diagnostics: Diagnostics) -> str | None:
        text = scalar(node, key, diagnostics, f"expected: {self.wanted}")
        if text is None:
            return None
        if re.fullmatch(self.pattern, text, re.DOTALL) is None:
            diagnostics.add(
                node.position, key, f"{quoted(text)} is not valid here", f"expected: {self.wanted}"
            )
            return None
        return text

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^{self.pattern}$"}

    def describe(self) -> str:
        return self.wanted


_WHOLE_NAME: Final = TextSchema("a name or a pattern, no path", r"[^\s/…][^\s…]{0,199}")


@dataclass(frozen=True, slots=True)
class VolumeSchema:
    """A name, a uuid or a pattern of volumes; not one that a terminal has cut short."""

    def read(self, node: Node, key: str, diagnostics: Diagnostics) -> str | None:
        if isinstance(node, Scalar) and "…" in node.text:
            wanted = "write it in full; ebbgate status --json has names and uuids"
            diagnostics.add(node.position, key, "a name that is cut short", wanted)
            return None
        return _WHOLE_NAME.read(node, key, diagnostics)

    def schema(self) -> Schema:
        return _WHOLE_NAME.schema()

    def describe(self) -> str:
        return _WHOLE_NAME.describe()


@dataclass(frozen=True, slots=True)
class ReferenceSchema:
    """The name of another policy, with its position."""

    def read(self, node: Node, key: str, diagnostics: Diagnostics) -> Located | None:
        text = NAME_SCHEMA.read(node, key, diagnostics)
        return None if text is None else Located(text, node.position)

    def schema(self) -> Schema:
        return NAME_SCHEMA.schema()

    def describe(self) -> str:
        return NAME_SCHEMA.describe()


@dataclass(frozen=True, slots=True)
class ConstSchema:
    """A fixed number, such as the version of the language."""

    number: int

    def read(self, node: Node, key: str, diagnostics: Diagnostics) -> int | None:
        wanted = f"write {self.number}, without quotes"
        text = scalar(node, key, diagnostics, wanted)
        if text is None:
            return None
        if text != str(self.number) or not (isinstance(node, Scalar) and node.plain):
            diagnostics.add(node.position, key, f"unknown value {quoted(text)}", wanted)
            return None
        return self.number

    def schema(self) -> Schema:
        return {"const": self.number}

    def describe(self) -> str:
        return str(self.number)


@dataclass(frozen=True, slots=True)
class ChoiceSchema:
    """One of these words. `loose`: how editors may read them (`off` is YAML's false)."""

    choices: tuple[str, ...]
    loose: tuple[bool, ...] = ()

    def read(self, node: Node, key: str, diagnostics: Diagnostics) -> str | None:
        listed = ", ".join(self.choices)
        wanted = f"write one of {listed}" if len(self.choices) > 1 else f"write {listed}"
        text = scalar(node, key, diagnostics, wanted)
        if text is None or text in self.choices:
            return text
        what = f"unknown value {quoted(text)}"
        diagnostics.add(node.position, key, what, wanted, nearest(text, self.choices))
        return None

    def schema(self) -> Schema:
        return {"enum": [*self.choices, *self.loose]}

    def describe(self) -> str:
        return ", ".join(f"`{choice}`" for choice in self.choices)


@dataclass(frozen=True, slots=True)
class QuantitySchema:
    """A value with its unit, from `low` to `high` in the base unit, or one of `or_words`."""

    unit: SignalUnit
    low: float
    high: float
    or_words: tuple[str, ...] = ()

    def read(self, node: Node, key: str, diagnostics: Diagnostics) -> Quantity | None:
        wanted = expected(self.unit)
        if self.or_words:
            wanted += f", or {', '.join(self.or_words)}"
        text = scalar(node, key, diagnostics, wanted)
        if text is None or text in self.or_words:
            return text
        try:
            value = parse_quantity(self.unit, text)
        except NotAQuantity as wrong:
            near = wrong.nearest or nearest(text, self.or_words)
            diagnostics.add(node.position, key, wrong.what, wanted, near)
            return None
        if not self.low <= value <= self.high:
            diagnostics.add(
                node.position, key, f"{quoted(text)} is out of range", f"allowed: {self._range()}"
            )
            return None
        return value

    def schema(self) -> Schema:
        return {"anyOf": [*figure_schema(self.unit), *({"const": w} for w in self.or_words)]}

    def describe(self) -> str:
        return " or ".join([self._range(), *(f"`{word}`" for word in self.or_words)])

    def _range(self) -> str:
        return f"{spell(self.unit, self.low)} to {spell(self.unit, self.high)}"


def figure_schema(unit: SignalUnit) -> list[Schema]:
    """Return schemas of a value as text, and as a bare number as editors read it."""
    bare: Schema = {"type": "integer"} if unit is SignalUnit.COUNT else {"const": 0}
    return [{"type": "string", "pattern": f"^-?{figure_pattern(unit)}$"}, bare]


def figure_pattern(unit: SignalUnit) -> str:
    """Return the pattern of a value that is not negative."""
    names = "|".join(re.escape(name) for name in FACTORS[unit])
    fraction = "0" if unit is SignalUnit.COUNT else "[0-9]"
    return rf"[0-9]+(\.{fraction}+)? *({names})"


@dataclass(frozen=True, slots=True)
class ListSchema(Generic[Item]):
    """A list of values; with `single`, one value may stand without a list."""

    item: ValueSchema[Item]
    single: bool = False
    least: int = 0
    most: int = 100

    def read(self, node: Node, key: str, diagnostics: Diagnostics) -> tuple[Item, ...] | None:
        if isinstance(node, Sequence):
            if not self.least <= len(node.items) <= self.most:
                what = f"{len(node.items)} entries"
                diagnostics.add(node.position, key, what, f"allowed: {self.least} to {self.most}")
                return None
            items = (self.item.read(item, key, diagnostics) for item in node.items)
            return tuple([item for item in items if item is not None])
        if self.single:
            item = self.item.read(node, key, diagnostics)
            return None if item is None else (item,)
        diagnostics.add(node.position, key, "not a list", "write `- ` before each entry")
        return None

    def schema(self) -> Schema:
        listed: Schema = {"type": "array", "items": self.item.schema(), "maxItems": self.most}
        if self.least:
            listed["minItems"] = self.least
        return {"anyOf": [self.item.schema(), listed]} if self.single else listed

    def describe(self) -> str:
        return f"{self.item.describe()}; one, or a list" if self.single else self.item.describe()


def one_key_schema(key: str, value: Schema) -> Schema:
    """Return the schema of a mapping with this key and no other."""
    return {
        "type": "object",
        "properties": {key: value},
        "required": [key],
        "additionalProperties": False,
    }


def under(key: str, name: str) -> str:
    """`limits.sequential_cutoff`."""
    return f"{key}.{name}" if key else name


NAME_SCHEMA: Final = TextSchema(
    "lower-case letters, digits and dashes; a letter first", r"[a-z][a-z0-9-]{0,62}"
)

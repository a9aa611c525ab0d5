# SPDX-License-Identifier: GPL-2.0-only
"""A parameter of a strategy, as a key of the policy language. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ebbgate.model.volume import Kind
from ebbgate.policy.language.object_schema import FieldSchema
from ebbgate.policy.language.value_schemas import ListSchema, QuantitySchema
from ebbgate.policy.quantity import SignalUnit, spell

BOTH_KINDS: Final = (Kind.BCACHE, Kind.DM_CACHE)


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter. `path`: the field that it sets; `scale`: the field's unit in base units (10^9
    for seconds); `kinds`: the kinds of cache on which it has an effect; `example`: of a list.
    """

    name: str
    value: QuantitySchema | ListSchema[str]
    path: tuple[str, ...]
    about: str
    kinds: tuple[Kind, ...] = BOTH_KINDS
    scale: int = 1
    example: str = ""

    def default(self, defaults: object) -> float | None:
        """Return the default of the code in base units; None for a word or an empty list."""
        for name in self.path:
            defaults = getattr(defaults, name)
        return round(defaults * self.scale, 9) if isinstance(defaults, float | int) else None

    def field(self, defaults: object) -> FieldSchema:
        """Return it as a key of the language, with the default of the code."""
        kinds = "" if self.kinds == BOTH_KINDS else str(self.kinds[0])
        if isinstance(self.value, ListSchema):
            return FieldSchema(self.name, self.value, self.about, self.example, of=kinds)
        value = self.default(defaults)
        word = self.value.or_words[0] if self.value.or_words else ""
        text = word if value is None else spell(self.value.unit, value)
        return FieldSchema(self.name, self.value, self.about, text, default=text, of=kinds)


def duration(low: float, high: float, *words: str) -> QuantitySchema:
    """Return a time in nanoseconds, or one of the words."""
    return QuantitySchema(SignalUnit.DURATION, low, high, words)


def ratio(*words: str, high: float = 1.0) -> QuantitySchema:
    """Return a share from 0 to `high`, or one of the words."""
    return QuantitySchema(SignalUnit.RATIO, 0.0, high, words)

# SPDX-License-Identifier: GPL-2.0-only
"""Reads entries of `strategies`, and times of the day. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ebbgate.policy.language.diagnostic import Diagnostics, known_words, nearest, quoted
from ebbgate.policy.language.document import StrategyUse
from ebbgate.policy.language.params import STRATEGY_PARAMS
from ebbgate.policy.language.value_schemas import Schema, one_key_schema, scalar
from ebbgate.policy.language.yaml_events import Mapping, Node

_CLOCK: Final = r"([01]\d|2[0-3]):[0-5]\d"
_WINDOW: Final = re.compile(rf"{_CLOCK}-({_CLOCK}|24:00)", re.ASCII)


@dataclass(frozen=True, slots=True)
class StrategySchema:
    """`idle_destage`, or `idle_destage: {wait: 300ms}`."""

    def read(self, node: Node, key: str, diagnostics: Diagnostics) -> StrategyUse | None:
        wanted = f"write one of {', '.join(STRATEGY_PARAMS)}"
        if not isinstance(node, Mapping):
            name = scalar(node, key, diagnostics, wanted)
            if name is None or not self._known(name, node, key, diagnostics):
                return None
            return StrategyUse(name)
        if len(node.entries) != 1:
            what = f"one entry has {len(node.entries)} keys"
            diagnostics.add(node.position, key, what, "write one strategy per entry, after `- `")
            return None
        (word, params), *_ = node.entries
        if not self._known(word.text, word, key, diagnostics):
            return None
        values = STRATEGY_PARAMS[word.text].read(params, f"{key}.{word.text}", diagnostics)
        return None if values is None else StrategyUse(word.text, values)

    def schema(self) -> Schema:
        named = [one_key_schema(name, each.schema()) for name, each in STRATEGY_PARAMS.items()]
        return {"anyOf": [{"enum": list(STRATEGY_PARAMS)}, *named]}

    def describe(self) -> str:
        return ", ".join(f"`{name}`" for name in STRATEGY_PARAMS)

    def _known(self, name: str, node: Node, key: str, diagnostics: Diagnostics) -> bool:
        if name in STRATEGY_PARAMS:
            return True
        what, near = f"unknown strategy: {quoted(name)}", nearest(name, STRATEGY_PARAMS)
        wanted = known_words("strategies", STRATEGY_PARAMS, near)
        diagnostics.add(node.position, key, what, wanted, near)
        return False


@dataclass(frozen=True, slots=True)
class WindowSchema:
    """`01:00-05:00`; an end before the start is on the next day."""

    def read(self, node: Node, key: str, diagnostics: Diagnostics) -> tuple[int, int] | None:
        wanted = 'write start and end in local time, for example "22:30-06:00"'
        text = scalar(node, key, diagnostics, wanted)
        if text is None:
            return None
        if _WINDOW.fullmatch(text) is None:
            diagnostics.add(node.position, key, f"{quoted(text)} is not a time span", wanted)
            return None
        start, end = (_minutes(part) for part in text.split("-"))
        if start == end:
            diagnostics.add(
                node.position, key, "start and end are the same", 'for all day write "00:00-24:00"'
            )
            return None
        return start, end

    def schema(self) -> Schema:
        clock = "[0-2][0-9]:[0-5][0-9]"
        return {"type": "string", "pattern": f"^{clock}-{clock}$"}

    def describe(self) -> str:
        return "`HH:MM-HH:MM`, 00:00 to 24:00"


def _minutes(clock: str) -> int:
    hours, minutes = clock.split(":")
    return int(hours) * 60 + int(minutes)

# SPDX-License-Identifier: GPL-2.0-only
"""Reads entries of `strategies`, and times of the day. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ebbgate.policy.language.document import StrategyUse
from ebbgate.policy.language.params import RECORDS
from ebbgate.policy.language.problem import Diagnostics, nearest, quoted
from ebbgate.policy.language.shapes import Schema, scalar
from ebbgate.policy.language.yaml_events import Mapping, Node

_CLOCK: Final = r"([01]\d|2[0-3]):[0-5]\d"
_WINDOW: Final = re.compile(rf"{_CLOCK}-({_CLOCK}|24:00)", re.ASCII)


@dataclass(frozen=True, slots=True)
class StrategySchema:
    """`idle_destage`, or `idle_destage: {wait: 300ms}`."""

    def read(self, node: Node, key: str, findings: Diagnostics) -> StrategyUse | None:
        wanted = f"write one of {', '.join(RECORDS)}"
        if not isinstance(node, Mapping):
            name = scalar(node, key, findings, wanted)
            if name is None or not self._known(name, node, key, findings):
                return None
            return StrategyUse(name)
        if len(node.entries) != 1:
            what = f"one entry has {len(node.entries)} keys"
            findings.add(node.place, key, what, "write one strategy per entry, after `- `")
            return None
        (word, params), *_ = node.entries
        if not self._known(word.text, word, key, findings):
            return None
        values = RECORDS[word.text].read(params, f"{key}.{word.text}", findings)
        return None if values is None else StrategyUse(word.text, values)

    def schema(self) -> Schema:
        named: list[Schema] = [
            {
                "type": "object",
                "properties": {name: record.schema()},
                "required": [name],
                "additionalProperties": False,
            }
            for name, record in RECORDS.items()
        ]
        return {"anyOf": [{"enum": list(RECORDS)}, *named]}

    def words(self) -> str:
        return ", ".join(f"`{name}`" for name in RECORDS)

    def _known(self, name: str, node: Node, key: str, findings: Diagnostics) -> bool:
        if name in RECORDS:
            return True
        what = f"unknown strategy: {quoted(name)}"
        wanted = f"known strategies: {', '.join(RECORDS)}"
        findings.add(node.place, key, what, wanted, nearest(name, RECORDS))
        return False


@dataclass(frozen=True, slots=True)
class WindowSchema:
    """`01:00-05:00`; an end before the start is on the next day."""

    def read(self, node: Node, key: str, findings: Diagnostics) -> tuple[int, int] | None:
        wanted = 'write start and end in local time, for example "22:30-06:00"'
        text = scalar(node, key, findings, wanted)
        if text is None:
            return None
        if _WINDOW.fullmatch(text) is None:
            findings.add(node.place, key, f"{quoted(text)} is not a time span", wanted)
            return None
        start, end = (_minutes(part) for part in text.split("-"))
        if start == end:
            findings.add(
                node.place, key, "start and end are the same", 'for all day write "00:00-24:00"'
            )
            return None
        return start, end

    def schema(self) -> Schema:
        clock = "[0-2][0-9]:[0-5][0-9]"
        return {"type": "string", "pattern": f"^{clock}-{clock}$"}

    def words(self) -> str:
        return "`HH:MM-HH:MM`, 00:00 to 24:00"


def _minutes(clock: str) -> int:
    hours, minutes = clock.split(":")
    return int(hours) * 60 + int(minutes)

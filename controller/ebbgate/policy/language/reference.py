# SPDX-License-Identifier: GPL-2.0-only
"""Prints the tables of policies/README.md: keys, parameters, settings, signals. Pure.

`python -m ebbgate.policy.language.reference` prints them, and with the word `schema` the JSON
Schema of the language for editors, policies/schema.json; a test compares both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator

from ebbgate.policy.language.condition import signal_schemas, when_schema
from ebbgate.policy.language.grammar import ENTRY, MATCH, OBJECTIVES, POLICY, RULE
from ebbgate.policy.language.object_schema import FieldSchema, ObjectSchema
from ebbgate.policy.language.params import STRATEGY_PARAMS
from ebbgate.policy.language.settings import LIMITS, SET
from ebbgate.policy.language.value_schemas import Schema
from ebbgate.policy.quantity import EXAMPLES, FACTORS, SignalUnit
from ebbgate.policy.rule_signals import SIGNALS, Signal

_KEYS = "| key | value | default | meaning | example |\n|---|---|---|---|---|"
_SIGNALS = "| signal | unit and range | meaning | formula | example |\n|---|---|---|---|---|"
_UNITS = "| unit | written as | example |\n|---|---|---|"
_RANGES = {SignalUnit.RATIO: "0% to 100%"}


def tables() -> dict[str, str]:
    """Return the tables by name, as Markdown."""
    found = {
        "policy": _keys(POLICY.fields),
        "match": _keys(MATCH.fields),
        "rule": _keys(RULE.fields),
        "schedule": _keys(ENTRY.fields),
        "objectives": _keys(OBJECTIVES.fields),
        "limits": _keys(_limits()),
        "set": _keys(SET.fields),
    }
    for name, record in STRATEGY_PARAMS.items():
        found[name] = _keys(record.fields)
    return {
        **found,
        "signals": "\n".join((_SIGNALS, *(_signal(each) for each in SIGNALS.values()))),
        "units": "\n".join((_UNITS, *(_unit(each) for each in SignalUnit))),
    }


def blocks() -> Iterator[tuple[str, str]]:
    """Yield each table between the marks that the README has around it."""
    for name, table in tables().items():
        yield name, f"<!-- {name} -->\n{table}\n<!-- end of {name} -->"


def _limits() -> Iterator[FieldSchema]:
    for each in LIMITS.fields:
        yield each
        ends = each.value.fields if isinstance(each.value, ObjectSchema) else ()
        for end in ends:
            yield FieldSchema(
                f"{each.name}.{end.name}", end.value, end.about, end.example, of=each.of
            )


def _keys(fields: Iterable[FieldSchema]) -> str:
    return "\n".join((_KEYS, *(_key(field) for field in fields)))


def _key(field: FieldSchema) -> str:
    without = "required" if field.required else field.default or "none"
    only = f" Only {field.of}." if field.of else ""
    cells = (f"`{field.name}`", field.value.describe(), without, f"{field.about}{only}")
    return f"| {' | '.join(cells)} | `{field.name.rpartition('.')[2]}: {field.example}` |"


def _signal(signal: Signal) -> str:
    if signal.unit is None:
        kind = " or ".join(f"`{word}`" for word in signal.words)
        example = f"{signal.name}: {signal.words[-1]}"
    else:
        kind = f"{signal.unit}, {_RANGES.get(signal.unit, '0 or more')}"
        example = f'{signal.name}: "> {EXAMPLES[signal.unit]}"'
    return f"| `{signal.name}` | {kind} | {signal.about} | {signal.formula} | `{example}` |"


def _unit(unit: SignalUnit) -> str:
    names = ", ".join(f"`{name}`" for name in FACTORS[unit] if name) or "a bare number"
    return f"| {unit} | {names} | `{EXAMPLES[unit]}` |"


def schema() -> Schema:
    """Return the schema; references and the order of bounds cannot be checked by it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ebbgate policy",
        "description": "Printed from the code: python -m ebbgate.policy.language.reference schema",
        **POLICY.schema(),
        "$defs": {"signals": signal_schemas(), "when": when_schema()},
    }


def schema_text() -> str:
    """Return the content of policies/schema.json."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    tables_text = "\n\n".join(block for _, block in blocks()) + "\n"
    print(schema_text() if "schema" in sys.argv[1:] else tables_text, end="")

# SPDX-License-Identifier: GPL-2.0-only
"""Prints policies/schema.json, the JSON Schema of the language for editors. Pure."""

from __future__ import annotations

import json

from ebbgate.policy.language.condition import signal_schemas, when_schema
from ebbgate.policy.language.grammar import POLICY
from ebbgate.policy.language.value_schemas import Schema


def schema() -> Schema:
    """Return the schema; references and the order of bounds cannot be checked by it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ebbgate policy",
        "description": "Printed from the code: python -m ebbgate.policy.language.schema",
        **POLICY.schema(),
        "$defs": {"signals": signal_schemas(), "when": when_schema()},
    }


def schema_text() -> str:
    """Return the content of policies/schema.json."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")

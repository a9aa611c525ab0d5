# SPDX-License-Identifier: GPL-2.0-only
"""JSON Schema of the language, for editors and other checkers. Pure.

`python -m ebbgate.policy.language.schema` prints policies/schema.json.
"""

from __future__ import annotations

import json

from ebbgate.policy.language.condition import signal_schemas, when_schema
from ebbgate.policy.language.grammar import POLICY
from ebbgate.policy.language.shapes import Schema


def schema() -> Schema:
    """The whole language. What an editor cannot check (references, order of bounds) is left out."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ebbgate policy",
        "description": "Printed from the code: python -m ebbgate.policy.language.schema",
        **POLICY.schema(),
        "$defs": {"signals": signal_schemas(), "when": when_schema()},
    }


def schema_text() -> str:
    """As it is kept in policies/schema.json."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")

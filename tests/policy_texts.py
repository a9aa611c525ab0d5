# SPDX-License-Identifier: GPL-2.0-only
"""Policy texts for tests: the reference's example, and hostile ones made out of good ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import fastjsonschema  # type: ignore[import-untyped]
import yaml  # type: ignore[import-untyped]

from ebbgate.policy.language.parse import parse
from ebbgate.policy.language.reference import schema

FOLDER: Final = Path(__file__).resolve().parents[1] / "policies"
SHIPPED: Final = tuple(sorted(FOLDER.glob("*.yaml")))
_README: Final = (FOLDER / "README.md").read_text()
EXAMPLE: Final = _README.split("```yaml\n", 1)[1].split("```", 1)[0]
_PIECES: Final[Sequence[str]] = (
    *("{", "}", "[", "]", ":", ",", "- ", "#", "&a ", "*a", "!!int ", "|", ">", "%", "@", "`", "?"),
    *('"', "'", "\\", "\n", "  ", "\t", "\r", "\0", "\x7f", "\u2028", "\ufeff", "\U0001f30a"),
    *('"\\UFFFFFFFF"', '"\\ud800"', "%YAML 9.9\n---\n", "--- ", "...\n", "<<: ", "=", "~", "null"),
    *("nan", "inf", "-1", "1e999", "0x10", "0", "9" * 40, "30", "64MB", "2m", "101%", "yes", "off"),
    *("unknown: 1\n", "rules:\n", "limits: {a: 1}\n", "include: database\n", "version: 1\n"),
)


def hostile(rng: Random, texts: Sequence[str]) -> bytes:
    """A good text with a few changes, or none of it at all."""
    if rng.random() < 0.1:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
    text = rng.choice(texts)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        text = _changed(rng, text, texts)
    data = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.05:
        at = rng.randrange(len(data) + 1)
        data = data[:at] + bytes([rng.randrange(128, 256)]) + data[at:]
    return data


def _changed(rng: Random, text: str, texts: Sequence[str]) -> str:
    start = rng.randrange(len(text) + 1)
    end = min(len(text), start + rng.choice((0, 0, 1, 2, 5, 40)))
    words = text.split(" ")
    return rng.choice(
        (
            lambda: text[:start] + rng.choice(_PIECES) + text[end:],
            lambda: text[:start] + text[end:],
            lambda: text[:start] + text[start:end] * rng.choice((2, 50)) + text[end:],
            lambda: text[:start] + chr(rng.randrange(0x110000)) + text[end:],
            lambda: " ".join(rng.choice(words) if rng.random() < 0.05 else word for word in words),
            lambda: text[:start] + rng.choice(texts)[start:],
            lambda: text[:start] + "[" * rng.choice((5, 500)) + text[end:],
        )
    )()


def verdict(source: bytes) -> str:
    """What is wrong with the parser's answer; empty when it is right. A crash is raised."""
    parsed = parse(source, "fuzz.yaml")
    if (parsed.document is None) != bool(parsed.problems):
        return "neither accepted nor refused"
    if parsed.document is None:
        lines = source.decode("utf-8", "replace").splitlines() or [""]
        for problem in parsed.problems:
            if not 1 <= problem.position.line <= len(lines) + 1 or problem.position.column < 1:
                return f"no such place: {problem}"
            if not problem.what or not str(problem).startswith("fuzz.yaml:"):
                return f"no place: {problem}"
        return ""
    data = yaml.load(source.decode("utf-8-sig"), Loader=yaml.BaseLoader)
    return "" if fits(_stripped(data)) else "accepted against the schema"


def fits(data: Any) -> bool:
    """Return whether a document whose scalars are all text satisfies the schema of policies."""
    try:
        _validate(data)
    except fastjsonschema.JsonSchemaValueException:
        return False
    return True


def _of_text(schema: Any) -> Any:
    """Return a schema for documents whose scalars are all text, and may have several lines."""
    if isinstance(schema, list):
        return [_of_text(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _of_text(each) for name, each in schema.items()}
    if schema.get("type") == "number":
        found |= {"type": "string", "pattern": r"^-?\d+(\.\d+)?$"}
    elif isinstance(schema.get("pattern"), str):
        found["pattern"] = f"(?s){schema['pattern']}"
    if "const" in schema:
        found["const"] = str(schema["const"])
    if "enum" in schema:
        found["enum"] = [str(each) for each in schema["enum"]]
    return found


_validate: Final = fastjsonschema.compile(_of_text(schema()))


def _stripped(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _stripped(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_stripped(each) for each in data]
    return data.strip()

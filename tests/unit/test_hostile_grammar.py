# SPDX-License-Identifier: GPL-2.0-only
"""The lines of the hostile client are many kinds of wrong, and stop nothing by right."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import yaml

from tests.bench import hostile_grammar as grammar


def parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def test_the_same_seed_gives_the_same_lines() -> None:
    first, second = Random(7), Random(7)
    assert [grammar.line(first) for _ in range(200)] == [grammar.line(second) for _ in range(200)]


def test_each_line_is_one_line_and_no_line_stops_the_tuner() -> None:
    random = Random(1)
    kinds = set()
    for _ in range(5000):
        line = grammar.line(random)
        assert line.endswith(b"\n")
        assert b"\n" not in line[:-1]
        document = parsed(line)
        if isinstance(document, dict):
            kinds.add(str(document.get("kind")))
            assert document.get("volume") != "bcache0"
            if document.get("kind") in ("hold", "restore") and document.get("v") == 1:
                assert document.get("volume"), document
    assert {"mode", "set", "undo", "policy_save"} <= kinds


def test_half_a_request_has_no_end() -> None:
    random = Random(2)
    assert all(b"\n" not in grammar.half(random) for _ in range(100))


def test_its_policies_are_right() -> None:
    document = grammar.policy(Random(3), 4)
    text = document["args"]["text"]
    assert len(json.dumps(document)) < grammar.LINE_BYTES
    assert yaml.safe_load(text)["match"] == {"volume": "nowhere*"}

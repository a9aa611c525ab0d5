# SPDX-License-Identifier: GPL-2.0-only
"""The lines of the hostile client are many kinds of wrong, and stop nothing by right."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from tests.bench import hostile_grammar as grammar
from tests.unit.conftest import Cli

KEYS = {"v", "id", "kind", "volume", "args", "label"}


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
            # One with a key that no request has is refused whatever it says.
            if document.get("kind") in ("hold", "restore") and set(document) <= KEYS:
                assert document.get("volume"), document
    assert {"mode", "set", "undo", "policy_save"} <= kinds


def test_half_a_request_has_no_end() -> None:
    random = Random(2)
    assert all(b"\n" not in grammar.half(random) for _ in range(100))


def test_its_policies_are_right_and_for_no_volume_that_is_there(cli: Cli, tmp_path: Path) -> None:
    random = Random(3)
    for number in range(5):
        document = grammar.policy(random, number)
        assert len(json.dumps(document)) < grammar.LINE_BYTES
        file = tmp_path / f"{document['args']['name']}.yaml"
        file.write_text(document["args"]["text"])
        checked = cli("check-policy", str(file))
        assert checked.code == 0, checked.out + checked.err
        assert "nowhere*" in checked.out

# SPDX-License-Identifier: GPL-2.0-only
"""Any text gives a policy or errors with positions, and never a crash."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.policy.language.link import load
from ebbgate.policy.language.parse import parse
from tests.policy_texts import EXAMPLE, SHIPPED, fits, hostile, verdict

TEXTS = (EXAMPLE, *(path.read_text() for path in SHIPPED))


@given(st.binary(max_size=400))
def test_any_bytes(source: bytes) -> None:
    assert verdict(source) == ""


@given(st.text(max_size=400))
def test_any_text(text: str) -> None:
    assert verdict(text.encode("utf-8", "surrogatepass")) == ""


@given(st.text(alphabet='{}[]:,-&*!|>%@#"\\? \n\tab1', max_size=200))
def test_any_yaml_punctuation(text: str) -> None:
    assert verdict(text.encode()) == ""


@given(st.integers(min_value=0))
def test_good_files_with_a_few_changes(seed: int) -> None:
    source = hostile(Random(seed), TEXTS)
    assert verdict(source) == ""
    linked = load({"fuzz.yaml": source}, ())
    assert bool(linked.documents) is not bool(linked.problems)


@pytest.mark.parametrize("text", TEXTS)
def test_good_files_are_accepted_as_they_are(text: str) -> None:
    assert parse(text, "p.yaml").problems == ()
    assert verdict(text.encode()) == ""


@pytest.mark.parametrize(
    "data",
    [
        {"version": "1", "name": "x", "other": "1"},
        {"version": "1", "name": "x", "limits": {"other": {}}},
        {"version": "1", "name": "x", "strategies": [{"idle_destage": {"other": "1"}}]},
        {"version": "1"},
    ],
)
def test_the_oracle_detects_an_unknown_key(data: object) -> None:
    assert fits({"version": "1", "name": "x"})
    assert not fits(data)

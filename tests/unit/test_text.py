# SPDX-License-Identifier: GPL-2.0-only
"""Documents of unknown origin are shown without the characters that a terminal obeys."""

from __future__ import annotations

import io
import json
import logging

import pytest

from ebbgate.text import clean_lines, escape_json
from ebbgate.web.command import CleanFormatter

UNSAFE = (
    "\x1b]0;owned\x07",
    "\x9b31m",
    "\u202etxt.exe\u2066",
    "a\u200bb\u00adc\ufeff\U000e0041",
    "a\u2028b\u2029c\x85",
    "\ud800",
    "\x00",
    "\x7f",
    "\r",
    "\x08",
)


@pytest.mark.parametrize("text", UNSAFE)
def test_every_unsafe_character_is_replaced(text: str) -> None:
    cleaned = clean_lines(f"bcache0 {text} end\nnext")
    assert cleaned.replace("\n", "").isprintable()
    assert cleaned.startswith("bcache0 ") and cleaned.endswith(" end\nnext")


@pytest.mark.parametrize("text", ["", "vg/data", "Zoë 한글 ✓ 😀 ┆█", "a [bold] b\nc"])
def test_text_that_people_read_stays_as_it_is(text: str) -> None:
    assert clean_lines(text) == text


@pytest.mark.parametrize("text", UNSAFE)
def test_json_keeps_its_values_and_shows_no_unsafe_character(text: str) -> None:
    document = json.dumps({text: [text, "é 한"]}, ensure_ascii=False, indent=2)
    escaped = escape_json(document)
    assert json.loads(escaped) == {text: [text, "é 한"]}
    assert escaped.replace("\n", "").isprintable()
    assert "é 한" in escaped


@pytest.mark.parametrize("text", UNSAFE)
def test_a_log_line_is_one_line_and_a_stack_keeps_its_lines(text: str) -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(CleanFormatter("%(levelname)s %(message)s"))
    log = logging.Logger("test")
    log.addHandler(handler)
    log.warning("asked for %s\nERROR forged", text)
    assert out.getvalue().count("\n") == 1
    try:
        raise ValueError(text)
    except ValueError:
        log.exception("failed")
    lines = out.getvalue().split("\n")
    assert all(line.isprintable() for line in lines)
    assert "Traceback (most recent call last):" in lines

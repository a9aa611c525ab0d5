# SPDX-License-Identifier: GPL-2.0-only
"""The command line shows no control characters of stored text."""

from __future__ import annotations

import csv
import io
import json

import pytest

from ebbgate.cli.context import print_error, print_json, print_note
from ebbgate.cli.export import write_rows
from ebbgate.cli.page import Page
from ebbgate.errors import ActuationError

HOSTILE = "jo\x1b[2J\x1b]0;owned\x07 \x9b31m \u202eevil\u2066 a\u200bb\x7f\x00 [red]x[/red] :smile:"


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return captured.out + captured.err


def assert_clean(text: str) -> None:
    for line in text.split("\n"):
        assert line.isprintable(), ascii(line)


def test_a_page_shows_no_control_character_and_no_markup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    page = Page()
    page.heading(HOSTILE, HOSTILE)
    page.line(HOSTILE, "yellow")
    page.table((HOSTILE, "B"), [(HOSTILE, (HOSTILE, "red"))])
    page.facts([(HOSTILE, HOSTILE)])
    text = shown(capsys)
    assert_clean(text)
    assert text.count("[red]x[/red] :smile:") == 8, "markup is text like any other"


def test_json_keeps_the_text_and_shows_no_control_character(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_json({HOSTILE: HOSTILE})
    write_rows("actions", [{"reason": HOSTILE}], (out := io.StringIO()), as_json=True)
    text = shown(capsys)
    assert_clean(text)
    assert_clean(out.getvalue())
    assert json.loads(text) == {HOSTILE: HOSTILE}
    assert json.loads(out.getvalue()) == [{"reason": HOSTILE}]


def test_csv_and_errors_show_no_control_character(capsys: pytest.CaptureFixture[str]) -> None:
    write_rows("actions", [{"reason": HOSTILE, "id": 7}], (out := io.StringIO()), as_json=False)
    assert_clean(out.getvalue())
    assert next(csv.DictReader(io.StringIO(out.getvalue())))["id"] == "7"
    print_error(ActuationError(HOSTILE, HOSTILE), as_json=False)
    print_error(ActuationError(HOSTILE, HOSTILE), as_json=True)
    print_note(HOSTILE)
    text = shown(capsys)
    assert_clean(text)
    assert "\n  jo" in text, "the hint stays on a line of its own"

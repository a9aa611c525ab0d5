# SPDX-License-Identifier: GPL-2.0-only
"""The README says what the code has: commands, knobs, figures, exit codes, settings, links."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from ebbgate import errors
from ebbgate.cli.app import COMMANDS, EXIT_BROKEN_PIPE, EXIT_INTERRUPTED
from ebbgate.config import settings
from ebbgate.knobs.reference import block
from tests.bench.__main__ import scenarios, tables

REPO = Path(__file__).resolve().parents[3]
README = (REPO / "README.md").read_text()
REFERENCE = (REPO / "packaging" / "README.md").read_text()
MAKEFILES = "\n".join((REPO / name).read_text() for name in ("Makefile", "packaging/packages.mk"))
LINES_MAX = 250


def section(text: str, name: str) -> str:
    """Return the text of one section."""
    return text.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]


def test_the_readme_can_be_read_in_ten_minutes() -> None:
    assert len(README.splitlines()) <= LINES_MAX


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    assert re.search(rf"`?(ebbgate )?{command}\b", README.split("## How it decides")[0])


def test_safety_has_the_table_of_the_knobs_that_are_written() -> None:
    assert block() in section(README, "Safety"), "run: python -m ebbgate.knobs.reference"


@pytest.mark.parametrize(("path", "table"), tables(scenarios()).items(), ids=lambda each: "")
def test_the_tables_are_those_of_the_kept_results(path: Path, table: str) -> None:
    command = "PYTHONPATH=controller python3 -m tests.bench --table"
    assert f"\n{table}\n" in path.read_text(), f"run: {command}"


def test_the_exit_codes_are_those_of_the_errors() -> None:
    codes = {
        error.exit_code
        for _, error in inspect.getmembers(errors, inspect.isclass)
        if issubclass(error, errors.EbbgateError)
    }
    listed = {
        int(code) for code in re.findall(r"^\| (\d+) \|", section(REFERENCE, "Exit codes"), re.M)
    }
    assert listed == codes | {0, EXIT_INTERRUPTED, EXIT_BROKEN_PIPE}


@pytest.mark.parametrize("key", settings.KEYS)
def test_every_setting_is_documented(key: str) -> None:
    assert re.search(rf"^\[?{key}\b", section(REFERENCE, "Settings"), re.M)


@pytest.mark.parametrize("target", re.findall(r"\bmake ([a-z-]+)", README))
def test_every_make_target_that_is_named_exists(target: str) -> None:
    assert re.search(rf"^{target}:", MAKEFILES, re.M)


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#:]+)\)", README))
def test_every_link_leads_somewhere(link: str) -> None:
    assert (REPO / link).exists()

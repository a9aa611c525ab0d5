# SPDX-License-Identifier: GPL-2.0-only
"""What the README promises is what the code has: commands, exit codes, knobs, settings, links."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from ebbgate import errors
from ebbgate.cli.app import COMMANDS
from ebbgate.config import settings
from ebbgate.knobs.reference import block

REPO = Path(__file__).resolve().parents[3]
README = (REPO / "README.md").read_text()


def section(name: str) -> str:
    """The text of one section."""
    return README.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    assert re.search(rf"`?(ebbgate )?{command}\b", README.split("## How it decides")[0])


def test_safety_has_the_table_of_the_knobs_that_are_written() -> None:
    assert block() in section("Safety"), "run: python -m ebbgate.knobs.reference"


def test_the_exit_codes_are_those_of_the_errors() -> None:
    codes = {
        error.exit_code
        for _, error in inspect.getmembers(errors, inspect.isclass)
        if issubclass(error, errors.EbbgateError)
    }
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", section("Exit codes"), re.M)}
    assert listed == codes | {0, 130}


@pytest.mark.parametrize("key", settings._KEYS)
def test_every_setting_is_documented(key: str) -> None:
    assert re.search(rf"^\[?{key}\b", section("Quick start"), re.M)


@pytest.mark.parametrize("target", re.findall(r"\bmake ([a-z-]+)", README))
def test_every_make_target_that_is_named_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (REPO / "Makefile").read_text(), re.M)


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#:]+)\)", README))
def test_every_link_leads_somewhere(link: str) -> None:
    assert (REPO / link).exists()

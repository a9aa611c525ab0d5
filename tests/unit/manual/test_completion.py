# SPDX-License-Identifier: GPL-2.0-only
"""The completion of bash offers what the program knows; the scripts of all shells are its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from ebbgate.cli.app import COMMANDS, app
from ebbgate.cli.context import Context
from manual import completion
from tests.fake_sysfs import fake_bcache
from tests.house_rules import REPO


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """The scripts, and the program beside them."""
    completion.main(tmp_path / "scripts")
    program = tmp_path / "ebbgate"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ebbgate "$@"\n')
    program.chmod(0o755)
    return tmp_path


def completed(scripts: Path, *words: str) -> list[str]:
    """What bash offers for the last word."""
    body = (
        f'source scripts/ebbgate; COMP_WORDS=("$@"); COMP_CWORD={len(words) - 1};'
        ' _ebbgate_completion ./ebbgate; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    found = subprocess.run(
        ["bash", "-c", f"compopt() {{ :; }}; {body}", "bash", *words],
        cwd=scripts,
        env={**os.environ, "PYTHONPATH": str(REPO / "controller")},
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stderr == ""
    return found.stdout.split()


def test_bash_offers_every_command(scripts: Path) -> None:
    assert completed(scripts, "ebbgate", "") == list(COMMANDS)


def test_bash_completes_a_command_and_its_options(scripts: Path) -> None:
    assert completed(scripts, "ebbgate", "chec") == ["check-policy"]
    assert completed(scripts, "ebbgate", "drain", "--w") == ["--within"]
    assert completed(scripts, "ebbgate", "report", "--format", "c") == ["csv"]


def test_the_volumes_of_this_machine_are_offered(tmp_path: Path) -> None:
    context = Context(sysfs=fake_bcache(tmp_path).sysfs)
    for command in ("status", "enforce", "set"):
        shell = ShellComplete(app, {"obj": context}, "ebbgate", "_EBBGATE_COMPLETE")
        assert [item.value for item in shell.get_completions([command], "bc")] == ["bcache0"]
        assert shell.get_completions([command], "x") == []


@pytest.mark.parametrize("command", ["warm", "pin", "unpin", "replay", "check-policy"])
def test_paths_are_completed_by_the_shell(command: str) -> None:
    shell = ShellComplete(app, {"obj": Context()}, "ebbgate", "_EBBGATE_COMPLETE")
    assert [item.type for item in shell.get_completions([command], "/srv")] == ["file"]


@pytest.mark.parametrize("shell", completion.FILES)
def test_each_script_asks_the_program(shell: str, scripts: Path) -> None:
    script = (scripts / "scripts" / completion.FILES[shell]).read_text()
    assert f"_EBBGATE_COMPLETE={shell}_complete" in script

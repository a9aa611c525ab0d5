# SPDX-License-Identifier: GPL-2.0-only
"""A file or folder that may not be read is no wrong command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.builders import probe_tick
from tests.unit.conftest import Cli

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, to make files that another user may not read"
)


@pytest.fixture
def closed(open_folder: Path) -> Path:
    made = open_folder / "closed"
    made.write_text("")
    made.chmod(0o600)
    return made


@pytest.mark.parametrize(
    "words",
    [
        ["replay"],
        ["warm", "--restore"],
        ["layout", "show", "--image", "raw", "image", "--agent"],
    ],
)
def test_a_file_that_the_command_reads_needs_root(
    open_cli: Cli, closed: Path, words: list[str]
) -> None:
    result = open_cli.as_nobody(*words, str(closed))
    error = f"ebbgate: no access to {closed}\n  run this as root\n"
    assert (result.code, result.err) == (77, error)


def test_a_file_below_which_the_layers_are_shown_needs_root(open_cli: Cli, closed: Path) -> None:
    result = open_cli.as_nobody("layout", "show", str(closed))
    assert (result.code, "run this as root" in result.err) == (77, True)


@pytest.mark.parametrize("words", [["warm"], ["pin"], ["unpin"]])
def test_a_file_that_the_daemon_reads_is_left_to_it(
    open_cli: Cli, closed: Path, words: list[str]
) -> None:
    with open_cli.daemon(answers=(True, "done")):
        (open_cli.runtime_dir / "control.sock").chmod(0o666)
        assert open_cli.as_nobody(*words, str(closed)).code == 0


def test_settings_that_may_not_be_read_are_an_error_of_the_settings(
    open_cli: Cli, closed: Path
) -> None:
    result = open_cli.as_nobody("--config", str(closed), "status")
    assert (result.code, "run this as root" in result.err) == (78, True)


def test_a_closed_state_folder_matters_only_to_what_needs_it(
    open_cli: Cli, open_folder: Path
) -> None:
    open_cli.state_dir.chmod(0o700)
    recording = open_folder / "recording"
    recording.write_text(json.dumps(probe_tick(ns=1)))
    assert open_cli.as_nobody("replay", str(recording)).code == 0
    result = open_cli.as_nobody("status")
    error = f"ebbgate: no access to {open_cli.history}\n  run this as root\n"
    assert (result.code, result.err) == (77, error)

# SPDX-License-Identifier: GPL-2.0-only
"""Output that cannot be written is one line and an exit code, whichever way it is printed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import IO

import pytest

from tests.fake_machine import machine
from tests.programs import environment

# Drawn by the table library, as JSON, by click, and longer than a buffer.
WORDS = (["status"], ["status", "--json"], ["--help"], ["--version"], ["layout", "agent"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    machine.make(tmp_path)
    return tmp_path


def run(
    folder: Path, words: list[str], out: int | IO[bytes], **variables: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        machine.argv(folder, *words),
        env={**environment(), **variables},
        stdout=out,
        stderr=subprocess.PIPE,
        check=False,
    )


@pytest.mark.parametrize("words", WORDS)
def test_a_full_disk_is_named(folder: Path, words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = run(folder, words, full)
    text = "the output cannot be written: No space left on device"
    assert done.returncode == 74
    if "--json" in words:
        assert json.loads(done.stderr)["error"] == {"code": 74, "message": text, "hint": ""}
    else:
        assert done.stderr.decode() == f"ebbgate: {text}\n"


@pytest.mark.parametrize("words", WORDS)
def test_a_pipe_without_a_reader_ends_it_quietly(folder: Path, words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run(folder, words, writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_what_the_encoding_lacks_is_replaced(folder: Path) -> None:
    done = run(folder, ["status"], subprocess.PIPE, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"??" in done.stdout


def test_json_is_complete_in_any_encoding(folder: Path) -> None:
    policy = folder / "n\u00e4chtlich.yaml"
    policy.write_text("version: 1\n")
    words = ["check-policy", "--json", str(policy)]
    for encoding in ("ascii", "utf-8"):
        done = run(folder, words, subprocess.PIPE, PYTHONIOENCODING=encoding)
        assert str(policy) in json.dumps(json.loads(done.stdout), ensure_ascii=False)


def test_a_recording_on_stdin_may_be_damaged(folder: Path) -> None:
    done = subprocess.run(
        machine.argv(folder, "replay", "-"),
        env={**environment(), "PYTHONIOENCODING": "utf-8:strict"},
        input=b"\xff\xfe\n",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 66
    assert done.stderr.startswith(b"ebbgate: - is not a recording (line 1: ")


def test_a_completion_prints_no_error(folder: Path) -> None:
    words = {"COMP_WORDS": "ebbgate nosuch ", "COMP_CWORD": "2"}
    done = run(folder, ["x"], subprocess.PIPE, _EBBGATE_COMPLETE="bash_complete", **words)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_closed_stdout_stops_no_command(folder: Path) -> None:
    argv = ["sh", "-c", 'exec "$@" >&-', "sh", *machine.argv(folder, "status", "--json")]
    done = subprocess.run(argv, env=environment(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


# ---- what else may be closed or full -------------------------------------------------------------
def run_in_shell(folder: Path, streams: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command with its streams redirected as a shell does it."""
    argv = ["sh", "-c", f'exec "$@" {streams}', "sh", *machine.argv(folder, *words)]
    return subprocess.run(argv, env=environment(), capture_output=True, check=False)


@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full", "<&- >&- 2>&-"])
@pytest.mark.parametrize("json_option", [[], ["--json"]])
def test_an_error_has_its_exit_code_where_it_cannot_be_printed(
    folder: Path, streams: str, json_option: list[str]
) -> None:
    done = run_in_shell(folder, streams, *json_option, "status", "nosuch")
    assert (done.returncode, done.stdout, done.stderr) == (66, b"", b"")


def test_an_error_has_its_exit_code_where_nobody_reads_it(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    argv = machine.argv(folder, "status", "nosuch")
    done = subprocess.run(argv, env=environment(), stderr=writing, check=False)
    os.close(writing)
    assert done.returncode == 66


@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full"])
def test_a_restore_goes_on_where_a_warning_cannot_be_printed(folder: Path, streams: str) -> None:
    settings = folder / "wrong.toml"
    settings.write_text("newer_key = 1\n")
    done = run_in_shell(folder, streams, "--config", str(settings), "restore")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"nothing to restore: ebbgate has changed no knob\n"


def test_a_closed_stdin_has_no_recording(folder: Path) -> None:
    done = run_in_shell(folder, "<&-", "replay", "-")
    assert done.returncode == 66
    assert done.stderr.startswith(b"ebbgate: - is not a recording\n")


@pytest.mark.parametrize(
    "words",
    [
        ["--patience", "nan", "status"],
        ["doctor", "--measure", "nan"],
        ["record", "bcache0", "--seconds", "nan"],
        ["record", "bcache0", "--seconds", "inf"],
    ],
)
def test_a_time_that_no_clock_can_wait_for_is_refused(folder: Path, words: list[str]) -> None:
    done = run_in_shell(folder, "", *words)
    assert done.returncode == 64, done.stderr
    assert b"Invalid value for" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["status", "--json", "--nosuch"],
        ["status", "--nosuch", "--json"],
        ["status", "--json", "a", "b"],
        ["doctor", "--json", "--measure", "soon"],
        ["explain", "--json"],
    ],
)
def test_a_wrong_command_line_is_json_too(folder: Path, words: list[str]) -> None:
    done = run(folder, words, subprocess.PIPE)
    assert done.returncode == 64
    assert json.loads(done.stderr)["error"]["code"] == 64

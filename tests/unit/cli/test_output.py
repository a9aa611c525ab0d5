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


def test_a_closed_stdout_stops_no_command(folder: Path) -> None:
    argv = ["sh", "-c", 'exec "$@" >&-', "sh", *machine.argv(folder, "status", "--json")]
    done = subprocess.run(argv, env=environment(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")

# SPDX-License-Identifier: GPL-2.0-only
"""The agent runs alone, and what it says is what the host's own reader says."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import Unavailable
from ebbgate.layout import guest_agent
from ebbgate.layout.fiemap import read_layout
from ebbgate.layout.guest import parse

SOURCE = Path(guest_agent.__file__).read_text()


def agent(*patterns: str) -> Any:
    """Run it as over ssh: its text on standard input, no other module of ours."""
    command = [sys.executable, "-I", "-", *patterns]
    done = subprocess.run(command, input=SOURCE, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with a hole, on a file system that tells where it is."""
    path = tmp_path / "data"
    with path.open("wb", buffering=0) as opened:
        opened.write(b"x" * 8192)
        opened.seek(1 << 20)
        opened.write(b"y" * 4096)
        os.fsync(opened.fileno())
        try:
            read_layout(opened.fileno(), "data")
        except Unavailable as error:
            pytest.skip(error.message)
    return path


def test_it_uses_nothing_but_pythons_own_library() -> None:
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else alias.name)
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported <= set(sys.stdlib_module_names)


def test_it_is_written_for_older_pythons() -> None:
    ast.parse(SOURCE, feature_version=(3, 7))


def test_extents_are_those_that_the_host_reads(file: Path) -> None:
    said = agent(str(file))
    if not said["files"]:
        pytest.skip(said["errors"][0]["why"])
    with file.open("rb") as opened:
        extents = read_layout(opened.fileno(), "data").extents
    segments = said["layers"][0]["segments"]
    assert [(each["start_bytes"], each["length_bytes"]) for each in segments] == [
        (each.offset_bytes, each.length_bytes) for each in extents
    ]
    places = [each["below"][0]["start_bytes"] for each in segments]
    assert places == [each.device_bytes for each in extents]
    assert parse(json.dumps(said).encode()).files == (f"guest:{file}",)


def test_patterns_name_files_and_what_is_missing_is_said(file: Path) -> None:
    said = agent(f"{file.parent}/d*", "/proc/self/status", f"{file.parent}/none")
    paths = [*said["files"], *(each["path"] for each in said["errors"])]
    assert paths == [str(file), "/proc/self/status", f"{file.parent}/none"]


def test_a_name_that_cannot_be_printed_is_left_out(file: Path) -> None:
    file.with_name("two\nlines").touch()
    (error,) = agent(f"{file.parent}/two*")["errors"]
    assert error["why"] == "its name cannot be printed"


def test_without_a_pattern_it_says_how_it_is_used() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-"], input=SOURCE, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (64, "")
    assert "PATTERN" in done.stderr

# SPDX-License-Identifier: GPL-2.0-only
"""The house rules catch what they are there for, and let ordinary files pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import house_rules as rules

LICENSED = f"# {rules.SPDX}\n"


def test_a_source_without_licence_line_is_named() -> None:
    assert list(rules.spdx_missing(Path("a.py"), "x = 1\n")) == [f"a.py: no line `{rules.SPDX}`"]
    assert list(rules.spdx_missing(Path("run"), "#!/bin/sh\n")) != []
    assert list(rules.spdx_missing(Path("a.py"), LICENSED + "x = 1\n")) == []


def test_an_empty_file_and_a_document_need_no_licence_line() -> None:
    assert list(rules.spdx_missing(Path("__init__.py"), "")) == []
    assert list(rules.spdx_missing(Path("README.md"), "# ebbgate\n")) == []


def test_a_long_file_and_a_long_function_are_named() -> None:
    function = "def f() -> None:\n" + "    pass\n" * rules.FUNCTION_LINES_MAX
    assert ["f()" in line for line in rules.too_long(Path("a.py"), function)] == [True]
    long_file = "x = 1\n" * (rules.FILE_LINES_MAX + 1)
    assert len(list(rules.too_long(Path("a.py"), long_file))) == 1
    assert list(rules.too_long(Path("recorded.txt"), long_file)) == []


@pytest.mark.parametrize(
    "line",
    [
        "cd /" + "home/jo/ebbgate",
        "see /" + "root/notes",
        "--index" + "-url https://example.org/simple",
    ],
)
def test_a_path_of_one_machine_is_named(line: str) -> None:
    assert len(list(rules.machine_paths(Path("a.sh"), line))) == 1


@pytest.mark.parametrize(
    "line", ["/sys/block/bcache0", "build/" + "work/x", "ProtectHome=yes", "/" + "root" + " "]
)
def test_ordinary_paths_pass(line: str) -> None:
    assert list(rules.machine_paths(Path("a.sh"), line)) == []


@pytest.mark.parametrize(
    "line", ["probe._process.pid", "self.probe._process", "a()._b", "from ebbgate.cli import _main"]
)
def test_a_private_name_in_a_test_is_named(line: str) -> None:
    assert len(list(rules.private_access(Path("tests/test_a.py"), line))) == 1
    assert list(rules.private_access(Path("controller/ebbgate/a.py"), line)) == []


@pytest.mark.parametrize(
    "line",
    [
        "self._process",
        "cls._made()",
        "super()._tick()",
        "os._exit(1)",
        "row._replace(a=1)",
        "a.__b__",
    ],
)
def test_an_own_name_in_a_test_passes(line: str) -> None:
    assert list(rules.private_access(Path("tests/test_a.py"), line)) == []


def test_a_stray_top_level_file_is_named() -> None:
    assert list(rules.stray(Path("notes.txt"), "")) != []
    assert list(rules.stray(Path(".ci/run"), "")) == []

# SPDX-License-Identifier: GPL-2.0-only
"""The probe's files depend on each other in one direction only.

A module is a name with its .c and .h; a .bpf.c or .bpf.h is a module of its own.
"""

from __future__ import annotations

import graphlib
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

BPF = Path(__file__).resolve().parents[2] / "bpf"
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def includes(folder: Path) -> dict[str, set[str]]:
    """Each module with the modules of the same folder that it includes."""
    files = sorted(folder.glob("*.[ch]"))
    modules = {file.name: file.name[:-2] for file in files}
    graph: dict[str, set[str]] = {module: set() for module in modules.values()}
    for file in files:
        wanted = {modules[name] for name in _INCLUDE.findall(file.read_text()) if name in modules}
        graph[modules[file.name]] |= wanted - {modules[file.name]}
    return graph


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """The modules of one circle; empty if there is none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_modules_of_the_probe_include_each_other_without_a_circle() -> None:
    assert circle(includes(BPF)) == []


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in BPF.glob("*.c") if path.with_suffix(".h").exists())
)
def test_a_source_file_includes_its_own_header_first(name: str) -> None:
    first = _INCLUDE.findall((BPF / f"{name}.c").read_text())[0]
    assert first == f"{name}.h"


def test_a_circle_through_a_source_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("")
    (tmp_path / "a.c").write_text('#include "a.h"\n#include "b.h"\n')
    (tmp_path / "b.h").write_text("")
    (tmp_path / "b.c").write_text('#include "b.h"\n  # include "a.h"\n')
    assert set(circle(includes(tmp_path))) == {"a", "b"}

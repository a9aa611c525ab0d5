# SPDX-License-Identifier: GPL-2.0-only
"""Patterns match the files below folders to which anybody may write."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from ebbgate.errors import UsageError
from ebbgate.layout.file_patterns import matches
from ebbgate.layout.locate import expand

LONG = "a" * 300
"""More than a name may have."""


def found(folder: Path, pattern: str) -> list[str]:
    return sorted(os.path.relpath(path, folder) for path in matches(folder / pattern))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.ibd", "db/b.ibd", "db/.hidden.ibd", "db/x/y/c.ibd", "db/x/db/x/d.ibd"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("*.ibd", ["a.ibd"]),
        ("**.ibd", ["a.ibd"]),
        ("db/[ab].ibd", ["db/b.ibd"]),
        ("db/*.ibd", ["db/.hidden.ibd", "db/b.ibd"]),
        ("d*/x/?/*.ibd", ["db/x/y/c.ibd"]),
        ("db/x/**/*.ibd", ["db/x/db/x/d.ibd", "db/x/y/c.ibd"]),
        ("**/x/**/d.ibd", ["db/x/db/x/d.ibd"]),
        ("**/b.ibd", ["db/b.ibd"]),
        ("*/../a.ibd", ["a.ibd"]),
        ("none/*", []),
        ("a.ibd/*", []),
        (f"{LONG}/*", []),
        ("\0/*", []),
    ],
)
def test_a_pattern_matches_names(tree: Path, pattern: str, files: list[str]) -> None:
    assert [name for name in found(tree, pattern) if os.path.lexists(tree / name)] == files


def test_two_stars_at_the_end_match_all_that_is_below(tree: Path) -> None:
    below = list(found(tree, "db/**"))
    assert below == list(found(tree, "db/**/*"))
    assert {"db/b.ibd", "db/.hidden.ibd", "db/x/y/c.ibd"} <= set(below)


def test_each_is_found_once(tree: Path) -> None:
    assert len(list(matches(tree / "**/**/**/d.ibd"))) == len(set(matches(tree / "**/d.ibd")))


@pytest.mark.parametrize("middle", ["**/x/**", "**/*/**", "x/**/y/**", "d*/**/x/y", "**/x/**/**/?"])
def test_several_patterns_of_any_depth_match_as_in_the_standard_library(
    tree: Path, middle: str
) -> None:
    for last in ("*.ibd", "d.ibd", "x"):
        pattern = f"{middle}/{last}"
        wanted = sorted(str(path.relative_to(tree)) for path in set(tree.glob(pattern)))
        assert [name for name in found(tree, pattern) if os.path.lexists(tree / name)] == wanted


@pytest.mark.parametrize("pattern", ["**/x/**/*.ibd", "**/*/**/**/*.ibd", "**/x/y/**/*", "**/f"])
def test_a_folder_is_searched_once(
    tree: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    searched: Counter[str] = Counter()
    scan = os.scandir

    def counting(folder: str) -> object:
        searched[folder] += 1
        return scan(folder)

    monkeypatch.setattr("ebbgate.layout.file_patterns.os.scandir", counting)
    list(matches(tree / pattern))
    assert str(tree / "db/x/y") in searched
    assert {each for each, count in searched.items() if count > 1} == set()


def test_a_large_tree_is_searched_with_several_patterns_of_any_depth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files and folders are more than may be waiting to be searched at a time."""
    monkeypatch.setattr("ebbgate.layout.file_patterns._FOLDERS_MAX", 30)
    for number in range(100):
        (tmp_path / f"{number // 10}/{number % 10}").mkdir(parents=True)
        (tmp_path / f"{number // 10}/{number % 10}/f").touch()
    assert len(found(tmp_path, "**/*/**/f*")) == 100


def test_a_name_is_found_in_a_folder_that_cannot_be_listed(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("ebbgate.layout.file_patterns.os.scandir", refuse)
    assert found(tree, "**/a.ibd") == ["a.ibd"]


def test_links_lead_to_a_folder_but_not_through_all_depths(tree: Path) -> None:
    for number in range(3):
        (tree / f"db/loop{number}").symlink_to(tree / "db")
    assert found(tree, "db/loop0/*.ibd") == ["db/loop0/.hidden.ibd", "db/loop0/b.ibd"]
    assert len(found(tree, "db/**/?.ibd")) == 3


@pytest.mark.parametrize("name", ["db/x.ibd", "db/y", "db/x/z"])
def test_a_link_to_a_name_that_is_too_long_hides_nothing(tree: Path, name: str) -> None:
    patterns = [f"{tree}/db/*.ibd", f"{tree}/**/c.ibd", f"{tree}/*/*/*/c.ibd"]
    before = list(expand(patterns))
    (tree / name).symlink_to(LONG)
    assert list(expand(patterns)) == before
    assert tree / "db/x/y/c.ibd" in before


@pytest.mark.parametrize("pattern", [f"/{LONG}/*", f"/{LONG}*", "/srv/none/**x/*", "/\0*"])
def test_a_pattern_that_matches_nothing_is_an_error_of_its_own(pattern: str) -> None:
    (error,) = expand([pattern])
    assert str(error).startswith("no file matches")


def test_folders_may_be_deeper_than_calls(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("f", os.O_CREAT, dir_fd=folder))
    os.close(folder)
    try:
        assert len(list(expand([f"{tmp_path}/**/f"]))) == 1
    finally:
        # What removes the folder of the test calls itself for each level.
        subprocess.run(["rm", "-rf", f"{tmp_path}/d"], check=True)


def test_no_pattern_takes_the_time_of_the_others(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebbgate.layout.file_patterns._FOLDERS_A_LOOK", 1)
    clock = itertools.count(step=5)
    monkeypatch.setattr("ebbgate.layout.file_patterns.time.monotonic", lambda: next(clock))
    error, file = expand([f"{tree}/**/f", f"{tree}/*.ibd"], 100)
    assert str(error).startswith(f"the folders of {tree}/**/f cannot be searched in time")
    assert file == tree / "a.ibd"


@pytest.mark.parametrize("pattern", ["db/*", "db/**/*", "db/none*"])
def test_one_large_folder_does_not_take_the_time_of_other_patterns(
    tree: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    """Each name in it takes a second."""
    for number in range(1000):
        (tree / f"db/{number}.ibd").symlink_to("nowhere")
    names = 0

    def compared(name: str, part: str) -> bool:
        nonlocal names
        names += 1
        return fnmatchcase(name, part)

    monkeypatch.setattr("ebbgate.layout.file_patterns.fnmatchcase", compared)
    monkeypatch.setattr("ebbgate.layout.file_patterns.time.monotonic", lambda: names)
    error, file = expand([f"{tree}/{pattern}", f"{tree}/a.ibd"], 100)
    assert str(error).startswith(f"the folders of {tree}/{pattern} cannot be searched in time")
    assert file == tree / "a.ibd"
    assert names < 1000


def test_folders_are_bounded(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ebbgate.layout.file_patterns._FOLDERS_MAX", 2)
    for name in "klm":
        (tree / "db" / name).mkdir()
    error, file = expand([f"{tree}/**/f", f"{tree}/a.ibd"])
    assert isinstance(error, UsageError)
    assert "more than 2 folders" in error.message
    assert file == tree / "a.ibd"

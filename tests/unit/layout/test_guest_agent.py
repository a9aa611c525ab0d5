# SPDX-License-Identifier: GPL-2.0-only
"""The agent runs alone, and what it says is what the host's own reader says."""

from __future__ import annotations

import ast
import json
import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ebbgate.errors import Unavailable
from ebbgate.layout import guest_agent
from ebbgate.layout.fiemap import read_layout
from ebbgate.layout.file_patterns import matches
from ebbgate.layout.guest import parse

SOURCE = Path(guest_agent.__file__).read_text()
FEW = SOURCE.replace("FILES_MAX = 10000", "FILES_MAX = 3")


def agent(*patterns: str, source: str = SOURCE) -> Any:
    """Run it as over ssh: its text on standard input, no other module of ours."""
    command = [sys.executable, "-I", "-", *patterns]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
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


@pytest.mark.timeout(20)
def test_links_to_folders_do_not_repeat_files(file: Path) -> None:
    """Two of them lead to 2^40 paths."""
    for name in ("self", "again"):
        (file.parent / name).symlink_to(".")
    said = agent(f"{file.parent}/**", f"{file.parent}/self/d*")
    if said["errors"]:
        pytest.skip(said["errors"][0]["why"])
    assert said["files"] == [str(file)]


def test_links_to_a_file_are_one_file_unless_each_is_named(file: Path) -> None:
    hard, soft = file.with_name("hard"), file.with_name("soft")
    hard.hardlink_to(file)
    soft.symlink_to(file)
    said = agent(f"{file.parent}/*")
    if said["errors"]:
        pytest.skip(said["errors"][0]["why"])
    assert len(said["files"]) == 1
    assert agent(str(soft), str(file))["files"] == [str(file), str(soft)]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.ibd", "db/b.ibd", "db/.hidden.ibd", "db/x/y/c.ibd", "db/x/db/x/d.ibd"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "db/link").symlink_to(tmp_path / "db")
    (tmp_path / "db/loop").symlink_to("loop")
    return tmp_path


@pytest.mark.parametrize(
    "pattern",
    [
        *("*.ibd", "**.ibd", "db/[ab].ibd", "d*/x/?/*.ibd", "db/link/*.ibd", "*/../a.ibd"),
        *("**/*", "**/*.ibd", "**/x/**/*.ibd", "**/*/**/d.ibd", "**/**/x/*", "db/**/l*/*"),
        *("none/*", "a.ibd/*", "**/loop/*", f"{'a' * 300}/*"),
    ],
)
def test_patterns_match_what_they_match_on_the_host(tree: Path, pattern: str) -> None:
    found = list(guest_agent.matches(f"{tree}/{pattern}"))
    assert sorted(found) == sorted(filter(os.path.lexists, matches(tree / pattern)))


def test_at_its_end_a_pattern_of_any_depth_matches_files(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    found = list(guest_agent.matches("db/x/**"))
    names = ("db", "db/x", "db/x/d.ibd", "y", "y/c.ibd")
    assert sorted(found) == [f"{tree}/db/x/{name}" for name in names]


def test_a_name_is_found_in_a_folder_that_cannot_be_listed(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    assert list(guest_agent.matches(f"{tree}/**/a.ibd")) == [f"{tree}/a.ibd"]


def test_the_names_that_a_pattern_looks_at_are_bounded(file: Path) -> None:
    (file.parent / "large").mkdir()
    for number in range(40):
        (file.parent / f"large/{number}").touch()
    few = SOURCE.replace("NAMES_MAX = 1000000", "NAMES_MAX = 30")
    said = agent(f"{file.parent}/**", str(file), source=few)
    if not said["files"]:
        pytest.skip(said["errors"][0]["why"])
    assert str(file) in said["files"], "it is named, too"
    assert len(said["files"]) <= 31
    why = "more than 30 names to look at: some files are left out"
    assert said["errors"] == [{"path": f"{file.parent}/**", "why": why}]


def test_the_root_is_no_file() -> None:
    assert agent("/")["errors"] == [{"path": "/", "why": "no such file"}]


def test_a_name_that_cannot_be_printed_is_left_out(file: Path) -> None:
    file.with_name("two\nlines").touch()
    (error,) = agent(f"{file.parent}/two*")["errors"]
    assert error["why"] == "its name cannot be printed"


def test_only_files_are_opened(tmp_path: Path) -> None:
    """A watchdog starts when it is opened, and the writer of a FIFO goes on, to be killed."""
    fifo, link = tmp_path / "fifo", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to(fifo)
    writer = Thread(target=lambda: os.close(os.open(fifo, os.O_WRONLY)))
    writer.start()
    try:
        assert agent(f"{tmp_path}/*")["errors"] == []
        said = agent(str(link))
        assert said["errors"] == [{"path": str(link), "why": "no regular file"}]
        assert writer.is_alive(), "nobody has opened it to read"
    finally:
        os.close(os.open(fifo, os.O_RDWR))
        writer.join()


def test_what_is_no_file_is_an_error_only_by_its_own_path(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to("/nowhere")
    (tmp_path / "loop").symlink_to("loop")
    with closing(socket.socket(socket.AF_UNIX)) as bound:
        bound.bind(str(tmp_path / "socket"))
    assert agent(f"{tmp_path}/*")["errors"] == []
    errors = agent(*(str(each) for each in sorted(tmp_path.iterdir())))["errors"]
    assert [Path(each["path"]).name for each in errors] == ["dangling", "loop", "socket"]


def test_files_beyond_the_limit_are_counted_over_all_patterns(file: Path) -> None:
    folder = file.parent
    for name in "abc":
        (folder / name).mkdir()
    for name in "efgh":
        (folder / name).write_bytes(b"z")
    said = agent(f"{folder}/[a-e]*", f"{folder}/*", source=FEW)
    if not said["files"]:
        pytest.skip(said["errors"][0]["why"])
    assert said["files"][:2] == [str(file), f"{folder}/e"], "no folder is counted"
    (error,) = said["errors"]
    third = said["files"][2:]
    assert {*third, error["path"]} < {f"{folder}/{name}" for name in "fgh"}
    assert (len(third), error["path"] in third) == (1, False)
    assert error["why"] == "one of 2 that are left out: at most 3 files are mapped"


def test_errors_beyond_the_limit_are_counted() -> None:
    said = agent(*(f"/nowhere/{name}" for name in "abcd"), source=FEW)
    assert [each["path"] for each in said["errors"]] == [f"/nowhere/{name}" for name in "abc"]
    assert said["errors"][2]["why"].startswith("one of 2 that are left out")


def test_a_mount_with_an_odd_name_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users may mount file systems on folders of any name; the kernel escapes line feeds only."""
    odd = b"41 1 0:9 / /mnt/a\v\vb\r\rc rw - fuse.x x rw\n"
    (tmp_path / "mountinfo").write_bytes(odd + b"42 1 8:1 / / rw shared:1 - ext4 /dev/vda1 rw\n")
    (tmp_path / "fdinfo").mkdir()
    (tmp_path / "fdinfo/9").write_text("flags:\t0100000\nmnt_id:\t42\n")
    monkeypatch.setattr(guest_agent, "PROC", str(tmp_path))
    assert guest_agent.filesystem_of(9) == "ext4"


def test_without_a_pattern_it_says_how_it_is_used() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-"], input=SOURCE, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (64, "")
    assert "PATTERN" in done.stderr

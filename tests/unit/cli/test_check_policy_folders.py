# SPDX-License-Identifier: GPL-2.0-only
"""`check-policy` reports on all files, whatever else is in their folders, and who asks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ebbgate.policy_files.reader import FILES_MAX, TOTAL_BYTES_MAX
from ebbgate.policy_files.validation import of_file
from tests.unit.conftest import Cli

OWN = "version: 1\nname: own\nschedule: [{name: n, at: '01:00-02:00', use: near}]\n"
NEAR = "version: 1\nname: near\n"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")


def keep(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def fill(folder: Path, count: int, text: str) -> None:
    for number in range(count):
        keep(folder, f"other-{number}.yaml", text.replace("#", str(number)))


@needs_root
def test_a_file_that_may_not_be_read_hides_no_other(cli: Cli, open_folder: Path) -> None:
    closed = keep(open_folder, "closed.yaml", NEAR)
    (open_folder / "closed.yaml").chmod(0o600)
    bad = keep(open_folder, "bad.yaml", "version: 1\nname: X\n")
    result = cli.as_nobody("check-policy", "--json", bad, closed)
    assert result.code == 78
    wrong, unread = result.document["problems"]
    assert (wrong["file"], wrong["line"]) == (bad, 2)
    assert (unread["file"], unread["line"]) == (closed, None)
    assert unread["message"] == "cannot be read: Permission denied"


@needs_root
def test_a_folder_that_may_not_be_listed_hides_no_other(open_cli: Cli, open_folder: Path) -> None:
    unlisted, listed = open_folder / "a", open_folder / "b"
    for folder in (unlisted, listed):
        folder.mkdir()
    own, near = keep(unlisted, "own.yaml", OWN), keep(listed, "near.yaml", NEAR)
    unlisted.chmod(0o711)
    result = open_cli.as_nobody("check-policy", "--json", own, near)
    assert result.code == 78
    assert [each["file"] for each in result.document["policies"]] == [near]
    (problem,) = result.document["problems"]
    assert (problem["file"], problem["line"]) == (str(unlisted), None)
    assert problem["message"] == f"{unlisted} cannot be read: Permission denied"
    text = open_cli.as_nobody("check-policy", own, near)
    assert text.out.startswith(f"{near}: near: ")
    assert text.err == f"ebbgate: {problem['message']}\n  check its permissions\n"


@pytest.mark.parametrize(
    ("count", "text"),
    [(FILES_MAX + 1, "version: 1\nname: other-#\n"), (17, f"x: {'y' * (TOTAL_BYTES_MAX // 16)}\n")],
)
def test_a_folder_of_other_files_is_no_folder_of_the_daemon(
    cli: Cli, tmp_path: Path, count: int, text: str
) -> None:
    fill(tmp_path, count, text)
    own = keep(tmp_path, "own.yaml", OWN)
    keep(tmp_path, "near.yaml", NEAR)
    result = cli("check-policy", "--json", own)
    assert (result.code, result.document["valid"]) == (0, True)
    assert of_file(Path(own)).name == "own"
    twin = keep(tmp_path, "twin.yaml", "{version: 1, name: own}\n")
    (problem,) = cli("check-policy", "--json", own).document["problems"]
    assert problem["message"] == f"{twin} has the name 'own', too"


def test_as_many_files_as_are_given_are_checked(cli: Cli, tmp_path: Path) -> None:
    fill(tmp_path, FILES_MAX + 6, "version: 1\nname: other-#\n")
    files = [str(each) for each in sorted(tmp_path.glob("*.yaml"))]
    result = cli("check-policy", "--json", *files)
    assert (result.code, len(result.document["policies"])) == (0, FILES_MAX + 6)


def test_the_folder_of_the_daemon_has_its_bounds(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "policies.d"
    folder.mkdir()
    fill(folder, FILES_MAX, "version: 1\nname: other-#\n")
    own = keep(folder, "own.yaml", "version: 1\nname: own\n")
    settings = keep(tmp_path, "ebbgate.toml", f'policy_dir = "{folder}"\n')
    result = cli("--config", settings, "check-policy", "--json", own)
    assert (result.code, result.document["policies"]) == (78, [])
    (problem,) = result.document["problems"]
    assert problem["file"] == str(folder)
    assert problem["message"] == f"{folder} has 65 policy files; at most 64 are allowed"


def test_settings_with_an_error_do_not_matter(cli: Cli, tmp_path: Path) -> None:
    settings = keep(tmp_path, "ebbgate.toml", "mode = 3\n")
    own = keep(tmp_path, "near.yaml", NEAR)
    assert cli("--config", settings, "check-policy", own).code == 0

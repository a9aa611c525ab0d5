# SPDX-License-Identifier: GPL-2.0-only
"""Policies are saved atomically and only in their folder; the former text is kept."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ebbgate.errors import ActuationError, ConfigError, NotFound, UsageError
from ebbgate.policy_files import writer


def text(name: str = "night", more: str = "") -> str:
    return f"version: 1\nname: {name}\nwhy: A test.\n{more}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "etc" / "policies.d"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_saved_policy_is_readable_for_any_umask(folder: Path) -> None:
    mask = os.umask(0o077)
    try:
        assert writer.save(folder, "night", text()).name == "night"
    finally:
        os.umask(mask)
    path = folder / "night.yaml"
    assert path.read_text() == text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert names(folder) == ["night.yaml"]


def former(folder: Path) -> str | None:
    kept = folder / "night.yaml~"
    return kept.read_text(encoding="utf-8") if kept.exists() else None


def test_the_former_text_is_kept_and_can_be_saved_again(folder: Path) -> None:
    old, new = text(), text(more="strategies: []\n")
    writer.save(folder, "night", old)
    assert former(folder) is None
    writer.save(folder, "night", new)
    assert former(folder) == old
    writer.save(folder, "night", old)
    assert (folder / "night.yaml").read_text() == old
    assert former(folder) == new
    assert names(folder) == ["night.yaml", "night.yaml~"], "one version, however often"


def test_saving_the_same_text_keeps_the_former_one(folder: Path) -> None:
    writer.save(folder, "night", text())
    writer.save(folder, "night", text(more="strategies: []\n"))
    writer.save(folder, "night", text(more="strategies: []\n"))
    assert former(folder) == text()


def test_an_invalid_policy_is_not_written_and_all_errors_are_listed(folder: Path) -> None:
    writer.save(folder, "night", text())
    bad = text(more="stratgies: []\nrules: 7\n")
    with pytest.raises(ConfigError) as caught:
        writer.save(folder, "night", bad)
    message = str(caught.value)
    path = folder / "night.yaml"
    assert "2 errors in night; nothing was written" in message
    assert f"{path}:4:1: " in message
    assert f"{path}:5:" in message
    assert "did you mean strategies?" in message
    assert (path.read_text(), names(folder)) == (text(), ["night.yaml"])


def test_errors_in_other_files_do_not_prevent_saving(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "a.yaml").write_text("nonsense: [")
    (folder / "b.yaml").write_bytes(b"\xff\xfe")
    schedule = 'schedule:\n  - {name: n, at: "23:00-05:00", use: gone}\n'
    (folder / "c.yaml").write_text(text("c", schedule))
    writer.save(folder, "night", text())
    assert (folder / "night.yaml").read_text() == text()


def test_a_duplicate_policy_name_is_refused(folder: Path) -> None:
    writer.save(folder, "night", text())
    for file in ("day", "zzz"):
        with pytest.raises(ConfigError, match="has the name 'night', too"):
            writer.save(folder, file, text())
    assert names(folder) == ["night.yaml"]


def test_a_used_policy_cannot_be_renamed_or_removed(folder: Path) -> None:
    writer.save(folder, "over", text("over"))
    schedule = 'schedule:\n  - {name: n, at: "23:00-05:00", use: over}\n'
    writer.save(folder, "night", text(more=schedule))
    with pytest.raises(ConfigError, match="unknown policy 'over'"):
        writer.save(folder, "over", text("other"))
    with pytest.raises(ConfigError, match=r"nothing was removed\n.*unknown policy 'over'"):
        writer.remove(folder, "over")
    assert names(folder) == ["night.yaml", "over.yaml"]


def test_removal_keeps_the_former_text(folder: Path) -> None:
    writer.save(folder, "night", text())
    writer.remove(folder, "night")
    assert names(folder) == ["night.yaml~"]
    assert former(folder) == text()
    with pytest.raises(NotFound, match="there is no"):
        writer.remove(folder, "night")


def test_removal_from_a_missing_folder_is_an_error(folder: Path) -> None:
    with pytest.raises(NotFound):
        writer.remove(folder, "night")
    assert not folder.exists()


@pytest.mark.parametrize("name", ["../night", "a/b", "", ".", "night.yaml", "a" * 65])
def test_a_name_cannot_leave_the_folder(folder: Path, name: str) -> None:
    with pytest.raises(UsageError):
        writer.save(folder, name, text())
    with pytest.raises(UsageError):
        writer.remove(folder, name)
    assert not folder.parent.exists()


def test_a_link_is_left_alone_and_not_followed(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(parents=True)
    target = tmp_path / "secret"
    target.write_text("mine")
    (folder / "night.yaml").symlink_to(target)
    with pytest.raises(ActuationError, match="is a link"):
        writer.save(folder, "night", text())
    with pytest.raises(ActuationError, match="is a link"):
        writer.remove(folder, "night")
    assert (target.read_text(), names(folder)) == ("mine", ["night.yaml"])


@pytest.mark.parametrize("left", [".night.yaml.new", ".night.yaml~.new", "night.yaml~"])
def test_existing_files_of_the_same_names_are_replaced_not_followed(
    folder: Path, tmp_path: Path, left: str
) -> None:
    writer.save(folder, "night", text())
    target = tmp_path / "secret"
    target.write_text("mine")
    (folder / left).symlink_to(target)
    writer.save(folder, "night", text(more="strategies: []\n"))
    assert target.read_text() == "mine"
    assert names(folder) == ["night.yaml", "night.yaml~"]
    assert former(folder) == text()


def test_a_folder_that_cannot_be_written_is_reported(folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("a file")
    with pytest.raises(ActuationError, match="cannot be written"):
        writer.save(folder, "night", text())


def test_a_disk_that_is_full_leaves_the_old_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.save(folder, "night", text())

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ActuationError, match="No space left on device"):
        writer.save(folder, "night", text(more="strategies: []\n"))
    monkeypatch.undo()
    assert (folder / "night.yaml").read_text() == text()
    assert names(folder) == ["night.yaml"]

# SPDX-License-Identifier: GPL-2.0-only
"""A policy is found by its name, in the folder of the administrator first."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.errors import NotFound
from ebbgate.policy_files.validation import by_name


def test_a_policy_of_the_folder_comes_before_a_shipped_one_of_the_same_name(
    tmp_path: Path,
) -> None:
    text = "version: 1\nname: database\nwhy: Mine.\nstrategies: []\n"
    (tmp_path / "mine.yaml").write_text(text)
    assert by_name("database", tmp_path).why == "Mine."
    assert by_name("database").why != "Mine."
    assert by_name("vm-images", tmp_path).name == "vm-images"


def test_a_file_with_an_error_hides_no_shipped_policy(tmp_path: Path) -> None:
    (tmp_path / "database.yaml").write_text("version: 1\nname: database\nrulez: []\n")
    assert by_name("database", tmp_path).file.endswith("policies/database.yaml")
    with pytest.raises(NotFound, match="unknown policy: mine"):
        by_name("mine", tmp_path)

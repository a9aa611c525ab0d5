# SPDX-License-Identifier: GPL-2.0-only
"""A dry run compares with the policy that is in force, or with a named one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.errors import ConfigError, NotFound
from ebbgate.model.volume import Kind
from ebbgate.replay import history
from ebbgate.replay.history import Subject
from tests.builders import volume

SUBJECT = Subject("bcache0", "bcache0", Kind.BCACHE)


def test_without_a_name_the_other_one_is_that_in_force(tmp_path: Path) -> None:
    text = 'version: 1\nname: mine\nwhy: A test.\nmatch: {volume: "vg/*"}\n'
    (tmp_path / "mine.yaml").write_text(text)
    lvm = Subject("vg-data", "vg/data", Kind.DM_CACHE)
    assert history.compared_with(None, lvm, tmp_path).name == "mine"
    assert history.compared_with(None, SUBJECT, tmp_path).name == "adaptive"
    assert history.compared_with("mine", SUBJECT, tmp_path).name == "mine"
    with pytest.raises(NotFound, match="unknown policy"):
        history.compared_with(str(tmp_path / "mine.yaml"), SUBJECT, tmp_path)
    uuid = "0b1e5000-0000-4000-8000-000000000001"
    text = f"version: 1\nname: by-uuid\nmatch: {{volume: {uuid}}}\nstrategies: []\n"
    (tmp_path / "a.yaml").write_text(text)
    mine = Subject.of(replace(volume(), backing_uuid=uuid))
    assert history.compared_with(None, mine, tmp_path).name == "by-uuid"
    (tmp_path / "bad.yaml").write_text("nonsense")
    with pytest.raises(ConfigError, match=r"bad.yaml:1:1"):
        history.compared_with(None, lvm, tmp_path)

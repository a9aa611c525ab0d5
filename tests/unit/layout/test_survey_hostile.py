# SPDX-License-Identifier: GPL-2.0-only
"""What guests and the owners of files may choose hides no other file from the survey."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ebbgate.layout import images
from ebbgate.units import GIB, MIB
from tests.fake_sysfs import FakeSysfs
from tests.layout_fixture import BCACHE0, LayoutMachine, guest_document
from tests.unit.layout.test_survey import beside, read


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LayoutMachine:
    """Files are on bcache0 itself."""
    (tmp_path / "files").mkdir()
    fake = FakeSysfs(tmp_path / "sys")
    fake.disk("bcache0", BCACHE0, size_bytes=GIB)
    made = LayoutMachine(fake, tmp_path / "files", monkeypatch)
    made.holds_files("bcache0")
    return made


@pytest.mark.parametrize("failure", [ValueError("no number"), MemoryError()])
def test_an_image_that_cannot_be_parsed_hides_no_other_file(
    machine: LayoutMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    image = machine.file([(0, 32 * MIB, 16 * MIB)], "vm.img")
    image.write_bytes(b"QFI\xfb")
    beside(image, json.dumps(guest_document()))
    machine.file([(0, 0, MIB)], "z")

    def fail(*_: object) -> Any:
        raise failure

    monkeypatch.setattr(images, "qcow2_segments", fail)
    found = read(machine, tmp_path, "*.img", "z")
    assert (found.files, found.left_out) == (1, {"cannot be mapped": 1})
    assert found.error in ("no number", "what is known of a file takes too much memory")


def test_a_pattern_that_matches_too_much_hides_no_other_file(
    machine: LayoutMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebbgate.layout.locate.FILES_MAX", 2)
    (tmp_path / "files/up").mkdir()
    for name in ("up/a", "up/b", "up/c", "z"):
        machine.file([(0, 0, MIB)], name)
    found = read(machine, tmp_path, "up/*", "**z")
    assert (found.files, found.left_out) == (1, {"a pattern leads to too much": 1})
    assert found.error == f"{tmp_path}/files/up/* matches more than 2 files"

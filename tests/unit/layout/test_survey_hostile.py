# SPDX-License-Identifier: GPL-2.0-only
"""What guests and the owners of files may choose hides no other file from the survey."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ebbgate.layout import chunk_owners, images
from ebbgate.model.heat import ChunkRun
from ebbgate.units import GIB, KIB, MIB
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


def test_a_guest_in_many_pieces_leaves_room_for_others(
    machine: LayoutMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_owners, "PARTS_MAX", 16)
    image, other = (
        machine.file([(0, number * 32 * MIB, 16 * MIB)], f"{number}.img") for number in (0, 1)
    )
    beside(image, json.dumps(scattered(files=2, pieces=15)))
    beside(other, json.dumps(guest_document()))
    found = read(machine, tmp_path, "*.img")
    group = found.groups.index(f"{other}, guest:/db/a")
    assert ChunkRun(37, 39, group) in found.runs
    assert found.error == "the files lie in more than 2 pieces"


def scattered(files: int, pieces: int) -> dict[str, Any]:
    """What a guest may say: files of half a chunk of each of so many chunks of its disk."""
    segments = [
        {
            "start_bytes": number * 512 * KIB,
            "length_bytes": 512 * KIB,
            "below": [{"layer": "vda", "start_bytes": number * MIB}],
            "chunk_bytes": 0,
            "why": "",
        }
        for number in range(pieces)
    ]
    names = [f"/db/{number}" for number in range(files)]
    file = {"kind": "file", "size_bytes": pieces * 512 * KIB, "segments": segments}
    disk = guest_document()["layers"][-1]
    return guest_document(files=names, layers=[*(file | {"name": each} for each in names), disk])

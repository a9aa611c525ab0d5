# SPDX-License-Identifier: GPL-2.0-only
"""Files that globs name become runs of chunks; what is not on the volume is counted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import Unavailable
from ebbgate.kernel.device_mapper import Target
from ebbgate.layout import images, mapping
from ebbgate.layout import survey as module
from ebbgate.layout.dm_table import without_secrets
from ebbgate.layout.fiemap import ExtentFlag
from ebbgate.layout.survey import survey
from ebbgate.layout.survey_answer import SurveyAnswer, Surveyed
from ebbgate.model.attribution import FileId
from ebbgate.model.heat import ChunkRun
from ebbgate.units import GIB, MIB
from tests.fake_sysfs import FakeSysfs
from tests.layout_fixture import BCACHE0, LayoutMachine, guest_document

Rows = list[tuple[int, int, str, str]]
SECTORS = GIB // 512


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LayoutMachine:
    """Files are on a partition of bcache0 that begins at 1 MiB."""
    (tmp_path / "files").mkdir()
    fake = FakeSysfs(tmp_path / "sys")
    fake.disk("bcache0", BCACHE0, size_bytes=GIB)
    made = LayoutMachine(fake, tmp_path / "files", monkeypatch)
    made.partition("bcache0", "bcache0p1", "252:1", MIB, 64 * MIB)
    made.holds_files("bcache0p1")
    return made


def read(
    machine: LayoutMachine, folder: Path, *patterns: str, tables: dict[str, Rows] | None = None
) -> Surveyed:
    """The answer, as it comes over the socket."""
    request = {
        "layout": [f"{folder}/files/{each}" for each in patterns or ("*",)],
        "volume": "bcache0",
        "tables": tables or {},
    }
    answer = SurveyAnswer(GIB // MIB)
    events = survey(json.loads(json.dumps(request)), str, machine.fake.sysfs, machine.mounts)
    for name, fields in events:
        line = json.dumps({"event": name, **fields})
        assert len(line) < 1 << 16
        if whole := answer.take(json.loads(line)):
            return whole
    raise AssertionError("the answer has no end")


def inode(path: Path) -> FileId:
    known = path.stat()
    return FileId(os.major(known.st_dev) << 20 | os.minor(known.st_dev), known.st_ino)


def test_files_become_groups_with_runs(machine: LayoutMachine, tmp_path: Path) -> None:
    one = machine.file([(0, 0, 2 * MIB)], "a")
    two = machine.file([(0, 9 * MIB, MIB), (MIB, 20 * MIB, 4096)], "b")
    found = read(machine, tmp_path)
    assert found.groups == (str(one), str(two))
    assert found.runs == (ChunkRun(1, 3, 0), ChunkRun(10, 11, 1), ChunkRun(21, 22, 1))
    assert (found.files, found.known_bytes, found.left_out) == (2, 3 * MIB + 4096, {})
    assert (found.error, found.changed) == ("", False)
    assert found.inodes == {inode(one): 0, inode(two): 1}


def test_files_elsewhere_or_without_data_are_counted(
    machine: LayoutMachine, tmp_path: Path
) -> None:
    machine.file([], "empty")
    machine.file([(0, 0, 4096, ExtentFlag.DELALLOC)], "new")
    machine.fake.disk("sdz", "8:400", size_bytes=GIB)
    other = tmp_path / "elsewhere"
    other.mkdir()
    assert read(machine, tmp_path, "*", "*.none").left_out == {
        "without data on a device": 1,
        "not allocated yet": 1,
        "no file matches": 1,
    }
    machine.holds_files("sdz")
    machine.file([(0, 0, 4096)], "far")
    assert read(machine, tmp_path, "far").left_out == {"on another device": 1}


@pytest.mark.parametrize("kind", ["thin", "raid", "cache"])
def test_a_file_on_a_device_that_cannot_be_mapped_says_so(
    machine: LayoutMachine, tmp_path: Path, kind: str
) -> None:
    """Thin or RAID of LVM, or another cached volume."""
    machine.mapped("dm-0", "vg-data", "253:0", linear())
    machine.holds_files("dm-0")
    machine.file([(4096, 0, MIB)], "a")
    table = rows([Target(0, 2048 * 64, kind, "253:1 2")])
    found = read(machine, tmp_path, tables={"vg-data": table})
    assert found.left_out == {f"below a device of type {kind} (vg-data)": 1}


def test_reasons_are_bounded(
    machine: LayoutMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a device is within a reason, and each file may lie on another."""
    for number in range(20):
        machine.file([(0, 0, 4096)], f"f{number:02}")

    def on_another(_: object, top: str, **__: object) -> list[mapping.Piece]:
        return [mapping.Piece(0, 4096, "dm-0", 0, f"below a device of type thin ({top})")]

    monkeypatch.setattr(module, "place", on_another)
    found = read(machine, tmp_path, "*", "none").left_out
    assert (len(found), found["for other reasons"], sum(found.values())) == (14, 8, 21)


def test_the_first_file_that_cannot_be_mapped_is_named(
    machine: LayoutMachine, tmp_path: Path
) -> None:
    machine.file([(0, 0, MIB)], "good")
    machine.file([(0, 80 * MIB, MIB)], "lie")
    found = read(machine, tmp_path)
    assert (found.files, found.left_out) == (1, {"cannot be mapped": 1})
    assert found.error == f"{tmp_path}/files/lie: behind the end of bcache0p1"


def linear(start: str = "0") -> Target:
    return Target(0, 2048 * 64, "linear", f"252:0 {start}")


def rows(targets: Sequence[Target]) -> Rows:
    safe = map(without_secrets, targets)
    return [(each.start_sectors, each.length_sectors, each.kind, each.params) for each in safe]


def test_tables_come_with_the_request(machine: LayoutMachine, tmp_path: Path) -> None:
    machine.mapped("dm-0", "vg-data", "253:0", linear())
    machine.holds_files("dm-0")
    machine.file([(0, 0, MIB)], "a")
    table = [Target(0, 2048 * 64, "crypt", "aes-xts-plain64 c0ffee 0 252:0 4096")]
    found = read(machine, tmp_path, tables={"vg-data": rows(table)})
    assert found.runs == (ChunkRun(2, 3, 0),)
    missing = read(machine, tmp_path)
    assert missing.left_out == {"cannot be mapped": 1}
    assert "the table of vg-data cannot be read" in missing.error


@pytest.mark.parametrize(
    ("kind", "params", "expected"),
    [
        ("crypt", "aes c0ffee 0 252:0 8 1 allow_discards", "aes - 0 252:0 8"),
        ("crypt", "aes c0ffee", ""),
        ("integrity", "253:1 0 J meta_mac:c0ffee", ""),
        ("linear", "252:0 8", "252:0 8"),
    ],
)
def test_no_key_is_sent(kind: str, params: str, expected: str) -> None:
    assert without_secrets(Target(0, 8, kind, params)).params == expected


def test_a_device_that_changes_meanwhile_is_noticed(
    machine: LayoutMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.file([(0, 0, MIB)], "a")

    def moved(*args: Any, **words: Any) -> Any:
        machine.fake.write("/sys/block/bcache0/bcache0p1/start", "4096")
        return mapping.place(*args, **words)

    monkeypatch.setattr(module, "place", moved)
    assert read(machine, tmp_path).changed


def test_files_and_time_are_bounded(
    machine: LayoutMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcd":
        machine.file([(0, MIB, 4096)], name)
    monkeypatch.setattr(module, "FILES_MAX", 2)
    found = read(machine, tmp_path)
    assert (found.files, found.left_out) == (2, {"beyond the first 2 files": 2})
    monkeypatch.setattr(module, "SECONDS_MAX", -1)
    assert read(machine, tmp_path).left_out == {
        "not read within -1 s": 2,
        "beyond the first 2 files": 2,
    }


def test_a_long_answer_is_sent_in_lines_of_bounded_length(
    machine: LayoutMachine, tmp_path: Path
) -> None:
    """Names of the longest length, of letters that take the most bytes in JSON."""
    folder = tmp_path / "files" / ("\N{HAMMER}" * 60) / ("\N{HAMMER}" * 60)
    folder.mkdir(parents=True)
    for number in range(45):
        machine.file([(0, number * MIB, 4096)], str(folder / f"{number:04}-{'x' * 200}"))
    found = read(machine, tmp_path, "**/*")
    assert found.files == 45
    assert all(name.endswith("...") for name in found.groups)


def test_names_have_no_control_characters(machine: LayoutMachine, tmp_path: Path) -> None:
    machine.file([(0, 0, MIB)], "a\x1b[2J\nb")
    machine.file([(0, 2 * MIB, MIB)], os.fsdecode(b"\xff"))
    found = read(machine, tmp_path)
    assert found.groups == (f"{tmp_path}/files/a?[2J b", f"{tmp_path}/files/?")


@pytest.fixture
def image(machine: LayoutMachine) -> Path:
    """A raw image of 16 MiB that begins at 32 MiB of the partition."""
    return machine.file([(0, 32 * MIB, 16 * MIB)], "vm.img")


def beside(image: Path, text: str) -> None:
    image.with_name(f"{image.name}.guest.json").write_text(text)


def test_files_of_a_guest_are_groups_of_their_own(
    machine: LayoutMachine, tmp_path: Path, image: Path
) -> None:
    beside(image, json.dumps(guest_document()))
    found = read(machine, tmp_path, "*.img")
    assert found.groups == (f"{image}, guest:/db/a",)
    assert found.runs == (ChunkRun(38, 40, 0),)
    assert (found.files, found.known_bytes) == (1, 2 * MIB)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "is no JSON document"),
        (json.dumps({}), "is not from an agent of version 1"),
        (json.dumps(guest_document(layers=[])), "a file is no layer"),
        (
            json.dumps(guest_document(files=[], layers=guest_document()["layers"][1:] * 2)),
            "two layers have one name",
        ),
    ],
)
def test_a_guest_that_lies_leaves_its_image_out_and_nothing_else(
    machine: LayoutMachine, tmp_path: Path, image: Path, text: str, error: str
) -> None:
    other = machine.file([(0, 0, MIB)], "other")
    beside(image, text)
    found = read(machine, tmp_path, "other", "vm.img")
    assert (found.groups, found.left_out) == ((str(other),), {"cannot be mapped": 1})
    assert error in found.error


def test_a_guests_file_behind_the_end_of_its_disk_is_left_out(
    machine: LayoutMachine, tmp_path: Path, image: Path
) -> None:
    document = guest_document()
    document["layers"][0]["segments"][0]["below"][0]["start_bytes"] = 15 * MIB
    beside(image, json.dumps(document))
    found = read(machine, tmp_path, "*.img")
    assert (found.files, found.left_out) == (0, {"cannot be mapped": 1})
    assert "guest:/db/a: behind the end of" in found.error


def test_what_is_beside_an_image_must_be_a_small_regular_file(
    machine: LayoutMachine, tmp_path: Path, image: Path
) -> None:
    document = image.with_name("vm.img.guest.json")
    os.mkfifo(document)
    assert "is no file of at most 8 MiB" in read(machine, tmp_path, "*.img").error
    document.unlink()
    document.touch()
    os.truncate(document, (8 << 20) + 1)
    assert "is no file of at most 8 MiB" in read(machine, tmp_path, "*.img").error
    document.unlink()
    document.symlink_to("/dev/null")
    assert read(machine, tmp_path, "*.img").left_out == {"cannot be mapped": 1}


def as_qcow2(image: Path, *words: str) -> None:
    """Make it a qcow2 image of 16 MiB with data of 2 MiB at 5 MiB of the disk."""
    if shutil.which("qemu-img") is None:
        pytest.skip("needs qemu-img")
    command = ["qemu-img", "create", "-q", "-f", "qcow2", *words, str(image), "16M"]
    subprocess.run(command, check=True)
    write = ["qemu-io", "-f", "qcow2", "-c", "write -q -P 7 5M 2M", str(image)]
    subprocess.run(write, check=True)


def test_files_of_a_guest_are_found_in_a_qcow2_image(
    machine: LayoutMachine, tmp_path: Path, image: Path
) -> None:
    as_qcow2(image)
    data = image.read_bytes().index(b"\7" * 4096)
    assert data % MIB, "the clusters of the image begin within a chunk"
    beside(image, json.dumps(guest_document()))
    found = read(machine, tmp_path, "*.img")
    assert (found.groups, found.error) == ((f"{image}, guest:/db/a",), "")
    first = MIB + 32 * MIB + data
    assert found.runs == (ChunkRun(first // MIB, (first + 2 * MIB) // MIB + 1, 0),)
    assert (found.files, found.known_bytes) == (1, 2 * MIB)


def test_a_qcow2_image_that_changes_meanwhile_is_left_out(
    machine: LayoutMachine, tmp_path: Path, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_qcow2(image)
    beside(image, json.dumps(guest_document()))
    real = images.qcow2_segments

    def changed(path: Path, layer: str) -> Any:
        found = real(path, layer)
        write = ["qemu-io", "-f", "qcow2", "-c", "write -q -P 8 8M 1M", str(image)]
        subprocess.run(write, check=True)
        return found

    monkeypatch.setattr(images, "qcow2_segments", changed)
    found = read(machine, tmp_path, "*.img")
    assert found.error == f"the layers below {image} change while they are read"


def test_an_image_that_cannot_be_mapped_in_time_delays_no_other_file(
    machine: LayoutMachine, tmp_path: Path, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes first by its name, and takes all of the time that there is."""
    image.write_bytes(b"QFI\xfb")
    beside(image, json.dumps(guest_document()))
    machine.file([(0, 0, MIB)], "z")

    def slow(*_: object) -> Any:
        monkeypatch.setattr(time, "monotonic", lambda: 1e9)
        raise Unavailable(f"{image} cannot be mapped within 15 s")

    monkeypatch.setattr(images, "qcow2_segments", slow)
    found = read(machine, tmp_path, "*.img", "z")
    assert (found.files, found.left_out) == (1, {"cannot be mapped": 1})


def test_files_that_a_guest_cannot_map_are_counted(
    machine: LayoutMachine, tmp_path: Path, image: Path
) -> None:
    beside(image, json.dumps(guest_document(errors=[{"path": "/x", "why": "on btrfs"}])))
    found = read(machine, tmp_path, "*.img")
    assert (found.files, found.left_out) == (1, {"not known to its guest": 1})
    assert found.error == "guest:/x: on btrfs"


def test_a_guest_leaves_room_for_others(
    machine: LayoutMachine, tmp_path: Path, image: Path
) -> None:
    other = machine.file([(0, 0, 16 * MIB)], "wm.img")
    errors = [{"path": f"/{number}", "why": "on btrfs"} for number in range(10_000)]
    beside(image, json.dumps(guest_document(errors=errors)))
    beside(other, json.dumps(guest_document()))
    found = read(machine, tmp_path, "*.img")
    assert found.groups == (f"{other}, guest:/db/a",)
    assert found.left_out == {
        "not known to its guest": 1250,
        "beyond the first 1250 files of a guest": 8751,
    }


def test_what_a_guest_says_takes_no_memory_from_the_other_files(
    machine: LayoutMachine, tmp_path: Path, image: Path
) -> None:
    """Lists take some twenty times the room of their text."""
    other = machine.file([(0, 0, MIB)], "other")
    beside(image, f"[{'[],' * (7 * MIB // 3)}0]")
    code = (
        "import os, resource, sys\n"
        "from pathlib import Path\n"
        "from ebbgate.errors import Unavailable\n"
        "from ebbgate.layout import guest\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({128 * MIB}, {128 * MIB}))\n"
        "try:\n    guest.read_beside(Path(sys.argv[1]))\n"
        "except Unavailable as error:\n    print(error.message)\n"
    )
    command = [sys.executable, "-c", code, str(image)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "what the guest says takes too much memory\n"
    assert read(machine, tmp_path, "*.img", "other").groups == (str(other),)

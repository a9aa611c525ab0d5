# SPDX-License-Identifier: GPL-2.0-only
"""The disk in an image is found; what qemu-img says is checked before it is used."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import EbbgateError, Unavailable
from ebbgate.kernel.run import Completed
from ebbgate.layout import images
from ebbgate.layout.images import ImageFormat, qcow2_segments
from ebbgate.layout.locate import Locator
from ebbgate.layout.mapping import Below, Segment
from tests.fake_sysfs import fake_bcache
from tests.layout_fixture import LayoutMachine

MIB = 1 << 20
CLUSTER = 65536


def row(start: int, length: int, offset: int | None = 0, **other: object) -> dict[str, object]:
    place = {} if offset is None else {"offset": offset}
    return {"start": start, "length": length, "depth": 0, "data": True, **place, **other}


class FakeQemuImg:
    """Answers as qemu-img does."""

    def __init__(self) -> None:
        self.info: Any = {"virtual-size": 4 * MIB, "format-specific": {"data": {}}}
        self.map: Any = []
        self.exit_code, self.stderr = 0, ""

    def __call__(self, argv: Sequence[str], *, timeout_s: float, check: bool) -> Completed:
        assert 0 < timeout_s <= 60
        assert argv[0] == "prlimit"
        answer = self.info if "info" in argv else self.map
        return Completed(tuple(argv), self.exit_code, json.dumps(answer), self.stderr)


@pytest.fixture
def qemu(monkeypatch: pytest.MonkeyPatch) -> FakeQemuImg:
    made = FakeQemuImg()
    monkeypatch.setattr(images, "run", made)
    return made


def refusal() -> EbbgateError:
    with pytest.raises(EbbgateError) as caught:
        qcow2_segments(Path("/vm.qcow2"), "/vm.qcow2")
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


def test_parts_of_the_disk_are_found_in_the_file(qemu: FakeQemuImg) -> None:
    qemu.map = [
        row(0, CLUSTER, 327680),
        row(CLUSTER, CLUSTER, None, data=False, zero=True),
        row(2 * CLUSTER, CLUSTER, None),
        row(3 * CLUSTER, CLUSTER, 4096, depth=1),
    ]
    assert qcow2_segments(Path("/vm.qcow2"), "/vm.qcow2") == (
        4 * MIB,
        (
            Segment(0, CLUSTER, (Below("/vm.qcow2", 327680),)),
            Segment(2 * CLUSTER, CLUSTER, why="compressed in the image"),
            Segment(3 * CLUSTER, CLUSTER, why="in the backing file of the image"),
        ),
    )


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({"encrypted": True}, "/vm.qcow2 is encrypted"),
        ({"format-specific": {"data": {"encrypt": {}}}}, "/vm.qcow2 is encrypted"),
        (
            {"format-specific": {"data": {"data-file": "x"}}},
            "/vm.qcow2 keeps its data in another file",
        ),
        ({"format-specific": None}, "what qemu-img says of /vm.qcow2 cannot be used"),
        ({"virtual-size": -1}, "what qemu-img says of /vm.qcow2 cannot be used"),
        ({"virtual-size": "4"}, "what qemu-img says of /vm.qcow2 cannot be used"),
    ],
)
def test_an_image_that_cannot_be_used_is_refused(
    qemu: FakeQemuImg, info: dict[str, Any], message: str
) -> None:
    qemu.info |= info
    assert refusal().message == message


@pytest.mark.parametrize(
    "rows",
    [
        None,
        {},
        [None],
        [{}],
        [row(-1, 1)],
        [row(0, 1 << 70)],
        [row(0, 1, -5)],
        [row(0, 1, depth=True)],
        [row(0, 4096), row(0, 4096)],
        [row(8192, 4096), row(0, 4096)],
    ],
)
def test_what_is_no_map_is_refused(qemu: FakeQemuImg, rows: Any) -> None:
    qemu.map = rows
    assert refusal().message == "what qemu-img says of /vm.qcow2 cannot be used"


def test_a_refusal_of_qemu_img_is_one_line(qemu: FakeQemuImg) -> None:
    qemu.exit_code, qemu.stderr = 1, "qemu-img: Image is not in qcow2 format\n"
    message = "/vm.qcow2 cannot be read as a disk image: qemu-img: Image is not in qcow2 format"
    assert refusal().message == message


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LayoutMachine:
    made = LayoutMachine(fake_bcache(tmp_path / "sys"), tmp_path, monkeypatch)
    made.holds_files("bcache0")
    return made


def test_a_raw_image_is_its_file(machine: LayoutMachine) -> None:
    path = machine.file([(0, MIB, 4096), (8192, 2 * MIB, 4096)])
    found = Locator(machine.fake.sysfs, machine.mounts).locate(path, ImageFormat.RAW)
    assert [(each.offset_bytes, each.layer_bytes) for each in found.pieces] == [
        (0, MIB),
        (8192, 2 * MIB),
    ]
    assert [layer.kind for layer in found.layers] == ["image", "file", "volume"]


def test_a_qcow2_image_is_mapped_through_its_file(
    machine: LayoutMachine, qemu: FakeQemuImg
) -> None:
    qemu.map = [row(MIB, CLUSTER, CLUSTER)]
    path = machine.file([(0, MIB, CLUSTER), (CLUSTER, 8 * MIB, CLUSTER)])
    found = Locator(machine.fake.sysfs, machine.mounts).locate(path, ImageFormat.QCOW2)
    (piece,) = found.pieces
    assert (piece.offset_bytes, piece.length_bytes, piece.layer_bytes) == (MIB, CLUSTER, 8 * MIB)


def test_an_image_that_names_places_behind_its_end_is_not_used(
    machine: LayoutMachine, qemu: FakeQemuImg
) -> None:
    qemu.map = [row(0, CLUSTER, 1 << 40)]
    path = machine.file([(0, MIB, CLUSTER)])
    found = Locator(machine.fake.sysfs, machine.mounts).locate(path, ImageFormat.QCOW2)
    assert found.pieces == ()


# ---- the real qemu-img --------------------------------------------------------------------------
@pytest.fixture
def qcow2(tmp_path: Path) -> Path:
    """A disk of 16 MiB with a pattern at 1 MiB."""
    if shutil.which("qemu-img") is None:
        pytest.skip("needs qemu-img")
    path = tmp_path / "vm.qcow2"
    raw = tmp_path / "raw"
    with raw.open("wb") as file:
        file.truncate(16 * MIB)
        file.seek(MIB)
        file.write(b"pattern!" * (CLUSTER // 8))
    command = ["qemu-img", "convert", "-f", "raw", "-O", "qcow2", str(raw), str(path)]
    subprocess.run(command, check=True)
    return path


def test_data_of_a_real_image_is_where_it_was_said(qcow2: Path) -> None:
    size, (segment,) = qcow2_segments(qcow2, "image")
    assert (size, segment.start_bytes, segment.length_bytes) == (16 * MIB, MIB, CLUSTER)
    at = segment.below[0].start_bytes
    assert qcow2.read_bytes()[at : at + CLUSTER] == b"pattern!" * (CLUSTER // 8)


def test_a_real_compressed_image_is_left_out(qcow2: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.qcow2"
    command = ["qemu-img", "convert", "-c", "-O", "qcow2", str(qcow2), str(packed)]
    subprocess.run(command, check=True)
    _, (segment,) = qcow2_segments(packed, "image")
    assert segment.why == "compressed in the image"


def test_a_real_encrypted_image_is_refused(qcow2: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.qcow2"
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "--object", "secret,id=s,data=x"]
    command += ["-o", "encrypt.format=aes,encrypt.key-secret=s", str(secret), "1M"]
    subprocess.run(command, check=True)
    with pytest.raises(Unavailable, match="is encrypted"):
        qcow2_segments(secret, "image")


def test_a_file_that_is_no_image_is_refused(qcow2: Path, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="Image is not in qcow2 format"):
        qcow2_segments(tmp_path / "raw", "image")

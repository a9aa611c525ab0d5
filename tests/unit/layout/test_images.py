# SPDX-License-Identifier: GPL-2.0-only
"""The disk in an image is found; what qemu-img says is checked before it is used."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import EbbgateError, Unavailable
from ebbgate.layout import images
from ebbgate.layout.images import ImageFormat, looks_like, qcow2_segments
from ebbgate.layout.locate import Locator
from ebbgate.layout.mapping import Below, Segment
from tests.fake_sysfs import fake_bcache
from tests.layout_fixture import LayoutMachine

MIB = 1 << 20
CLUSTER = 65536


def row(start: int, length: int, offset: int | None = 0, **other: object) -> dict[str, object]:
    place = {} if offset is None else {"offset": offset}
    return {"start": start, "length": length, "depth": 0, "data": True, **place, **other}


def header(version: int = 3, backing: int = 0, encryption: int = 0, features: int = 0) -> bytes:
    """Of a disk of 4 MiB."""
    places = struct.pack(">IIQQIIQ", 1, 0, 0, 0, 0, 0, 0)
    front = struct.pack(">4sIQIIQI", b"QFI\xfb", version, backing, 0, 16, 4 * MIB, encryption)
    return front + places[:36] + struct.pack(">Q", features)


class FakeQemuImg:
    """A program that answers as it is told, in the place of qemu-img."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.program = folder / "qemu-img"
        self.map([])

    def does(self, script: str) -> None:
        self.program.write_text(f"#!/bin/sh\n{script}\n")
        self.program.chmod(0o755)

    def map(self, rows: object) -> None:
        answer = self.program.with_name("answer")
        answer.write_text(json.dumps(rows))
        self.does(f"cat {answer}")


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeQemuImg:
    made = FakeQemuImg(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return made


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "vm.qcow2"
    path.write_bytes(header())
    return path


def refusal(path: Path) -> EbbgateError:
    with pytest.raises(EbbgateError) as caught:
        qcow2_segments(path, "image")
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


def test_parts_of_the_disk_are_found_in_the_file(qemu: FakeQemuImg, image: Path) -> None:
    image.write_bytes(header(backing=4096))
    rows = [
        row(0, CLUSTER, 327680),
        row(CLUSTER, CLUSTER, None, data=False, zero=True, present=True),
        row(2 * CLUSTER, CLUSTER, None),
        row(3 * CLUSTER, CLUSTER, None, data=False, zero=True, present=False),
    ]
    qemu.map(rows)
    assert qcow2_segments(image, "image") == (
        4 * MIB,
        (
            Segment(0, CLUSTER, (Below("image", 327680),)),
            Segment(2 * CLUSTER, CLUSTER, why="compressed in the image"),
            Segment(3 * CLUSTER, CLUSTER, why="in the backing file of the image"),
        ),
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (header(encryption=1), "is encrypted"),
        (header(encryption=2), "is encrypted"),
        (header(features=1 << 2), "keeps its data in another file"),
        (header(features=1 << 1), "is marked as damaged"),
        (header(version=1), "is no qcow2 image"),
        (header()[:71], "is no qcow2 image"),
        (b"raw" * 100, "is no qcow2 image"),
        (b"", "is no qcow2 image"),
    ],
)
def test_an_image_that_cannot_be_used_is_refused_before_qemu_img_sees_it(
    qemu: FakeQemuImg, image: Path, content: bytes, message: str
) -> None:
    qemu.does(f"touch {image}.seen")
    image.write_bytes(content)
    assert refusal(image).message == f"{image} {message}"
    assert not Path(f"{image}.seen").exists()


def test_features_are_not_read_from_an_old_header(qemu: FakeQemuImg, image: Path) -> None:
    image.write_bytes(header(version=2, features=1 << 2))
    assert qcow2_segments(image, "image") == (4 * MIB, ())


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
        [row(0, 1, depth=1)],
        [row(0, 4096), row(0, 4096)],
        [row(8192, 4096), row(0, 4096)],
    ],
)
def test_what_is_no_map_is_refused(qemu: FakeQemuImg, image: Path, rows: Any) -> None:
    qemu.map(rows)
    assert refusal(image).message == f"what qemu-img says of {image} cannot be used"


def test_a_refusal_of_qemu_img_is_one_line(qemu: FakeQemuImg, image: Path) -> None:
    qemu.does("echo first >&2; printf 'L1 is \\033[1m too large\n' >&2; exit 1")
    message = f"{image} cannot be read as a disk image: L1 is ?[1m too large"
    assert refusal(image).message == message


def test_a_refusal_may_quote_any_bytes_of_the_image(qemu: FakeQemuImg, image: Path) -> None:
    """Such as the name of a feature, which is in the header."""
    qemu.does("printf 'unsupported feature: \\377\\376 bad\n' >&2; exit 1")
    message = f"{image} cannot be read as a disk image: unsupported feature: \ufffd\ufffd bad"
    assert refusal(image).message == message


def test_an_image_whose_map_takes_too_long_is_given_up(
    qemu: FakeQemuImg, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "MAP_S", 0.2)
    qemu.does("exec sleep 60")
    assert refusal(image).message == f"{image} cannot be mapped within 0.2 s"


def test_an_image_of_too_many_parts_is_given_up(qemu: FakeQemuImg, image: Path) -> None:
    qemu.does("exec yes")
    assert refusal(image).message == f"{image} is in too many parts"


def mapped_in_256_mib(image: Path) -> subprocess.CompletedProcess[str]:
    """Print the number of parts, as the process that reads for ebbgated does, which may not raise
    its limit.
    """
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from ebbgate.layout.images import qcow2_segments\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({256 * MIB}, {256 * MIB}))\n"
        "print(len(qcow2_segments(Path(sys.argv[1]), 'image')[1]))\n"
    )
    command = [sys.executable, "-c", code, str(image)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_memory_is_bounded_by_what_the_process_itself_may_have(
    qemu: FakeQemuImg, image: Path
) -> None:
    qemu.does("ulimit -v >&2; exit 1")
    assert refusal(image).message.endswith(f": {1 << 20}")
    assert f"cannot be read as a disk image: {256 << 10}" in mapped_in_256_mib(image).stderr


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


def write_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(header())


def test_a_qcow2_image_is_mapped_through_its_file(
    machine: LayoutMachine, qemu: FakeQemuImg
) -> None:
    qemu.map([row(MIB, CLUSTER, CLUSTER)])
    path = machine.file([(0, MIB, CLUSTER), (CLUSTER, 8 * MIB, CLUSTER)])
    write_header(path)
    found = Locator(machine.fake.sysfs, machine.mounts).locate(path, ImageFormat.QCOW2)
    (piece,) = found.pieces
    assert (piece.offset_bytes, piece.length_bytes, piece.layer_bytes) == (MIB, CLUSTER, 8 * MIB)


def test_an_image_that_names_places_behind_its_end_is_not_used(
    machine: LayoutMachine, qemu: FakeQemuImg
) -> None:
    qemu.map([row(0, CLUSTER, 1 << 40)])
    path = machine.file([(0, MIB, CLUSTER)])
    write_header(path)
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


def test_nothing_that_a_real_image_names_is_opened(qcow2: Path, tmp_path: Path) -> None:
    """Its backing file is a pipe, on which qemu-img would hang."""
    top, below = tmp_path / "top.qcow2", tmp_path / "below.qcow2"
    qcow2.rename(below)
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", str(below)]
    subprocess.run([*command, str(top)], check=True)
    below.unlink()
    os.mkfifo(below)
    size, (segment,) = qcow2_segments(top, "image")
    assert (size, segment.length_bytes) == (16 * MIB, 16 * MIB)
    assert segment.why == "in the backing file of the image"


def test_a_real_image_with_its_data_elsewhere_is_refused(qcow2: Path, tmp_path: Path) -> None:
    path = tmp_path / "split.qcow2"
    options = f"data_file={tmp_path / 'data.raw'}"
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-o", options, str(path), "1M"]
    subprocess.run(command, check=True)
    with pytest.raises(Unavailable, match="keeps its data in another file"):
        qcow2_segments(path, "image")


def test_the_real_qemu_img_needs_no_more_memory_than_the_reading_process_has(qcow2: Path) -> None:
    assert mapped_in_256_mib(qcow2).stdout == "1\n"


def test_the_format_is_told_by_the_first_bytes(qcow2: Path, tmp_path: Path) -> None:
    assert looks_like(qcow2) is ImageFormat.QCOW2
    assert looks_like(tmp_path / "raw") is ImageFormat.RAW
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Unavailable, match="is no regular file"):
        looks_like(tmp_path / "pipe")


def test_a_damaged_image_is_refused_in_one_line_or_mapped_in_order(qcow2: Path) -> None:
    """Bytes of the header and the tables of places are replaced, as a hostile guest may do."""
    whole, chance, outcomes = qcow2.read_bytes(), random.Random(16), Counter[str]()
    used = [at for at in range(len(whole)) if whole[at]]
    tables = [at for at in used if whole[at : at + 8] != b"pattern!" and at < 4 * CLUSTER]
    for _ in range(80):
        damaged = bytearray(whole)
        for at in chance.choices(tables, k=chance.randint(1, 4)):
            damaged[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        qcow2.write_bytes(damaged)
        try:
            size, segments = qcow2_segments(qcow2, "image")
            outcomes["mapped"] += 1
            assert 0 <= size < 1 << 62
            assert sorted(segments, key=lambda each: each.start_bytes) == list(segments)
        except Unavailable as error:
            outcomes["refused"] += 1
            assert "\n" not in error.message
            assert error.hint
    assert min(outcomes["mapped"], outcomes["refused"]) > 5, outcomes

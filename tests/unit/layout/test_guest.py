# SPDX-License-Identifier: GPL-2.0-only
"""What a guest says of its files is checked, and lies within the image of its own disk."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.errors import EbbgateError, Unavailable, UsageError
from ebbgate.layout import guest
from ebbgate.layout.guest import GuestLayout, parse, reachable, read_document
from ebbgate.layout.images import ImageFormat
from ebbgate.layout.locate import Located, Locator
from ebbgate.layout.mapping import Below, Layer, LayerKind, Segment, place
from tests.fake_sysfs import fake_bcache
from tests.layout_fixture import LayoutMachine

MIB = 1 << 20
SIZE = 4 * MIB
IMAGE = Layer(LayerKind.IMAGE, "disk in /vm", SIZE, (Segment(0, SIZE, (Below("bcache0", MIB),)),))
VOLUME = Layer(LayerKind.VOLUME, "bcache0", 64 * MIB)


def segment(start: int, length: int, *below: tuple[str, int], chunk: int = 0) -> dict[str, Any]:
    return {
        "start_bytes": start,
        "length_bytes": length,
        "below": [{"layer": name, "start_bytes": at} for name, at in below],
        "chunk_bytes": chunk,
        "why": "" if below else "not allocated yet",
    }


def layer(kind: str, name: str, size: int, *segments: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "size_bytes": size,
        "about": "",
        "segments": list(segments),
    }


def document() -> dict[str, Any]:
    """A file on a partition of the guest's only disk."""
    return {
        "ebbgate_agent": 1,
        "files": ["/db"],
        "layers": [
            layer("file", "/db", 12288, segment(0, 8192, ("vda1", 4096)), segment(8192, 4096)),
            layer("partition", "vda1", 2 * MIB, segment(0, 2 * MIB, ("vda", MIB))),
            layer("disk", "vda", SIZE),
        ],
        "errors": [{"path": "/x\x1b[1m", "why": "Permission denied"}],
    }


def parsed(said: object) -> GuestLayout:
    return parse(json.dumps(said).encode())


def test_a_file_of_a_guest_is_mapped_through_its_image() -> None:
    said = parsed(document())
    layers = {**said.on_image(IMAGE, ""), IMAGE.name: IMAGE, VOLUME.name: VOLUME}
    (data, rest) = place(layers, "guest:/db")
    assert (data.layer, data.layer_bytes, data.length_bytes) == ("bcache0", 2 * MIB + 4096, 8192)
    assert rest.why == "not allocated yet"
    names = ["guest:/db", "guest:vda1", "guest:vda", "disk in /vm", "bcache0"]
    assert list(reachable(layers, "guest:/db")) == names
    assert said.errors == ("guest:/x?[1m: Permission denied",)


def change(path: list[str | int], value: object) -> Callable[[dict[str, Any]], None]:
    def apply(said: Any) -> None:
        for key in path[:-1]:
            said = said[key]
        said[path[-1]] = value

    return apply


SEGMENT: list[str | int] = ["layers", 0, "segments", 0]
LIES = {
    "another version": change(["ebbgate_agent"], 2),
    "no layers": change(["layers"], None),
    "files that are no layers": change(["files"], ["/etc/shadow"]),
    "a file that is a disk": change(["files"], ["vda"]),
    "a layer twice": change(["layers", 1, "name"], "vda"),
    "a layer on itself": change([*SEGMENT, "below", 0, "layer"], "/db"),
    "a layer on one before it": change(["layers", 1, "segments", 0, "below", 0, "layer"], "/db"),
    "a layer of the host": change([*SEGMENT, "below", 0, "layer"], "bcache0"),
    "a disk on something": change(["layers", 1, "kind"], "disk"),
    "a volume": change(["layers", 2, "kind"], "volume"),
    "an image": change(["layers", 1, "kind"], "image"),
    "an unhashable kind": change(["layers", 1, "kind"], [1]),
    "a negative place": change([*SEGMENT, "below", 0, "start_bytes"], -1),
    "a broken place": change([*SEGMENT, "below", 0, "start_bytes"], 1.5),
    "a truth as a size": change(["layers", 0, "size_bytes"], True),
    "a huge size": change(["layers", 0, "size_bytes"], 1 << 70),
    "segments that overlap": change(["layers", 0, "segments", 1, "start_bytes"], 4096),
    "an empty segment": change([*SEGMENT, "length_bytes"], 0),
    "stripes without chunks": change([*SEGMENT, "below"], [{"layer": "vda", "start_bytes": 0}] * 2),
    "chunks of a byte": change([*SEGMENT, "chunk_bytes"], 1),
    "too many stripes": change([*SEGMENT, "below"], [{"layer": "vda", "start_bytes": 0}] * 1000),
    "a place and a reason": change([*SEGMENT, "why"], "x"),
    "neither": change([*SEGMENT, "below"], []),
    "a name with an escape": change(["layers", 1, "name"], "vda1\x1b[2J"),
    "a name of two lines": change(["layers", 1, "name"], "vda1\nbcache0"),
    "a long name": change(["layers", 0, "name"], "x" * 5000),
    "errors that are none": change(["errors"], ["x"]),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_lie_is_refused_in_one_line(lie: Callable[[dict[str, Any]], None]) -> None:
    said = document()
    lie(said)
    with pytest.raises(Unavailable, match="what the guest says cannot be used: ") as caught:
        parsed(said)
    assert "\n" not in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("data", [b"", b"x", b"\xff\xfe", b"[" * 100_000, b'{"a": 1', b"NaN\0"])
def test_what_is_no_document_is_refused(data: bytes) -> None:
    with pytest.raises(Unavailable, match="what the guest says"):
        parse(data)


def test_a_tower_of_layers_is_refused() -> None:
    said = document()
    parts = [
        layer("dm", f"dm-{n}", SIZE, segment(0, SIZE, (f"dm-{n + 1}", 0))) for n in range(2000)
    ]
    said["layers"] = [
        *said["layers"][:1],
        *parts,
        layer("disk", "dm-2000", SIZE),
        *said["layers"][1:],
    ]
    with pytest.raises(Unavailable, match="too many layers lie on each other"):
        parsed(said)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(where=st.integers(0, 40), value=JSON)
def test_any_value_anywhere_is_taken_or_refused(where: int, value: Any) -> None:
    said = document()
    places = list(every_place(said))
    change(places[where % len(places)], value)(said)
    try:
        found = parsed(copy.deepcopy(said))
    except Unavailable:
        return
    layers = {IMAGE.name: IMAGE, VOLUME.name: VOLUME}
    try:
        layers = {**found.on_image(IMAGE, ""), **layers}
    except UsageError:
        return
    for file in found.files:
        for piece in place(layers, file):
            inside = MIB <= piece.layer_bytes <= MIB + SIZE - piece.length_bytes
            assert piece.why or (piece.layer == "bcache0" and inside)


def every_place(value: Any, path: tuple[str | int, ...] = ()) -> Any:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        yield [*path, key]
        if isinstance(inner, dict | list):
            yield from every_place(inner, (*path, key))


@pytest.mark.parametrize(
    ("disk", "size", "message"),
    [
        ("vdb", SIZE, "the guest has no disk vdb"),
        ("", 2 * SIZE, f"the guest's vda has {2 * SIZE} bytes, disk in /vm {SIZE}"),
    ],
)
def test_another_disk_than_the_images_is_refused(disk: str, size: int, message: str) -> None:
    said = document()
    said["layers"][2]["size_bytes"] = size
    with pytest.raises(UsageError) as caught:
        parsed(said).on_image(IMAGE, disk)
    assert caught.value.message == message


def test_one_of_two_disks_is_to_be_named() -> None:
    said = document()
    said["layers"].append(layer("disk", "vdb", SIZE))
    with pytest.raises(UsageError) as caught:
        parsed(said).on_image(IMAGE, "")
    assert caught.value.message == "the guest has 2 disks"
    assert "--disk vdb or vda" in caught.value.hint
    assert parsed(said).on_image(IMAGE, "vdb")["guest:vdb"].kind is LayerKind.GUEST_DISK


# ---- a guest that hangs or talks too much -------------------------------------------------------
def test_a_guest_that_hangs_is_given_up() -> None:
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, b'{"ebbgate_agent"')
        with pytest.raises(Unavailable, match=r"the guest did not answer within 0\.05 s"):
            read_document(read_end, 0.05)
    finally:
        os.close(read_end)
        os.close(write_end)


def test_a_guest_that_never_ends_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, "DOCUMENT_BYTES_MAX", 1 << 20)
    endless = os.open("/dev/zero", os.O_RDONLY)
    try:
        with pytest.raises(Unavailable, match="the guest says more than 1 MiB"):
            read_document(endless)
    finally:
        os.close(endless)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LayoutMachine:
    made = LayoutMachine(fake_bcache(tmp_path / "sys"), tmp_path, monkeypatch)
    made.holds_files("bcache0")
    return made


def located(machine: LayoutMachine, said: object) -> list[Located | EbbgateError]:
    image = machine.file([(0, MIB, SIZE)], "vm.img")
    locator = Locator(machine.fake.sysfs, machine.mounts)
    return list(locator.locate_guest(parsed(said), image, ImageFormat.RAW))


def test_files_of_a_guest_are_found_on_the_volume(machine: LayoutMachine) -> None:
    (found,) = located(machine, document())
    assert isinstance(found, Located)
    assert [each.layer_bytes for each in found.pieces] == [2 * MIB + 4096]
    kinds = ["file", "partition", "guest disk", "image", "file", "volume"]
    assert [each.kind for each in found.layers] == kinds


def test_one_file_of_lies_does_not_hide_the_others(machine: LayoutMachine) -> None:
    said = document()
    said["layers"].insert(0, layer("file", "/lie", 4096, segment(0, 4096, ("vda1", 1 << 50))))
    said["files"].append("/lie")
    good, bad = located(machine, said)
    assert isinstance(good, Located)
    assert isinstance(bad, Unavailable)
    assert "behind the end of guest:vda1" in bad.message


def test_a_guest_whose_answer_takes_too_long_to_map_is_given_up(
    machine: LayoutMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebbgate.layout.locate.PIECES_MAX", 1)
    with pytest.raises(Unavailable, match="the guest's files lie in too many pieces"):
        located(machine, document())

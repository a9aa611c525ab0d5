# SPDX-License-Identifier: GPL-2.0-only
"""The process that touches pinned files: opens each for one touch, and counts hits."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.errors import Unavailable
from ebbgate.layout.mounts import Mount, Mounts
from ebbgate.units import GIB, KIB, MIB
from ebbgate.warm import touch
from ebbgate.warm.plan import Piece
from ebbgate.warm.reader import TRIES_MAX, Counts
from ebbgate.warm.target import Target
from ebbgate.warm.touch import Touched, Toucher, end_of_stretch, serve

PIECES = (Piece(0, MIB, MIB), Piece(MIB, 8 * MIB, MIB))
COMMAND: dict[str, Any] = {
    "command": "touch",
    "kind": "bcache",
    "unit": 512,
    "block": 0,
    "backing": "8:0",
    "burst": 0,
    "step": 256 * KIB,
    "phase": 0,
    "first": 0,
    "rate": 500,
}


def start(own: Toucher, command: dict[str, Any]) -> None:
    """As the reader does, but without a device."""
    own.kind, own.unit, own.block = command["kind"], command["unit"], command["block"]


def mount_of(path: Path) -> str:
    handle = os.open(path, os.O_RDONLY)
    try:
        return touch.mount_of(handle)
    finally:
        os.close(handle)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class Machine:
    """A file of two pieces. `misses`: of so many places the next reads are no hits."""

    def __init__(self, path: Path, patch: pytest.MonkeyPatch) -> None:
        path.write_bytes(bytes(2 * MIB))
        self.path = path
        self.read: list[int] = []
        self.misses = 0
        self.paused_s: list[float] = []
        patch.setattr(touch, "open_file", self.open)
        patch.setattr(Toucher, "start", start)
        patch.setattr(Toucher, "close", lambda _: None)
        patch.setattr(Toucher, "is_hit", lambda _, read: self.is_hit(read.offset_bytes))
        patch.setattr(Toucher, "pause", lambda _, seconds: self.paused_s.append(seconds))

    def open(self, path: str) -> Target:
        handle = os.open(path, os.O_RDONLY)
        return Target(handle, (8, 1), PIECES, {}, path, 2 * MIB, 7)

    def is_hit(self, offset: int) -> bool:
        self.read.append(offset)
        self.misses -= 1
        return self.misses < 0


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path / "file", monkeypatch)


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[dict[str, Any]]]:
    """Send lines to the worker; return its events."""

    def work(first: dict[str, Any], *lines: dict[str, Any]) -> list[dict[str, Any]]:
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        serve(first, io.BytesIO(text.encode()))  # type: ignore[arg-type]
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return work


Ask = Callable[..., list[dict[str, Any]]]


def test_a_file_is_opened_and_touched(machine: Machine, ask: Ask) -> None:
    path = str(machine.path)
    before = open_files()
    opened, touched, again = ask({"touch": path}, COMMAND, {"touch": path}, {"command": "skip"})
    assert opened == again
    assert opened == {
        "event": "opened",
        "devno": [8, 1],
        "mount": mount_of(machine.path),
        "inode": machine.path.stat().st_ino,
        "generation": 7,
        "bytes": 2 * MIB,
        "pieces": 2,
        "blocks": {},
        "layout": hash(((8, 1), PIECES)),
    }
    assert touched == {"event": "touched", "reads": 8, "hits": 8, "elsewhere": 0}
    assert machine.read == [number * 256 * KIB for number in range(8)]
    assert open_files() == before, "a file stays open"


def test_cache_blocks_are_counted_where_that_is_asked_for(machine: Machine, ask: Ask) -> None:
    (opened,) = ask({"touch": str(machine.path), "block_sizes": [64 * KIB, 2 * MIB]})
    assert opened["blocks"] == {"65536": 32, "2097152": 2}


def test_other_places_are_touched_in_each_round(machine: Machine, ask: Ask) -> None:
    ask({"touch": str(machine.path)}, {**COMMAND, "phase": 100 * KIB + 1})
    assert machine.read[0] == 100 * KIB


@pytest.mark.parametrize("size", [4 * KIB, 60 * KIB, 200 * KIB, 300 * KIB])
def test_a_small_file_has_a_place_in_each_round(size: int) -> None:
    toucher = Toucher(Target(-1, (8, 1), (Piece(0, MIB, size),), {}), "bcache", 512)
    for phase in range(0, 256 * KIB, 32 * KIB):
        places = list(toucher.places(256 * KIB, phase))
        assert places
        assert all(place.offset_bytes < size and place.length_bytes >= 512 for place in places)


@pytest.mark.parametrize("kind", ["bcache", "dm-cache"])
def test_nothing_behind_the_end_of_a_file_is_touched(kind: str) -> None:
    pieces = (Piece(0, MIB, 8 * KIB),)
    toucher = Toucher(Target(-1, (8, 1), pieces, {}, "/srv/a", 4100), kind, 512, 64 * KIB)
    for phase in range(0, 256 * KIB, 512):
        (place,) = toucher.places(256 * KIB, phase)
        assert place.offset_bytes + place.length_bytes <= 4608


def test_a_round_begins_where_the_last_one_ended(machine: Machine, ask: Ask) -> None:
    _, touched = ask({"touch": str(machine.path)}, {**COMMAND, "first": 6})
    assert touched["reads"] == 8
    assert [offset // (256 * KIB) for offset in machine.read] == [6, 7, 0, 1, 2, 3, 4, 5]


def test_each_block_of_dm_cache_is_touched(machine: Machine, ask: Ask) -> None:
    command = {**COMMAND, "kind": "dm-cache", "block": 64 * KIB, "phase": 5 * KIB}
    _, touched = ask({"touch": str(machine.path)}, command)
    assert touched["reads"] == 32
    assert machine.read[:2] == [0, 64 * KIB]


def test_a_miss_is_looked_at_again_at_another_place(machine: Machine, ask: Ask) -> None:
    machine.misses = 3
    _, touched = ask({"touch": str(machine.path)}, COMMAND)
    assert touched == {"event": "touched", "reads": 8, "hits": 8, "elsewhere": 0}
    assert machine.read[8:] == [number * 256 * KIB + 4 * KIB for number in range(3)]


def test_a_place_without_another_one_behind_it_stays_a_miss(machine: Machine, ask: Ask) -> None:
    machine.misses = 1
    command = {**COMMAND, "first": 7, "phase": 252 * KIB}
    _, touched = ask({"touch": str(machine.path)}, command)
    assert touched == {"event": "touched", "reads": 8, "hits": 7, "elsewhere": 0}
    assert len(machine.read) == 8


def test_many_misses_end_the_touches_soon(machine: Machine, ask: Ask) -> None:
    machine.misses = 1000
    _, touched = ask({"touch": str(machine.path)}, {**COMMAND, "step": 16 * KIB})
    assert touched == {"event": "touched", "reads": 17, "hits": 0, "elsewhere": 0}


def test_the_rate_is_kept(machine: Machine, ask: Ask) -> None:
    ask({"touch": str(machine.path)}, {**COMMAND, "step": 16 * KIB, "rate": 10})
    assert machine.paused_s == [pytest.approx(5, abs=1), pytest.approx(10, abs=1)]


# ---- a volume with a part that is not cached -----------------------------------------------------
class Parts(Toucher):
    """A device of which only this range is on the cached volume, in whose cache all of it is."""

    on_volume = range(0)
    volume = other = 0

    def counts(self) -> Counts:
        return self.volume, 7

    def read_at(self, offset_bytes: int, length_bytes: int) -> int:
        if offset_bytes in self.on_volume:
            self.volume += 1
        else:
            self.other += 1
        return length_bytes

    def pause(self, seconds: float) -> None:
        """Time stands still."""


def parts(on_volume: range, size_bytes: int = 64 * MIB) -> Parts:
    made = Parts(Target(-1, (253, 0), (Piece(0, MIB, size_bytes),), {}), "bcache", 512)
    made.on_volume = on_volume
    return made


def test_of_a_file_on_another_device_few_places_are_looked_at() -> None:
    toucher = parts(range(0), 8 * GIB)
    places = tuple(toucher.places(256 * KIB, 0))
    assert toucher.touch_all(places, 500) == Touched(32_768, 0, 32_768)
    assert toucher.other < 50 * TRIES_MAX


@pytest.mark.parametrize("first", [0, 100, 200])
@pytest.mark.parametrize(
    "on_volume", [range(32 * MIB), range(16 * MIB, 48 * MIB), range(33 * MIB, 64 * MIB)]
)
def test_each_place_on_the_cached_part_of_a_device_is_touched(on_volume: range, first: int) -> None:
    toucher = parts(on_volume)
    places = tuple(toucher.places(256 * KIB, 0))
    hits = sum(place.offset_bytes in on_volume for place in places)
    found = toucher.touch_all(places[first:] + places[:first], 500)
    assert found == Touched(256, hits, 256 - hits)
    assert toucher.volume >= hits
    assert toucher.other < 100 * TRIES_MAX


def test_reads_that_fail_do_not_show_that_a_file_is_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Parts, "read_at", fail)
    toucher = parts(range(0))
    found = toucher.touch_all(tuple(toucher.places(256 * KIB, 0)), 500)
    assert found == Touched(17, 0, 0)


@given(st.integers(1, 3000), st.data())
def test_the_end_of_a_stretch_is_found_with_few_looks(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, count - 1))
    end = data.draw(st.integers(first + 1, count))
    looks = list[int]()

    def is_in(number: int) -> bool:
        looks.append(number)
        return number < end

    assert end_of_stretch(first, count, is_in) == end
    assert len(looks) <= 80


def test_a_missing_file_tells_where_it_should_be(machine: Machine, ask: Ask) -> None:
    found = machine.path.parent.stat().st_dev
    devno = [os.major(found), os.minor(found)]
    missing = machine.path.with_name("no") / "such" / "file"
    told = [{"event": "missing", "devno": devno, "mount": mount_of(machine.path.parent)}]
    assert ask({"touch": str(missing)}) == told
    (machine.path.parent / "link").symlink_to(missing)
    assert ask({"touch": str(machine.path.parent / "link")}) == told


def test_a_missing_file_on_btrfs_is_on_its_device(
    machine: Machine, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = machine.path.parent
    monkeypatch.setattr(os, "major", lambda _: 0)
    monkeypatch.setattr(
        touch, "device_of", lambda _, path: (252, 3) if path == str(folder) else None
    )
    (missing,) = ask({"touch": str(folder / "no")})
    assert missing["devno"] == [252, 3]


def test_the_mount_of_a_folder_is_the_nearest_above() -> None:
    assert mount_of(Path("/")) == "/"
    assert mount_of(Path("/proc/self/fd")) == "/proc"
    assert mount_of(Path("/sys/kernel")) == "/sys"


@pytest.mark.parametrize("named", ["folder", "file"])
def test_a_missing_bind_mount_is_not_the_mount_of_the_file(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """What it shows is on the same file system, so it is no mount by its device."""
    data, shown = tmp_path / "data", tmp_path / "shown"
    for folder in (data, shown):
        folder.mkdir()
    (data / "file").touch()
    if named == "file":
        data, shown = data / "file", shown / "file"
        shown.touch()
    path = shown / "file" if named == "folder" else shown

    def open_(path: str) -> Target:
        return Target(os.open(path, os.O_RDONLY), (8, 1), PIECES, {}, path, 2 * MIB, 7)

    monkeypatch.setattr(touch, "open_file", open_)
    bound = subprocess.run(["mount", "--bind", data, shown], capture_output=True, check=False)
    if bound.returncode:
        pytest.skip("needs root")
    try:
        (there,) = ask({"touch": str(path)})
    finally:
        subprocess.run(["umount", shown], check=True)
    (absent,) = ask({"touch": str(path)})
    assert (there["event"], there["mount"]) == ("opened", str(shown))
    assert absent["event"] == ("missing" if named == "folder" else "opened")
    assert absent["mount"] == mount_of(tmp_path) != there["mount"]


def test_a_file_that_is_mounted_while_it_is_looked_for_is_not_missing(
    machine: Machine, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.path.rename(machine.path.with_name("other"))
    usual = touch.mount_of

    def mount(handle: int) -> str:
        if not machine.path.exists():
            machine.path.with_name("other").rename(machine.path)
        return usual(handle)

    monkeypatch.setattr(touch, "mount_of", mount)
    (found,) = ask({"touch": str(machine.path)})
    assert found["event"] == "opened"


def test_a_mount_that_is_not_known_is_no_missing_file(
    machine: Machine, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Mounts, "of", lambda *_: Mount(""))
    (found,) = ask({"touch": str(machine.path.with_name("no"))})
    assert found["event"] == "failed"


def test_a_file_that_cannot_be_opened_ends_nothing_else(
    machine: Machine, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> Target:
        raise Unavailable("it is no regular file", "name files")

    monkeypatch.setattr(touch, "open_file", fail)
    events = ask({"touch": str(machine.path)}, {"touch": "/" + "a" * 300}, {"touch": "/no"})
    assert [each["event"] for each in events] == ["failed", "failed", "missing"]
    assert (events[0]["text"], events[0]["hint"]) == ("it is no regular file", "name files")


def test_a_file_of_too_many_extents_ends_nothing_else(
    machine: Machine, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> Target:
        raise MemoryError

    monkeypatch.setattr(touch, "open_file", fail)
    events = ask({"touch": str(machine.path)}, {"touch": "/no"})
    assert [each["event"] for each in events] == ["failed", "missing"]
    assert events[0]["text"] == "what is known of it takes too much memory"


def test_a_daemon_that_ends_meanwhile_ends_it(machine: Machine, ask: Ask) -> None:
    assert len(ask({"touch": str(machine.path)})) == 1

# SPDX-License-Identifier: GPL-2.0-only
"""`warm --save` and `warm --restore`: files of hot sets."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.conftest import Cli

UUID = "0b1e5000-0000-4000-8000-000000000001"
DATA: dict[str, str | int] = {
    "volume": "bcache0",
    "uuid": UUID,
    "size_bytes": 2 << 30,
    "chunk_bytes": 1 << 20,
    "observed_ns": 240 * 10**9,
    "ranges": "8+1,-a",
}
TEXT = "bcache0: 3 MiB in 2 ranges, observed for 4 min"
HEAD: dict[str, Any] = {
    "ebbgate_hot_set": 1,
    "volume": "bcache0",
    "uuid": UUID,
    "size_bytes": 2 << 30,
    "chunk_bytes": 1 << 20,
    "observed_ns": 240 * 10**9,
    "saved_unix_ns": 1,
}
RANGES: list[dict[str, Any]] = [
    {"from_bytes": 8 << 20, "to_bytes": 10 << 20},
    {"from_bytes": 0, "to_bytes": 1 << 20},
]


def write(path: Path, *lines: dict[str, Any]) -> None:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def file(cli: Cli) -> Path:
    return cli.state_dir / "hot.jsonl"


def test_what_is_hot_is_saved_and_can_be_restored(cli: Cli, file: Path) -> None:
    with cli.daemon(answers=lambda _: (True, TEXT, DATA)):
        result = cli("warm", "--save", str(file))
    assert (result.code, result.out.replace("\n", "")) == (0, f"{TEXT}; saved in {file}")
    assert cli.intents()[0]["volume"] == "bcache0", "the only volume"
    head, *ranges = lines_of(file)
    assert {**head, "saved_unix_ns": 1} == HEAD
    assert ranges == RANGES
    with cli.daemon(answers=(True, "bcache0: job 5 warms 2 saved ranges")):
        assert cli("warm", "--restore", str(file)).code == 0
    (intent,) = cli.intents()
    assert (intent["kind"], intent["volume"]) == ("warm", None)
    assert intent["args"] == {"ranges": "8+1,-a", "chunk_bytes": 1 << 20, "uuid": UUID}


def test_a_name_makes_it_another_volume(cli: Cli, file: Path) -> None:
    write(file, HEAD, *RANGES)
    with cli.daemon(answers=(True, "done")):
        cli("warm", "--restore", str(file), "--volume", "bcache0", "--bandwidth", "1MiB/s")
    (intent,) = cli.intents()
    assert (intent["volume"], "uuid" in intent["args"]) == ("bcache0", False)
    assert intent["args"]["bandwidth_bytes_per_s"] == 1 << 20


def test_a_volume_without_uuid_is_found_by_its_name(cli: Cli, file: Path) -> None:
    write(file, {**HEAD, "uuid": ""}, *RANGES)
    with cli.daemon(answers=(True, "done")):
        cli("warm", "--restore", str(file))
    assert cli.intents()[0]["volume"] == "bcache0"


def test_a_file_is_replaced_only_by_force(cli: Cli, file: Path) -> None:
    file.write_text("precious")
    with cli.daemon(answers=lambda _: (True, TEXT, DATA)):
        result = cli("warm", "--save", str(file), "bcache0")
        assert (result.code, "to replace it: --force" in result.err) == (64, True)
        assert file.read_text() == "precious"
        assert cli("warm", "--save", str(file), "--force", "bcache0").code == 0
    assert len(lines_of(file)) == 3
    assert [path.name for path in file.parent.iterdir() if "hot" in path.name] == [file.name]


def test_no_device_or_pipe_is_replaced(cli: Cli, file: Path) -> None:
    """Such as /dev/stdout."""
    os.mkfifo(file)
    with cli.daemon(answers=lambda _: (True, TEXT, DATA)):
        result = cli("warm", "--save", str(file), "--force", "bcache0")
    assert (result.code, f"{file} is no regular file" in result.err) == (64, True)
    assert file.is_fifo()


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_it_is_saved_where_the_file_system_has_no_links(
    cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(Path, "exists", lambda _: False)
    with cli.daemon(answers=lambda _: (True, TEXT, DATA)):
        assert cli("warm", "--save", str(file), "bcache0").code == 0
        assert len(lines_of(file)) == 3
        again = cli("warm", "--save", str(file), "bcache0")
    assert (again.code, "to replace it: --force" in again.err) == (64, True)
    assert [path.name for path in file.parent.iterdir() if "hot" in path.name] == [file.name]


def test_a_folder_that_cannot_be_written_is_named(cli: Cli) -> None:
    with cli.daemon(answers=lambda _: (True, TEXT, DATA)):
        result = cli("warm", "--save", "/proc/none/hot", "bcache0")
    assert result.code
    assert "/proc/none/hot cannot be written" in result.err


def test_a_path_that_cannot_be_looked_at_is_named(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / ("a" * 300)
    with cli.daemon(answers=lambda _: (True, TEXT, DATA)):
        result = cli("warm", "--save", str(file), "bcache0")
        empty = cli("warm", "--save", "", "--force", "bcache0")
    assert (result.code, "cannot be written: File name too long" in result.err) == (74, True)
    assert (empty.code, ". is a folder" in empty.err) == (64, True)


@pytest.mark.parametrize("data", [{}, {**DATA, "ranges": "x"}, {**DATA, "chunk_bytes": 5}])
def test_an_answer_of_another_release_is_an_error(
    cli: Cli, file: Path, data: dict[str, str | int]
) -> None:
    with cli.daemon(answers=lambda _: (True, TEXT, data)):
        result = cli("warm", "--save", str(file))
    assert (result.code, "ebbgated sent no hot set" in result.err) == (69, True)
    assert not file.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, _: h.update(ebbgate_hot_set=2), ":1: ebbgate_hot_set: the version is not known"),
        (lambda h, _: h.pop("ebbgate_hot_set"), ":1: ebbgate_hot_set: the version is missing"),
        (lambda h, _: h.update(ebbgate_hot_set=True), ":1: ebbgate_hot_set: the version is not"),
        (lambda h, _: h.update(volume=""), ":1: volume: must be a text"),
        (lambda h, _: h.update(volume="a\x1b[2J"), ":1: volume: has an invalid character"),
        (lambda h, _: h.update(uuid=7), ":1: uuid: must be a text"),
        (lambda h, _: h.update(uuid="u" * 256), ":1: uuid: must be a text"),
        (lambda h, _: h.update(size_bytes=-1), ":1: size_bytes: must be a whole number"),
        (lambda h, _: h.update(size_bytes=1 << 64), ":1: size_bytes: must be a whole number"),
        (lambda h, _: h.update(size_bytes=1e9), ":1: size_bytes: must be a whole number"),
        (lambda h, _: h.update(chunk_bytes=0), ":1: the size of a chunk is not a power of two"),
        (lambda h, _: h.update(observed_ns=None), ":1: observed_ns: must be a whole number"),
        (lambda h, _: h.update(size_bytes=1 << 20), ":2: to_bytes is beyond the volume"),
        (lambda _, r: r[0].update(from_bytes=1), ":2: from_bytes and to_bytes are not multiples"),
        (lambda _, r: r[1].update(to_bytes=0), ":3: to_bytes is not above from_bytes"),
        (lambda _, r: r[1].update(to_bytes=True), ":3: to_bytes: must be a whole number"),
        (lambda _, r: r[1].update(to_bytes=9 << 20), ":3: two ranges overlap"),
        (lambda _, r: r.clear(), ":1: it has no range"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(
    cli: Cli,
    file: Path,
    change: Callable[[dict[str, Any], list[dict[str, Any]]], None],
    message: str,
) -> None:
    head, ranges = dict(HEAD), [dict(each) for each in RANGES]
    change(head, ranges)
    write(file, head, *ranges)
    result = cli("warm", "--restore", str(file))
    assert result.code == 64
    assert message in result.err


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is not a line of JSON"),
        (b"\xff\xfe\n", "it is not a line of JSON"),
        (b"[" * 100_000, "it is not a line of JSON"),
        (b"[1]\n", "it is not an object"),
        (b"\n" * 20_000, "too long for a hot set"),
        (b"x" * (5 << 20), "too long for a hot set"),
    ],
)
def test_what_is_no_such_file_is_refused(cli: Cli, file: Path, data: bytes, message: str) -> None:
    file.write_bytes(data)
    result = cli("warm", "--restore", str(file))
    assert (result.code, message in result.err) == (64, True), result.err


def test_a_missing_file_is_not_found(cli: Cli, file: Path) -> None:
    assert cli("warm", "--restore", str(file)).code == 66


@pytest.mark.parametrize(
    "words",
    [
        ("--save", "FILE", "bcache0", "bcache1"),
        ("--save", "FILE", "--restore", "FILE"),
        ("--save", "FILE", "--range", "bcache0:0-1GiB"),
        ("--force",),
        ("--volume", "bcache0"),
    ],
)
def test_options_that_do_not_go_together_are_refused(cli: Cli, words: tuple[str, ...]) -> None:
    assert cli("warm", *words).code == 64

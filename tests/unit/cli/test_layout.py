# SPDX-License-Identifier: GPL-2.0-only
"""`layout show` prints layers and ranges, and reports each file that cannot be mapped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.errors import Unavailable
from ebbgate.layout import guest_agent, postgres
from ebbgate.layout.fiemap import ExtentFlag
from ebbgate.layout.mounts import Mount, Mounts
from ebbgate.layout.relation import Relation
from tests.layout_fixture import LayoutMachine
from tests.unit.conftest import Cli

MIB = 1 << 20


@pytest.fixture
def machine(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LayoutMachine:
    """Files are on a partition of bcache0."""
    made = LayoutMachine(cli.fake, tmp_path, monkeypatch)
    made.partition("bcache0", "bcache0p1", "252:1", MIB, 64 * MIB)
    made.holds_files("bcache0p1")
    monkeypatch.setattr(Mounts, "of", lambda *_: Mount("ext4"))
    return made


def test_layers_and_ranges_are_printed(cli: Cli, machine: LayoutMachine) -> None:
    path = machine.file([(0, 4096, 8192), (8192, MIB, 4096), (12288, 0, 4096, ExtentFlag.DELALLOC)])
    result = cli("layout", "show", str(path))
    assert result.code == 0
    lines = [line.split() for line in result.out.splitlines()]
    assert ["partition", "bcache0p1"] in lines
    assert ["volume", "bcache0"] in lines
    assert ["0", "8192", f"bcache0:{MIB + 4096}-{MIB + 12288}"] in lines
    assert ["8192", "4096", f"bcache0:{2 * MIB}-{2 * MIB + 4096}"] in lines
    assert "left out: 4 KiB, not allocated yet" in result.out


def test_the_document_has_layers_ranges_and_what_is_left_out(
    cli: Cli, machine: LayoutMachine
) -> None:
    path = machine.file([(4096, 4096, 4096)])
    (found,) = cli("layout", "show", "--json", str(path)).document["files"]
    assert (found["path"], found["size_bytes"]) == (str(path), 8192)
    assert found["ranges"] == [
        {
            "offset_bytes": 4096,
            "length_bytes": 4096,
            "volume": "bcache0",
            "volume_bytes": MIB + 4096,
        }
    ]
    assert found["left_out"] == [{"offset_bytes": 0, "length_bytes": 4096, "why": "a hole"}]
    partition = found["layers"][1]
    assert (partition["kind"], partition["name"]) == ("partition", "bcache0p1")
    assert partition["segments"] == [
        {
            "start_bytes": 0,
            "length_bytes": 64 * MIB,
            "below": [{"layer": "bcache0", "start_bytes": MIB}],
            "chunk_bytes": 0,
            "why": "",
        }
    ]


def test_a_file_that_cannot_be_mapped_does_not_hide_the_others(
    cli: Cli, machine: LayoutMachine, tmp_path: Path
) -> None:
    path = machine.file([(0, 0, 4096)])
    result = cli("layout", "show", str(tmp_path), "--json", str(path), f"{tmp_path}/none")
    assert result.code == 64
    assert [each["path"] for each in result.document["files"]] == [str(path)]
    errors = result.document["errors"]
    assert [each["message"] for each in errors] == [
        f"{tmp_path} is a folder",
        f"no such file: {tmp_path}/none",
    ]
    assert [json.loads(line)["error"]["code"] for line in result.err.splitlines()] == [64, 66]


def test_many_ranges_are_cut_unless_asked_for(cli: Cli, machine: LayoutMachine) -> None:
    path = machine.file([(8192 * n, 8192 * n, 4096) for n in range(30)])
    assert "and 20 more ranges: --ranges prints all" in cli("layout", "show", str(path)).out
    whole = cli("layout", "show", "--ranges", str(path)).out
    assert "more ranges" not in whole
    assert whole.count("bcache0:") == 30


@pytest.fixture
def orders(machine: LayoutMachine, monkeypatch: pytest.MonkeyPatch) -> list[Relation]:
    """The relations of shop.orders."""
    made = [
        Relation("orders", "table", (machine.file([(0, 0, 4096)], "7"),)),
        Relation("orders_pkey", "index", (machine.file([(0, 8192, 4096)], "8"),)),
    ]
    monkeypatch.setattr(postgres, "relations", lambda *_: tuple(made))
    return made


def test_files_of_a_relation_are_named_by_it(cli: Cli, orders: list[Relation]) -> None:
    found = cli("layout", "show", "--json", "--relation", "shop.orders").document["files"]
    assert [each["relation"] for each in found] == [
        {"name": "orders", "kind": "table"},
        {"name": "orders_pkey", "kind": "index"},
    ]
    shown = " ".join(cli("layout", "show", "--relation", "shop.orders").out.split())
    assert "4 KiB, index orders_pkey" in shown


def test_a_relation_without_files_is_an_error(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "relations", lambda *_: ())
    result = cli("layout", "show", "--relation", "shop.view")
    assert (result.code, result.out) == (66, "")
    assert "shop.view has no files: it is a view" in result.err


def test_a_relation_that_gets_new_files_meanwhile_is_refused(
    cli: Cli, orders: list[Relation], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([tuple(orders), (replace(orders[0], files=()),)])
    monkeypatch.setattr(postgres, "relations", lambda *_: next(answers))
    result = cli("layout", "show", "--relation", "shop.orders")
    assert result.code == 69
    assert "the files of shop.orders change while they are read" in result.err


def test_a_relation_that_cannot_be_found_does_not_hide_a_file(
    cli: Cli, machine: LayoutMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object) -> None:
        raise Unavailable("PostgreSQL cannot be asked about shop: down", "start it")

    monkeypatch.setattr(postgres, "relations", down)
    path = machine.file([(0, 0, 4096)])
    result = cli("layout", "show", str(path), "--relation", "shop.orders")
    assert result.code == 69
    assert "bcache0:" in result.out
    assert "PostgreSQL cannot be asked about shop: down" in result.err


def test_nothing_to_show_names_the_next_step(cli: Cli) -> None:
    result = cli("layout", "show")
    assert result.code == 64
    assert "name a file, a block device or a --relation" in result.err


GUEST = {
    "ebbgate_agent": 1,
    "files": ["/db"],
    "layers": [
        {
            "kind": "file",
            "name": "/db",
            "size_bytes": 4096,
            "segments": [
                {
                    "start_bytes": 0,
                    "length_bytes": 4096,
                    "below": [{"layer": "vda", "start_bytes": 8192}],
                    "chunk_bytes": 0,
                    "why": "",
                }
            ],
        },
        {"kind": "disk", "name": "vda", "size_bytes": 65536, "segments": []},
    ],
    "errors": [{"path": "/none", "why": "no such file"}],
}


def test_files_of_a_guest_are_shown(cli: Cli, machine: LayoutMachine, tmp_path: Path) -> None:
    image = machine.file([(0, MIB, 65536)], "vm.img")
    said = tmp_path / "said.json"
    said.write_text(json.dumps(GUEST))
    words = ["layout", "show", "--image", "raw", str(image), "--agent", str(said)]
    result = cli(*words, "--disk", "vda")
    assert f"bcache0:{2 * MIB + 8192}-{2 * MIB + 12288}" in result.out
    assert (result.code, "guest:/none: no such file" in result.err) == (69, True)
    said.write_text("{}")
    result = cli(*words)
    assert (result.code, result.out) == (69, "")
    assert "what the guest says cannot be used" in result.err


@pytest.mark.parametrize(
    "words",
    [
        ("/vm.img", "--agent", "-"),
        ("--image", "raw", "--agent", "-"),
        ("--image", "raw", "/a", "/b", "--agent", "-"),
        ("--image", "raw", "/a", "--relation", "shop.orders", "--agent", "-"),
        ("--image", "raw", "/a", "--disk", "vda"),
    ],
)
def test_words_that_do_not_go_together_are_refused(cli: Cli, words: tuple[str, ...]) -> None:
    assert cli("layout", "show", *words).code == 64


def test_what_a_guest_said_has_to_be_there(cli: Cli, tmp_path: Path) -> None:
    result = cli("layout", "show", "--image", "raw", "/vm", "--agent", f"{tmp_path}/none")
    assert (result.code, "none cannot be read" in result.err) == (66, True)


def test_the_agent_is_printed_as_it_is(cli: Cli) -> None:
    assert cli("layout", "agent").out == Path(guest_agent.__file__).read_text()

# SPDX-License-Identifier: GPL-2.0-only
"""`warm` begins a job for each file of a table, and says in one line why it cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ebbgate.errors import PermissionDenied, Unavailable
from ebbgate.layout import mysql, postgres
from ebbgate.layout.relation import Relation
from tests.unit.conftest import Cli


def data(path: Path, size_bytes: int = 8192) -> Path:
    path.write_bytes(bytes(size_bytes))
    return path


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Relation]:
    """The relations of shop.orders: two segments, an empty TOAST table, an index."""
    made = [
        Relation("orders", "table", (data(tmp_path / "7"), data(tmp_path / "7.1"))),
        Relation("pg_toast_7", "TOAST table", (data(tmp_path / "8", 0), tmp_path / "gone")),
        Relation("orders_pkey", "index", (data(tmp_path / "9"),)),
    ]
    monkeypatch.setattr(postgres, "relations", lambda *_: tuple(made))
    return made


def warmed(cli: Cli) -> list[str]:
    return [Path(each["args"]["path"]).name for each in cli.intents()]


@pytest.mark.parametrize(
    ("words", "files"), [((), ["7", "7.1"]), (("--indexes",), ["7", "7.1", "9"])]
)
def test_each_file_of_a_table_with_data_is_warmed(
    cli: Cli, orders: list[Relation], words: tuple[str, ...], files: list[str]
) -> None:
    with cli.daemon(answers=(True, "job 5 warms it")):
        result = cli("warm", "--relation", "shop.orders", *words, "--bandwidth", "1MiB/s")
    assert result.code == 0
    assert warmed(cli) == files
    assert {each["args"]["bandwidth_bytes_per_s"] for each in cli.intents()} == {1 << 20}


def test_an_index_that_is_named_is_warmed(cli: Cli, orders: list[Relation]) -> None:
    del orders[:2]
    with cli.daemon(answers=(True, "job 5 warms it")):
        assert cli("warm", "--relation", "shop.orders_pkey").code == 0
    assert warmed(cli) == ["9"]


def test_a_table_of_mysql_is_warmed(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tables(name: str, options: str) -> tuple[Relation, ...]:
        assert (name, options) == ("shop.orders", "/srv/my.cnf")
        return (Relation(name, "table", (data(tmp_path / "orders.ibd"),)),)

    monkeypatch.setattr(mysql, "tables", tables)
    with cli.daemon(answers=(True, "job 5 warms it")):
        words = ("--mysql-table", "shop.orders", "--mysql-options", "/srv/my.cnf")
        assert cli("warm", *words).code == 0
    assert warmed(cli) == ["orders.ibd"]


def raises(error: Exception) -> Callable[..., None]:
    def ask(*_: str) -> None:
        raise error

    return ask


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Unavailable("PostgreSQL cannot be asked about shop: refused", "start it"), 69),
        (PermissionDenied("this user of PostgreSQL may not see where the data is"), 77),
    ],
)
def test_postgresql_down_or_without_rights_is_one_line_and_begins_nothing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, code: int
) -> None:
    monkeypatch.setattr(postgres, "relations", raises(error))
    with cli.daemon():
        result = cli("warm", str(data(tmp_path / "a")), "--relation", "shop.orders")
    assert result.code == code
    assert str(error).splitlines()[0] in result.err
    assert cli.intents() == []


def test_an_empty_table_is_refused(cli: Cli, orders: list[Relation]) -> None:
    del orders[0], orders[1]
    with cli.daemon():
        result = cli("warm", "--relation", "shop.orders")
    assert result.code == 66
    assert "shop.orders is empty: there is nothing to warm" in result.err


def test_more_files_than_jobs_may_wait_are_refused_before_one_begins(
    cli: Cli, orders: list[Relation], tmp_path: Path
) -> None:
    files = tuple(data(tmp_path / f"7.{number}", 1) for number in range(129))
    orders[:] = [Relation("orders", "table", files)]
    with cli.daemon():
        result = cli("warm", "--relation", "shop.orders")
    assert result.code == 64
    assert "these tables have 129 files, and 128 jobs may wait" in result.err
    assert cli.intents() == []

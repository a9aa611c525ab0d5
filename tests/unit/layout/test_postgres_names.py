# SPDX-License-Identifier: GPL-2.0-only
"""Files of PostgreSQL get the names of their relations where the server tells them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from getpass import getuser
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import Unavailable
from ebbgate.kernel.run import Completed
from ebbgate.layout.postgres_names import RelationNames

TABLESPACE = "pg_tblspc/16385/PG_15_202209061"
"""As pg_relation_filepath() of PostgreSQL 15 has it."""


class FakeServer:
    """Answers psql. `lets_in`: the first word of the command that is let in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lets_in = "psql"
        self.databases: Any = {"5": "shop"}
        self.relations: Any = {
            "base/5/7": "orders",
            "base/5/8": "orders_pkey",
            f"{TABLESPACE}/5/7": "archive",
        }
        self.calls: list[Sequence[str]] = []
        (folder / "base/5").mkdir(parents=True)
        self.listens("/run/postgresql")

    def listens(self, socket: str, port: str = "5433") -> None:
        lines = ["123", str(self.folder), "1700000000", port, socket, "", "1 2", "ready"]
        (self.folder / "postmaster.pid").write_text("\n".join(lines))

    def __call__(self, argv: Sequence[str], *, timeout_s: float, check: bool) -> Completed:
        assert (timeout_s, check) == (5.0, False)
        self.calls.append(argv)
        if argv[0] != self.lets_in:
            return Completed(tuple(argv), 2, "", "no role")
        answer = self.databases if "pg_database" in argv[-1] else self.relations
        return Completed(tuple(argv), 0, json.dumps(answer), "")

    def names(self, *files: str) -> list[str]:
        names = RelationNames(self)
        return [names.name_of(self.folder / each) for each in files]


@pytest.fixture
def server(tmp_path: Path) -> FakeServer:
    return FakeServer(tmp_path)


def test_segments_and_forks_have_the_name_of_their_relation(server: FakeServer) -> None:
    assert server.names("base/5/7", "base/5/7.12", "base/5/7_vm", "base/5/8") == [
        "shop.orders",
        "shop.orders",
        "shop.orders",
        "shop.orders_pkey",
    ]
    place = f"host='/run/postgresql' port=5433 passfile=/nonexistent requirepeer='{getuser()}'"
    assert [call[7].split(" connect")[0] for call in server.calls] == [
        f"{place} dbname='postgres'",
        f"{place} dbname='shop'",
    ]


def test_only_names_of_the_catalogue_are_looked_up(server: FakeServer) -> None:
    """Whoever owns a database could otherwise have a superuser run functions of theirs."""
    server.names("base/5/7")
    assert len(server.calls) == 2
    for call in server.calls:
        assert call[-1].startswith("BEGIN READ ONLY; SET LOCAL search_path = pg_catalog; SELECT")


def test_files_in_a_tablespace_have_the_name_of_their_relation(server: FakeServer) -> None:
    """The file of another relation has the same number in another tablespace."""
    files = (f"{TABLESPACE}/5/7", f"{TABLESPACE}/5/7.1", f"{TABLESPACE}/5/7_vm", "base/5/7")
    assert server.names(*files) == ["shop.archive"] * 3 + ["shop.orders"]


def test_segments_are_one_group_by_the_path_of_the_tablespace_itself(
    server: FakeServer, tmp_path: Path
) -> None:
    """Nothing above it names the server."""
    folder = "ssd/PG_15_202209061/5"
    files = (f"{folder}/7.2", f"{folder}/7", f"{folder}/7_fsm", f"{folder}/8.1")
    assert server.names(*files) == [str(tmp_path / folder / name) for name in "7778"]
    assert not server.calls


def test_other_files_keep_their_path(server: FakeServer, tmp_path: Path) -> None:
    files = (
        "base/5/PG_VERSION",
        "pg_wal/000000010000000000000001",
        "base/7",
        "base/pgsql_tmp/7.1",
        "PG_15_202209061/pgsql_tmp/7.1",
        "PG_data/5/7.1",
    )
    assert server.names(*files) == [str(tmp_path / each) for each in files]
    assert not server.calls


def test_postgres_is_asked_as_the_user_postgres_where_root_is_not_let_in(
    server: FakeServer,
) -> None:
    server.lets_in = "runuser"
    assert server.names("base/5/7", "base/5/8") == ["shop.orders", "shop.orders_pkey"]
    assert [call[0] for call in server.calls] == ["psql", "runuser", "runuser"]


def test_segments_stay_one_group_where_the_server_does_not_answer(
    server: FakeServer, tmp_path: Path
) -> None:
    server.lets_in = "none"
    assert server.names("base/5/7", "base/5/7.1") == [str(tmp_path / "base/5/7")] * 2
    assert len(server.calls) == 2


@pytest.mark.parametrize("answer", [None, [], "x", {"base/5/7": 5}, {}])
def test_an_answer_that_is_wrong_gives_no_name(
    server: FakeServer, tmp_path: Path, answer: Any
) -> None:
    server.relations = answer
    assert server.names("base/5/7.1") == [str(tmp_path / "base/5/7")]
    server.databases = answer
    assert server.names("base/5/7.1") == [str(tmp_path / "base/5/7")]


@pytest.mark.parametrize(
    ("socket", "port"), [("", "5433"), ("x", "5433"), ("/a' user='b", "5433"), ("/a", "5 user=b")]
)
def test_a_lock_file_that_is_wrong_asks_nobody(
    server: FakeServer, tmp_path: Path, socket: str, port: str
) -> None:
    server.listens(socket, port)
    assert server.names("base/5/7") == [str(tmp_path / "base/5/7")]
    assert not server.calls


def test_without_psql_or_lock_file_the_path_is_the_name(server: FakeServer, tmp_path: Path) -> None:
    def missing(*_: object, **__: object) -> Completed:
        raise Unavailable("psql is not installed")

    path = tmp_path / "base/5/7"
    assert RelationNames(missing).name_of(path) == str(path)
    (tmp_path / "postmaster.pid").unlink()
    assert server.names("base/5/7") == [str(path)]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_lock_file_that_is_no_file_asks_nobody(
    server: FakeServer, tmp_path: Path, kind: str
) -> None:
    """To open a pipe without a writer takes for ever."""
    lock = tmp_path / "postmaster.pid"
    other = lock.rename(tmp_path / "other")
    if kind == "pipe":
        os.mkfifo(lock)
    else:
        lock.symlink_to(other)
    assert server.names("base/5/7") == [str(tmp_path / "base/5/7")]
    assert not server.calls


def test_servers_that_do_not_answer_take_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, timeouts = 0.0, list[float]()

    def silent(argv: Sequence[str], *, timeout_s: float, check: bool) -> Completed:
        nonlocal now_s
        del argv, check
        now_s += timeout_s
        timeouts.append(timeout_s)
        raise Unavailable("not finished")

    monkeypatch.setattr("ebbgate.layout.postgres_names.time.monotonic", lambda: now_s)
    names = RelationNames(silent)
    for number in range(5):
        FakeServer(tmp_path / str(number))
        path = tmp_path / str(number) / "base/5/7"
        assert names.name_of(path) == str(path)
    assert timeouts == [5, 5]


def test_what_is_known_stays_where_a_server_answers_no_more(server: FakeServer) -> None:
    server.databases = {"5": "shop", "6": "slow"}

    def ask(argv: Sequence[str], *, timeout_s: float, check: bool) -> Completed:
        if "slow" in argv[-3]:
            raise Unavailable("not finished")
        return server(argv, timeout_s=5.0, check=check)

    names = RelationNames(ask)
    found = [names.name_of(server.folder / each) for each in ("base/5/7", "base/6/7", "base/5/8")]
    assert found == ["shop.orders", str(server.folder / "base/6/7"), "shop.orders_pkey"]

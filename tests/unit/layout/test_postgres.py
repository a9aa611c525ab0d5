# SPDX-License-Identifier: GPL-2.0-only
"""Relations of PostgreSQL become files; what the server says is checked before it is used."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import EbbgateError, NotFound, PermissionDenied, Unavailable, UsageError
from ebbgate.kernel.run import Completed
from ebbgate.layout.postgres import relations
from ebbgate.layout.relation import Relation


class FakePsql:
    """Answers as psql does. `calls`: its command lines."""

    def __init__(self, folder: Path) -> None:
        self.document: Any = {"known": True, "folder": str(folder), "relations": []}
        self.exit_code, self.stderr = 0, ""
        self.calls: list[Sequence[str]] = []

    def __call__(self, argv: Sequence[str], *, timeout_s: float, check: bool) -> Completed:
        assert 0 < timeout_s < 60
        assert not check
        self.calls.append(argv)
        return Completed(tuple(argv), self.exit_code, json.dumps(self.document), self.stderr)


@pytest.fixture
def psql(tmp_path: Path) -> FakePsql:
    (tmp_path / "PG_VERSION").write_text("15\n")
    (tmp_path / "base/5").mkdir(parents=True)
    return FakePsql(tmp_path)


def row(name: str, file: Any, kind: str = "r") -> dict[str, Any]:
    return {"name": name, "kind": kind, "file": file}


def test_each_segment_of_each_relation_is_found(psql: FakePsql, tmp_path: Path) -> None:
    for name in ("7", "7.1", "7.2", "7.4", "7_fsm", "8"):
        (tmp_path / "base/5" / name).touch()
    psql.document["relations"] = [row("orders", "base/5/7"), row("orders_pkey", "base/5/8", "i")]
    here = tmp_path / "base/5"
    assert relations("shop.orders", run_program=psql) == (
        Relation("orders", "table", (here / "7", here / "7.1", here / "7.2")),
        Relation("orders_pkey", "index", (here / "8",)),
    )


def test_no_name_can_change_the_query_or_the_connection(psql: FakePsql) -> None:
    relations("a'b\\c.x'; DROP TABLE y; --", "host=/run/x user=me", run_program=psql)
    (call,) = psql.calls
    assert call[0] == "psql"
    assert call[call.index("-d") + 1].startswith("host=/run/x user=me dbname='a\\'b\\\\c' ")
    assert "DROP" not in call[-1]
    assert b"x'; DROP TABLE y; --".hex() in call[-1]


def test_only_names_of_the_catalogue_are_looked_up(psql: FakePsql) -> None:
    """Whoever owns a database could otherwise have a superuser run functions of theirs."""
    relations("shop.orders", run_program=psql)
    (call,) = psql.calls
    assert call[-1].startswith("BEGIN READ ONLY; SET LOCAL search_path = pg_catalog; WITH")


@pytest.mark.parametrize(("euid", "program"), [(0, "runuser"), (1000, "psql")])
def test_root_asks_as_postgres(
    psql: FakePsql, euid: int, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: euid)
    relations("shop.orders", run_program=psql)
    assert psql.calls[0][0] == program


def refusal(psql: FakePsql, asked: str = "shop.orders", connection: str = "") -> EbbgateError:
    with pytest.raises(EbbgateError) as caught:
        relations(asked, connection, psql)
    assert "\n" not in caught.value.message
    return caught.value


@pytest.mark.parametrize("asked", ["orders", ".orders", "shop.", "", "shop.or\0ders"])
def test_a_name_without_database_is_refused(psql: FakePsql, asked: str) -> None:
    assert isinstance(refusal(psql, asked), UsageError)


def test_a_connection_by_address_is_refused(psql: FakePsql) -> None:
    assert isinstance(refusal(psql, connection="postgresql://db/shop"), UsageError)


def test_a_server_that_is_down_is_reported_with_the_next_step(psql: FakePsql) -> None:
    psql.exit_code = 2
    psql.stderr = (
        "psql: error: connection to server failed: No such file\n\tIs it running?\x1b[1m\n"
    )
    error = refusal(psql)
    assert error.message.startswith("PostgreSQL cannot be asked about shop: ")
    assert "\x1b" not in error.message
    assert "--postgres" in error.hint


def test_a_refused_query_is_reported(psql: FakePsql) -> None:
    psql.exit_code, psql.stderr = 1, "ERROR:  no such function\n"
    assert refusal(psql).message == "PostgreSQL refuses the query: ERROR:  no such function"


def test_an_unknown_relation_is_reported(psql: FakePsql) -> None:
    psql.document["known"] = False
    assert isinstance(refusal(psql), NotFound)


def test_the_next_step_for_a_name_in_capitals_is_to_quote_it(psql: FakePsql) -> None:
    psql.document["known"] = False
    assert """'shop."My-Orders"'""" in refusal(psql, "shop.My-Orders").hint
    psql.exit_code, psql.stderr = 1, "ERROR:  string is not a valid identifier\n"
    assert """'shop."My-Orders"'""" in refusal(psql, "shop.My-Orders").hint


def test_a_user_without_rights_is_told_which_are_needed(psql: FakePsql) -> None:
    psql.document["folder"] = None
    error = refusal(psql)
    assert isinstance(error, PermissionDenied)
    assert "pg_read_all_settings" in error.hint


def test_a_server_of_another_machine_is_reported(psql: FakePsql) -> None:
    psql.document["folder"] = "/nowhere/main"
    assert refusal(psql).message == "PostgreSQL's folder is not on this machine: /nowhere/main"


@pytest.mark.parametrize(
    "file", ["/etc/shadow", "../x", "base/../../x", "base/5/7;x", "other/1", 7, "base/5/\n7"]
)
def test_a_file_that_is_none_of_the_servers_is_refused(psql: FakePsql, file: Any) -> None:
    psql.document["relations"] = [row("orders", file)]
    error = refusal(psql)
    assert isinstance(error, Unavailable)
    assert error.message.startswith("PostgreSQL names a file that is none of its own")


@pytest.mark.parametrize("document", [None, [], {}, {"known": True, "folder": "/x"}, "x"])
def test_an_answer_of_another_form_is_refused(psql: FakePsql, document: Any) -> None:
    psql.document = document
    assert refusal(psql).message == "PostgreSQL's answer cannot be read"

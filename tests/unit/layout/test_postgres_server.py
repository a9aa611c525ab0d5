# SPDX-License-Identifier: GPL-2.0-only
"""Relations of a real PostgreSQL are in the files that are found.

I/O: servers of its own, of this system and of Debian 13 (network, once).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from getpass import getuser
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest

from ebbgate.errors import NotFound, PermissionDenied, Unavailable
from ebbgate.layout.postgres import relations
from ebbgate.layout.postgres_names import RelationNames
from ebbgate.layout.relation import Relation
from tests.lab.conftest import without_lab
from tests.lab.errors import NoLab
from tests.package.chroot import base

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]

_PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
_SETUP = """
CREATE TABLE "or'ders" (id int PRIMARY KEY, name text);
INSERT INTO "or'ders" SELECT n, 'needle-' || n FROM generate_series(1, 1000) n;
CREATE TABLE days (day int) PARTITION BY RANGE (day);
CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM (0) TO (10);
CREATE TABLE days_2 PARTITION OF days FOR VALUES FROM (10) TO (20);
CREATE ROLE guest LOGIN;
CHECKPOINT;
"""
_TRAPS = """
CREATE SCHEMA trap;
CREATE TABLE trap.days_9 (day int);
CREATE FUNCTION public.pg_relation_filepath(oid) RETURNS text LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
CREATE FUNCTION trap.unequal(oid, int) RETURNS bool LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
CREATE OPERATOR trap.<> (LEFTARG = oid, RIGHTARG = int, FUNCTION = trap.unequal);
CREATE VIEW trap.pg_class AS SELECT * FROM pg_catalog.pg_class WHERE false;
ALTER DATABASE shop SET search_path = trap, public, pg_catalog;
"""
"""What the owner of a database can make, and what a superuser who asks must not run."""


class Trap:
    """A socket that looks like a PostgreSQL's, beside a folder that looks like its data folder. It
    asks each client for a password, in clear text, and keeps what it gets.
    """

    def __init__(self, folder: Path) -> None:
        self.got: list[bytes] = []
        (folder / "base/5").mkdir(parents=True)
        lines = ["123", str(folder), "1700000000", "5432", str(folder), "", "1 2", "ready"]
        (folder / "postmaster.pid").write_text("\n".join(lines))
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(folder / ".s.PGSQL.5432"))
        self._socket.listen()
        Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client = self._socket.accept()[0]
                with client:
                    self.got.append(client.recv(4096))
                    client.sendall(b"R" + (8).to_bytes(4) + (3).to_bytes(4))
                    self.got.append(client.recv(4096))

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[Trap]:
    made = Trap(tmp_path)
    yield made
    made.close()


_ASK = """
import sys
from pathlib import Path
from ebbgate.layout.postgres_names import RelationNames
print(RelationNames().name_of(Path(sys.argv[1])))
"""


def test_no_server_gets_a_password_of_root(trap: Trap, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, for another home in a mount namespace of its own")
    passwords, users, file = (tmp_path / name for name in (".pgpass", "passwd", "base/5/7"))
    passwords.write_text("*:*:*:*:secret\n")
    passwords.chmod(0o600)
    others = [line for line in Path("/etc/passwd").read_text().splitlines() if line[:5] != "root:"]
    users.write_text("\n".join([f"root:x:0:0:root:{tmp_path}:/bin/sh", *others, ""]))
    script = 'mount --bind "$1" /etc/passwd; shift; exec "$@"'
    apart = ("unshare", "-m", "sh", "-euc", script, "sh", str(users))
    words = (*apart, sys.executable, "-c", _ASK, str(file))
    found = subprocess.run(words, check=True, capture_output=True, text=True)
    assert found.stdout.strip() == str(file)
    assert trap.got, "psql has connected"
    assert b"secret" not in b"".join(trap.got)


def test_a_server_of_somebody_else_than_the_owner_of_the_folder_is_not_asked(
    trap: Trap, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give a folder to somebody else")
    os.chown(tmp_path, 65534, 65534)
    file = tmp_path / "base/5/7"
    assert RelationNames().name_of(file) == str(file)
    assert not b"".join(trap.got)


class Server:
    """A PostgreSQL of its own, run by the user postgres where this is root."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = folder / "data"
        self.own()

    def own(self) -> None:
        """Give its user the folder."""
        if os.geteuid() == 0:
            shutil.chown(self._folder, "postgres")

    def command(self, program: str) -> list[str]:
        as_postgres = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        return [*as_postgres, str(_PROGRAMS[-1].parent / program)]

    def run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [*self.command(program), *words],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        self.run("initdb", "-A", "trust", "-U", "me", "--no-sync", "-D", str(self._data))
        options = f"-c listen_addresses= -c unix_socket_directories={self._folder}"
        log = str(self._folder / "log")
        self.run("pg_ctl", "-w", "-D", str(self._data), "-l", log, "-o", options, "start")
        self.run("createdb", "-h", str(self._folder), "-U", "me", "shop")
        self.sql(_SETUP)

    def stop(self) -> None:
        self.run("pg_ctl", "-w", "-m", "immediate", "-D", str(self._data), "stop")

    def sql(self, text: str) -> None:
        words = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", str(self._folder), "-U", "me"]
        self.run("psql", *words, "-d", "shop", "-c", text)

    def relations(self, name: str, user: str = "me") -> tuple[Relation, ...]:
        return relations(name, f"host={self._folder} user={user}")


class Debian13Server(Server):
    """PostgreSQL 17 in a Debian 13, which sees the folder by the same name. The client is this
    system's.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._system = base("trixie", "postgres", ("postgresql-17",))
        except NoLab as reason:
            without_lab(reason)
        super().__init__(folder)

    def own(self) -> None:
        rows = map(str.split, (self._system / "etc/passwd").read_text().split("\n"), repeat(":"))
        (uid,) = (int(row[2]) for row in rows if row[0] == "postgres")
        os.chown(self._folder, uid, -1)

    def command(self, program: str) -> list[str]:
        inside = f"{self._system}{self._folder.parent}"
        mounts = (
            f"mount -t tmpfs tmpfs {inside}; mkdir {self._system}{self._folder};"
            f" mount --bind {self._folder} {self._system}{self._folder}"
        )
        words = ["unshare", "--mount", "bash", "-c", f'set -e; {mounts}; exec chroot "$@"', "bash"]
        as_postgres = ["runuser", "-u", "postgres", "--"]
        return [*words, str(self._system), *as_postgres, f"/usr/lib/postgresql/17/bin/{program}"]

    def start(self) -> None:
        super().start()
        assert (self._data / "PG_VERSION").read_text() == "17\n"


@pytest.fixture(scope="module", params=["installed", "17"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    if not _PROGRAMS:
        pytest.skip("needs PostgreSQL")
    # Its path must be short enough for a socket.
    with TemporaryDirectory(prefix="pg", dir="/tmp") as folder:
        made = (
            Server(Path(folder)) if request.param == "installed" else Debian13Server(Path(folder))
        )
        made.start()
        yield made
        made.stop()


def test_a_table_comes_with_its_toast_and_indexes(server: Server) -> None:
    found = server.relations('shop."or\'ders"')
    assert sorted(each.kind for each in found) == ["TOAST table", "index", "index", "table"]
    (table,) = (each for each in found if each.kind == "table")
    assert table.name == '"or\'ders"'
    assert b"needle-1000" in table.files[0].read_bytes()


def test_a_partitioned_table_is_its_partitions(server: Server) -> None:
    found = server.relations("shop.public.days")
    assert [(each.name, each.kind) for each in found] == [("days_1", "table"), ("days_2", "table")]


def test_a_table_that_is_written_anew_has_new_files(server: Server) -> None:
    before = server.relations("shop.days_1")
    server.sql("VACUUM FULL days_1")
    after = server.relations("shop.days_1")
    assert before != after
    assert after[0].files[0].exists()


def test_a_role_without_rights_is_enough_for_the_names_of_files(server: Server) -> None:
    files = {each.kind: each.files[0] for each in server.relations('shop."or\'ders"')}
    before = RelationNames().name_of(files["table"])
    assert before == str(files["table"])
    server.sql(f'CREATE ROLE "{getuser()}" LOGIN')
    names = RelationNames()
    assert names.name_of(files["table"].with_name(files["table"].name + "_fsm")) == (
        'shop."or\'ders"'
    )
    assert names.name_of(files["TOAST table"]).startswith("shop.pg_toast.pg_toast_")
    assert names.name_of(files["table"].with_name("PG_VERSION")).endswith("/PG_VERSION")


def test_nothing_that_the_owner_of_a_database_has_made_is_run(server: Server) -> None:
    before = server.relations('shop."or\'ders"')
    server.sql(_TRAPS)
    assert server.relations('shop."or\'ders"') == before
    (other,) = server.relations("shop.trap.days_9")
    assert other.name == "trap.days_9"
    with pytest.raises(NotFound):
        server.relations("shop.days_9")
    (table,) = (each.files[0] for each in before if each.kind == "table")
    assert RelationNames().name_of(table) == 'shop."or\'ders"'
    assert RelationNames().name_of(other.files[0]) == "shop.trap.days_9"


def test_an_unknown_relation_or_database_is_reported(server: Server) -> None:
    with pytest.raises(NotFound, match=r"no such relation: shop\.none"):
        server.relations("shop.none")
    with pytest.raises(Unavailable, match='database "none" does not exist'):
        server.relations("none.orders")


def test_a_user_without_rights_is_told_which_are_needed(server: Server) -> None:
    with pytest.raises(PermissionDenied) as caught:
        server.relations("shop.days_1", "guest")
    assert "pg_read_all_settings" in caught.value.hint


def test_a_server_that_is_down_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="PostgreSQL cannot be asked about shop"):
        relations("shop.orders", f"host={tmp_path} user=me")

# SPDX-License-Identifier: GPL-2.0-only
"""Tables of MySQL and MariaDB become files; a failure is one line with the next step."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ebbgate.errors import EbbgateError, NotFound, Unavailable, UsageError
from ebbgate.kernel.run import Completed, run
from ebbgate.layout.mysql import tables
from tests.lab.host import start, stop
from tests.waiting import until

_SERVER = Path("/usr/sbin/mariadbd")
_SETUP = """
CREATE DATABASE shop;
CREATE TABLE shop.`or-ders` (id INT PRIMARY KEY, name VARCHAR(40));
INSERT INTO shop.`or-ders` VALUES (1, 'needle-in-a-table');
CREATE TABLE shop.days (day INT) PARTITION BY RANGE (day)
    (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20));
CREATE TABLE shop.far (id INT PRIMARY KEY) DATA DIRECTORY = '{far}';
CREATE TABLE shop.old (id INT) ENGINE=MyISAM;
FLUSH TABLES shop.`or-ders` FOR EXPORT; UNLOCK TABLES;
"""


class FakeMysql:
    """Answers as the client does. `files`: of the table; None: the user may not know them.

    `calls`: its command lines.
    """

    def __init__(self, folder: Path) -> None:
        self.stdout, self.stderr, self.exit_code = f"{folder}/\n", "", 0
        self.files: list[str] | None = []
        self.calls: list[Sequence[str]] = []

    def __call__(self, argv: Sequence[str], *, timeout_s: float, check: bool) -> Completed:
        assert 0 < timeout_s < 60
        assert not check
        self.calls.append(argv)
        if "FILES" in argv[-1]:
            rows = "".join(f"{name.encode().hex().upper()}\n" for name in self.files or ())
            denied = "" if self.files is not None else "ERROR 1227 (42000): Access denied\n"
            return Completed(tuple(argv), int(bool(denied)), rows, denied)
        return Completed(tuple(argv), self.exit_code, self.stdout, self.stderr)


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, *names: str) -> None:
    """Let these programs be the only ones."""
    folder.mkdir()
    for name in names:
        (folder / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.fixture
def mysql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMysql:
    install(monkeypatch, tmp_path / "programs", "mysql", "mariadb")
    (tmp_path / "mysql").mkdir()
    (tmp_path / "shop").mkdir()
    for name in ("orders.ibd", "orders2.ibd", "days#P#p0.ibd", "days#p#p1.ibd", "a@002db.MYD"):
        (tmp_path / "shop" / name).touch()
    (tmp_path / "shop/far.isl").write_text("/srv/fast/shop/far.ibd\n")
    return FakeMysql(tmp_path)


@pytest.mark.parametrize(
    ("asked", "files"),
    [
        ("shop.orders", ["orders.ibd"]),
        ("shop.days", ["days#P#p0.ibd", "days#p#p1.ibd"]),
        ("shop.a-b", ["a@002db.MYD"]),
    ],
)
def test_files_of_a_table_are_found(mysql: FakeMysql, asked: str, files: list[str]) -> None:
    (found,) = tables(asked, run_program=mysql)
    assert (found.name, [file.name for file in found.files]) == (asked, files)


@pytest.mark.parametrize(
    ("installed", "client"),
    [(["mysql", "mariadb"], "mysql"), (["mariadb"], "mariadb"), ([], "mysql")],
)
def test_the_client_has_either_name(
    mysql: FakeMysql,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    installed: list[str],
    client: str,
) -> None:
    install(monkeypatch, tmp_path / "others", *installed)
    tables("shop.orders", run_program=mysql)
    assert {call[0] for call in mysql.calls} == {client}


def test_a_file_in_another_folder_is_followed(mysql: FakeMysql) -> None:
    (found,) = tables("shop.far", run_program=mysql)
    assert found.files == (Path("/srv/fast/shop/far.ibd"),)


def test_files_that_mysql_8_tells_of_are_found(mysql: FakeMysql, tmp_path: Path) -> None:
    """It keeps no .isl file, so that only p0 and p1 are seen in the folder of the database."""
    mysql.files = ["/mnt/fast/shop/days#p#p2#sp#s0.ibd", "./shop/days#p#p1.ibd"]
    (days,) = tables("shop.days", run_program=mysql)
    here = (tmp_path / f"shop/days{name}.ibd" for name in ("#P#p0", "#p#p1"))
    assert days.files == (Path("/mnt/fast/shop/days#p#p2#sp#s0.ibd"), *here)
    mysql.files = ["/mnt/fäst x/shop/whole.ibd"]
    (whole,) = tables("shop.whole", run_program=mysql)
    assert whole.files == (Path("/mnt/fäst x/shop/whole.ibd"),)


def test_mysql_is_asked_by_the_name_of_the_file(mysql: FakeMysql) -> None:
    tables("shop.a-b", "/srv/my.cnf", run_program=mysql)
    (_, asked) = mysql.calls
    assert asked[:2] == ["mysql", "--defaults-extra-file=/srv/my.cnf"]
    assert asked[-1].startswith("/*!80000 SELECT "), "MariaDB and MySQL 5.7 have .isl files"
    assert f"'{b'shop/a@002db'.hex().upper()}'" in asked[-1]


def test_files_that_mysql_8_does_not_tell_of_are_not_left_out(mysql: FakeMysql) -> None:
    mysql.files = None
    error = refusal(mysql, "shop.days")
    assert error.message.endswith("the files of shop/days are: ERROR 1227 (42000): Access denied")
    assert "PROCESS" in error.hint


def test_a_table_without_files_may_be_in_several_places(mysql: FakeMysql, tmp_path: Path) -> None:
    hint = refusal(mysql, "shop.none").hint
    assert f"{tmp_path}/ibdata1, or it has a general tablespace or a DATA DIRECTORY" in hint


@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_a_link_is_reported(mysql: FakeMysql, tmp_path: Path) -> None:
    """To open it would take for ever."""
    os.mkfifo(tmp_path / "shop/pipe.isl")
    assert refusal(mysql, "shop.pipe").message == (
        f"{tmp_path}/shop/pipe.isl cannot be read: no regular file"
    )


def test_user_and_password_come_from_a_file(mysql: FakeMysql) -> None:
    tables("shop.orders", "/etc/mysql/debian.cnf", mysql)
    assert mysql.calls[0][:2] == ["mysql", "--defaults-extra-file=/etc/mysql/debian.cnf"]


def refusal(mysql: FakeMysql, asked: str = "shop.orders") -> EbbgateError:
    with pytest.raises(EbbgateError) as caught:
        tables(asked, run_program=mysql)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("orders", UsageError),
        ("shop.none", NotFound),
        ("shop.*", NotFound),
        ("shop.../../x", NotFound),
        ("none.orders", NotFound),
        ("../shop.orders", UsageError),
        ("shop.größe", Unavailable),
    ],
)
def test_what_is_no_table_is_reported(
    mysql: FakeMysql, asked: str, kind: type[EbbgateError]
) -> None:
    assert isinstance(refusal(mysql, asked), kind)


def test_a_server_that_is_down_is_reported(mysql: FakeMysql) -> None:
    mysql.exit_code, mysql.stderr = 1, "ERROR 2002 (HY000): Can't connect\x1b[1m\n"
    error = refusal(mysql)
    assert error.message == "MySQL cannot be asked: ERROR 2002 (HY000): Can't connect?[1m"
    assert "--mysql-options FILE" in error.hint


@pytest.mark.parametrize("folder", ["/nowhere/", "here", ""])
def test_a_server_of_another_machine_is_reported(mysql: FakeMysql, folder: str) -> None:
    mysql.stdout = folder
    assert refusal(mysql).message.startswith("MySQL's folder is not on this machine")


# ---- a real MariaDB -----------------------------------------------------------------------------
@pytest.fixture(scope="module")
def options() -> Iterator[str]:
    """The options file of a client of a server that runs for these tests."""
    if not _SERVER.exists():
        pytest.skip("needs MariaDB")
    with TemporaryDirectory(prefix="my") as name:
        folder = Path(name)
        user = "mysql" if os.geteuid() == 0 else ""
        if user:
            subprocess.run(["chown", user, name], check=True)
        owner = [f"--user={user}"] if user else []
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={folder}/data", *owner]
        install += ["--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(install, check=True, capture_output=True, timeout=200)
        socket = folder / "s"
        words = ["--no-defaults", f"--datadir={folder}/data", f"--socket={socket}", *owner]
        running = start([str(_SERVER), *words, "--skip-networking"], folder / "log")
        try:
            until(socket.exists, "the socket of the server", within_s=100)
            file = folder / "client.cnf"
            file.write_text(f"[client]\nsocket={socket}\nuser=root\n")
            setup = _SETUP.format(far=folder / "data-far")
            command = ["mysql", f"--defaults-extra-file={file}", "-e", setup]
            subprocess.run(command, check=True, timeout=100)
            yield str(file)
        finally:
            stop(running)


@pytest.mark.full
@pytest.mark.timeout(300)
def test_tables_of_a_real_server_are_found(options: str) -> None:
    (orders,) = tables("shop.or-ders", options)
    assert b"needle-in-a-table" in orders.files[0].read_bytes()
    (days,) = tables("shop.days", options)
    assert len(days.files) == 2
    (far,) = tables("shop.far", options)
    assert far.files == (Path(options).parent / "data-far/shop/far.ibd",)
    assert far.files[0].is_file()
    (old,) = tables("shop.old", options)
    assert [file.suffix for file in old.files] == [".MYD", ".MYI"]
    with pytest.raises(NotFound, match=r"shop\.none has no file of its own"):
        tables("shop.none", options)


@pytest.mark.full
@pytest.mark.timeout(300)
def test_the_query_for_mysql_8_finds_the_files_of_one_table(options: str) -> None:
    """MariaDB runs it on rows as MySQL 8 has them."""
    rows = {
        "./shop/a@002db.ibd": "shop/a-b",
        "/far/shop/a@002db#p#p0#sp#s0.ibd": "shop/a-b#p#p0#sp#s0",
        "./shop/A@002db.ibd": "shop/A-b",
        "./shop/a@002db2.ibd": "shop/a-b2",
        "/other/shop/a@002db.ibd": "general",
    }
    table = " UNION ".join(
        f"SELECT '{a}' FILE_NAME, '{b}' TABLESPACE_NAME" for a, b in rows.items()
    )

    def as_mysql_8(argv: Sequence[str], *, timeout_s: float, check: bool) -> Completed:
        query = argv[-1].replace("/*!80000", "").replace("*/", "")
        query = query.replace("information_schema.FILES", f"({table}) AS files")
        return run([*argv[:-1], query], timeout_s=timeout_s, check=check)

    data = Path(options).parent / "data"
    (found,) = tables("shop.a-b", options, as_mysql_8)
    assert found.files == (
        Path("/far/shop/a@002db#p#p0#sp#s0.ibd"),
        data / "shop/a@002db.ibd",
    )

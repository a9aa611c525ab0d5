# SPDX-License-Identifier: GPL-2.0-only
"""A PostgreSQL that serves from a volume of a guest. Its data is made on the host, once.

I/O: initdb and a server on the host; through a Session, a server and pgbench in the guest.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.lab import downloads, host
from tests.lab.devices import MIB
from tests.lab.errors import NoLab
from tests.lab.session import Process, Session

DATABASE = "bench"
_USER = "bench"
_SYSTEM_USER = "postgres"
_PAGE_BYTES = 8192
_ROWS_PER_PAGE = 7
_ROWS_PER_QUERY = 8
_FILLER_CHARS = 1100
"""As long as lets so many rows fill a page."""
_SOCKETS = "/run/postgres"
_CGROUP = "/sys/fs/cgroup/postgres"
_PROGRESS = re.compile(r"progress: [\d.]+ s, ([\d.]+) tps")
_BUILD_S = 900
_LOADING: Mapping[str, str | int] = {
    "fsync": "off",
    "wal_level": "minimal",
    "max_wal_senders": 0,
    "max_wal_size": "2GB",
}
_SERVING: Mapping[str, str | int] = {
    "shared_buffers": "4MB",
    "autovacuum": "off",
    "effective_io_concurrency": 0,
    "jit": "off",
    "huge_pages": "off",
    "max_connections": 20,
    "max_parallel_workers_per_gather": 0,
}


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables of equal size, `t00` and so on, each with an integer as its primary key."""

    count: int
    mib: int

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each table."""
        return tuple(f"t{number:02}" for number in range(self.count))

    @property
    def rows(self) -> int:
        """Rows of each table; their keys begin with 1."""
        return self.mib * MIB // _PAGE_BYTES * _ROWS_PER_PAGE

    def select(self, name: str) -> str:
        """Return a script for pgbench that reads rows of a table, each as likely as another.

        Several at a time: under emulation a query takes the processors as long as several reads.
        """
        keys = [f"id{number}" for number in range(_ROWS_PER_QUERY)]
        sets = "".join(f"\\set {key} random(1, {self.rows})\n" for key in keys)
        listed = ", ".join(f":{key}" for key in keys)
        return f"{sets}SELECT filler FROM {name} WHERE id IN ({listed});\n"

    @property
    def statements(self) -> tuple[str, ...]:
        """What makes and fills them."""
        # Filled in the transaction that makes it, a table needs no write-ahead log.
        fills = tuple(
            f"BEGIN; CREATE TABLE {name} (id int PRIMARY KEY, filler text);"
            f" INSERT INTO {name} SELECT n, rpad(md5(n::text), {_FILLER_CHARS}, '.')"
            f" FROM generate_series(1, {self.rows}) n; COMMIT;"
            for name in self.names
        )
        return (*fills, "VACUUM (FREEZE, ANALYZE)", "CHECKPOINT")


def programs() -> Path:
    """Folder of the newest server's programs. Raises NoLab without one."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        raise NoLab("no lab here: postgresql not installed (see tests/lab/README.md)")
    return found[-1].parent


def cluster(tables: Tables) -> Path:
    """Return a data folder with these tables and nothing to recover; made once."""
    version = programs().parent.name
    final = downloads.cache_dir() / "databases" / f"{version}-{tables.count}x{tables.mib}"
    with downloads.locked(final.parent):
        if not final.exists():
            with downloads.made(final) as scratch:
                _make(tables, scratch / "root")
    return final


def _make(tables: Tables, target: Path) -> None:
    # Where another user, as whom the server runs, may go; short enough for a socket's name.
    with tempfile.TemporaryDirectory(prefix="pg") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            shutil.chown(folder, _SYSTEM_USER, _SYSTEM_USER)
        data = folder / "data"
        _on_host("initdb", "-A", "trust", "-U", _USER, "--no-sync", "--locale=C", "-D", data)
        log, wanted = folder / "log", _options(_LOADING, folder)
        _on_host("pg_ctl", "-w", "-D", data, "-l", log, "-o", wanted, "start")
        try:
            _on_host("createdb", "-h", folder, "-U", _USER, DATABASE)
            words = [word for each in tables.statements for word in ("-c", each)]
            asked = ("-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", folder, "-U", _USER)
            _on_host("psql", *asked, "-d", DATABASE, *words)
        finally:
            _on_host("pg_ctl", "-w", "-m", "fast", "-D", data, "stop")
        # Freezing the rows has logged all of them; after an orderly stop the log is not needed.
        _on_host("pg_resetwal", "-D", data)
        shutil.move(data, target)


def _on_host(program: str, *words: str | Path) -> None:
    host.run([*_as_postgres(os.geteuid()), programs() / program, *words], timeout_s=_BUILD_S)


def _as_postgres(uid: int) -> tuple[str, ...]:
    """Return what runs a program as the server's user, as root cannot run it."""
    ids = (f"--reuid={_SYSTEM_USER}", f"--regid={_SYSTEM_USER}", "--clear-groups")
    return () if uid else ("setpriv", *ids)


def _options(settings: Mapping[str, str | int], sockets: Path | str) -> str:
    named = {**settings, "unix_socket_directories": sockets, "listen_addresses": "''"}
    return " ".join(f"-c {name}={value}" for name, value in named.items())


class PostgresServer:
    """A server in a guest, as a context manager; leaving it is a crash of the server.

    data: its data folder in the guest.
    memory_mib: bound of all its memory, pages of files included: reads are to reach the volume.
    """

    def __init__(self, session: Session, data: str, *, memory_mib: int) -> None:
        self._session = session
        self._data = data
        self._memory_mib = memory_mib
        self._programs = programs()

    def __enter__(self) -> Self:
        self._read_programs()
        self._session.check(
            f"mkdir -p {_SOCKETS} {_CGROUP} && chown {_SYSTEM_USER} {_SOCKETS} &&"
            f" echo +memory > {Path(_CGROUP).parent}/cgroup.subtree_control &&"
            f" echo {self._memory_mib}M > {_CGROUP}/memory.max"
        )
        options = _options(_SERVING, _SOCKETS)
        start = self._control("-w", "-t", "120", "-l", f"{_SOCKETS}/log", "-o", f'"{options}"')
        self._session.check(f"echo $$ > {_CGROUP}/cgroup.procs && {start} start", timeout_s=150)
        return self

    def __exit__(self, *_: object) -> None:
        self._session.run(f"{self._control('-w', '-m', 'immediate')} stop", timeout_s=60)

    def files(self, tables: Sequence[str]) -> tuple[str, ...]:
        """Return the data file of each table, in this order."""
        names = ", ".join(f"('{name}')" for name in tables)
        query = f"SELECT pg_relation_filepath(t.name) FROM (VALUES {names}) AS t (name)"
        words = ("-X", "-A", "-t", "-h", _SOCKETS, "-U", _USER, "-d", DATABASE, "-c", query)
        said = self._session.check([self._programs / "psql", *words])
        return tuple(f"{self._data}/{path}" for path in said.split())

    def load(self, scripts: Sequence[str], *, clients: int, seconds: int, seed: int) -> Process:
        """Start pgbench; each transaction is one of the scripts, at random."""
        files = [f"{_SOCKETS}/script-{number}.sql" for number in range(len(scripts))]
        for path, script in zip(files, scripts, strict=True):
            self._session.put_file(path, script)
        return self._session.spawn(
            [
                *(self._programs / "pgbench", "-h", _SOCKETS, "-U", _USER, "-n", "-M", "prepared"),
                *("-c", str(clients), "-T", str(seconds), "-P", "1", "--random-seed", str(seed)),
                *(word for path in files for word in ("-f", path)),
                DATABASE,
            ]
        )

    def _read_programs(self) -> None:
        """Read the programs, so that their pages are not on the account of the server's memory."""
        server = self._programs / "postgres"
        libraries = f"$(ldd {server} | awk '$3 ~ \"^/\" {{ print $3 }}')"
        self._session.check(f"cat {server} {self._programs}/pgbench {libraries} > /dev/null")

    def _control(self, *words: str) -> str:
        control = (*_as_postgres(0), str(self._programs / "pg_ctl"), "-D", self._data)
        return " ".join((*control, *words))


def transactions_per_s(progress: str) -> list[float]:
    """Return the speed in each second, of what pgbench reports meanwhile (its stderr)."""
    return [float(found[1]) for found in _PROGRESS.finditer(progress)]

# SPDX-License-Identifier: GPL-2.0-only
"""A process with the rights of ebbgate-web that does its worst for some time:

    python -m tests.bench.hostile_attacker FOLDER SECONDS SEED UID GID

I/O: the control socket FOLDER/run/control.sock, all files below FOLDER that it can reach, and files
of its own in FOLDER/scratch. Started as root, it gives up root first. Each attack is a process of
its own. The last line of its output is a JSON object: how often what was tried, and what came of
it.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import itertools
import json
import os
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.bench import hostile_grammar as grammar
from tests.bench.raw_control_client import RawControlClient

SOCKET: Final = "run/control.sock"
CROWD: Final = 24
"""Connections at once: more than the daemon grants one user."""
DEAF_LINES: Final = 400
SCRATCH: Final = "scratch"
"""The attacker may write here, on the file system of the daemon's state, as others in /var/tmp."""
SYNCED_FILES: Final = 16
SYNCED_BYTES: Final = 128 * 1024
"""Of each of these files. All of them together are small: the disk must not fill up."""
# The locks of SQLite's index of the log (wal.c, WAL_WRITE_LOCK on), and of the file itself (os.h).
_SHM_LOCKS: Final = (120, 9)
_FILE_LOCKS: Final = (0x40000000, 512)
_FILES: Final = ("state", "run", "policies", "policies.d")


class Attacker:
    """One attack; `counts` holds its results."""

    def __init__(self, folder: Path, until_s: float, seed: str) -> None:
        self.folder = folder
        self.socket = folder / SOCKET
        self.until_s = until_s
        self.random = Random(seed)
        self.counts: Counter[str] = Counter()
        self.parent = os.getppid()

    def goes_on(self) -> bool:
        """Return whether there is time left and the parent process still runs."""
        return time.monotonic() < self.until_s and os.getppid() == self.parent

    def converse(self, talk: Callable[[RawControlClient], None]) -> None:
        """Run `talk` on a new connection; count refusals and disconnections."""
        try:
            with RawControlClient(self.socket) as line:
                self.note(line.receive())
                talk(line)
        except TimeoutError:
            self.counts["timeouts"] += 1
        except (OSError, ValueError):
            self.counts["cut_off"] += 1
            self.rest(0.02)

    def note(self, message: dict[str, Any]) -> None:
        """Count the daemon's message by its state."""
        self.counts[f"answered_{message.get('state', 'hello')}"] += 1

    def rest(self, seconds: float) -> None:
        """Pause: an attack that starves the machine of CPU proves nothing."""
        left_s = max(0.0, self.until_s - time.monotonic())
        time.sleep(min(left_s, self.random.uniform(0, 2 * seconds)))

    # ---- attacks -------------------------------------------------------------------------------
    def bad_lines(self, line: RawControlClient) -> None:
        """Wrong requests, one after the other; each must be answered or end the connection."""
        for _ in range(20):
            line.send(grammar.line(self.random))
            self.counts["bad_lines"] += 1
            self.note(line.receive())

    def half_requests(self, line: RawControlClient) -> None:
        """A line that never ends, in small pieces."""
        self.counts["half_requests"] += 1
        for byte in grammar.half(self.random):
            line.send(bytes([byte]))
            self.rest(0.1)
        self.note(line.receive())

    def flood(self, line: RawControlClient) -> None:
        """Whole requests as fast as they can be sent, answers read now and then."""
        for _ in range(50):
            if not self.goes_on():
                return
            lines = [json.dumps(grammar.request(self.random)).encode() for _ in range(20)]
            line.send(b"\n".join(lines) + b"\n")
            self.counts["flooded"] += len(lines)
            for _ in lines:
                self.note(line.receive())

    def deaf(self, line: RawControlClient) -> None:
        """Requests whose answers are never read."""
        for _ in range(DEAF_LINES):
            line.send(grammar.line(self.random))
            self.counts["deaf_lines"] += 1
        self.rest(1.0)

    def crowd(self) -> None:
        """As many silent connections as the daemon accepts."""
        with contextlib.ExitStack() as held:
            for _ in range(CROWD):
                try:
                    held.enter_context(RawControlClient(self.socket))
                    self.counts["crowded"] += 1
                except OSError:
                    self.counts["cut_off"] += 1
            self.rest(2.0)
        self.rest(1.0)

    def churn(self) -> None:
        """Connections that are gone before the greeting."""
        for _ in range(50):
            with contextlib.suppress(OSError):
                RawControlClient(self.socket).close()
                self.counts["churned"] += 1
        self.rest(0.05)

    def policies(self, line: RawControlClient) -> None:
        """Valid policies, as many and as long as the daemon accepts."""
        for _ in range(10):
            document = grammar.policy(self.random, self.random.randrange(500))
            line.send(json.dumps(document).encode() + b"\n")
            self.counts["policies"] += 1
            self.note(line.receive())
        self.rest(0.5)

    def locks(self) -> None:
        """Hold every possible lock on every readable file for seconds."""
        with contextlib.ExitStack() as held:
            for path in self.files():
                with contextlib.suppress(OSError):
                    file = held.enter_context(path.open("rb"))
                    self.counts[f"opened {path.name}"] += 1
                    first, count = _SHM_LOCKS if path.name.endswith("-shm") else _FILE_LOCKS
                    self.count_lock(fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    for byte in range(first, first + count):
                        shared = fcntl.LOCK_SH | fcntl.LOCK_NB
                        self.count_lock(fcntl.lockf, file, shared, 1, byte)
            self.rest(4.0)
        self.rest(1.0)

    def count_lock(self, lock: Callable[..., Any], *arguments: Any) -> None:
        """One lock; another may have it."""
        with contextlib.suppress(OSError):
            lock(*arguments)
            self.counts["locks"] += 1

    def long_read(self) -> None:
        """A read of the history that does not end: its log cannot be checkpointed meanwhile."""
        path = self.folder / "state/history.db"
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as reader,
        ):
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
            self.counts["long_reads"] += 1
            self.rest(5.0)

    def replace_files(self) -> None:
        """Truncate, replace, remove, link: none of it may work."""
        for path in [*self.files(), *(self.folder / name for name in _FILES)]:
            for attempt in (_truncate, _write, _remove, _rename, _link, _make, _widen):
                self.counts["file_attempts"] += 1
                try:
                    attempt(path)
                except OSError:
                    continue
                self.counts["files_touched"] += 1
                print(f"{attempt.__name__}: {path}", flush=True)
        self.rest(0.5)

    def sync_files(self) -> None:
        """Keep the disk of the daemon's state busy: write files anew and fsync each, without rest.

        Each write allocates blocks, and each fsync commits the journal of the file system, which
        the daemon's own writes then wait for.
        """
        block = self.random.randbytes(SYNCED_BYTES)
        with tempfile.TemporaryDirectory(dir=self.folder / SCRATCH) as name:
            paths = [Path(name, str(number)) for number in range(SYNCED_FILES)]
            for path in itertools.cycle(paths):
                if not self.goes_on():
                    return
                with path.open("wb") as file:
                    file.write(block)
                    file.flush()
                    os.fsync(file.fileno())
                self.counts["syncs"] += 1

    def files(self) -> list[Path]:
        """All that it sees of the daemon's folders."""
        found = (path for name in _FILES for path in (self.folder / name).glob("*"))
        return sorted(path for path in found)


def _truncate(path: Path) -> None:
    os.truncate(path, 0)


def _write(path: Path) -> None:
    os.close(os.open(path, os.O_WRONLY))


def _remove(path: Path) -> None:
    path.unlink()


def _rename(path: Path) -> None:
    path.rename(path.with_name(f"{path.name}.gone"))


def _link(path: Path) -> None:
    (path.parent / "hostile-link").symlink_to("/etc/passwd")


def _make(path: Path) -> None:
    (path / "hostile" if path.is_dir() else path.with_name(f"{path.name}-journal")).touch()


def _widen(path: Path) -> None:
    path.chmod(0o777)


TALKS: Final = (
    *(Attacker.bad_lines, Attacker.bad_lines, Attacker.half_requests, Attacker.flood),
    *(Attacker.deaf, Attacker.policies),
)
"""Attacks on a connection."""
COUNTED: Final = (
    *("bad_lines", "half_requests", "flooded", "deaf_lines", "policies"),
    *("crowded", "churned", "locks", "long_reads", "file_attempts", "syncs"),
)
"""The count of each attack."""
OTHERS: Final = (
    *(Attacker.crowd, Attacker.churn, Attacker.locks, Attacker.long_read),
    *(Attacker.replace_files, Attacker.sync_files, Attacker.sync_files),
)


def attack(number: int, attacker: Attacker, report: int) -> None:
    """One of them, over and over; its counts go into the pipe."""
    while attacker.goes_on():
        if number < len(TALKS):
            attacker.converse(functools.partial(TALKS[number], attacker))
        else:
            OTHERS[number - len(TALKS)](attacker)
    os.write(report, json.dumps(attacker.counts).encode() + b"\n")


def main() -> None:
    """Give up root, attack, add up."""
    folder, seconds, seed, uid, gid = sys.argv[1:]
    os.setgroups([])
    os.setresgid(int(gid), int(gid), int(gid))
    os.setresuid(int(uid), int(uid), int(uid))
    readable, report = os.pipe()
    until_s = time.monotonic() + float(seconds)
    children = []
    for number in range(len(TALKS) + len(OTHERS)):
        pid = os.fork()
        if pid == 0:
            os.close(readable)
            code = 1
            try:
                attack(number, Attacker(Path(folder), until_s, f"{seed} {number}"), report)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(pid)
    os.close(report)
    # Whoever ends it, ends all of it: each child sees that its parent is gone.
    total: Counter[str] = Counter()
    with os.fdopen(readable) as reports:
        for line in reports:
            total.update(json.loads(line))
    total["attacks_failed"] = sum(os.waitpid(pid, 0)[1] != 0 for pid in children)
    print(json.dumps(total))


if __name__ == "__main__":
    main()

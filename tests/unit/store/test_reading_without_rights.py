# SPDX-License-Identifier: GPL-2.0-only
"""ebbgate-web reads the history as a member of the group, where it may write nothing:
while a daemon writes, after it was killed, and after it ended.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ebbgate.store.db import Store
from ebbgate.store.queries import History

UID, GID = 64990, 64991
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up rights")


@pytest.fixture
def state() -> Iterator[Path]:
    """A state folder as systemd makes it: root's, the group may look."""
    folder = Path(tempfile.mkdtemp(prefix="ebbgate-test-"))
    folder.chmod(0o755)
    made = folder / "state"
    made.mkdir()
    os.chown(made, 0, GID)
    made.chmod(0o2750)
    yield made
    shutil.rmtree(folder)


def in_child(work: Callable[[], Any], *, member: bool) -> tuple[Any, int]:
    """What `work` returns in a process of its own, and how that ended."""
    readable, writable = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            os.umask(0o027)
            if member:
                os.setgroups([])
                os.setresgid(GID, GID, GID)
                os.setresuid(UID, UID, UID)
            os.write(writable, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        said = pipe.read()
    return (json.loads(said) if said else None), os.waitpid(pid, 0)[1]


def read(state: Path) -> Any:
    """The volumes of the live table, as the group's member sees them."""

    def work() -> list[str]:
        with closing(History.open(state / "history.db")) as history:
            return sorted(history.statuses().volumes)

    return in_child(work, member=True)[0]


def write(state: Path, volume: str) -> Store:
    store = Store.open(state / "history.db")
    store.set_live(volume, {"volume": volume}, 1)
    return store


def test_the_history_is_read_beside_a_daemon_that_writes(state: Path) -> None:
    with closing(write(state, "bcache0")) as store:
        assert (state / "history.db-shm").stat().st_mode & 0o022 == 0
        assert read(state) == ["bcache0"]
        store.set_live("bcache1", {}, 2)
        assert read(state) == ["bcache0", "bcache1"]


def test_the_history_is_read_after_the_daemon_was_killed(state: Path) -> None:
    def live_and_die() -> None:
        write(state, "bcache0")
        os.kill(os.getpid(), signal.SIGKILL)

    status = in_child(live_and_die, member=False)[1]
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert (state / "history.db-wal").stat().st_size > 0
    assert read(state) == ["bcache0"]


def test_the_history_is_read_after_the_daemon_ended(state: Path) -> None:
    write(state, "bcache0").close()
    assert not (state / "history.db-wal").exists()
    assert read(state) == ["bcache0"]


def test_a_member_of_the_group_can_write_nothing(state: Path) -> None:
    def work() -> list[str]:
        done = []
        for path in state.iterdir():
            for attempt in (lambda p=path: os.truncate(p, 0), path.unlink):
                try:
                    attempt()
                    done.append(path.name)
                except PermissionError:
                    pass
        return done

    with closing(write(state, "bcache0")):
        assert in_child(work, member=True)[0] == []

# SPDX-License-Identifier: GPL-2.0-only
"""What a process of the group may do with the databases, tried by a real one without any right."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import Unavailable
from ebbgate.store import access
from ebbgate.store.db import Store
from ebbgate.store.intent_rows import IntentRow
from tests.builders import decision, frame, proposal
from tests.house_rules import REPO

UID, GID, FOREIGN_GID = 64_321, 64_322, 64_323
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")

READ = """
history = WebHistory.open(folder / "history.db")
said["decisions"] = [row["id"] for row in history.filtered_decisions(DecisionFilter())]
said["live"] = sorted(row.volume for row in history.live_rows())
said["requests"] = [row.id for row in history.intents.newest(10)]
history.close()
"""
SPOIL = """
for name in ("history.db", "history.db-wal", "history.db-shm"):
    if (folder / name).exists():
        said[name] = os.access(folder / name, os.W_OK)
said["folder"] = os.access(folder, os.W_OK)
Store.open(folder / "history.db")
"""
_HEAD = """
import json, os, sys
from pathlib import Path
from ebbgate.store.db import Store
from ebbgate.store.queries_web import DecisionFilter, WebHistory
folder, said = Path(sys.argv[1]), {}
os.umask(0o027)
try:
{body}
except Exception as error:
    said["error"] = type(error).__name__
print(json.dumps(said))
"""


@pytest.fixture
def folder(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As the daemon makes it, on a machine on which the group is there."""
    monkeypatch.setattr(access, "group_id", lambda: GID)
    found = open_folder / "state"
    before = os.umask(0o077)
    try:
        access.make_folder(found)
    finally:
        os.umask(before)
    return found


@pytest.fixture
def daemon(folder: Path) -> Iterator[ExitStack]:
    """The history with something in it, and open; `close` is the end of the daemon."""
    with ExitStack() as stack:
        before = os.umask(0o027)
        stack.callback(os.umask, before)
        store = stack.enter_context(closing(Store.open(folder / "history.db")))
        store.add_samples([(frame(), 1)])
        store.add_decision(decision(proposal()), 1)
        store.set_live("bcache0", {}, 1)
        store.add_intent(IntentRow(1, "hold", None, {"on": True}, "root", 1))
        yield stack


def program(folder: Path, *parts: str) -> list[str]:
    body = "".join(f"    {line}\n" for part in parts for line in part.strip().splitlines())
    return [sys.executable, "-c", _HEAD.replace("{body}", body), str(folder)]


def as_web(folder: Path, *parts: str, gid: int = GID) -> dict[str, Any]:
    """What a process of another user, in no group but this one, comes to."""
    done = subprocess.run(
        program(folder, *parts),
        user=UID,
        group=gid,
        extra_groups=[],
        env={"PYTHONPATH": str(REPO / "controller"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@needs_root
@pytest.mark.usefixtures("daemon")
def test_it_reads_while_a_daemon_runs(folder: Path) -> None:
    assert as_web(folder, READ) == {"decisions": [1], "live": ["bcache0"], "requests": [1]}


@needs_root
def test_it_sees_what_is_written_meanwhile(folder: Path, daemon: ExitStack) -> None:
    assert as_web(folder, READ)["decisions"] == [1]
    with closing(Store.open(folder / "history.db")) as store:
        store.add_decision(decision(proposal()), 2)
        store.add_intent(IntentRow(2, "restore", None, {}, "root", 2))
        store.set_live("bcache1", {}, 2)
        seen = as_web(folder, READ)
    assert seen == {"decisions": [2, 1], "live": ["bcache0", "bcache1"], "requests": [2, 1]}


@needs_root
def test_after_the_end_of_the_daemon_it_still_reads(folder: Path, daemon: ExitStack) -> None:
    daemon.close()
    assert not (folder / "history.db-wal").exists()
    assert as_web(folder, READ) == {"decisions": [1], "live": ["bcache0"], "requests": [1]}
    assert [each.name for each in folder.iterdir()] == ["history.db"]


@needs_root
def test_after_a_crash_of_the_daemon_it_reads_what_is_in_the_log(folder: Path) -> None:
    crash = """
store = Store.open(folder / "history.db")
from tests.builders import decision, proposal
store.add_decision(decision(proposal()), 1)
os.kill(os.getpid(), 9)
"""
    env = {"PYTHONPATH": f"{REPO / 'controller'}:{REPO}"}
    assert subprocess.run(program(folder, crash), env=env, check=False).returncode == -9
    assert (folder / "history.db-wal").stat().st_size
    assert as_web(folder, READ) == {"decisions": [1], "live": [], "requests": []}


@needs_root
@pytest.mark.usefixtures("daemon")
def test_web_user_cannot_change_the_history(folder: Path) -> None:
    said = as_web(folder, SPOIL)
    assert said.pop("error") in ("PermissionDenied", "OperationalError")
    assert set(said) == {"history.db", "history.db-wal", "history.db-shm", "folder"}
    assert not any(said.values())


@needs_root
@pytest.mark.usefixtures("daemon")
def test_other_groups_have_no_access(folder: Path) -> None:
    assert as_web(folder, READ, gid=FOREIGN_GID) == {"error": "PermissionDenied"}


@needs_root
def test_web_user_owns_no_file(folder: Path, daemon: ExitStack) -> None:
    as_web(folder, READ)
    daemon.close()
    as_web(folder, READ)
    assert {each.stat().st_uid for each in folder.iterdir()} == {0}
    assert {each.stat().st_gid for each in folder.iterdir()} == {GID}


def test_a_history_closed_by_the_administrator_stays_closed(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    Store.open(path).close()
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o600)
    Store.open(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_existing_folder_keeps_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "group_id", lambda: GID)
    tmp_path.chmod(0o700)
    access.make_folder(tmp_path)
    assert tmp_path.stat().st_mode & 0o7777 == 0o700


# ---- folders that people make --------------------------------------------------------------------
def by_hand(refused: Unavailable) -> list[str]:
    """Return the words of the command that the next step has in brackets."""
    (command,) = re.findall(r"by hand \((.*?)\)", refused.hint)
    return shlex.split(command)


@needs_root
def test_a_state_folder_made_by_hand_is_as_the_daemon_makes_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "GROUP", str(GID))
    own = folder.with_name("own")
    command = by_hand(access.state_folder_refused(own, OSError(1, "refused")))
    assert command == ["install", "-d", "-m", "2750", "-g", str(GID), str(own)]
    subprocess.run(command, check=True)
    assert seen(own) == seen(folder)


def test_without_the_group_the_command_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "group_id", lambda: None)
    command = by_hand(access.state_folder_refused(Path("/srv/own"), OSError(1, "refused")))
    assert command == ["install", "-d", "-m", "750", "/srv/own"]


def test_a_runtime_folder_made_by_hand_is_as_the_daemon_makes_it(tmp_path: Path) -> None:
    made, own = tmp_path / "made", tmp_path / "own"
    before = os.umask(0o027)
    try:
        access.make_runtime_folder(made)
        command = by_hand(access.runtime_folder_refused(own, OSError(1, "refused")))
        subprocess.run(command, check=True)
    finally:
        os.umask(before)
    assert seen(own) == seen(made)
    assert seen(own)[0] == 0o755


def seen(path: Path) -> tuple[int, int, int]:
    """Return mode, owner and group."""
    found = path.stat()
    return stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid

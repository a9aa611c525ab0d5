# SPDX-License-Identifier: GPL-2.0-only
"""The lock: living processes of ebbgate exclude each other, and no other one stops a restore."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from threading import Timer

import pytest

from ebbgate.errors import Unavailable
from ebbgate.store.daemon_lock import DaemonLock, Holder, LockHeld, LockRole, living_holder
from tests.house_rules import REPO

PATIENCE_S = 0.1

HOLDER = """
import sys, time
from pathlib import Path
from threading import Timer
from ebbgate.store.daemon_lock import DaemonLock, LockRole
with DaemonLock(Path(sys.argv[1]), LockRole(sys.argv[2])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ebbgated.lock"


def own_lock(path: Path, role: LockRole = LockRole.DAEMON) -> DaemonLock:
    return DaemonLock(path, role, patience_s=PATIENCE_S)


def holding(path: Path, role: LockRole) -> subprocess.Popen[str]:
    """Another process that has the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path, role],
        env={"PYTHONPATH": f"{REPO / 'controller'}:{':'.join(sys.path)}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_only_root_may_open_the_lock_and_it_names_its_holder(path: Path) -> None:
    with own_lock(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        holder = living_holder(path)
        assert holder is not None
        assert (holder.pid, holder.role) == (os.getpid(), LockRole.DAEMON)


def test_an_older_lock_file_loses_the_rights_of_others(path: Path) -> None:
    path.touch(0o666)
    path.chmod(0o666)
    with own_lock(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("role", [*LockRole])
@pytest.mark.parametrize("mine", [*LockRole])
def test_living_processes_exclude_each_other_and_are_named(
    path: Path, role: LockRole, mine: LockRole
) -> None:
    process = holding(path, role)
    try:
        said = rf"another {role} runs here \(pid {process.pid}\)"
        with pytest.raises(LockHeld, match=said) as caught, own_lock(path, mine):
            pass
        assert "--runtime-dir" not in caught.value.hint, "two daemons restore each other's knobs"
    finally:
        process.kill()
        process.communicate()
    with own_lock(path, mine):
        pass


def test_a_lock_is_awaited_briefly(path: Path) -> None:
    process = holding(path, LockRole.RESTORE)
    timer = Timer(0.3, process.kill)
    timer.start()
    with DaemonLock(path, patience_s=10):
        pass
    timer.join()
    process.communicate()


def test_a_holder_that_the_file_does_not_name_is_ignored(path: Path) -> None:
    """As a child of a dead daemon that hangs in the kernel, or anybody's `flock`."""
    path.touch()
    handle = os.open(path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with own_lock(path, LockRole.RESTORE):
        holder = living_holder(path)
        assert holder is not None
        assert holder.pid == os.getpid()
        with pytest.raises(LockHeld), own_lock(path):
            pass
    os.close(handle)


@pytest.mark.parametrize("start", ["1", "0", "x"])
def test_a_reused_process_id_is_not_taken_for_the_holder(path: Path, start: str) -> None:
    path.write_text(f"{os.getpid()} {start} ebbgated\n")
    handle = os.open(path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert living_holder(path) is None
    with own_lock(path):
        pass
    os.close(handle)


def test_a_zombie_does_not_count_as_holder(path: Path, tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    (proc / "7").mkdir(parents=True)
    line = "7 (a) b) {} " + " ".join(str(number) for number in range(4, 30))
    path.write_text("7 22 ebbgated\n")
    for state, living in (("S", True), ("D", True), ("T", True), ("Z", False), ("X", False)):
        (proc / "7/stat").write_text(line.format(state))
        assert (living_holder(path, proc) == Holder(7, "22", LockRole.DAEMON)) is living, state


@pytest.mark.parametrize("text", ["", "\n", "4711", "4711 22", "4711 22 init", "x 22 ebbgated"])
def test_an_invalid_lock_file_names_no_holder(path: Path, text: str) -> None:
    path.write_text(text)
    assert living_holder(path) is None
    with own_lock(path):
        pass


def test_a_symbolic_link_as_lock_file_is_refused(path: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    path.symlink_to(tmp_path / "victim")
    with pytest.raises(Unavailable), own_lock(path):
        pass
    assert (tmp_path / "victim").read_text() == "precious"


def test_the_lock_is_released_with_its_context(path: Path) -> None:
    for _ in range(3):
        begun_s = time.monotonic()
        with DaemonLock(path, patience_s=5):
            pass
        assert time.monotonic() - begun_s < 1

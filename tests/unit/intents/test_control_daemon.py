# SPDX-License-Identifier: GPL-2.0-only
"""A real daemon on a fake machine takes requests on its socket. I/O: processes."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import EbbgateError
from ebbgate.store.queries import History
from ebbgate.units import NS_PER_S
from tests.control_fixture import Client, until
from tests.fake_machine import machine
from tests.house_rules import REPO

ENV = {**os.environ, "PYTHONPATH": f"{REPO / 'controller'}:{REPO}"}


def start(folder: Path) -> subprocess.Popen[bytes]:
    argv = list(map(str, machine.argv(folder, "daemon")))
    with (folder / "log").open("w") as log:
        return subprocess.Popen(argv, env=ENV, stderr=log)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A machine whose daemon runs and has looked at its volume."""
    found = tmp_path_factory.mktemp("d")
    machine.make(found)
    with (found / "log").open("w") as log:
        daemon = subprocess.Popen(
            list(map(str, machine.argv(found, "daemon"))), env=ENV, stderr=log
        )
    try:
        until(lambda: "bcache0" in live(found))
        yield found
    finally:
        daemon.terminate()
        code = daemon.wait(30)
    assert code == 0, (found / "log").read_text()
    assert "Traceback" not in (found / "log").read_text()


def live(folder: Path) -> dict[str, Any]:
    """What the daemon last said, by volume."""
    try:
        with closing(History.open(folder / "state/history.db")) as history:
            return {name: each.document for name, each in history.live().items()}
    except (EbbgateError, sqlite3.Error):
        # Not there yet, or not whole.
        return {}


def cli(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = list(map(str, machine.argv(folder, *words)))
    return subprocess.run(argv, env=ENV, capture_output=True, text=True, check=False)


def test_status_right_after_a_mode_shows_it(folder: Path) -> None:
    changed = cli(folder, "advise", "bcache0")
    assert (changed.returncode, changed.stdout) == (0, "bcache0: mode advise\n"), changed.stderr
    shown = json.loads(cli(folder, "status", "--json").stdout)
    assert [each["mode"] for each in shown["volumes"]] == ["advise"]


def test_a_restore_is_done_when_the_knobs_are_back(folder: Path) -> None:
    before = machine.knobs(folder)
    assert cli(folder, "set", "bcache0", "sequential_cutoff", "1MiB").returncode == 0
    assert machine.knobs(folder) != before
    restored = cli(folder, "restore")
    assert restored.returncode == 0, restored.stderr
    assert machine.knobs(folder) == before


def test_the_files_are_as_they_are_documented(folder: Path) -> None:
    assert cli(folder, "observe", "bcache0").returncode == 0
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in (folder / "state/overrides.db", folder / "run/control.sock")
    }
    assert modes["overrides.db"] == 0o600
    assert modes["control.sock"] in (0o600, 0o660)
    assert not (folder / "state/intents.db").exists()


def test_the_daemon_says_how_long_its_loop_was_silent(folder: Path) -> None:
    found = live(folder)[""]["loop_silence"]
    assert set(found) == {"last_ns", "max_ns", "max_unix_ns"}
    assert 0 < found["max_ns"] < 5 * NS_PER_S


def test_what_is_pending_at_the_end_of_the_daemon_is_answered(tmp_path: Path) -> None:
    machine.make(tmp_path)
    state = tmp_path / "sys/block/bcache0/bcache/state"
    daemon = start(tmp_path)
    try:
        until(lambda: "bcache0" in live(tmp_path))
        with closing(Client(tmp_path / "run/control.sock")) as client:
            # Whoever asks for a knob waits until the state of the volume allows its write.
            client.ask(kind="mode", volume="bcache0", args={"mode": "advise"})
            assert client.read()["state"] == "accepted"
            assert client.read()["state"] == "done"
            args = {"knob": "writeback_percent", "value": "20"}
            client.ask(id="b", kind="set", volume="bcache0", args=args)
            state.write_text("inconsistent\n")
            assert client.read()["state"] == "accepted"
            daemon.terminate()
            found = client.read()
        assert found["state"] == "failed"
        assert found["text"] == "ebbgated ended before this was finished"
        assert daemon.wait(30) == 0
    finally:
        daemon.kill()
        daemon.wait(30)

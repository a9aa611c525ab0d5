# SPDX-License-Identifier: GPL-2.0-only
"""A real daemon on a fake machine takes requests on its socket. I/O: processes."""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import EbbgateError
from ebbgate.store.queries import History
from ebbgate.units import NS_PER_S
from tests.control_fixture import Client
from tests.fake_machine import machine
from tests.programs import command, running
from tests.waiting import until


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A machine whose daemon runs and has looked at its volume."""
    found = tmp_path_factory.mktemp("d")
    machine.make(found)
    with running(found, "daemon", machine.argv(found, "daemon")) as daemon:
        until(lambda: "bcache0" in live(found))
        yield found
    assert daemon.process.returncode == 0, daemon.log.read_text()
    assert "Traceback" not in daemon.log.read_text()


def live(folder: Path) -> dict[str, Any]:
    """What the daemon last said, by volume."""
    try:
        with closing(History.open(folder / "state/history.db")) as history:
            return {row.volume: json.loads(row.text) for row in history.live_rows()}
    except (EbbgateError, sqlite3.Error):
        # Not there yet, or not whole.
        return {}


def test_the_files_are_as_they_are_documented(folder: Path) -> None:
    assert command(machine.argv(folder, "observe", "bcache0")).returncode == 0
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in (folder / "state/overrides.db", folder / "run/control.sock")
    }
    assert modes["overrides.db"] == 0o600
    assert modes["control.sock"] in (0o600, 0o660)
    assert not (folder / "state/intents.db").exists()


def test_the_daemon_reports_how_long_its_loop_was_silent(folder: Path) -> None:
    found = live(folder)[""]["loop_silence"]
    assert set(found) == {"last_ns", "max_ns", "max_unix_ns"}
    assert 0 < found["max_ns"] < 5 * NS_PER_S


def test_what_is_pending_at_the_end_of_the_daemon_is_answered(tmp_path: Path) -> None:
    machine.make(tmp_path)
    state = tmp_path / "sys/block/bcache0/bcache/state"
    with running(tmp_path, "daemon", machine.argv(tmp_path, "daemon")) as daemon:
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
            daemon.process.terminate()
            found = client.read()
        assert found["state"] == "failed"
        assert found["text"] == "ebbgated ended before this was finished"
        assert daemon.process.wait(30) == 0

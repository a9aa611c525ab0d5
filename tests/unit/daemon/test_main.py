# SPDX-License-Identifier: GPL-2.0-only
"""ebbgated as a process, on a machine of files. I/O: processes."""

from __future__ import annotations

import signal
import socket
import time
from contextlib import closing
from pathlib import Path

import pytest

from ebbgate.store.db import Store
from ebbgate.store.queries import History
from tests.fake_machine import machine
from tests.programs import PATIENCE_S, command, running, until


def test_a_second_daemon_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    machine.make(tmp_path)
    argv = machine.argv(tmp_path, "daemon")
    with running(tmp_path, "first", argv) as first:
        until("the first one", lambda: first.said("(mode enforce)"))
        with running(tmp_path, "second", argv) as second:
            assert second.process.wait(30) == 75
        assert "another ebbgated runs here" in second.log.read_text()
        assert first.process.poll() is None


def test_signals_during_the_stop_do_not_cut_it_short(tmp_path: Path) -> None:
    machine.make(tmp_path)
    with running(tmp_path, "daemon", machine.argv(tmp_path, "daemon")) as daemon:
        until("the volume to be followed", lambda: daemon.said("(mode enforce)"))
        while daemon.process.poll() is None:
            daemon.process.send_signal(signal.SIGTERM)
            time.sleep(0.001)
    # SIGTERM may still kill Python itself, once everything is written.
    assert daemon.process.returncode in (0, -signal.SIGTERM)
    with closing(History.open(tmp_path / "state/history.db")) as history:
        assert history.live_rows() == []


def test_a_daemon_with_a_long_tick_is_alive_to_systemd_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.make(tmp_path)
    settings = tmp_path / "ebbgate.toml"
    settings.write_text('tick = "10s"\n')
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    argv = machine.argv(tmp_path, "daemon", "--config", str(settings))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(PATIENCE_S)
        with running(tmp_path, "daemon", argv):
            while systemd.recv(100) != b"READY=1":
                pass
            systemd.settimeout(8)
            assert [systemd.recv(100) for _ in range(3)] == [b"WATCHDOG=1"] * 3


def test_a_volume_that_left_while_no_daemon_ran_is_forgotten_at_the_start(tmp_path: Path) -> None:
    """A daemon that was killed has left the status of each of its volumes."""
    machine.make(tmp_path)
    history_path = tmp_path / "state/history.db"
    history_path.parent.mkdir()
    with closing(Store.open(history_path)) as store:
        store.set_live("bcache9", {"title": "bcache9"}, time.time_ns())
    with running(tmp_path, "daemon", machine.argv(tmp_path, "daemon")) as daemon:
        until("the volume to be followed", lambda: daemon.said("(mode enforce)"))
        with closing(History.open(history_path)) as history:
            until("its status", lambda: "bcache0" in history.statuses().volumes)
            assert "bcache9" not in history.statuses().volumes


def status(folder: Path) -> str:
    """What `ebbgate status` says on this machine."""
    return command(machine.argv(folder, "status")).stdout


def test_without_a_probe_that_starts_the_daemon_goes_on_and_tries_again_on_sighup(
    tmp_path: Path,
) -> None:
    machine.make(tmp_path)
    probe, mended = tmp_path / "probe", tmp_path / "mended"
    probe.write_text(probe.read_text().replace("exec ", f"test -e {mended} || exit 70\nexec ", 1))
    before = machine.knobs(tmp_path)
    with running(tmp_path, "daemon", machine.argv(tmp_path, "daemon")) as daemon:
        until("the probe to be given up", lambda: daemon.said("(the probe cannot start here)"))
        until("status", lambda: "down: the probe cannot start here" in status(tmp_path))
        assert machine.knobs(tmp_path) == before
        mended.touch()
        daemon.process.send_signal(signal.SIGHUP)
        until("the probe to run", lambda: "ebpf: running" in status(tmp_path))
        assert daemon.log.read_text().count("cannot start here") == 1


@pytest.mark.parametrize(
    ("option", "setting"),
    [
        ("--state-dir", "ReadWritePaths={folder}"),
        ("--runtime-dir", "RuntimeDirectory={folder.name}"),
    ],
)
def test_a_folder_that_cannot_be_made_is_named_with_the_next_step(
    tmp_path: Path, option: str, setting: str
) -> None:
    machine.make(tmp_path)
    folder = tmp_path / "probe" / "no-folder"
    units = f"`systemctl edit ebbgated ebbgate-restore`, in [Service] {setting}"
    words = [("daemon", option, str(folder))]
    if option == "--runtime-dir":
        words.append((option, str(folder), "restore"))
    for each in words:
        done = command(machine.argv(tmp_path, *each))
        assert done.returncode == 69
        assert f"the folder {folder} cannot be made: Not a directory" in done.stderr
        assert units.format(folder=folder) in done.stderr


def killed(tmp_path: Path) -> dict[str, str]:
    """Kill a daemon that has changed knobs; return them as they were."""
    machine.make(tmp_path)
    before = machine.knobs(tmp_path)
    with running(tmp_path, "daemon", machine.argv(tmp_path, "daemon")) as daemon:
        until("a knob to be changed", lambda: machine.knobs(tmp_path) != before)
        daemon.end(signal.SIGKILL)
    assert machine.knobs(tmp_path) != before
    return before


def test_a_daemon_with_wrong_settings_restores_before_it_ends(tmp_path: Path) -> None:
    before = killed(tmp_path)
    settings = tmp_path / "ebbgate.toml"
    settings.write_text("newer_key = 1\n")
    done = command(machine.argv(tmp_path, "daemon", "--config", str(settings)))
    assert done.returncode == 78
    assert f"ebbgated: {settings}:1: newer_key: unknown key" in done.stderr
    assert machine.knobs(tmp_path) == before


def test_a_restore_follows_a_state_folder_that_was_changed_meanwhile(tmp_path: Path) -> None:
    before = killed(tmp_path)
    done = command(machine.argv(tmp_path, "--state-dir", str(tmp_path / "new"), "restore"))
    assert (done.returncode, machine.knobs(tmp_path)) == (0, before), done.stderr

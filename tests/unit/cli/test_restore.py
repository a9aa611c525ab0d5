# SPDX-License-Identifier: GPL-2.0-only
"""`restore` restores originals with or without a daemon, and keeps those that fail."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import NoReturn

import pytest

from ebbgate.cli import main
from ebbgate.cli import restore as module
from ebbgate.cli.context import Context
from ebbgate.intents.client import NotAnswering, NotRunning
from ebbgate.intents.database import OverrideDatabase
from ebbgate.model.override import Override, OverrideKind
from ebbgate.store.daemon_lock import DaemonLock, LockRole
from ebbgate.store.journal import read
from ebbgate.store.last_written import LastWritten
from tests.builders import journal_entry
from tests.fake_sysfs import BACKING_FILES
from tests.house_rules import REPO
from tests.unit.conftest import BOOT_ID, Cli

PERCENT = "/sys/block/bcache0/bcache/writeback_percent"
DELAY = "/sys/block/bcache0/bcache/writeback_delay"
OURS = BACKING_FILES["backing_dev_uuid"]
OTHERS = OURS.replace("1", "2")


def leave(cli: Cli, knob: str, original: str, *, boot_id: str = BOOT_ID) -> None:
    """What a killed daemon leaves: a journal entry and a foreign value."""
    cli.journal(journal_entry(knob, boot_id=boot_id, original=original, last_written="0"))
    cli.fake.write(f"/sys/block/bcache0/bcache/{knob}", "0")


def still_open(cli: Cli) -> list[str]:
    return cli.journal()


def test_after_a_killed_daemon_every_knob_comes_back(cli: Cli) -> None:
    leave(cli, "writeback_percent", "10")
    leave(cli, "writeback_delay", "30")
    result = cli("restore")
    assert result.code == 0
    assert (cli.fake.read(PERCENT), cli.fake.read(DELAY)) == ("10", "30")
    assert "bcache0  writeback_percent  10        restored" in result.out
    assert still_open(cli) == []


def test_a_second_restore_has_nothing_to_do(cli: Cli) -> None:
    leave(cli, "writeback_percent", "10")
    cli("restore")
    cli.fake.write(PERCENT, "25")
    result = cli("restore")
    assert (result.code, result.out) == (0, "nothing to restore: ebbgate has changed no knob\n")
    assert cli.fake.read(PERCENT) == "25"


def test_long_settings_of_a_scheduler_leave_room_for_the_names(cli: Cli) -> None:
    queue = "/sys/block/vda/queue"
    cli.fake.write(f"{queue}/scheduler", "bfq")
    cli.fake.write(f"{queue}/iosched/read_expire", "500")
    text = "async_depth=64 fifo_batch=16 front_merges=1 prio_aging_expire=10000 read_expire=200"
    for name, original, ours in (("scheduler", "mq-deadline", "bfq"), ("iosched", text, "*")):
        values = {"original": original, "last_written": ours, "path": f"{queue}/{name}"}
        cli.journal(journal_entry(f"{name}:vda", boot_id=BOOT_ID, **values))
    result = cli("restore")
    assert result.code == 0
    assert "bcache0  scheduler:vda  mq-deadline                  restored" in result.out
    assert "bcache0  iosched:vda    async_depth=64 fifo_batc...  restored" in result.out
    assert cli.fake.read(f"{queue}/iosched/read_expire") == "200"


def test_restore_of_one_volume_leaves_others(cli: Cli) -> None:
    leave(cli, "writeback_percent", "10")
    cli("restore", "bcache1")
    assert cli.fake.read(PERCENT) == "0"
    cli("restore", "/dev/bcache0")
    assert cli.fake.read(PERCENT) == "10"


def test_a_knob_that_refuses_is_74_and_its_original_is_kept(cli: Cli) -> None:
    leave(cli, "writeback_percent", "10")
    leave(cli, "writeback_delay", "30")
    cli.fake.remove(DELAY)
    cli.fake.sysfs.locate(DELAY).mkdir()
    result = cli("restore")
    assert result.code == 74
    assert "1 of 2 knobs could not be restored" in result.err
    assert "run ebbgate restore again" in result.err
    assert cli.fake.read(PERCENT) == "10"
    assert still_open(cli) == ["writeback_delay"]


def test_a_journal_that_cannot_be_written_does_not_keep_a_knob_from_coming_back(cli: Cli) -> None:
    leave(cli, "writeback_percent", "10")
    with closing(sqlite3.connect(cli.journal_path)) as connection:
        connection.execute("CREATE TRIGGER full BEFORE DELETE ON originals BEGIN "
                           "SELECT RAISE(FAIL, 'database or disk is full'); END")  # fmt: skip
    result = cli("restore")
    assert cli.fake.read(PERCENT) == "10"
    assert "the journal could not be brought up to date: database or disk is full" in result.out


def test_a_running_daemon_restores(cli: Cli) -> None:
    with cli.daemon(answers=(True, "bcache0: all knobs restored; mode advise")):
        cli.journal(journal_entry(boot_id=BOOT_ID))
        cli.fake.write(PERCENT, "0")
        result = cli("restore", "bcache0")
        assert (result.code, result.out) == (0, "bcache0: all knobs restored; mode advise\n")
    assert cli.fake.read(PERCENT) == "0", "the daemon owns the knobs while it lives"
    assert cli.intents()[0]["kind"] == "restore"


def test_json_lists_each_knob(cli: Cli) -> None:
    leave(cli, "writeback_percent", "10")
    assert cli("restore", "--json").document == {
        "by": "command line",
        "knobs": [
            {
                "volume": "bcache0",
                "knob": "writeback_percent",
                "original": "10",
                "outcome": "changed",
                "note": "",
            }
        ],
        "journal": "up to date",
        "overrides": [],
    }


def test_a_journal_without_a_readable_original_names_a_way_out(cli: Cli) -> None:
    """`ebbgate restore` itself was the next step; a package could not be removed any more."""
    path = cli.state_dir / "journal.db"
    path.write_text("somebody's shopping list\n" * 400)
    result = cli("restore")
    assert result.code == 69
    assert "run ebbgate restore" not in result.err
    assert "no original in it can be read: reboot" in result.err
    assert f"then move it away: mv {path} {path}.damaged" in result.err
    assert path.exists()


# ---- settings with an error ---------------------------------------------------------------------
@pytest.mark.parametrize("line", ["newer_key = 1", 'mode = "enforc"', 'tick = "250ms'])
def test_an_error_in_the_settings_is_named_and_does_not_stop_a_restore(cli: Cli, line: str) -> None:
    leave(cli, "writeback_percent", "10")
    settings = cli.state_dir / "ebbgate.toml"
    settings.write_text(f"{line}\n")
    result = cli("--config", str(settings), "restore")
    assert (result.code, cli.fake.read(PERCENT)) == (0, "10")
    assert result.err.startswith(f"ebbgate: {settings}:")
    assert f"restoring all the same, from the journal in {cli.state_dir}" in result.err
    assert cli("--config", str(settings), "status").code == 78


def test_the_folders_come_from_settings_with_an_error(cli: Cli) -> None:
    leave(cli, "writeback_percent", "10")
    settings = cli.state_dir / "ebbgate.toml"
    folders = f'state_dir = "{cli.state_dir}"\nruntime_dir = "{cli.runtime_dir}"\n'
    settings.write_text(f"{folders}newer_key = 1\n")
    context = Context(sysfs=cli.fake.sysfs, proc=cli.proc, euid=lambda: 0)
    assert main(["--config", str(settings), "restore"], context) == 0
    assert cli.fake.read(PERCENT) == "10"


def test_a_running_daemon_is_asked_although_the_settings_have_an_error(cli: Cli) -> None:
    settings = cli.state_dir / "ebbgate.toml"
    settings.write_text("newer_key = 1\n")
    with cli.daemon(answers=(True, "all knobs restored")):
        result = cli("--config", str(settings), "restore")
    assert (result.code, result.out) == (0, "all knobs restored\n")


# ---- who may go on ------------------------------------------------------------------------------
def test_restore_waits_for_a_starting_daemon(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the lock and not its socket yet."""
    monkeypatch.setattr(module, "_LOOK_S", 0.01)
    leave(cli, "writeback_percent", "10")
    lock = DaemonLock(cli.runtime_dir / "ebbgated.lock")
    lock.__enter__()
    tries = []

    def asked(context: Context, volume: str | None) -> dict[str, str]:
        tries.append(volume)
        if len(tries) < 3:
            raise NotRunning("ebbgated is not running", "start it")
        return {"by": "daemon", "outcome": "all back"}

    monkeypatch.setattr(module, "_by_daemon", asked)
    result = cli("restore")
    lock.__exit__()
    assert (result.code, result.out, len(tries)) == (0, "all back\n", 3)
    assert cli.fake.read(PERCENT) == "0", "the daemon's to put back"


def test_restore_waits_for_a_stopping_daemon(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.01)
    leave(cli, "writeback_percent", "10")
    lock = DaemonLock(cli.runtime_dir / "ebbgated.lock")
    lock.__enter__()

    def gone(context: Context, volume: str | None) -> dict[str, str]:
        lock.__exit__()
        raise NotRunning("ebbgated is not running", "start it")

    monkeypatch.setattr(module, "_by_daemon", gone)
    assert (cli("restore").code, cli.fake.read(PERCENT)) == (0, "10")


def test_restore_waits_for_another_restore(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.01)
    monkeypatch.setattr(module, "_PATIENCE_S", 0.1)
    with DaemonLock(cli.runtime_dir / "ebbgated.lock", LockRole.RESTORE):
        result = cli("restore")
    assert result.code == 75
    assert f"another ebbgate restore runs here (pid {os.getpid()})" in result.err


def test_a_daemon_that_hangs_is_named_with_the_next_step(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(*_: object) -> NoReturn:
        raise NotAnswering("no answer", "wait", 4711)

    monkeypatch.setattr(module, "ask", hangs)
    with DaemonLock(cli.runtime_dir / "ebbgated.lock"):
        result = cli("restore")
    assert result.code == 69
    assert "ebbgated (pid 4711) does not answer" in result.err
    assert "systemctl kill -s KILL ebbgated" in result.err


def test_a_daemon_without_a_socket_is_named_with_the_next_step(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads that no daemon runs, and that restore works without one, cannot go on."""
    monkeypatch.setattr(module, "_PATIENCE_S", 0.1)
    with DaemonLock(cli.runtime_dir / "ebbgated.lock"):
        result = cli("restore")
    assert result.code == 75
    assert f"another ebbgated runs here (pid {os.getpid()})" in result.err
    assert "systemctl stop ebbgated" in result.err


def test_values_of_others_are_kept_and_named(cli: Cli) -> None:
    leave(cli, "writeback_percent", "10")
    with closing(LastWritten(cli.runtime_dir / "last-written")) as last:
        (entry,) = read(cli.journal_path)
        last.begin(entry)
    cli.fake.write(PERCENT, "25")
    result = cli("restore")
    assert (result.code, cli.fake.read(PERCENT)) == (0, "25")
    assert "somebody else has changed it to 25" in " ".join(result.out.split())
    assert still_open(cli) == []


def test_a_lost_value_is_restored_once_the_original_is_set_by_hand(cli: Cli) -> None:
    leave(cli, "writeback_delay", "30")
    cli.fake.write(DELAY, "7")
    result = cli("restore")
    assert result.code == 74
    told = "wrote last is unknown: set it to 30 by hand, then run ebbgate restore"
    assert told in " ".join(result.err.split())
    assert still_open(cli) == ["writeback_delay"]
    cli.fake.write(DELAY, "30")
    assert cli("restore").code == 0
    assert still_open(cli) == []


# ---- overrides ----------------------------------------------------------------------------------
def add_override(
    cli: Cli, kind: OverrideKind, volume: str = "bcache0", knob: str = "", uuid: str = ""
) -> None:
    value = {"": "", "writeback_percent": "20"}.get(knob, "1048576")
    with closing(OverrideDatabase.open(cli.state_dir / "overrides.db")) as database:
        until = 2 if kind is OverrideKind.DRAIN else None
        override = Override(kind, volume, "jo", 1, until, knob, value, device_uuid=uuid)
        database.add([override])


def active_overrides(cli: Cli) -> list[tuple[str, str]]:
    with closing(OverrideDatabase.open(cli.state_dir / "overrides.db")) as database:
        return [(each.volume, str(each.kind)) for each in database.load().overrides]


def test_overrides_are_ended_and_named(cli: Cli) -> None:
    add_override(cli, OverrideKind.SET, knob="writeback_percent")
    add_override(cli, OverrideKind.HOLD, "bcache1")
    add_override(cli, OverrideKind.MANUAL, knob="sequential_cutoff")
    leave(cli, "writeback_percent", "10")
    result = cli("restore")
    assert cli.fake.read(PERCENT) == "10"
    assert "bcache0: writeback_percent 20, requested by jo, ended\n" in result.out
    assert "bcache1: hold, requested by jo, ended\n" in result.out
    assert active_overrides(cli) == [("bcache0", "manual")], (
        "a manual value is not an override of a person"
    )


def test_restore_of_one_volume_ends_only_its_overrides(cli: Cli) -> None:
    add_override(cli, OverrideKind.HOLD)
    add_override(cli, OverrideKind.HOLD, "bcache1")
    cli("restore", "/dev/bcache0")
    assert active_overrides(cli) == [("bcache1", "hold")]


@pytest.mark.parametrize(
    ("name", "uuid", "ends"),
    [
        ("bcache0", OURS, True),
        ("bcache1", OURS, True),
        ("bcache0", OTHERS, False),
        ("bcache0", "", True),
    ],
)
def test_restore_of_one_volume_ends_the_overrides_of_its_uuid(
    cli: Cli, name: str, uuid: str, ends: bool
) -> None:
    add_override(cli, OverrideKind.HOLD, name, uuid=uuid)
    cli("restore", "bcache0")
    assert active_overrides(cli) == ([] if ends else [(name, "hold")])


def test_keep_overrides_keeps_them(cli: Cli) -> None:
    add_override(cli, OverrideKind.SET, knob="writeback_percent")
    leave(cli, "writeback_percent", "10")
    result = cli("restore", "--keep-overrides")
    assert (result.code, cli.fake.read(PERCENT)) == (0, "10")
    assert active_overrides(cli) == [("bcache0", "set")]
    for unit in (REPO / "packaging/systemd").glob("*.service.in"):
        if "ebbgate restore" in unit.read_text():
            assert "ebbgate restore --keep-overrides\n" in unit.read_text(), unit.name


def test_keep_overrides_leaves_a_running_daemon_alone(cli: Cli) -> None:
    """systemd runs it also where a second daemon ends since the first one has the lock."""
    add_override(cli, OverrideKind.SET, knob="writeback_percent")
    with cli.daemon(answers=(True, "all knobs restored; mode advise")):
        leave(cli, "writeback_percent", "10")
        result = cli("restore", "--keep-overrides")
    text = f"nothing is changed: ebbgated (pid {os.getpid()}) runs and restores its knobs itself\n"
    assert (result.code, result.out) == (0, text)
    assert cli.intents() == []
    assert (cli.fake.read(PERCENT), still_open(cli)) == ("0", ["writeback_percent"])
    assert active_overrides(cli) == [("bcache0", "set")]


def test_keep_overrides_leaves_a_daemon_without_a_socket_alone(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.01)
    monkeypatch.setattr(module, "_PATIENCE_S", 0.1)
    leave(cli, "writeback_percent", "10")
    with DaemonLock(cli.runtime_dir / "ebbgated.lock"):
        result = cli("restore", "--keep-overrides")
    assert (result.code, cli.fake.read(PERCENT)) == (0, "0")
    assert result.out.startswith("nothing is changed: ebbgated (pid ")


def test_keep_overrides_restores_once_a_daemon_has_ended(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.01)
    leave(cli, "writeback_percent", "10")
    lock = DaemonLock(cli.runtime_dir / "ebbgated.lock")
    lock.__enter__()

    def gone(*_: object) -> NoReturn:
        lock.__exit__()
        raise NotRunning("ebbgated is not running", "start it")

    monkeypatch.setattr(module, "greet", gone)
    result = cli("restore", "--keep-overrides")
    assert (result.code, cli.fake.read(PERCENT)) == (0, "10")


def test_keep_overrides_names_a_daemon_that_hangs(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(*_: object) -> NoReturn:
        raise NotAnswering("no answer", "wait", 4711)

    monkeypatch.setattr(module, "greet", hangs)
    with DaemonLock(cli.runtime_dir / "ebbgated.lock"):
        result = cli("restore", "--keep-overrides")
    assert result.code == 69
    assert "ebbgated (pid 4711) does not answer" in result.err


def test_knobs_are_restored_when_overrides_cannot_be_ended(cli: Cli) -> None:
    leave(cli, "writeback_percent", "10")
    (cli.state_dir / "overrides.db").write_bytes(b"no database" * 100)
    result = cli("restore")
    assert (result.code, cli.fake.read(PERCENT)) == (0, "10")
    assert "could not be ended" in result.out

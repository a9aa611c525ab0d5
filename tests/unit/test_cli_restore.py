# SPDX-License-Identifier: GPL-2.0-only
"""`restore` puts originals back with or without a daemon, and keeps those that it could not."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from ebbgate.cli.link import no_daemon
from ebbgate.lock import holder
from ebbgate.model.wish import Wish, WishKind
from ebbgate.store.intents import Intents
from tests.builders import journal_entry
from tests.house_rules import REPO
from tests.unit.conftest import BOOT_ID, Cli

PERCENT = "/sys/block/bcache0/bcache/writeback_percent"
DELAY = "/sys/block/bcache0/bcache/writeback_delay"


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
    assert "bcache0  writeback_percent  10        put back" in result.out
    assert still_open(cli) == []


def test_a_second_restore_has_nothing_to_do(cli: Cli) -> None:
    leave(cli, "writeback_percent", "10")
    cli("restore")
    cli.fake.write(PERCENT, "25")
    result = cli("restore")
    assert (result.code, result.out) == (0, "nothing to put back: ebbgate holds no knob\n")
    assert cli.fake.read(PERCENT) == "25"


def test_values_from_before_a_reboot_are_not_put_back(cli: Cli) -> None:
    leave(cli, "writeback_percent", "10", boot_id="yesterday")
    result = cli("restore")
    assert result.code == 0
    assert cli.fake.read(PERCENT) == "0"
    assert "from another boot: nothing to put back" in result.out
    assert still_open(cli) == []


def test_a_device_that_is_gone_took_its_knobs_along(cli: Cli) -> None:
    leave(cli, "writeback_percent", "10")
    cli.fake.remove("/sys/block/bcache0")
    result = cli("restore", "bcache0")
    assert result.code == 0
    assert "the device is gone, and the knob with it" in result.out


def test_only_the_volume_that_was_named(cli: Cli) -> None:
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
    assert "1 of 2 knobs could not be put back" in result.err
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


def test_a_living_daemon_is_asked_instead(cli: Cli) -> None:
    with cli.daemon(answers=(True, "bcache0: every knob is back; mode advise")):
        cli.journal(journal_entry(boot_id=BOOT_ID))
        cli.fake.write(PERCENT, "0")
        result = cli("restore", "bcache0")
        assert (result.code, result.out) == (0, "bcache0: every knob is back; mode advise\n")
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
        "wishes": [],
    }


def test_no_daemon_can_start_while_knobs_are_put_back(tmp_path: Path) -> None:
    lock = tmp_path / "ebbgated.lock"
    with no_daemon(lock) as alone:
        assert alone
        with no_daemon(lock) as second:
            assert not second
    with no_daemon(lock) as alone:
        assert alone


def test_a_lock_without_a_holder_is_no_daemon(tmp_path: Path) -> None:
    lock = tmp_path / "ebbgated.lock"
    assert holder(lock) is None
    lock.write_text("4711")
    assert holder(lock) is None
    handle = os.open(lock, os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert holder(lock) == 4711
    os.close(handle)
    assert holder(lock) is None


# ---- wishes -------------------------------------------------------------------------------------
def wish(cli: Cli, kind: WishKind, volume: str = "bcache0", knob: str = "") -> None:
    intents = Intents.open(cli.state_dir / "intents.db")
    intents.add_wish(Wish(kind, volume, "jo", 1, None, knob, "20" if knob else ""))
    intents.close()


def standing(cli: Cli) -> list[tuple[str, str]]:
    intents = Intents.open(cli.state_dir / "intents.db")
    try:
        return [(wish.volume, str(wish.kind)) for wish in intents.wishes()]
    finally:
        intents.close()


def test_what_people_wished_is_over_and_is_said(cli: Cli) -> None:
    wish(cli, WishKind.SET, knob="writeback_percent")
    wish(cli, WishKind.HOLD, "bcache1")
    wish(cli, WishKind.MANUAL, knob="sequential_cutoff")
    leave(cli, "writeback_percent", "10")
    result = cli("restore")
    assert cli.fake.read(PERCENT) == "10"
    assert "bcache0: writeback_percent 20 of jo is over\n" in result.out
    assert "bcache1: the hold of jo is over\n" in result.out
    assert standing(cli) == [("bcache0", "manual")], "nobody wished for it, it was found"


def test_of_one_volume_only_its_wishes_end(cli: Cli) -> None:
    wish(cli, WishKind.DRAIN)
    wish(cli, WishKind.DRAIN, "bcache1")
    cli("restore", "/dev/bcache0")
    assert standing(cli) == [("bcache1", "drain")]


def test_systemd_keeps_them_for_the_next_daemon(cli: Cli) -> None:
    wish(cli, WishKind.SET, knob="writeback_percent")
    leave(cli, "writeback_percent", "10")
    result = cli("restore", "--keep-wishes")
    assert (result.code, cli.fake.read(PERCENT)) == (0, "10")
    assert standing(cli) == [("bcache0", "set")]
    for unit in (REPO / "packaging/systemd").glob("*.service.in"):
        if "ebbgate restore" in unit.read_text():
            assert "ebbgate restore --keep-wishes\n" in unit.read_text(), unit.name


def test_wishes_that_cannot_be_ended_keep_no_knob_from_coming_back(cli: Cli) -> None:
    leave(cli, "writeback_percent", "10")
    (cli.state_dir / "intents.db").write_bytes(b"no database" * 100)
    result = cli("restore")
    assert (result.code, cli.fake.read(PERCENT)) == (0, "10")
    assert "could not be ended" in result.out

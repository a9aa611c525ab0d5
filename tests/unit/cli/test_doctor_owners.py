# SPDX-License-Identifier: GPL-2.0-only
"""`doctor` gives no advice on a value that ebbgate has set, or may have set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ebbgate.cli import daemon_status
from ebbgate.intents.client import NotAnswering
from ebbgate.intents.protocol import Greeting
from tests.builders import journal_entry, live_document
from tests.unit.conftest import BOOT_ID, NOW_NS, Cli

OPEN_GATE = "/sys/block/bcache0/bcache/writeback_percent"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")


def advised(document: dict[str, Any]) -> list[str]:
    return [row["id"] for row in document["volumes"][0]["advice"]]


def owner(document: dict[str, Any]) -> str:
    knobs = {row["name"]: row for row in document["volumes"][0]["knobs"]}
    return str(knobs["writeback_percent"]["owner"])


@pytest.fixture
def gate_open(cli: Cli) -> Cli:
    cli.fake.write(OPEN_GATE, "0")
    return cli


@pytest.fixture
def installed(open_cli: Cli) -> Cli:
    """The same machine, with the rights of an installed one."""
    open_cli.fake.write(OPEN_GATE, "0")
    open_cli.fake.write("/sys/block/vda/queue/scheduler", "mq-deadline [none]")
    open_cli.fake.write("/sys/block/vda/device/queue_depth", "256")
    open_cli.state_dir.chmod(0o750)
    return open_cli


def test_a_value_of_a_person_has_advice(gate_open: Cli) -> None:
    assert advised(gate_open("doctor", "--json").document) == ["EBB-205", "EBB-210"]


def test_a_value_that_a_killed_daemon_has_left_behind_has_none(gate_open: Cli) -> None:
    """`echo 10` would lose the original, 33: `restore` leaves alone what a person has set."""
    with gate_open.daemon() as store:
        store.set_live("bcache0", live_document(), NOW_NS)
        gate_open.journal(journal_entry(boot_id=BOOT_ID, original="33", last_written="0"))
    result = gate_open("doctor", "--knobs")
    document = gate_open("doctor", "--json").document
    assert owner(document) == "left behind"
    assert advised(document) == ["EBB-205"]
    assert "EBB-210" not in result.out
    assert "set by ebbgate; original 33" in result.out
    assert "restore them: ebbgate restore" in result.out


@needs_root
def test_without_rights_whether_the_daemon_runs_is_unknown(installed: Cli) -> None:
    with installed.daemon() as store:
        store.set_live("bcache0", live_document(mode="enforce"), NOW_NS)
        (installed.runtime_dir / "control.sock").chmod(0o660)
        document = installed.as_nobody("doctor", "--json").document
        text = installed.as_nobody("doctor").out
    assert (document["daemon"]["alive"], document["daemon"]["answers"]) == (None, None)
    assert owner(document) == "unknown"
    assert advised(document) == ["EBB-101"], "ebbgate never sets a scheduler to none"
    assert "whether ebbgated runs is unknown: run this as root" in text
    assert "bcache0  bcache writeback, dirty - mode unknown" in text
    assert "no advice on knobs that ebbgate may have set: run this as root" in text
    assert "not running" not in text


@needs_root
def test_without_rights_values_of_a_daemon_that_has_ended_may_be_left(installed: Cli) -> None:
    with installed.daemon() as store:
        store.set_live("bcache0", live_document(), NOW_NS)
        installed.journal(journal_entry(boot_id=BOOT_ID, original="33", last_written="0"))
    document = installed.as_nobody("doctor", "--json").document
    assert document["daemon"]["alive"] is False, "its socket is gone"
    assert (owner(document), advised(document)) == ("unknown", ["EBB-101"])


@needs_root
def test_without_rights_a_machine_without_ebbgate_has_all_advice(installed: Cli) -> None:
    installed.state_dir.rmdir()
    document = installed.as_nobody("doctor", "--json").document
    assert (document["daemon"]["alive"], owner(document)) == (False, "kernel")
    assert advised(document) == ["EBB-101", "EBB-103", "EBB-205", "EBB-210"]


def test_values_of_a_daemon_that_hangs_have_none(
    gate_open: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(path: Path, timeout_s: float) -> Greeting:
        raise NotAnswering("ebbgated does not answer", "see its log", 815)

    with gate_open.daemon() as store:
        store.set_live("bcache0", live_document(), NOW_NS - 60_000_000_000)
        monkeypatch.setattr(daemon_status, "greet", hangs)
        document = gate_open("doctor", "--json").document
        text = gate_open("doctor").out
    assert (owner(document), advised(document)) == ("unknown", [])
    assert "no advice on knobs that ebbgate may have set: see journalctl -u ebbgated" in text

# SPDX-License-Identifier: GPL-2.0-only
"""`forget`, and what `status` and `doctor` tell of volumes that are not here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from ebbgate.cli.app import app
from ebbgate.cli.context import Context
from ebbgate.doctor.advice import advise_on_daemon
from ebbgate.model.status import AbsentVolume, DaemonStatus, KeptChoice
from tests.unit.conftest import NOW_NS, Cli
from tests.unit.doctor.test_advice import check_form
from tests.unit.doctor.test_signals import HELLO, program

UUID = "aaaaaaaa-0000-4000-8000-000000000001"
WHY = "another volume has the name bcache0 now"
ABSENT: dict[str, Any] = {
    "volume": "bcache0",
    "uuid": UUID,
    "why": WHY,
    "kept": [
        {"what": "mode enforce", "since_unix_ns": NOW_NS},
        {"what": "writeback_percent 20", "since_unix_ns": None},
    ],
}
OLDER = {"volume": "vg-old", "uuid": "", "why": "it is not found", "kept": [{"what": "the hold"}]}
OWN = {"version": "0.2.0", "absent": [ABSENT, OLDER], "absent_count": 2}


@pytest.mark.parametrize("named", [UUID, "bcache0", "/dev/bcache0"])
def test_what_a_person_names_is_sent(cli: Cli, named: str) -> None:
    with cli.daemon(answers=(True, "bcache0: dropped mode enforce")):
        result = cli("forget", named)
        document = cli("forget", named, "--json").document
    assert (result.code, result.out) == (0, "bcache0: dropped mode enforce\n")
    sent = [(each["kind"], each["volume"], each["args"]) for each in cli.intents()]
    assert sent == [("forget", None, {"absent": named.removeprefix("/dev/")})] * 2
    assert document["outcome"] == "bcache0: dropped mode enforce"


@pytest.mark.parametrize("named", ["", "x" * 256, "bcache0\n", "\x1b[31m"])
def test_what_is_no_name_is_not_sent(cli: Cli, named: str) -> None:
    with cli.daemon(answers=(True, "done")):
        result = cli("forget", named)
        assert (result.code, cli.intents()) == (64, [])
    assert "\x1b" not in result.err


def test_the_reason_of_a_refusal_is_told(cli: Cli) -> None:
    with cli.daemon(answers=(False, "bcache0 is here\n  to end it: ebbgate release bcache0")):
        result = cli("forget", "bcache0")
    assert result.code == 74
    assert "bcache0 is here" in result.err
    assert "to end it: ebbgate release bcache0" in result.err


def test_status_lists_what_is_kept_for_volumes_that_are_not_here(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("", OWN, NOW_NS)
        lines = cli("status").out.splitlines()
        assert cli("status", "--json").document["daemon"]["absent"][0] == ABSENT
        assert "not here" not in cli("status", "bcache0").out
    start = lines.index(f"bcache0  not here: {WHY}")
    assert lines[start : start + 9] == [
        f"bcache0  not here: {WHY}",
        "  kept: mode enforce, since 2023-11-14 22:13 UTC",
        "  kept: writeback_percent 20",
        f"  uuid {UUID}",
        f"  to drop this: sudo ebbgate forget {UUID}",
        "",
        "vg-old  not here: it is not found",
        "  kept: the hold",
        "  to drop this: sudo ebbgate forget vg-old",
    ]


def test_of_very_many_volumes_the_rest_is_counted(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("", {**OWN, "absent_count": 7}, NOW_NS)
        assert "and 5 more volumes that are not here" in cli("status").out


def test_without_anything_kept_nothing_is_said(cli: Cli) -> None:
    with cli.daemon() as store:
        for own in ({**OWN, "absent": [], "absent_count": 0}, {"version": "0.1.0"}):
            store.set_live("", own, NOW_NS)
            assert "not here" not in cli("status").out
    assert "not here" not in cli("status").out


def test_doctor_tells_how_to_drop_it(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EBBGATE_PROBE", str(program(tmp_path, json.dumps(HELLO))))
    with cli.daemon() as store:
        store.set_live("", OWN, NOW_NS)
        out, document = cli("doctor").out, cli("doctor", "--json").document
        assert cli("doctor", "bcache0", "--json").document["absent"] == []
    assert "EBB-401 Info: For bcache0 (uuid" in out
    assert f"sudo ebbgate forget {UUID}" in out
    assert [(each["volume"], each["advice"][0]["id"]) for each in document["absent"]] == [
        ("bcache0", "EBB-401"),
        ("vg-old", "EBB-401"),
    ]


def test_the_advice_is_like_every_other_one() -> None:
    kept = (KeptChoice("mode enforce"), KeptChoice("the hold"))
    known = DaemonStatus(absent=(AbsentVolume("vg-a", "x; reboot", WHY, kept),))
    (found,) = advise_on_daemon(known)
    check_form(found)
    assert found.command == "sudo ebbgate forget 'x; reboot'"
    assert "mode enforce, the hold" in found.text
    assert WHY in found.text
    assert advise_on_daemon(DaemonStatus()) == ()


def test_shells_complete_what_can_be_dropped(cli: Cli) -> None:
    context = Context(
        sysfs=cli.fake.sysfs,
        proc=cli.proc,
        state_dir_option=cli.state_dir,
        runtime_dir_option=cli.runtime_dir,
        wall_ns=lambda: NOW_NS,
    )

    def offered(begun: str) -> list[str]:
        shell = ShellComplete(app, {"obj": context}, "ebbgate", "_EBBGATE_COMPLETE")
        return [item.value for item in shell.get_completions(["forget"], begun)]

    assert offered("") == []
    with cli.daemon() as store:
        store.set_live("", OWN, NOW_NS)
        assert (offered(""), offered("vg"), offered("x")) == ([UUID, "vg-old"], ["vg-old"], [])

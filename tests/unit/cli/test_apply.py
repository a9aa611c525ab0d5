# SPDX-License-Identifier: GPL-2.0-only
"""`apply` asks, applies one advice, prints the undo, and refuses what it cannot apply."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbgate.kernel.sysfs import Sysfs
from tests.builders import live_document
from tests.fake_dm import FakeCache, fake_lvm
from tests.unit.conftest import NOW_NS, Cli


class Terminal(io.StringIO):
    """Somebody who types this."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def off(cli: Cli) -> Cli:
    """A machine on which the sequential detector is off and congestion is on."""
    cli.fake.write("/sys/block/bcache0/bcache/sequential_cutoff", "0")
    return cli


def asked(cli: Cli) -> list[tuple[str, dict[str, Any]]]:
    return [(intent["kind"], intent["args"]) for intent in cli.intents()]


@pytest.mark.parametrize("number", ["EBB-206", "ebb-206", "206"])
def test_apply_sets_a_knob_and_prints_the_undo(off: Cli, number: str) -> None:
    with off.daemon(answers=(True, "bcache0: sequential_cutoff = 4 MiB until it is released")):
        result = off("apply", number, "bcache0", "--yes")
    assert result.code == 0
    assert result.out == (
        "bcache0: sequential_cutoff = 4 MiB until it is released\n"
        "undo: ebbgate release bcache0 sequential_cutoff\n"
    )
    assert asked(off) == [("apply", {"id": "EBB-206"})]


def test_advice_with_two_knobs_has_two_undo_commands(off: Cli) -> None:
    with off.daemon(answers=(True, "done\nundo: one\nundo: the other")):
        document = off("apply", "EBB-205", "bcache0", "--yes", "--json").document
    assert document["outcome"] == ["done"], "the undo is printed once"
    assert document["undo"] == [
        "ebbgate release bcache0 congested_read_threshold_us",
        "ebbgate release bcache0 congested_write_threshold_us",
    ]
    assert asked(off) == [("apply", {"id": "EBB-205"})]


def test_a_refused_apply_changes_nothing(off: Cli) -> None:
    with off.daemon(answers=(False, "it is suspended")):
        result = off("apply", "EBB-205", "bcache0", "--yes")
    assert (result.code, "it is suspended" in result.err) == (74, True)
    assert [kind for kind, _ in asked(off)] == ["apply"]


def test_a_trigger_needs_no_undo(cli: Cli) -> None:
    cli.fake.write(
        "/sys/fs/bcache/11111111-2222-3333-4444-555555555555/cache_available_percent", "2"
    )
    with cli.daemon(answers=(True, "bcache0: trigger_gc was written")):
        out = cli("apply", "EBB-204", "bcache0", "--yes").out
    assert out == "bcache0: trigger_gc was written\nthere is nothing to undo\n"


# ---- asking -------------------------------------------------------------------------------------
@pytest.mark.parametrize(("typed", "code", "kinds"), [("y\n", 0, ["apply"]), ("n\n", 130, [])])
def test_apply_asks_on_a_terminal(
    off: Cli, monkeypatch: pytest.MonkeyPatch, typed: str, code: int, kinds: list[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    with off.daemon(answers=(True, "done")):
        result = off("apply", "EBB-206", "bcache0")
    assert result.code == code
    assert "echo 4194304 | sudo tee /sys/block/bcache0/bcache/sequential_cutoff" in result.err
    assert "Effect: streams leave space for random writes" in result.err
    assert [kind for kind, _ in asked(off)] == kinds


def test_apply_without_a_terminal_needs_yes(off: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with off.daemon(answers=(True, "done")):
        result = off("apply", "EBB-206", "bcache0")
        assert off.intents() == []
    assert (result.code, "add --yes" in result.err) == (64, True)


# ---- refusals -----------------------------------------------------------------------------------
def test_advice_without_a_change_is_refused_with_its_command(cli: Cli) -> None:
    cli.fake.write("/sys/block/vda/queue/scheduler", "mq-deadline [none]")
    result = cli("apply", "EBB-101", "bcache0", "--yes")
    assert (result.code, result.err) == (
        64,
        "ebbgate: ebbgate cannot apply EBB-101\n"
        "  by hand: echo mq-deadline | sudo tee /sys/block/vda/queue/scheduler\n",
    )
    assert "mq-deadline [none]" in cli.fake.read("/sys/block/vda/queue/scheduler")


@pytest.mark.parametrize("number", ["EBB-206", "EBB-999", "nonsense"])
def test_advice_that_does_not_apply_is_not_found(cli: Cli, number: str) -> None:
    result = cli("apply", number, "bcache0", "--yes")
    assert result.code == 66
    assert "does not apply to bcache0" in result.err
    assert "these apply now: EBB-205" in result.err


def test_apply_without_a_daemon_writes_nothing(off: Cli) -> None:
    result = off("apply", "EBB-206", "bcache0", "--yes")
    assert (result.code, "ebbgated is not running" in result.err) == (69, True)
    assert off.fake.read("/sys/block/bcache0/bcache/sequential_cutoff") == "0"


def test_a_gate_knob_cannot_be_applied_in_enforce(cli: Cli) -> None:
    cli.fake.write("/sys/block/bcache0/bcache/writeback_percent", "40")
    with cli.daemon(answers=(True, "done")) as store:
        store.set_live("bcache0", live_document(mode="enforce", knobs={}), NOW_NS)
        result = cli("apply", "EBB-209", "bcache0", "--yes")
        assert cli.intents() == []
    assert result.code == 64
    assert "ebbgate tunes writeback_percent already" in result.err
    assert "ebbgate release bcache0 writeback_percent" in result.err


def test_doctor_shows_which_advice_can_be_applied(off: Cli) -> None:
    rows = off("doctor", "--json").document["volumes"][0]["advice"]
    assert {row["id"]: row["apply"] for row in rows} == {"EBB-205": True, "EBB-206": True}
    out = off("doctor").out
    assert "ebbgate apply EBB-206 bcache0" in out
    assert "Effect: streams leave space for random writes" in out


# ---- LVM ----------------------------------------------------------------------------------------
@pytest.fixture
def mapped(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine with LVM's vg/data, and an lvchange that records its arguments."""
    log = tmp_path / "log"
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "lvchange"
    program.write_text(f'#!/bin/sh\necho "$@" >> {log}\necho "Logical volume vg/data changed."\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    yield log


def test_an_lvm_command_is_run_and_its_undo_printed(cli: Cli, mapped: Path) -> None:
    machine = fake_lvm(cli.fake, FakeCache(threshold=40960))
    cli.fake.sysfs = Sysfs(cli.fake.root, machine)
    result = cli("apply", "EBB-305", "vg/data", "--yes")
    assert result.code == 0
    assert result.out == (
        "Logical volume vg/data changed.\n"
        "undo: lvchange --cachesettings migration_threshold=default vg/data\n"
    )
    assert mapped.read_text() == "--cachesettings migration_threshold=2048 vg/data\n"
    assert cli.intents() == []


def test_an_interrupt_does_not_kill_lvm(cli: Cli, mapped: Path) -> None:
    """LVM delays SIGINT while a volume is suspended; killed there, it would leave it so."""
    (mapped.parent / "bin/lvchange").write_text(
        f"#!/bin/sh\ntrap '' INT\nkill -INT {os.getpid()}\nsleep 0.5\necho resumed >> {mapped}\n"
    )
    cli.fake.sysfs = Sysfs(cli.fake.root, fake_lvm(cli.fake, FakeCache(threshold=40960)))
    result = cli("apply", "EBB-305", "vg/data", "--yes")
    assert (result.code, mapped.read_text()) == (0, "resumed\n")
    assert "undo: lvchange --cachesettings migration_threshold=default vg/data" in result.out

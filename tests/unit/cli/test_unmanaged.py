# SPDX-License-Identifier: GPL-2.0-only
"""Without a recent status it is said what is known of ebbgated, and no more than that."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from ebbgate.cli import daemon_status
from ebbgate.cli.daemon_status import Link
from ebbgate.cli.unmanaged import unmanaged
from ebbgate.intents.client import Busy, NotAnswering
from ebbgate.intents.protocol import Greeting
from ebbgate.store.db import Store
from ebbgate.units import NS_PER_S
from tests.builders import decision, journal_entry, live_document, proposal
from tests.unit.conftest import BOOT_ID, NOW_NS, Cli

OWN = {"version": "0.2.0", "probe": {"kind": "ebpf", "state": "running"}}
OLD_NS = NOW_NS - 12 * NS_PER_S
KERNELS = "the kernel's settings apply"


def answer_with(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let the daemon run and give no greeting."""

    def greet(path: Path, timeout_s: float) -> Greeting:
        raise error

    monkeypatch.setattr(daemon_status, "greet", greet)


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("words", [("status",), ("status", "bcache0"), ("explain", "bcache0")])
def test_a_daemon_that_hangs_is_not_said_to_have_left_the_volume(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    answer_with(monkeypatch, NotAnswering("no answer", "wait", 815))
    with closing(Store.open(cli.history)) as store:
        store.set_live("", OWN, OLD_NS)
        store.set_live("bcache0", live_document(), OLD_NS)
        store.add_decision(decision(proposal()), OLD_NS)
        out = one_line(cli(*words).out)
    assert "dirty; what ebbgated does with it is unknown: its last status is 12 s old" in out
    assert "mode unknown" in out
    assert "ebbgated (pid 815) does not answer" in out
    assert KERNELS not in out
    assert "no daemon" not in out
    assert "not running" not in out


@pytest.mark.parametrize("words", [("status",), ("explain", "bcache0")])
def test_a_daemon_that_cannot_write_its_status_is_said_to_run(
    cli: Cli, words: tuple[str, ...]
) -> None:
    with cli.daemon() as store:
        store.set_live("", OWN, OLD_NS)
        store.set_live("bcache0", live_document(), OLD_NS)
        store.add_decision(decision(proposal()), OLD_NS)
        out = one_line(cli(*words).out)
        document = cli("status", "--json").document
    assert "runs, but its last status is 12 s old: the disk of its history may be full" in out
    assert "probe ebpf: running" not in out
    assert "not running" not in out
    assert document["daemon"]["age_ns"] == 12 * NS_PER_S


def test_of_a_volume_that_came_while_the_status_is_old_nothing_is_known(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("", OWN, OLD_NS)
        out = one_line(cli("status").out)
        (volume,) = cli("status", "--json").document["volumes"]
    assert "dirty; ebbgated has given no status of it" in out
    assert volume["knobs"]["writeback_percent"]["owner"] == "unknown"


def test_a_volume_that_a_daemon_does_not_follow_is_the_kernels(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("", OWN, NOW_NS)
        out = one_line(cli("status").out)
        missing = cli("explain", "bcache0")
    assert "bcache0 bcache writeback - not followed" in out
    assert f"dirty; not managed by ebbgated, {KERNELS}" in out
    assert (missing.code, missing.err.splitlines()[1]) == (69, "  see ebbgate status")


def test_knobs_that_a_killed_daemon_left_are_not_called_the_kernels(cli: Cli) -> None:
    with cli.daemon():
        cli.journal(journal_entry(boot_id=BOOT_ID, original="10"))
    out = one_line(cli("status").out)
    assert "dirty; not managed by ebbgated; 1 knob still has a value from ebbgate" in out
    assert KERNELS not in out


def test_left_knobs_are_reported_where_the_history_is_gone(cli: Cli) -> None:
    cli.journal(journal_entry(boot_id=BOOT_ID, original="10"))
    assert not cli.history.exists()
    assert "1 knobs still have values from ebbgate" in cli("status").out


def test_where_only_root_can_see_the_journal_it_is_said() -> None:
    found = unmanaged(Link(alive=False, pid=None, left_behind_known=False), "bcache0")
    assert "only root can see" in found.why
    assert KERNELS not in found.why


def test_a_process_without_a_known_number_is_not_called_none(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, Busy("too many connections", "wait"))
    with closing(Store.open(cli.history)) as store:
        store.set_live("", OWN, NOW_NS)
        assert "daemon 0.2.0, probe ebpf: running" in cli("status").out

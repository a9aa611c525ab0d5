# SPDX-License-Identifier: GPL-2.0-only
"""`pin`, `unpin` and `pins`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.units import NS_PER_S
from tests.builders import live_document
from tests.unit.conftest import NOW_NS, Cli

PIN = {
    "id": 2,
    "path": "/srv/a",
    "state": "hot",
    "who": "jo",
    "why": "",
    "size_bytes": 120 << 20,
    "cache_ratio": 0.12,
    "hit_ratio": 1.0,
    "since_unix_ns": 5,
    "touched_unix_ns": 6,
}


def test_a_path_is_sent_as_absolute(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with cli.daemon(answers=(True, "done")):
        assert (cli("pin", "a").code, cli("unpin", "./3").code, cli("unpin", "3").code) == (0, 0, 0)
    sent = [(each["kind"], each["volume"], each["args"]) for each in cli.intents()]
    assert sent == [
        ("pin", None, {"path": str(tmp_path / "a")}),
        ("unpin", None, {"path": str(tmp_path / "3")}),
        ("unpin", None, {"pin": 3}),
    ]


def test_a_relative_path_in_a_deleted_folder_is_an_error(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for words in (("pin", "a"), ("unpin", "a"), ("warm", "a"), ("layout", "show", "a")):
        result = cli(*words)
        assert (result.code, result.out) == (66, "")
        assert result.err.startswith("ebbgate: a: the current folder was deleted\n")
    assert cli("check-policy", "a").code == 66


@pytest.mark.parametrize("word", ["9" * 5000, "9" * 19, "\u0663"])
def test_what_is_no_number_of_a_pin_is_a_path(cli: Cli, word: str) -> None:
    with cli.daemon(answers=(True, "done")):
        cli("unpin", word)
    assert [list(each["args"]) for each in cli.intents()] in ([["path"]], [])


def test_pins_are_listed(cli: Cli) -> None:
    with cli.daemon() as store:
        absent = {"id": 1, "path": "/srv/b", "state": "absent", "why": "it is not mounted"}
        store.set_live("bcache0", live_document(title="bcache0", pins=[PIN, absent]), NOW_NS)
        result = cli("pins")
        assert cli("pins", "--json").document["pins"][1] == {"volume": "bcache0", **PIN}
        status = cli("status", "bcache0").out
    assert result.out.splitlines() == [
        "bcache0: pin 1, /srv/b (): absent: it is not mounted",
        "bcache0: pin 2, /srv/a (jo): hot, 120 MiB, 12% of the cache, 100% of touches hit",
    ]
    assert "pin 2, /srv/a (jo): hot" in status


def test_pins_of_a_daemon_that_has_ended_are_not_listed(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(title="bcache0", pins=[PIN]), NOW_NS)
    text, document = cli("pins").out, cli("pins", "--json").document
    assert "ebbgated is not running" in text
    assert "pin" not in text
    assert (document["pins"], document["daemon"]["alive"]) == ([], False)


def test_pins_of_a_volume_with_an_old_status_are_not_listed(cli: Cli) -> None:
    with cli.daemon() as store:
        old_ns = NOW_NS - 6 * NS_PER_S
        store.set_live("bcache0", live_document(title="bcache0", pins=[PIN]), NOW_NS)
        store.set_live("bcache1", live_document(title="bcache1", pins=[PIN]), old_ns)
        lines = cli("pins").out.splitlines()
    assert lines[0].startswith("bcache1: ebbgated does not update its status")
    assert [line.split()[:3] for line in lines[-1:]] == [["bcache0:", "pin", "2,"]]


def test_without_pins_the_list_says_so(cli: Cli) -> None:
    with cli.daemon():
        assert cli("pins").out == "no file is pinned\n"

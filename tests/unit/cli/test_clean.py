# SPDX-License-Identifier: GPL-2.0-only
"""`clean` checks the volume and the time, and asks before it sends the request."""

from __future__ import annotations

import io

import pytest

from ebbgate.kernel.sysfs import Sysfs
from tests.fake_dm import fake_lvm
from tests.unit.conftest import Cli


@pytest.fixture
def mapped(cli: Cli) -> Cli:
    cli.fake.sysfs = Sysfs(cli.fake.root, fake_lvm(cli.fake))
    return cli


def test_bcache_is_refused_with_the_reason(cli: Cli) -> None:
    result = cli("clean", "bcache0", "--yes")
    assert result.code == 64
    assert "bcache0 is bcache; clean is for dm-cache and dm-writecache" in result.err


@pytest.mark.parametrize("within", ["soon", "1s", "1000h"])
def test_an_invalid_time_is_refused(mapped: Cli, within: str) -> None:
    result = mapped("clean", "vg/data", "--within", within, "--yes")
    assert result.code == 64
    assert "--within" in result.err
    assert mapped.intents() == []


def test_clean_without_a_daemon_asks_nothing(mapped: Cli) -> None:
    assert mapped("clean", "vg/data").code == 69


def test_clean_without_a_terminal_needs_yes(mapped: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with mapped.daemon(answers=(True, "done")):
        result = mapped("clean", "vg/data")
    assert (result.code, result.out) == (64, "")
    assert result.err == "ebbgate: cannot ask for confirmation: no terminal\n  add --yes\n"
    assert mapped.intents() == []


def test_clean_reaches_the_daemon(mapped: Cli) -> None:
    with mapped.daemon(answers=(True, "vg/data: cleans 398 MiB, for 2 min at most")):
        result = mapped("clean", "vg/data", "--within", "2min", "--yes")
    assert (result.code, result.out) == (0, "vg/data: cleans 398 MiB, for 2 min at most\n")
    (intent,) = mapped.intents()
    assert (intent["kind"], intent["volume"]) == ("clean", "vg-data")
    assert intent["args"] == {"within_ns": 120 * 10**9}

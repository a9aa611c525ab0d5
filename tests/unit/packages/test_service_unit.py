# SPDX-License-Identifier: GPL-2.0-only
"""What the units say fits what the daemon and ebbgate-web do."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from ebbgate.daemon.main import main
from ebbgate.errors import (
    AlreadyRunning,
    EbbgateError,
    PermissionDenied,
    Unavailable,
    UsageError,
)
from ebbgate.log_messages.message import LogMessage
from ebbgate.log_messages.service import DAEMON_FAILED, WEB_FAILED
from ebbgate.web.command import main as web
from tests.fake_sysfs import fake_bcache
from tests.house_rules import REPO

UNIT = (REPO / "packaging/systemd/ebbgated.service.in").read_text()
WEB_UNIT = (REPO / "packaging/systemd/ebbgate-web.service.in").read_text()


def setting(key: str, unit: str) -> str:
    """Return the value of a key that a unit has once."""
    (value,) = re.findall(f"^{key}=(.*)$", unit, re.M)
    return str(value)


def final(unit: str = UNIT) -> set[int]:
    """Return the exit codes after which systemd does not start the service again."""
    return {int(word) for word in setting("RestartPreventExitStatus", unit).split()}


def test_the_daemon_is_not_started_again_with_wrong_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "setswitchinterval", lambda _: None)
    settings = tmp_path / "ebbgate.toml"
    settings.write_text("newer_key = 1\n")
    words = ["--config", settings, "--state-dir", tmp_path / "state", "--runtime-dir", tmp_path]
    sysfs = fake_bcache(tmp_path / "sys").sysfs
    assert main([str(word) for word in words], sysfs) in final()


def test_the_daemon_is_not_started_again_with_a_wrong_command_line() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--no-such-option"])
    assert ended.value.code in final()


@pytest.mark.parametrize(
    ("error", "again"), [(PermissionDenied, False), (Unavailable, True), (AlreadyRunning, True)]
)
def test_the_daemon_is_started_again_where_that_may_help(
    error: type[EbbgateError], again: bool
) -> None:
    assert (error.exit_code not in final()) == again


# ---- ebbgate-web ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "words",
    [["--config", "/nowhere/at/all"], ["--listen", "nowhere"], ["--no-such-option"]],
    ids=["settings", "value", "option"],
)
def test_ebbgate_web_is_not_started_again_where_that_cannot_help(words: list[str]) -> None:
    try:
        code: object = web([*words, "--as-root"])
    except SystemExit as ended:
        code = ended.code
    assert code in final(WEB_UNIT)


def test_ebbgate_web_is_started_again_where_the_port_may_be_free_by_then() -> None:
    assert Unavailable.exit_code not in final(WEB_UNIT)
    assert UsageError.exit_code in final(WEB_UNIT), "it refuses to run as root"


# ---- both ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("unit", "name", "failed"),
    [(UNIT, "ebbgated", DAEMON_FAILED), (WEB_UNIT, "ebbgate-web", WEB_FAILED)],
)
def test_the_log_names_what_systemd_needs_after_several_failures(
    unit: str, name: str, failed: LogMessage
) -> None:
    assert setting("StartLimitIntervalSec", unit) == "300"
    assert setting("StartLimitBurst", unit) == "5"
    assert f"systemctl reset-failed {name}`" in failed.action
    assert "for five minutes" in failed.action


@pytest.mark.parametrize("unit", [UNIT, WEB_UNIT])
def test_all_starts_fit_into_the_interval_of_their_limit(unit: str) -> None:
    """Else a service that always fails at once is started for ever."""
    starts, pause_s = int(setting("StartLimitBurst", unit)), setting("RestartSec", unit)
    assert pause_s.endswith("s")
    assert starts * int(pause_s[:-1]) < int(setting("StartLimitIntervalSec", unit)) / 2

# SPDX-License-Identifier: GPL-2.0-only
"""What the daemon's unit says fits what the daemon does."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from ebbgate.daemon.main import main
from ebbgate.errors import AlreadyRunning, EbbgateError, PermissionDenied, Unavailable
from ebbgate.log_messages.service import DAEMON_FAILED
from tests.fake_sysfs import fake_bcache
from tests.house_rules import REPO

UNIT = (REPO / "packaging/systemd/ebbgated.service.in").read_text()


def final() -> set[int]:
    """Return the exit codes after which systemd does not start the daemon again."""
    found = re.search("^RestartPreventExitStatus=(.*)$", UNIT, re.M)
    assert found is not None
    return {int(word) for word in found[1].split()}


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


def test_the_log_names_what_systemd_needs_after_several_failures() -> None:
    limit = re.search("^StartLimitIntervalSec=(.*)$", UNIT, re.M)
    assert limit is not None
    assert limit[1] == "300"
    assert "systemctl reset-failed ebbgated" in DAEMON_FAILED.action
    assert "for five minutes" in DAEMON_FAILED.action

# SPDX-License-Identifier: GPL-2.0-only
"""Modes and hold are sent to the daemon; refusals have their exit codes."""

from __future__ import annotations

import json
import os
import pwd
import signal
import socket
import sqlite3
import threading
from collections.abc import Iterator

import pytest

from ebbgate.cli import intents
from ebbgate.cli.app import COMMANDS
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.store.intent_rows import IntentRow
from tests.control_harness import refuse
from tests.fake_dm import FakeDm
from tests.unit.conftest import Cli

ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.mark.parametrize("mode", ["observe", "advise", "enforce"])
def test_a_mode_request_prints_the_outcome(cli: Cli, mode: str) -> None:
    with cli.daemon(answers=(True, f"bcache0: mode {mode}")):
        result = cli(mode, "/dev/bcache0")
    assert (result.code, result.out) == (0, f"bcache0: mode {mode}\n")
    (intent,) = cli.intents()
    assert (intent["kind"], intent["volume"], intent["args"]) == ("mode", "bcache0", {"mode": mode})
    assert intent["who"] == ME


@pytest.mark.parametrize(
    ("user", "who"), [("jo", f"{ME} (jo)"), ("root", ME), ("x" * 65, ME), ("a\x1bb", ME)]
)
def test_the_sudo_user_is_sent_as_label(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, user: str, who: str
) -> None:
    monkeypatch.setenv("SUDO_USER", user)
    with cli.daemon(answers=(True, "done")):
        assert cli("enforce", "bcache0").code == 0
    assert cli.intents()[0]["who"] == who


@pytest.mark.parametrize(
    ("words", "volume", "on"),
    [
        (("hold",), None, True),
        (("hold", "bcache0"), "bcache0", True),
        (("hold", "--off"), None, False),
    ],
)
def test_hold_is_for_one_or_all_and_can_be_taken_back(
    cli: Cli, words: tuple[str, ...], volume: str | None, on: bool
) -> None:
    with cli.daemon(answers=(True, "held")):
        assert cli(*words).code == 0
    (intent,) = cli.intents()
    assert (intent["kind"], intent["volume"], intent["args"]) == ("hold", volume, {"on": on})


@pytest.mark.parametrize("command", ["hold", "restore", "status", "doctor", "enforce", "release"])
def test_an_empty_name_does_not_mean_all_volumes(cli: Cli, command: str) -> None:
    with cli.daemon(answers=(True, "done")):
        result = cli(command, "")
        assert cli.intents() == []
    assert (result.code, result.out) == (64, "")
    assert "the name of the volume is empty" in result.err


def test_json_has_request_and_outcome(cli: Cli) -> None:
    with cli.daemon(answers=(True, "bcache0: mode enforce")):
        document = cli("enforce", "bcache0", "--json").document
    assert document == {
        "volume": "bcache0",
        "kind": "mode",
        "mode": "enforce",
        "request": 5,
        "outcome": "bcache0: mode enforce",
    }


def test_a_failure_is_an_error_with_its_reason(cli: Cli) -> None:
    with cli.daemon(answers=(False, "the state is inconsistent")):
        result = cli("enforce", "bcache0")
    assert (result.code, "the state is inconsistent" in result.err) == (74, True)


def test_a_refusal_is_an_error_with_its_next_step(cli: Cli) -> None:
    with cli.daemon(answers=refuse):
        result = cli("enforce", "bcache0")
    assert (result.code, result.err) == (74, "ebbgate: the test refuses this\n  ask another test\n")
    assert cli.intents() == []


def test_an_unmanaged_volume_is_not_found(cli: Cli) -> None:
    with cli.daemon(answers=(False, "no such volume: bcache0")):
        result = cli("enforce", "bcache0")
    assert result.code == 66
    assert "the daemon does not manage bcache0" in result.err


@pytest.mark.parametrize(
    "words",
    [("enforce", "bcache0"), ("hold",), ("drain", "bcache0", "--within", "1h"), ("hold", "--off")],
)
def test_without_a_daemon_commands_fail_at_once(cli: Cli, words: tuple[str, ...]) -> None:
    cli.timeout_s = 60.0
    result = cli(*words)
    assert result.code == 69
    assert result.err == (
        "ebbgate: ebbgated is not running\n"
        "  start it with: systemctl start ebbgated (`ebbgate restore` works without it)\n"
    )
    assert [*cli.state_dir.iterdir(), *cli.runtime_dir.iterdir()] == [], "nothing is left for later"


def test_an_invalid_request_is_not_sent(cli: Cli) -> None:
    # The same sentence as of the daemon, which is not there.
    result = cli("release", "bcache0", "writeback_precent")
    assert (result.code, "did you mean writeback_percent?" in result.err) == (64, True)


@pytest.mark.parametrize(
    ("timeout_s", "words", "waited"), [(1.0, (), "1 s"), (60.0, ("--patience", "1.5"), "1.5 s")]
)
def test_a_late_outcome_names_the_request_number(
    cli: Cli, timeout_s: float, words: tuple[str, ...], waited: str
) -> None:
    cli.timeout_s = timeout_s
    with cli.daemon():
        result = cli(*words, "enforce", "bcache0")
    assert result.code == 69
    assert f"no result within {waited}: request 5 was accepted and continues" in result.err
    assert "journalctl -u ebbgated" in result.err


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell starts what it runs in the background with this signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_reports_that_the_request_continues(cli: Cli) -> None:
    cli.timeout_s = 60.0
    main = threading.main_thread().ident
    assert main is not None

    def interrupt(_: IntentRow) -> None:
        # By then the command waits for the outcome.
        threading.Timer(1.0, signal.pthread_kill, (main, signal.SIGINT)).start()

    with cli.daemon(answers=interrupt):
        result = cli("enforce", "bcache0")
    assert result.code == 130
    assert "request 5 was accepted and continues" in result.err


def test_a_hanging_daemon_is_named_with_its_pid(cli: Cli) -> None:
    cli.timeout_s = 0.3
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(cli.runtime_dir / "control.sock"))
        listening.listen(8)
        asked = cli("enforce", "bcache0")
        shown = cli("status")
    assert (asked.code, shown.code) == (69, 0)
    assert f"ebbgated (pid {os.getpid()}) does not answer" in asked.err
    assert f"ebbgated (pid {os.getpid()}) does not answer" in shown.out


def test_waiting_is_reported_on_a_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.timeout_s = 0.5
    monkeypatch.setattr(intents, "_NOTE_AFTER_S", 0.1)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with cli.daemon():
        assert "request 5 was accepted; waiting for its result (0 s)" in (
            cli("enforce", "bcache0").err
        )
        assert "waiting for its result" not in cli("enforce", "bcache0", "--json").err


@pytest.mark.parametrize(
    "words", [("restore",), ("record", "bcache0"), ("apply", "EBB-206", "bcache0")]
)
def test_without_root_the_next_step_is_sudo(cli: Cli, words: tuple[str, ...]) -> None:
    cli.euid = 1000
    result = cli(*words)
    assert result.code == 77
    assert result.err == f"ebbgate: ebbgate {words[0]} needs root\n  run it again with sudo\n"


def test_text_of_the_daemon_reaches_the_terminal_without_control_characters(cli: Cli) -> None:
    with cli.daemon(answers=(True, "held by jo\x1b[2J \x9b1m\u202e [red]x[/red]")):
        done = cli("hold")
    assert done.out == "held by jo?[2J ?1m? [red]x[/red]\n"
    with cli.daemon(answers=(False, "no\x1b]0;x\x07")):
        assert cli("hold").err.startswith("ebbgate: no?]0;x?\n")


def test_a_dm_volume_can_be_named_without_root(cli: Cli) -> None:
    # Only root can query device-mapper; the daemon, which is root, has the volume.
    cli.fake.sysfs = Sysfs(cli.fake.root, FakeDm(allowed=False))
    cli.euid = 1000
    with cli.daemon(answers=(True, "done")):
        assert cli("enforce", "/dev/vg/data").code == 0
        assert cli("set", "vg/data", "migration_threshold", "8MiB").code == 0
        assert cli("set", "vg/data", "migration_treshold", "1").code == 64
    assert [each["volume"] for each in cli.intents()] == ["vg/data", "vg/data"]


@pytest.mark.parametrize("command", ["status", "explain", "enforce", "hold", "doctor", "record"])
def test_an_ordinary_disk_is_no_volume(cli: Cli, command: str) -> None:
    cli.fake.disk("sdz", "65:144")
    result = cli(command, "/dev/sdz")
    assert result.code == 66
    assert result.err == (
        "ebbgate: not cached: sdz is an ordinary block device\n  cached volumes here: bcache0\n"
    )


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("enforc",), "no such command: enforc", "did you mean enforce?"),
        (("xyzzy",), "no such command: xyzzy", "commands: status, explain"),
        (("enforce",), "Missing argument 'VOLUME'", "see ebbgate enforce --help"),
        (("status", "--colour"), "No such option: --colour", "see ebbgate status --help"),
        (("record", "bcache0", "--wait", "soon"), "--wait: not a duration", ""),
        (("--state-dir", "", "restore"), "'--state-dir': the path is empty", ""),
    ],
)
def test_a_wrong_command_line_is_64(
    cli: Cli, words: tuple[str, ...], message: str, hint: str
) -> None:
    result = cli(*words)
    assert result.code == 64
    assert message in result.err
    assert hint in result.err


def test_a_wrong_settings_file_is_78(cli: Cli) -> None:
    file = cli.state_dir / "ebbgate.toml"
    file.write_text('moed = "enforce"')
    result = cli("--config", str(file), "status")
    assert result.code == 78
    assert "did you mean mode?" in result.err


def test_a_damaged_history_is_69_with_the_next_step(cli: Cli) -> None:
    cli.history.write_bytes(b"nonsense" * 1000)
    result = cli("status")
    assert result.code == 69
    assert f"mv {cli.history}" in result.err


def test_errors_have_one_shape_in_json(cli: Cli) -> None:
    for words in (("enforce", "bcache7"), ("enforce",), ("xyzzy",), ("explain", "bcache0")):
        error = json.loads(cli("--json", *words).err)["error"]
        assert sorted(error) == ["code", "hint", "message"]


def test_an_internal_error_is_70_and_says_where(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("no way")

    monkeypatch.setattr("ebbgate.cli.status.discover", fail)
    result = cli("status")
    assert result.code == 70
    assert "in fail" in result.err
    assert result.err.endswith(
        "ebbgate: internal error: ZeroDivisionError: no way\n  please report it, with these lines\n"
    )
    result = cli("status", "--json")
    assert (result.code, json.loads(result.err)["error"]["code"]) == (70, 70)


def test_help_lists_every_command_and_exit_code(cli: Cli) -> None:
    result = cli("--help")
    assert result.code == 0
    for word in ("status", "replay", "restore", "64", "66", "69", "74", "75", "77", "78"):
        assert word in result.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(cli: Cli, command: str) -> None:
    result = cli(command, "--help")
    assert result.code == 0
    assert "--json" in result.out


def test_read_only_commands_write_no_file(cli: Cli) -> None:
    for words in (("status",), ("status", "bcache0"), ("explain", "bcache0")):
        cli(*words)
    assert list(cli.state_dir.iterdir()) == []
    with cli.daemon():
        pass
    before = {path.name: path.read_bytes() for path in cli.state_dir.iterdir()}
    cli("status")
    after = {path.name: path.read_bytes() for path in cli.state_dir.iterdir()}
    assert {name: after[name] for name in before} == before
    assert sqlite3.connect(cli.history).execute("PRAGMA integrity_check").fetchone() == ("ok",)

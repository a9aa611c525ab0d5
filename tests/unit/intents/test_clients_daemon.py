# SPDX-License-Identifier: GPL-2.0-only
"""Command line and web send requests to a real daemon on a fake machine."""

from __future__ import annotations

import json
import os
import pwd
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ebbgate.cli import main
from ebbgate.cli.context import Context
from ebbgate.intents.client import ControlClient
from ebbgate.web.app import Api
from tests.fake_machine import machine
from tests.fake_sysfs import NO_DM, WatchedSysfs
from tests.programs import Program, running, until
from tests.unit.web.web_fixture import RIGHT, Answer, WebHarness

USER = pwd.getpwuid(os.geteuid()).pw_name


@dataclass
class Machine:
    """A machine of files on which a daemon runs, and its two clients."""

    folder: Path
    daemon: Program
    web: WebHarness
    capture: pytest.CaptureFixture[str]

    def cli(self, *words: str, patience_s: float = 20.0) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of a command."""
        context = Context(sysfs=WatchedSysfs(self.folder / "sys", NO_DM))
        folders = ["--state-dir", str(self.folder / "state")]
        folders += ["--runtime-dir", str(self.folder / "run")]
        self.capture.readouterr()
        code = main([*folders, "--patience", str(patience_s), *words], context)
        captured = self.capture.readouterr()
        return code, captured.out, captured.err

    def volume(self) -> Any:
        """As `status --json` shows it."""
        return json.loads(self.cli("status", "--json")[1])["volumes"][0]

    def ask(self, kind: str, volume: str | None = "bcache0", **args: Any) -> Answer:
        """Through the web."""
        wanted = {"kind": kind, "volume": volume, "args": args}
        return self.web.post("/intents", wanted, **RIGHT, **{"x-ebbgate-who": "jo"})

    def outcome(self, number: int) -> Any:
        """Of a request, once it has one."""
        found: Any = until(
            f"the outcome of {number}",
            lambda: self.web.get(f"/intents/{number}").json.get("outcome") and True,
        )
        assert found
        return self.web.get(f"/intents/{number}").json


@pytest.fixture
def there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Machine]:
    machine.make(tmp_path, ["lab-gap-drain"], idle=True)
    (tmp_path / "web").mkdir()
    web = WebHarness(tmp_path / "web")
    web.config = replace(web.config, state_dir=tmp_path / "state", runtime_dir=tmp_path / "run")
    web.api = Api(web.config, time.time_ns, web.fake.sysfs, tmp_path / "proc")
    with running(tmp_path, "daemon", machine.argv(tmp_path, "daemon")) as daemon:
        until("the daemon", lambda: daemon.said("(mode enforce)"))
        found = Machine(tmp_path, daemon, web, capsys)
        until("a frame", lambda: found.volume()["live"])
        yield found
        if daemon.process.poll() is None:
            os.kill(daemon.process.pid, signal.SIGCONT)


def test_the_web_asks_the_daemon_and_follows_the_request(there: Machine) -> None:
    answer = there.ask("mode", mode="observe")
    assert answer.status == 202, answer.body
    number = answer.json["id"]
    assert there.web.get(f"/intents/{number}").status == 200, "at once"
    done = there.outcome(number)
    assert (done["ok"], done["outcome"]) == (True, "bcache0: mode observe")
    assert done["who"] == answer.json["who"] == f"{USER} (jo)"
    # `done` is sent once it can be read.
    assert there.web.get("/volumes").json["volumes"][0]["mode"] == "observe"
    assert there.web.get("/intents").json["intents"][0] == done


def test_a_command_returns_when_the_new_state_is_there(there: Machine) -> None:
    for mode in ("observe", "enforce", "advise"):
        assert there.cli(mode, "bcache0") == (0, f"bcache0: mode {mode}\n", "")
        assert there.volume()["mode"] == mode
    code, out, _ = there.cli("hold", "--json")
    document = json.loads(out)
    assert (code, document["kind"], document["on"]) == (0, "hold", True)
    assert there.volume()["frozen"] is True
    listed = there.web.get("/intents").json["intents"]
    assert listed[0]["id"] == document["request"]
    assert listed[0]["who"] == USER


def test_the_daemon_refuses_in_its_own_words(there: Machine) -> None:
    # There is such a knob; this volume does not have it.
    answer = there.ask("set", knob="migration_threshold", value="8MiB")
    assert answer.status == 409, answer.body
    assert "migration_threshold" in answer.error["message"]
    unknown = there.ask("mode", "sda", mode="observe")
    assert (unknown.status, unknown.error["message"]) == (404, "no such volume: sda")
    assert there.web.get("/intents").json["intents"] == []
    code, _, err = there.cli("release", "bcache0", "migration_threshold")
    assert (code, "migration_threshold" in err) == (64, True)


def test_a_hanging_daemon_is_not_reported_as_gone(there: Machine) -> None:
    pid = there.daemon.process.pid
    os.kill(pid, signal.SIGSTOP)
    began_s = time.monotonic()
    code, _, err = there.cli("observe", "bcache0", patience_s=1.0)
    assert (code, f"ebbgated (pid {pid}) does not answer" in err) == (69, True), err
    answer = there.ask("mode", mode="observe")
    assert (answer.status, "does not answer" in answer.error["message"]) == (503, True)
    health = there.web.get("/health").json
    assert (health["daemon"]["alive"], health["daemon"]["pid"]) == (True, pid)
    assert time.monotonic() - began_s < 30.0
    os.kill(pid, signal.SIGCONT)
    assert there.cli("advise", "bcache0")[0] == 0


def test_a_killed_daemon_is_reported_at_once(there: Machine) -> None:
    there.daemon.end(signal.SIGKILL)
    began_s = time.monotonic()
    code, _, err = there.cli("observe", "bcache0")
    assert (code, "systemctl start ebbgated" in err) == (69, True)
    answer = there.ask("mode", mode="observe")
    assert (answer.status, answer.error["code"]) == (503, "no_daemon")
    until("the web reports it", lambda: there.web.get("/health").json["daemon"]["alive"] is False)
    assert time.monotonic() - began_s < 10.0
    assert json.loads(there.cli("status", "--json")[1])["daemon"]["alive"] is False


def test_text_of_a_client_reaches_no_log_and_no_terminal_with_control_characters(
    there: Machine,
) -> None:
    hostile = "jo\x1b[2J\x9b1m\u202e[red]x[/red]"
    with ControlClient.connect(there.folder / "run/control.sock", 10.0) as client:
        client.send("hold", "bcache0", {"on": True}, hostile, 10.0)
        assert client.outcome(20.0).state == "done"
        client.send("policy_remove", None, {"name": "none"}, hostile, 10.0)
        assert client.outcome(20.0).state == "failed"
    for words in (("status",), ("status", "bcache0", "--json"), ("explain", "bcache0")):
        out = there.cli(*words)[1]
        assert out.replace("\n", "").isprintable(), ascii(out)
    assert "hold, requested by " in there.cli("status")[1]
    log = there.daemon.log.read_text()
    assert "[red]x[/red]" in log
    assert log.replace("\n", "").isprintable(), ascii(log)

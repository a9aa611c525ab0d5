# SPDX-License-Identifier: GPL-2.0-only
"""`ebbgate-web` and `ebbgate web-token`: settings, refusals, the token's file."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from ebbgate.cli import web_token
from ebbgate.config import web_settings as module
from ebbgate.config.settings import load_config
from ebbgate.config.web_settings import WebSettingsError, parse_listen, web_settings
from ebbgate.errors import ConfigError
from ebbgate.store import access
from ebbgate.web.command import main
from tests.house_rules import REPO
from tests.unit.conftest import Cli
from tests.unit.web.web_fixture import TOKEN

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def settings(text: str) -> Path:
        path = tmp_path / "ebbgate.toml"
        path.write_text(text)
        return path

    return settings


# ---- settings ----------------------------------------------------------------------------------
def test_without_a_table_it_is_loopback_and_open(write: Write) -> None:
    found = load_config(write("")).web
    assert (found.host, found.port, found.reading) == ("127.0.0.1", 8380, "open")


def test_every_setting_is_taken(write: Write) -> None:
    text = """
        [web]
        listen = "[::1]:99"
        token_file = "/t"
        ui_dir = "/u"
        reading = "token"
        hosts = ["NAS.example.org", "192.0.2.7", "[2001:DB8:0::7]"]
    """
    found = load_config(write(text)).web
    assert (found.host, found.port) == ("::1", 99)
    assert found.hosts == ("nas.example.org", "192.0.2.7", "2001:db8::7")
    assert (found.token_file, found.ui_dir, found.reading) == (Path("/t"), Path("/u"), "token")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("listen = 8380", "not an address"),
        ('listen = "nas:8380"', "not an address"),
        ('listen = "127.0.0.1"', "not an address"),
        ('listen = "127.0.0.1:0"', "no port"),
        ('listen = "127.0.0.1:http"', "no port"),
        ('listen = "0.0.0.0:8380"', "can be reached from other machines"),
        ('token_file = "token"', "absolute"),
        ("ui_dir = 1", "absolute"),
        ('reading = "closed"', "unknown value"),
        ('hosts = "nas"', "not a list"),
        ('hosts = ["a b"]', "not a host name"),
        ('hosts = ["2001:db8::7::"]', "not a host name"),
        ("hosts = [7]", "not a host name"),
        ('tokenfile = "/t"', "unknown key"),
    ],
)
def test_invalid_setting_is_reported_with_line_and_next_step(
    write: Write, line: str, what: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(write(f"[web]\n{line}\n"))
    assert re.search(r"ebbgate\.toml:2: web\.\w+: ", caught.value.message)
    assert what in caught.value.message
    assert caught.value.hint


def test_another_address_needs_closed_reading() -> None:
    found = web_settings({"listen": "192.0.2.7:80", "reading": "token"})
    assert found.host == "192.0.2.7"


def test_localhost_is_an_address() -> None:
    assert parse_listen("localhost:80") == ("127.0.0.1", 80)
    with pytest.raises(WebSettingsError):
        parse_listen("127.0.0.1:0")
    assert parse_listen("127.0.0.1:0", port_min=0)[1] == 0


def test_the_table_of_settings_is_complete() -> None:
    assert set(module.KEYS) == set(re.findall(r"^(\w+) = ", module.__doc__ or "", re.M))


# ---- the program -------------------------------------------------------------------------------
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be refused")
def test_it_does_not_run_as_root(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--state-dir", str(tmp_path)]) == 64
    assert "does not run as root" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--listen", "0.0.0.0:80"], "--listen: 0.0.0.0 can be reached from other machines"),
        (["--listen", "nowhere"], "--listen: 'nowhere' is not an address"),
        (["--config", "/nowhere/at/all"], "no such file"),
    ],
)
def test_a_wrong_option_is_refused(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*options, "--as-root"]) in (64, 78)
    assert said in capsys.readouterr().err


def test_port_in_use_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ["--as-root", "--state-dir", str(tmp_path)]
        options += ["--runtime-dir", str(tmp_path), "--listen", f"127.0.0.1:{port}"]
        assert main(options) == 69
    assert "cannot listen on" in capsys.readouterr().err


# ---- the token ---------------------------------------------------------------------------------
@pytest.fixture
def token_file(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "etc/web-token"
    monkeypatch.setattr(module, "TOKEN_FILE", path)
    return path


def test_new_token_is_long_and_unique(cli: Cli, token_file: Path) -> None:
    first, second = (cli("web-token", "--new").out.strip() for _ in range(2))
    assert first != second
    assert len(second) >= 40
    assert token_file.read_text() == f"{second}\n"
    assert cli("--json", "web-token").document == {"token": second, "file": str(token_file)}
    assert [each.name for each in token_file.parent.iterdir()] == ["web-token"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file to a group")
@pytest.mark.parametrize(("group", "mode"), [(64_322, 0o640), (None, 0o600)])
def test_a_token_is_readable_for_root_and_the_group(
    cli: Cli, token_file: Path, monkeypatch: pytest.MonkeyPatch, group: int | None, mode: int
) -> None:
    monkeypatch.setattr(web_token, "group_id", lambda: group)
    before = os.umask(0)
    try:
        cli("web-token", "--new")
    finally:
        os.umask(before)
    found = token_file.stat()
    assert found.st_mode & 0o777 == mode
    assert found.st_gid == (group or os.getegid())


def test_ebbgate_web_can_enter_the_folder_of_a_token_whatever_the_umask_is(
    cli: Cli, token_file: Path
) -> None:
    before = os.umask(0o027)
    try:
        cli("web-token", "--new")
    finally:
        os.umask(before)
    assert token_file.parent.stat().st_mode & 0o777 == 0o755


def test_a_folder_that_is_there_keeps_its_mode(cli: Cli, token_file: Path) -> None:
    token_file.parent.mkdir()
    token_file.parent.chmod(0o711)
    assert cli("web-token", "--new").code == 0
    assert token_file.parent.stat().st_mode & 0o777 == 0o711


def test_missing_token_is_reported_with_next_step(cli: Cli, token_file: Path) -> None:
    result = cli("web-token")
    assert result.code == 69
    assert "web-token --new" in result.err


def test_only_root_makes_a_token(cli: Cli, token_file: Path) -> None:
    token_file.parent.mkdir()
    token_file.write_text(TOKEN)
    cli.euid = 1000
    assert cli("web-token", "--new").code == 77
    assert token_file.read_text() == TOKEN
    assert cli("web-token").out.strip() == TOKEN


# ---- the unit ----------------------------------------------------------------------------------
def test_unit_grants_no_capability() -> None:
    unit = (REPO / "packaging/systemd/ebbgate-web.service.in").read_text()
    for line in (
        f"User={access.GROUP}",
        f"Group={access.GROUP}",
        "CapabilityBoundingSet=",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "IPAddressDeny=any",
        "IPAddressAllow=localhost",
    ):
        assert re.search(rf"^{re.escape(line)}$", unit, re.M), line
    assert "AmbientCapabilities" not in unit


def test_group_can_read_the_daemons_folder() -> None:
    unit = (REPO / "packaging/systemd/group.conf").read_text()
    assert f"Group={access.GROUP}" in unit
    assert "StateDirectoryMode=2750" in unit

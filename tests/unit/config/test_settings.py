# SPDX-License-Identifier: GPL-2.0-only
"""Errors in settings name file, line, key and next step."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.config.settings import (
    DEFAULT_FILE,
    Config,
    load_config,
    load_folders,
    probe_paths,
)
from ebbgate.errors import ConfigError
from ebbgate.model.volume import Mode
from ebbgate.store.limits import HistoryLimits
from ebbgate.units import DAY_NS, GIB, NS_PER_MS

WHOLE = """
state_dir = "/srv/ebbgate"
runtime_dir = "/run/ebbgate-test"
probe = "/opt/ebbgate-probe"
tick = "500ms"
mode = "observe"
history_size = "1.5GiB"
history_age = "90d"
pin_limit = "40%"

[volume."bcache*"]
mode = "advise"

[volume.bcache1]
mode = "enforce"
"""


def load(tmp_path: Path, text: str, **options: object) -> Config:
    file = tmp_path / "ebbgate.toml"
    file.write_text(text)
    return load_config(file, environ={}, **options)  # type: ignore[arg-type]


def test_every_key_is_read(tmp_path: Path) -> None:
    config = load(tmp_path, WHOLE)
    assert config.state_dir == Path("/srv/ebbgate")
    assert config.probe_path == Path("/opt/ebbgate-probe")
    assert (config.tick_ns, config.mode) == (500 * NS_PER_MS, Mode.OBSERVE)
    assert config.history == HistoryLimits(3 * GIB // 2, 90 * DAY_NS)
    assert config.pin_limit == 0.4
    assert config.history_path == Path("/srv/ebbgate/history.db")
    assert config.overrides_path == Path("/srv/ebbgate/overrides.db")
    assert config.socket_path == Path("/run/ebbgate-test/control.sock")
    assert config.lock_path == Path("/run/ebbgate-test/ebbgated.lock")


def test_a_name_takes_precedence_over_a_pattern(tmp_path: Path) -> None:
    config = load(tmp_path, WHOLE)
    assert config.mode_of("bcache1") is Mode.ENFORCE
    assert config.mode_of("bcache0") is Mode.ADVISE
    assert config.mode_of("vg-data") is Mode.OBSERVE


def test_a_uuid_takes_precedence_over_a_name_that_a_boot_may_give_to_another(
    tmp_path: Path,
) -> None:
    uuid = "0b1e5000-0000-4000-8000-000000000001"
    config = load(
        tmp_path, f'[volume.bcache0]\nmode = "observe"\n[volume.{uuid}]\nmode = "enforce"'
    )
    assert config.mode_of(uuid, "bcache0") is Mode.ENFORCE
    assert config.mode_of("", "bcache0") is Mode.OBSERVE
    assert config.mode_of(uuid, "bcache7") is Mode.ENFORCE


def test_a_built_probe_takes_precedence_over_installed_ones() -> None:
    assert probe_paths(Path("/src/controller/ebbgate/config/settings.py")) == (
        Path("/src/build/ebbgate-probe"),
        Path("/usr/local/sbin/ebbgate-probe"),
        Path("/usr/sbin/ebbgate-probe"),
    )


@pytest.mark.parametrize("prefix", ["/opt/ebbgate", "/usr/local", "/usr"])
def test_an_installation_finds_its_own_probe_first(prefix: str) -> None:
    found = probe_paths(Path(prefix, "lib/ebbgate/ebbgate/config/settings.py"))
    others = [Path(each, "sbin/ebbgate-probe") for each in ("/usr/local", "/usr")]
    own = Path(prefix, "sbin/ebbgate-probe")
    assert found[1:] == (own, *(each for each in others if each != own))


def test_the_default_mode_is_advise(tmp_path: Path) -> None:
    assert not DEFAULT_FILE.exists(), "this test needs a machine without settings"
    config = load_config(environ={})
    assert (config.mode, config.state_dir) == (Mode.ADVISE, Path("/var/lib/ebbgate"))


def test_options_take_precedence_over_environment_and_file(tmp_path: Path) -> None:
    file = tmp_path / "ebbgate.toml"
    file.write_text(WHOLE)
    empty = {f"EBBGATE_{name}": "" for name in ("STATE_DIR", "RUNTIME_DIR", "PROBE")}
    assert load_config(environ=empty) == load_config(environ={})
    environ = {"EBBGATE_STATE_DIR": "/from/env", "EBBGATE_PROBE": "/env/probe"}
    environ["EBBGATE_RUNTIME_DIR"] = "/env/run"
    config = load_config(file, environ=environ)
    assert config.runtime_dir == Path("/env/run")
    assert load_config(file, runtime_dir=tmp_path, environ=environ).runtime_dir == tmp_path
    assert (config.state_dir, config.probe_path) == (Path("/from/env"), Path("/env/probe"))
    config = load_config(file, state_dir=tmp_path, probe_path=tmp_path, environ=environ)
    assert (config.state_dir, config.probe_path) == (tmp_path, tmp_path)


def test_the_mode_option_applies_to_every_volume(tmp_path: Path) -> None:
    assert load(tmp_path, WHOLE, mode=Mode.OBSERVE).mode_of("bcache1") is Mode.OBSERVE


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('\nmoed = "advise"', "ebbgate.toml:2: moed: unknown key", "did you mean mode?"),
        ('mode = "enforced"', "ebbgate.toml:1: mode: unknown mode", "did you mean enforce?"),
        ("mode = 3", "1: mode: unknown mode: 3", "known modes: observe, advise, enforce"),
        ('tick = "fast"', "1: tick: not a duration", '"250ms"'),
        ("tick = 250", "1: tick: 250 has no unit", '"250ms"'),
        ('history_size = "big"', "1: history_size: not a size: 'big'", '"256MiB"'),
        ("history_size = 256", "1: history_size: 256 has no unit", '"256MiB"'),
        (
            'history_size = "1MiB"',
            "1: history_size: 1MiB is out of range",
            "allowed: 16 MiB to 1 TiB",
        ),
        ('history_age = "long"', "1: history_age: not a duration: 'long'", '"30d"'),
        ('history_age = "5min"', "1: history_age: 5min is out of range", "allowed: 1d to 3660d"),
        ('history_szie = "1GiB"', "1: history_szie: unknown key", "did you mean history_size?"),
        ('state_dir = "relative"', "1: state_dir: 'relative' is not an absolute path", "quotes"),
        *(
            (f"pin_limit = {value}", "1: pin_limit: ", '"25%"')
            for value in ('"0%"', '"76%"', '"100%"', '"25"', "25", '"-5%"', '"x"', "true")
        ),
        ("volume = 3", "1: volume: is not a table", "[volume.bcache0]"),
        ("[volume]\nbcache0 = 3", "2: volume.bcache0: is not a table", '[volume."bcache0"]'),
        ('[volume]\n"vg/data" = 3', "2: volume.vg/data: is not a table", '[volume."vg/data"]'),
        ('[volume.a]\nmdoe = "x"', "2: volume.a.mdoe: unknown key", "did you mean mode?"),
        ('[volume.a]\nmode = "x"', "2: volume.a.mode: unknown mode", "known modes: observe"),
        ('mode = "advise"\n[volume.a]\nmode = "x"', "3: volume.a.mode: unknown mode", "enforce"),
        ('[volume.a]\nmode = "enforce"\n[volume.b] # a "b"\nmode = 3', "4: volume.b.mode", "known"),
        ('tick = "1s"\n[volume."vg/a.b"]\n"tick" = "1s"', "3: volume.vg/a.b.tick", "known keys"),
        ('volume.a.mode = "x"\nmode = "observe"', "1: volume.a.mode: unknown mode", "known"),
        ('tick = "1s"\nvolume = {a = {mode = "x"}}', "2: volume.a.mode: unknown mode", "known"),
        ('tick = "1s"\n[web]\nlisten = "127.0.0.1:\u00b2"', "3: web.listen: ", "127.0.0.1:8380"),
        ('[volume."/dev/vg/data"]\nmode = "observe"', "1: volume./dev/vg/data", '"vg/data"'),
        ('[volume."/dev/mapper/x"]\nmode = "observe"', "is a path, not a name", '[volume."x"]'),
        ('[volume."LVM-vvvv…"]\nmode = "observe"', "1: volume.LVM-vvvv…: is cut", "in full"),
        ("mode = x", "ebbgate.toml: Invalid value (at line 1", "toml.io"),
        (f"tick = {'9' * 5000}", "ebbgate.toml: Exceeds the limit (4300 digits)", "toml.io"),
        (f"tick = {'[' * 5000}", "ebbgate.toml: nested too deeply", "brackets"),
    ],
)
def test_an_error_names_line_key_and_next_step(
    tmp_path: Path, text: str, message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.exit_code == 78


@pytest.mark.parametrize("tick", ["10ms", "11 s"])
def test_a_tick_out_of_range_is_refused(tmp_path: Path, tick: str) -> None:
    with pytest.raises(ConfigError, match=r"(?s)tick: .* is out of range.*allowed: 50 ms to 10 s"):
        load(tmp_path, f'tick = "{tick}"')
    with pytest.raises(ConfigError, match="--tick-ms"):
        load(tmp_path, "", tick_ms=1)


def test_a_given_settings_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_config(tmp_path / "none.toml", environ={})


def test_the_mark_of_utf_8_is_skipped(tmp_path: Path) -> None:
    text = '\ufeffstate_dir = "/srv/ebbgate"\n'
    assert load(tmp_path, text).state_dir == Path("/srv/ebbgate")
    (tmp_path / "ebbgate.toml").write_text(text + "mode = x\n")
    found = load_folders(tmp_path / "ebbgate.toml", environ={})
    assert found.state_dir == Path("/srv/ebbgate")


def test_a_binary_settings_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ebbgate.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(file, environ={})


@pytest.mark.parametrize(
    ("line", "state_dir"),
    [
        ("newer_key = 1", "/srv/ebbgate"),
        ('tick = "9h"', "/srv/ebbgate"),
        ('mode = "enforce', "/srv/ebbgate"),
        ("state_dir = 7", "/var/lib/ebbgate"),
        ('[volume.bcache0]\nstate_dir = "/no"\nmode = enforce', "/srv/ebbgate"),
    ],
)
def test_the_folders_of_settings_with_an_error_are_read(
    line: str, state_dir: str, tmp_path: Path
) -> None:
    first = "" if line.startswith("state_dir") else 'state_dir = "/srv/ebbgate"\n'
    with pytest.raises(ConfigError):
        load(tmp_path, f'{first}runtime_dir = "/run/mine"\n{line}\n')
    found = load_folders(tmp_path / "ebbgate.toml", environ={})
    assert (found.state_dir, found.runtime_dir) == (Path(state_dir), Path("/run/mine"))
    environ = {"EBBGATE_STATE_DIR": "/from/env"}
    found = load_folders(tmp_path / "ebbgate.toml", runtime_dir=tmp_path, environ=environ)
    assert (found.state_dir, found.runtime_dir) == (Path("/from/env"), tmp_path)


def test_settings_that_cannot_be_read_give_the_default_folders(tmp_path: Path) -> None:
    (tmp_path / "ebbgate.toml").write_bytes(b"\xff = [")
    for file in (tmp_path / "ebbgate.toml", tmp_path / "none.toml", tmp_path):
        found = load_folders(file, environ={})
        assert found.state_dir == Path("/var/lib/ebbgate")
        assert found.runtime_dir == Path("/run/ebbgate")

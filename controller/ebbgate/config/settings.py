# SPDX-License-Identifier: GPL-2.0-only
"""Settings: /etc/ebbgate/ebbgate.toml, environment, options. I/O: reads one file.

    state_dir = "/var/lib/ebbgate"     # also EBBGATE_STATE_DIR
    runtime_dir = "/run/ebbgate"       # of control.sock and the lock; also EBBGATE_RUNTIME_DIR
    probe = "/usr/sbin/ebbgate-probe"  # also EBBGATE_PROBE
    policy_dir = "/etc/ebbgate/policies.d"
    tick = "250ms"                     # 50ms..10s
    mode = "advise"                    # observe, advise or enforce; for volumes not named below
    history_size = "256MiB"            # of history.db, 16MiB..1TiB
    history_age = "30d"                # of samples per minute, 1d..3660d
    pin_limit = "25%"                  # of the cache, for all pinned files of a volume, 1%..75%

    [volume.bcache0]                   # a name, a uuid, or a pattern such as "bcache*"
    mode = "enforce"

    [web]                              # ebbgate-web; see web_settings.py
    listen = "127.0.0.1:8380"

Options take precedence over the environment, and the environment over the file. The units may
write to the default folders only; packaging/README.md has what others need.
"""

from __future__ import annotations

import difflib
import fnmatch
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ebbgate import units
from ebbgate.config import web_settings
from ebbgate.config.toml_lines import line_of
from ebbgate.config.volume_names import name_fault
from ebbgate.config.web_settings import WebSettings, WebSettingsError
from ebbgate.errors import ConfigError
from ebbgate.model.pin import CACHE_SHARE_MAX
from ebbgate.model.volume import Mode
from ebbgate.store.limits import (
    AGE_NS_MAX,
    AGE_NS_MIN,
    DEFAULT_LIMITS,
    SIZE_BYTES_MAX,
    SIZE_BYTES_MIN,
    HistoryLimits,
)

DEFAULT_FILE: Final = Path("/etc/ebbgate/ebbgate.toml")
DEFAULT_STATE_DIR: Final = Path("/var/lib/ebbgate")
DEFAULT_RUNTIME_DIR: Final = Path("/run/ebbgate")
DEFAULT_TICK_NS: Final = 250 * units.NS_PER_MS
# A shorter tick costs more reads of sysfs than it is worth; a longer one delays `status`.
TICK_NS_MIN: Final = 50 * units.NS_PER_MS
TICK_NS_MAX: Final = 10 * units.NS_PER_S
PIN_LIMIT_MIN: Final = 0.01
PIN_LIMIT_MAX: Final = 0.75
"""Of a cache: with more, little else would stay in it."""
_PERCENT: Final = re.compile(r"([0-9]{1,2})%")
DEFAULT_POLICY_DIR: Final = Path("/etc/ebbgate/policies.d")
KEYS: Final = (
    *("state_dir", "runtime_dir", "probe", "policy_dir", "tick", "mode"),
    *("history_size", "history_age", "pin_limit", "volume", "web"),
)
_VOLUME_KEYS: Final = ("mode",)


def probe_paths(module: Path) -> tuple[Path, ...]:
    """Return where the probe may be, the first choice first, for the path of this module.

    It is `controller/ebbgate/config/settings.py` in a source tree, whose built probe takes
    precedence, and `PREFIX/lib/ebbgate/ebbgate/config/settings.py` in an installation.
    """
    installed = [Path("/usr/local/sbin/ebbgate-probe"), Path("/usr/sbin/ebbgate-probe")]
    library, above = module.parents[2:4]
    if (library.name, above.name) == ("ebbgate", "lib"):
        installed.insert(0, above.parent / "sbin" / "ebbgate-probe")
    return (above / "build" / "ebbgate-probe", *dict.fromkeys(installed))


_PROBES: Final = probe_paths(Path(__file__).resolve())


@dataclass(frozen=True, slots=True)
class Config:
    """The settings. `volume_modes`: (name or pattern, mode) in the order of the file."""

    state_dir: Path
    probe_path: Path
    tick_ns: int = DEFAULT_TICK_NS
    policy_dir: Path = DEFAULT_POLICY_DIR
    mode: Mode = Mode.ADVISE
    volume_modes: tuple[tuple[str, Mode], ...] = ()
    history: HistoryLimits = DEFAULT_LIMITS
    web: WebSettings = field(default_factory=lambda: web_settings.web_settings({}))
    runtime_dir: Path = DEFAULT_RUNTIME_DIR
    pin_limit: float = CACHE_SHARE_MAX

    @property
    def history_path(self) -> Path:
        """The database of samples, decisions and knob writes."""
        return self.state_dir / "history.db"

    @property
    def journal_path(self) -> Path:
        """The original values of knobs that are not restored yet; only root may open it."""
        return self.state_dir / "journal.db"

    @property
    def last_written_path(self) -> Path:
        """The values last written to knobs; like the lock, it does not survive a reboot."""
        return self.lock_path.with_name("last-written")

    @property
    def lock_path(self) -> Path:
        """The lock of the daemon that uses this runtime folder, with its process number."""
        return self.runtime_dir / "ebbgated.lock"

    @property
    def state_dirs_path(self) -> Path:
        """The list of state folders that daemons have used since the machine was started."""
        return self.lock_path.with_name("state-dirs")

    @property
    def socket_path(self) -> Path:
        """The control socket, on which the daemon takes requests."""
        return self.runtime_dir / "control.sock"

    @property
    def overrides_path(self) -> Path:
        """The database of overrides; only root may open it."""
        return self.state_dir / "overrides.db"

    def mode_of(self, *names: str) -> Mode:
        """Return the mode of the volume that has these names, the surest first.

        By the first of them that the settings have, else by the first pattern that matches one.
        """
        named = dict(reversed(self.volume_modes))
        for name in names:
            if name in named:
                return named[name]
        for pattern, mode in self.volume_modes:
            if any(fnmatch.fnmatchcase(name, pattern) for name in names):
                return mode
        return self.mode


def load_config(  # noqa: PLR0913 - one per option of the programs
    path: Path | None = None,
    *,
    state_dir: Path | None = None,
    runtime_dir: Path | None = None,
    probe_path: Path | None = None,
    mode: Mode | None = None,
    tick_ms: int | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read the settings; `mode`: for every volume.

    Raises ConfigError with file, line and key, and the nearest key if one is misspelt.
    """
    env = os.environ if environ is None else environ
    config = _with_folders(_from_file(path), env, state_dir, runtime_dir)
    if env.get("EBBGATE_PROBE"):
        config = replace(config, probe_path=Path(env["EBBGATE_PROBE"]))
    if probe_path is not None:
        config = replace(config, probe_path=probe_path)
    if mode is not None:
        config = replace(config, mode=mode, volume_modes=())
    if tick_ms is not None:
        config = replace(config, tick_ns=_tick_in_range(tick_ms * units.NS_PER_MS, "--tick-ms"))
    return config


def load_folders(
    path: Path | None = None,
    *,
    state_dir: Path | None = None,
    runtime_dir: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read `state_dir` and `runtime_dir` of a file with errors; all else has its default.

    A restore needs nothing else, and an error in the file must not keep it from restoring. A
    folder that cannot be read has its default, too.
    """
    env = os.environ if environ is None else environ
    document = _readable_part(path or DEFAULT_FILE)
    config = Config(DEFAULT_STATE_DIR, _probe_that_exists())
    for key in ("state_dir", "runtime_dir"):
        value = document.get(key)
        if isinstance(value, str) and value.startswith("/"):
            config = replace(config, **{key: Path(value)})  # type: ignore[arg-type]
    return _with_folders(config, env, state_dir, runtime_dir)


def _readable_part(file: Path) -> dict[str, Any]:
    """Return the whole document, or the keys above its tables that are right line by line."""
    try:
        text = file.read_text(encoding="utf-8-sig", errors="replace")
        return tomllib.loads(text)
    except OSError:
        return {}
    except (ValueError, RecursionError):
        found: dict[str, Any] = {}
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            break
        with suppress(ValueError, RecursionError):
            found |= tomllib.loads(line)
    return found


def _with_folders(
    config: Config, env: Mapping[str, str], state_dir: Path | None, runtime_dir: Path | None
) -> Config:
    """Return the settings with the folders of the environment and of the options."""
    # An empty variable counts as none: it would be the current folder.
    if env.get("EBBGATE_STATE_DIR"):
        config = replace(config, state_dir=Path(env["EBBGATE_STATE_DIR"]))
    if env.get("EBBGATE_RUNTIME_DIR"):
        config = replace(config, runtime_dir=Path(env["EBBGATE_RUNTIME_DIR"]))
    if state_dir is not None:
        config = replace(config, state_dir=state_dir)
    if runtime_dir is not None:
        config = replace(config, runtime_dir=runtime_dir)
    return config


def _from_file(path: Path | None) -> Config:
    defaults = Config(DEFAULT_STATE_DIR, _probe_that_exists())
    file = path or DEFAULT_FILE
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        if path is None:
            return defaults
        raise ConfigError(f"{file}: no such file", "check the path, or omit --config") from error
    except (OSError, UnicodeDecodeError) as error:
        closed = isinstance(error, PermissionError)
        step = "run this as root" if closed else "it must be readable and in UTF-8"
        raise ConfigError(f"{file}: cannot be read: {error}", step) from error
    try:
        document = tomllib.loads(text)
    except RecursionError as error:
        raise ConfigError(f"{file}: nested too deeply", "remove some brackets") from error
    except ValueError as error:
        # Also a number of thousands of digits, which is no TOMLDecodeError.
        why = str(error).partition(";")[0]
        raise ConfigError(f"{file}: {why}", "see https://toml.io for the format") from error
    return _Reader(file, text).config(document, defaults)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the settings from a document; the text gives the lines for errors."""

    file: Path
    text: str

    def config(self, document: Mapping[str, Any], defaults: Config) -> Config:
        self._known(document, KEYS, "")
        return Config(
            state_dir=self._path(document, "state_dir", defaults.state_dir),
            runtime_dir=self._path(document, "runtime_dir", defaults.runtime_dir),
            probe_path=self._path(document, "probe", defaults.probe_path),
            tick_ns=self._tick(document, defaults.tick_ns),
            policy_dir=self._path(document, "policy_dir", defaults.policy_dir),
            mode=self._mode(document, "mode", defaults.mode),
            volume_modes=tuple(self._volumes(document.get("volume", {}))),
            history=HistoryLimits(
                self._history_size(document, defaults.history.size_bytes),
                self._history_age(document, defaults.history.age_ns),
            ),
            web=self._web(document.get("web", {})),
            pin_limit=self._pin_limit(document, defaults.pin_limit),
        )

    def _web(self, table: object) -> WebSettings:
        if not isinstance(table, dict):
            raise self._wrong("web", "is not a table", "write [web] above its keys")
        self._known(table, web_settings.KEYS, "web.")
        try:
            return web_settings.web_settings(table)
        except WebSettingsError as error:
            raise self._wrong(f"web.{error.key}", error.what, error.hint) from error

    def _volumes(self, table: object) -> Iterable[tuple[str, Mode]]:
        if not isinstance(table, dict):
            raise self._wrong("volume", "is not a table", "write [volume.bcache0] above its keys")
        for name, settings in table.items():
            key = f"volume.{name}"
            if not isinstance(settings, dict):
                raise self._wrong(key, "is not a table", f'write [volume."{name}"] above its keys')
            if fault := name_fault(name):
                raise self._wrong(key, *fault)
            self._known(settings, _VOLUME_KEYS, f"{key}.")
            if "mode" in settings:
                yield name, self._mode(settings, "mode", Mode.ADVISE, prefix=f"{key}.")

    def _path(self, document: Mapping[str, Any], key: str, default: Path) -> Path:
        value = document.get(key, str(default))
        if not isinstance(value, str) or not value.startswith("/"):
            raise self._wrong(key, f"{value!r} is not an absolute path", "write a path in quotes")
        return Path(value)

    def _quantity(
        self, document: Mapping[str, Any], key: str, parse: Callable[[str], int], example: str
    ) -> int | None:
        """Return a duration or size in its base unit; None if it is not given."""
        if key not in document:
            return None
        value = document[key]
        hint = f'write for example {key} = "{example}"'
        if not isinstance(value, str):
            raise self._wrong(key, f"{value!r} has no unit", hint)
        try:
            return parse(value)
        except ValueError as error:
            raise self._wrong(key, str(error), hint) from error

    def _tick(self, document: Mapping[str, Any], default_ns: int) -> int:
        tick_ns = self._quantity(document, "tick", units.parse_duration_ns, "250ms")
        return default_ns if tick_ns is None else _tick_in_range(tick_ns, self._where("tick"))

    def _history_size(self, document: Mapping[str, Any], default_bytes: int) -> int:
        key = "history_size"
        size_bytes = self._quantity(document, key, units.parse_size_bytes, "256MiB")
        if size_bytes is None:
            return default_bytes
        if not SIZE_BYTES_MIN <= size_bytes <= SIZE_BYTES_MAX:
            low, high = units.format_bytes(SIZE_BYTES_MIN), units.format_bytes(SIZE_BYTES_MAX)
            raise self._wrong(key, f"{document[key]} is out of range", f"allowed: {low} to {high}")
        return size_bytes

    def _history_age(self, document: Mapping[str, Any], default_ns: int) -> int:
        key = "history_age"
        age_ns = self._quantity(document, key, units.parse_duration_ns, "30d")
        if age_ns is None:
            return default_ns
        if not AGE_NS_MIN <= age_ns <= AGE_NS_MAX:
            raise self._wrong(key, f"{document[key]} is out of range", "allowed: 1d to 3660d")
        return age_ns

    def _pin_limit(self, document: Mapping[str, Any], default: float) -> float:
        key = "pin_limit"
        value = document.get(key, f"{default:.0%}")
        found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
        if not found or not PIN_LIMIT_MIN <= int(found[1]) / 100 <= PIN_LIMIT_MAX:
            raise self._wrong(key, f"{value!r} is not 1% to 75%", 'write for example "25%"')
        return int(found[1]) / 100

    def _mode(self, table: Mapping[str, Any], key: str, default: Mode, *, prefix: str = "") -> Mode:
        value = table.get(key, default)
        try:
            return Mode(value)
        except ValueError as error:
            modes = ", ".join(Mode)
            hint = f"known modes: {modes}{_nearest(value, Mode)}"
            raise self._wrong(prefix + key, f"unknown mode: {value!r}", hint) from error

    def _known(self, table: Mapping[str, Any], keys: tuple[str, ...], prefix: str) -> None:
        for key in table:
            if key not in keys:
                hint = f"known keys: {', '.join(keys)}{_nearest(key, keys)}"
                raise self._wrong(prefix + key, "unknown key", hint)

    def _wrong(self, key: str, what: str, hint: str) -> ConfigError:
        return ConfigError(f"{self._where(key)}: {what}", hint)

    def _where(self, key: str) -> str:
        """Return `file:line: key`."""
        line = line_of(self.text, key)
        return f"{self.file}: {key}" if line is None else f"{self.file}:{line}: {key}"


def _tick_in_range(tick_ns: int, where: str) -> int:
    if not TICK_NS_MIN <= tick_ns <= TICK_NS_MAX:
        low, high = units.format_ns(TICK_NS_MIN), units.format_ns(TICK_NS_MAX)
        raise ConfigError(
            f"{where}: {units.format_ns(tick_ns)} is out of range", f"allowed: {low} to {high}"
        )
    return tick_ns


def _nearest(word: object, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(word), [str(each) for each in known], n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _probe_that_exists() -> Path:
    """Return the first that is there; if none is, where this installation should have it."""
    return next((path for path in _PROBES if path.is_file()), _PROBES[1])

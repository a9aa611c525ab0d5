# SPDX-License-Identifier: GPL-2.0-only
"""What every command needs: settings, sysfs, and how its result is printed.

I/O: reads the settings file; stdout and stderr.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ebbgate.cli.output import json_text
from ebbgate.config.settings import Config, load_config, load_folders
from ebbgate.errors import ConfigError, EbbgateError, NotFound, PermissionDenied, UsageError
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.log_messages.service import RESTORE_FAILED
from ebbgate.probes.topology import discover
from ebbgate.systemd_log import report_failure
from ebbgate.text import clean_lines, escape_json
from ebbgate.units import parse_duration_ns

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(slots=True)
class Context:
    """Settings and handles of one run of the program; tests pass their own trees."""

    sysfs: Sysfs = field(default_factory=Sysfs)
    proc: Path = Path("/proc")
    json: bool = False
    config_file: Path | None = None
    state_dir_option: Path | None = None
    runtime_dir_option: Path | None = None
    answer_timeout_s: float = 5.0
    wall_ns: Callable[[], int] = time.time_ns
    euid: Callable[[], int] = os.geteuid
    _config: Config | None = None

    @property
    def config(self) -> Config:
        """The settings, read on first use. Raises ConfigError."""
        if self._config is None:
            self._config = load_config(
                self.config_file,
                state_dir=self.state_dir_option,
                runtime_dir=self.runtime_dir_option,
            )
        return self._config

    def accept_wrong_settings(self) -> ConfigError | None:
        """Take only the folders from settings with an error; return the error.

        For `restore`, which needs nothing else.
        """
        try:
            _ = self.config
        except ConfigError as error:
            self._config = load_folders(
                self.config_file,
                state_dir=self.state_dir_option,
                runtime_dir=self.runtime_dir_option,
            )
            return error
        return None

    @property
    def boot_id(self) -> str:
        """The kernel's random name for this boot."""
        return (self.proc / "sys/kernel/random/boot_id").read_text().strip()

    def need_root(self, what: str) -> None:
        """Raises PermissionDenied unless this is root."""
        if self.euid() != 0:
            raise PermissionDenied(f"{what} needs root", "run it again with sudo")


def with_context(command: Command) -> Command:
    """Pass the Context, and add `--json`, which is accepted before and after the command's name."""

    def set_json(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
        if value:
            ctx.ensure_object(Context).json = True

    add_json = click.option(
        "--json",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=set_json,
        help="Print one JSON document instead of text.",
    )
    return add_json(click.pass_obj(command))


def volume_argument(required: bool = True) -> Callable[[Command], Command]:
    """Pass the name of a volume; shells complete it."""
    return click.argument(
        "volume", required=required, callback=_not_empty, shell_complete=_volume_names
    )


def _not_empty(_ctx: click.Context, _param: click.Parameter, name: str | None) -> str | None:
    """An empty variable of a script must not mean all volumes. Raises UsageError."""
    if name == "":
        raise UsageError("the name of the volume is empty", "list the volumes: ebbgate status")
    return name


def _volume_names(ctx: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    names = [volume.title for volume in discover(ctx.ensure_object(Context).sysfs)]
    return [name for name in names if name.startswith(begun)]


class Seconds(click.FloatRange):
    """A finite number of seconds: `nan` is in every range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Fails for what is no number that a clock can wait for."""
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return found


def absolute_path(path: str) -> str:
    """Make a path absolute. Raises NotFound in a folder that was deleted."""
    try:
        return str(Path(path).absolute())
    except FileNotFoundError as error:
        raise NotFound(
            f"{path}: the current folder was deleted", "change to another one, or give a full path"
        ) from error


def duration_of(option: str, text: str, hint: str = "") -> int:
    """Return the duration (ns) that an option gives. Raises UsageError."""
    try:
        return parse_duration_ns(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}", hint) from error


if TYPE_CHECKING:
    from ebbgate.cli.page import Page

Document = Mapping[str, Any]


def emit(context: Context, document: Document, draw: Callable[[Page, Document], None]) -> None:
    """Print the document as JSON, or as text with `draw`."""
    if context.json:
        print_json(document)
        return
    # Imported late: the table library takes longer to import than most commands take to run.
    from ebbgate.cli.page import Page  # noqa: PLC0415

    draw(Page(), document)


def print_json(document: Document) -> None:
    """Print one JSON document; keys keep their order."""
    sys.stdout.write(f"{json_text(document, indent=2)}\n")
    sys.stdout.flush()


def print_error(error: EbbgateError, as_json: bool) -> None:
    """Print an error on stderr: message and next step, or JSON."""
    if as_json:
        body = {"code": error.exit_code, "message": error.message, "hint": error.hint}
        print(escape_json(json.dumps({"error": body})), file=sys.stderr)
    else:
        # Only `restore` logs to the journal, where systemd runs it.
        report_failure("ebbgate", RESTORE_FAILED, error)


def need_terminal() -> None:
    """Raises UsageError where nobody can be asked for confirmation."""
    if not (sys.stdin and sys.stdin.isatty()):
        raise UsageError("cannot ask for confirmation: no terminal", "add --yes")


def print_note(text: str) -> None:
    """Print a note on stderr, so that stdout has only the result."""
    print(clean_lines(text), file=sys.stderr, flush=True)

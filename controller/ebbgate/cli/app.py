# SPDX-License-Identifier: GPL-2.0-only
"""`ebbgate`: its commands, its options for all of them, and its exit codes. I/O: terminal."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from ebbgate import __version__
from ebbgate.cli.context import Context, json_option
from ebbgate.cli.output import print_error
from ebbgate.errors import EbbgateError, UsageError

EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141

# Name -> module and one line for `--help`; a command's module is imported when it is called, since
# imports are what a short command spends its time on.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "status": ("ebbgate.cli.status", "What each volume does now, and what ebbgate does about it."),
    "explain": ("ebbgate.cli.explain", "Why: every condition, measured value beside threshold."),
    "report": ("ebbgate.cli.report", "What was done over a time, and what it brought."),
    "doctor": ("ebbgate.cli.doctor", "What works here, what it costs, what stands in the way."),
    "observe": ("ebbgate.cli.intents", "Measure a volume, decide nothing."),
    "advise": ("ebbgate.cli.intents", "Decide, show, touch nothing."),
    "enforce": ("ebbgate.cli.intents", "Tune the volume; every knob is put back in the end."),
    "hold": ("ebbgate.cli.intents", "Freeze every knob where it is."),
    "set": ("ebbgate.cli.overrides", "Keep a knob at a value, for a time."),
    "drain": ("ebbgate.cli.overrides", "Be clean by a time, no faster than that needs."),
    "release": ("ebbgate.cli.overrides", "Give knobs back to ebbgate; end set, drain and hold."),
    "clean": ("ebbgate.cli.clean", "Write all dirty data of a mapped volume back, under load."),
    "apply": ("ebbgate.cli.apply", "Apply one recommendation of doctor (asks first)."),
    "restore": ("ebbgate.cli.restore", "Put every knob back, with or without the daemon."),
    "check-policy": (
        "ebbgate.cli.check_policy",
        "Is a policy file right? All that is not, with places.",
    ),
    "web-token": ("ebbgate.cli.web_token", "The token that allows changes in the browser."),
    "record": ("ebbgate.cli.record", "Keep what the probe sees of a volume, to replay it."),
    "replay": ("ebbgate.cli.replay", "What ebbgate would have decided on a recording."),
}
_EPILOG: Final = """\b
Exit codes:
  0   done                        70  a bug of ebbgate
  64  wrong command line          74  a knob could not be written or restored
  66  no such volume or file      75  another daemon runs
  69  kernel, probe or daemon     77  needs root
      is not there                78  a settings file is wrong
  130 interrupted
"""


class Commands(click.Group):
    """The table above as a click group."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        command = getattr(module, cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            raise UsageError(f"no such command: {args[0]}", _nearest_command(args[0]))
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, epilog=_EPILOG)
@click.option(
    "--config", type=click.Path(path_type=Path), help="Instead of /etc/ebbgate/ebbgate.toml."
)
@click.option("--state-dir", type=click.Path(path_type=Path), help="Instead of /var/lib/ebbgate.")
@click.option("--runtime-dir", type=click.Path(path_type=Path), help="Instead of /run/ebbgate.")
@click.option(
    "--patience",
    type=click.FloatRange(0.1, 600),
    metavar="SECONDS",
    help="Seconds to wait for the outcome of a request (default 5).",
)
@json_option
@click.version_option(__version__, prog_name="ebbgate")
@click.pass_obj
def app(
    context: Context,
    config: Path | None,
    state_dir: Path | None,
    runtime_dir: Path | None,
    patience: float | None,
) -> None:
    """Retunes the kernel's block caches in real time and explains every change."""
    context.config_file = config
    context.state_dir_option = state_dir
    context.runtime_dir_option = runtime_dir
    if patience is not None:
        context.answer_timeout_s = patience


def main(argv: Sequence[str] | None = None, context: Context | None = None) -> int:
    """Run one command; returns its exit code. Never raises, whatever the user typed."""
    context = context or Context()
    try:
        result = app.main(
            list(argv) if argv is not None else None,
            prog_name="ebbgate",
            standalone_mode=False,
            obj=context,
        )
        # `--help` and the like end with click's own code; commands return theirs or nothing.
        return result if isinstance(result, int) else 0
    except EbbgateError as error:
        print_error(error, context.json)
        return error.exit_code
    except click.UsageError as error:
        wrong = UsageError(error.format_message(), _usage_hint(error))
        print_error(wrong, context.json)
        return wrong.exit_code
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Python would complain once more when it flushes stdout at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE


def _usage_hint(error: click.UsageError) -> str:
    command: Any = error.ctx.command_path if error.ctx else "ebbgate"
    return f"see {command} --help"


def _nearest_command(word: str) -> str:
    difflib = importlib.import_module("difflib")
    close: list[str] = difflib.get_close_matches(word, COMMANDS, n=1)
    return f"did you mean {close[0]}?" if close else f"commands: {', '.join(COMMANDS)}"

# SPDX-License-Identifier: GPL-2.0-only
"""The program `ebbgate`: its commands, common options and exit codes. I/O: terminal."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from ebbgate import __version__
from ebbgate.cli.context import Command, Context, Seconds, print_error, with_context
from ebbgate.cli.output import discard_output, open_streams
from ebbgate.errors import EbbgateError, InternalError, OutputError, UsageError

EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141

# Name -> module and one line for `--help`. A module is imported only when its command runs: imports
# take most of the time of a short command.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "status": ("ebbgate.cli.status", "Show what each volume does now and what ebbgate does."),
    "explain": ("ebbgate.cli.explain", "Show why: measured value and threshold of each condition."),
    "report": ("ebbgate.cli.report", "Summarize what was changed and what it gained."),
    "doctor": ("ebbgate.cli.doctor", "Check this machine; list problems and recommendations."),
    "observe": ("ebbgate.cli.intents", "Measure a volume; decide and change nothing."),
    "advise": ("ebbgate.cli.intents", "Show what ebbgate would do; change nothing."),
    "enforce": ("ebbgate.cli.intents", "Tune a volume; its original settings are restored later."),
    "hold": ("ebbgate.cli.intents", "Freeze all knobs at their present values."),
    "set": ("ebbgate.cli.overrides", "Set a knob to a value, for a time or until released."),
    "drain": ("ebbgate.cli.overrides", "Write all dirty data back by a given time."),
    "release": ("ebbgate.cli.overrides", "Return knobs to ebbgate; end set, drain and hold."),
    "warm": ("ebbgate.cli.warm", "Read files into the cache, as jobs; list the jobs."),
    "jobs": ("ebbgate.cli.warm", "List, pause, resume and cancel what warm does."),
    "pin": ("ebbgate.cli.pins", "Keep a file in the cache until it is unpinned or gone."),
    "unpin": ("ebbgate.cli.pins", "End a pin."),
    "pins": ("ebbgate.cli.pins", "List the pinned files."),
    "forget": ("ebbgate.cli.overrides", "Drop what is kept for a volume that is gone."),
    "clean": ("ebbgate.cli.clean", "Write all dirty data of a dm volume back now."),
    "apply": ("ebbgate.cli.apply", "Apply one recommendation of doctor (asks first)."),
    "restore": (
        "ebbgate.cli.restore",
        "Restore all original settings, with or without the daemon.",
    ),
    "check-policy": ("ebbgate.cli.check_policy", "Check policy files; list errors by line."),
    "layout": ("ebbgate.cli.layout", "Show where files lie on cached volumes."),
    "web-token": ("ebbgate.cli.web_token", "Show or renew the token for changes in the browser."),
    "record": ("ebbgate.cli.record", "Record the load of a volume, to replay it later."),
    "replay": ("ebbgate.cli.replay", "Show what ebbgate would have decided on a recording."),
}
EPILOG: Final = """\b
Terms:
  volume      a cached block device: bcache, dm-cache or dm-writecache
  dirty data  data in the cache that the backing device does not have yet
  write-back  copying dirty data to the backing device; also: destage, drain
  knob        a setting of the kernel's cache, such as sequential_cutoff
  gate        how much write-back ebbgate allows now: held, closed,
              paced, resting, open, or kernel (its own settings; in JSON: released)
  regime      the kind of load now: gap, burst, stream or light

\b
Exit codes:
  0   done                        70  internal error
  64  wrong command line          74  a knob or the output could not be written
  66  no such volume or file      75  another daemon is running
  69  kernel, probe or daemon     77  needs root
      not available               78  error in a settings or policy file
  130 interrupted
"""


class Commands(click.Group):
    """Looks commands up in COMMANDS."""

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
        # A completion must print nothing.
        if args and args[0] not in COMMANDS and not ctx.resilient_parsing:
            raise UsageError(f"no such command: {args[0]}", _nearest_command(args[0]))
        return super().resolve_command(ctx, args)


class _FilledPath(click.Path):
    """A path that is not empty: that would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Fails for an empty variable of a script."""
        if value == "":
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)


def _path_option(name: str, metavar: str, about: str) -> Callable[[Command], Command]:
    return click.option(
        name, type=_FilledPath(path_type=Path, readable=False), metavar=metavar, help=about
    )


@click.group(cls=Commands, epilog=EPILOG)
@_path_option("--config", "FILE", "Settings file (default /etc/ebbgate/ebbgate.toml).")
@_path_option("--state-dir", "FOLDER", "Folder of the history (default /var/lib/ebbgate).")
@_path_option("--runtime-dir", "FOLDER", "Folder of the control socket (default /run/ebbgate).")
@click.option(
    "--patience",
    type=Seconds(0.1, 600),
    metavar="SECONDS",
    help="Seconds to wait for the daemon (default 5).",
)
@with_context
@click.version_option(__version__, prog_name="ebbgate")
def app(
    context: Context,
    config: Path | None,
    state_dir: Path | None,
    runtime_dir: Path | None,
    patience: float | None,
) -> None:
    """Tune the kernel's block caches to the load and explain every change."""
    context.config_file = config
    context.state_dir_option = state_dir
    context.runtime_dir_option = runtime_dir
    if patience is not None:
        context.answer_timeout_s = patience


def main(argv: Sequence[str] | None = None, context: Context | None = None) -> int:
    """Run one command and return its exit code. Never raises, whatever the user typed."""
    context = context or Context()
    open_streams()
    try:
        return _run(argv, context)
    except Exception as error:
        if not context.json:
            traceback.print_exc()
        lines = "the lines that it prints without --json" if context.json else "these lines"
        text = f"internal error: {type(error).__name__}: {error}"
        wrong = InternalError(text, f"please report it, with {lines}")
        print_error(wrong, context.json)
        return wrong.exit_code


def _run(argv: Sequence[str] | None, context: Context) -> int:
    """Run one command and return its exit code. Raises only what no user can cause."""
    try:
        result = app.main(
            list(argv) if argv is not None else None,
            prog_name="ebbgate",
            standalone_mode=False,
            obj=context,
        )
        sys.stdout.flush()
        # click returns its own code after `--help`; commands return theirs or nothing.
        return result if isinstance(result, int) else 0
    except OutputError as error:
        discard_output()
        if error.reader_gone:
            return EXIT_BROKEN_PIPE
        print_error(error, context.json)
        return error.exit_code
    except EbbgateError as error:
        print_error(error, context.json)
        return error.exit_code
    except click.UsageError as error:
        wrong = UsageError(error.format_message(), _usage_hint(error))
        # Words that cannot be parsed have set no option yet.
        words = sys.argv[1:] if argv is None else argv
        print_error(wrong, context.json or "--json" in words)
        return wrong.exit_code
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED


def _usage_hint(error: click.UsageError) -> str:
    command: Any = error.ctx.command_path if error.ctx else "ebbgate"
    return f"see {command} --help"


def _nearest_command(word: str) -> str:
    difflib = importlib.import_module("difflib")
    close: list[str] = difflib.get_close_matches(word, COMMANDS, n=1)
    return f"did you mean {close[0]}?" if close else f"commands: {', '.join(COMMANDS)}"

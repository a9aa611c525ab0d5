# SPDX-License-Identifier: GPL-2.0-only
"""`observe`, `advise`, `enforce`, `hold`: send a request to the daemon. I/O: the control socket."""

from __future__ import annotations

import os
import pwd
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from ebbgate.cli.context import (
    Context,
    Document,
    duration_of,
    emit,
    print_note,
    volume_argument,
    with_context,
)
from ebbgate.errors import ActuationError, EbbgateError, NotFound, Unavailable, UsageError
from ebbgate.intents.arguments import OVERRIDE_NS_MAX
from ebbgate.intents.client import ControlClient, NotAnswering, Refused
from ebbgate.intents.protocol import LABEL_LENGTH_MAX, Answer, State
from ebbgate.intents.validation import check_intent
from ebbgate.model.override import IntentKind
from ebbgate.model.volume import Mode, Volume
from ebbgate.probes.topology import find
from ebbgate.units import NS_PER_S

if TYPE_CHECKING:
    from ebbgate.cli.page import Page

_SHORTEST_NS = NS_PER_S
_NOTE_AFTER_S: Final = 1.0
_NOTE_EVERY_S: Final = 10.0
_MAYBE: Final = "the request was sent and may still be carried out"
_FOLLOW: Final = "check the result: journalctl -u ebbgated, or the dashboard"


class Late(Unavailable):
    """The daemon has accepted a request and has no outcome yet. `number`: of the request."""

    def __init__(self, message: str, hint: str, number: int) -> None:
        super().__init__(message, hint)
        self.number = number


def _mode_command(mode: Mode, about: str) -> click.Command:
    @click.command(str(mode), help=about)
    @volume_argument()
    @with_context
    def command(context: Context, volume: str) -> None:
        answer = ask(context, IntentKind.MODE, named(context, volume), {"mode": str(mode)})
        emit(context, answer, draw_outcome)

    return command


observe = _mode_command(Mode.OBSERVE, "Measure and record VOLUME; decide and change nothing.")
advise = _mode_command(
    Mode.ADVISE, "Show what ebbgate would do with VOLUME, and why; change nothing."
)
enforce = _mode_command(
    Mode.ENFORCE,
    "Tune VOLUME. Original values are saved first. They are restored when you choose another mode, "
    "by `ebbgate restore`, and when the daemon stops or crashes. ebbgate also tunes knobs that "
    "someone else has changed since.",
)


@click.command()
@volume_argument(required=False)
@click.option("--off", is_flag=True, help="End the hold.")
@click.option(
    "--for", "lasting", metavar="TIME", help="End the hold after this time, such as 10min."
)
@with_context
def hold(context: Context, volume: str | None, off: bool, lasting: str | None) -> None:
    """Freeze all knobs of VOLUME (or of all volumes) at their present values.

    `hold --off` or `ebbgate release VOLUME` ends the hold. It survives a restart of the daemon,
    which restores the original values and then changes nothing.
    """
    found = named(context, volume) if volume else None
    args: dict[str, Any] = {"on": not off}
    if lasting is not None:
        if off:
            raise UsageError("--off cannot be combined with --for", "see ebbgate hold --help")
        args["for_ns"] = parse_for(lasting)
    emit(context, ask(context, IntentKind.HOLD, found, args), draw_outcome)


def parse_for(text: str, what: str = "--for") -> int:
    """Parse a duration from 1 s to 30 days. Raises UsageError."""
    hint = f"for example {what} 10min"
    duration_ns = duration_of(what, text, hint)
    if not _SHORTEST_NS <= duration_ns <= OVERRIDE_NS_MAX:
        raise UsageError(f"{what} must be 1 s to 720 h", hint)
    return duration_ns


def named(context: Context, name: str) -> Volume | str:
    """Return the volume, or only its name where this user may not query device-mapper.

    The daemon then decides whether there is such a volume. Raises NotFound.
    """
    try:
        return find(context.sysfs, name)
    except NotFound:
        if context.sysfs.dm.blocked():
            return name.removeprefix("/dev/")
        raise


def ask(
    context: Context, kind: IntentKind, volume: Volume | str | None, args: Mapping[str, Any]
) -> Document:
    """Send the request and wait for its outcome.

    Raises UsageError for a request that is not valid, Unavailable without a daemon, Late without an
    outcome in time, PermissionDenied, NotFound and ActuationError for a refusal or a failure.
    """
    number, answer = answered(context, kind, volume, args)
    name = volume.name if isinstance(volume, Volume) else volume
    return {"volume": name, "kind": str(kind), **args, "request": number, "outcome": answer.text}


def answered(
    context: Context, kind: IntentKind, volume: Volume | str | None, args: Mapping[str, Any]
) -> tuple[int, Answer]:
    """The same; return its number and the daemon's own answer."""
    check_intent(kind, volume, args)
    name = volume.name if isinstance(volume, Volume) else volume
    deadline_s = time.monotonic() + context.answer_timeout_s
    with ControlClient.connect(context.config.socket_path, context.answer_timeout_s) as client:
        try:
            left_s = max(0.0, deadline_s - time.monotonic())
            number = client.send(kind, name, args, label(), left_s)
        except Refused as error:
            raise _failed(name, error.message, error.hint) from error
        except NotAnswering as error:
            raise Unavailable(error.message, f"{_MAYBE}; {error.hint}") from error
        except KeyboardInterrupt:
            print_note(f"ebbgate: {_MAYBE}")
            raise
        answer = _outcome(context, client, number, deadline_s)
    if answer.state is not State.DONE:
        raise _failed(name, answer.text or "failed; the daemon gave no reason", answer.hint)
    return number, answer


def label() -> str:
    """Return the user who called sudo; the daemon itself sees only root."""
    name = os.environ.get("SUDO_USER", "")
    return name if name != "root" and len(name) <= LABEL_LENGTH_MAX and name.isprintable() else ""


def who() -> str:
    """Return the user who called sudo, or the user of this process."""
    try:
        return label() or pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def _outcome(context: Context, client: ControlClient, number: int, deadline_s: float) -> Answer:
    """Wait for the outcome; on a terminal, report that it takes a while."""
    goes_on = f"request {number} was accepted and continues"
    began_s = time.monotonic()
    next_note_s = began_s + _NOTE_AFTER_S
    while True:
        now_s = time.monotonic()
        wait_s = max(0.0, min(deadline_s, next_note_s) - now_s)
        try:
            return client.outcome(wait_s)
        except NotAnswering as error:
            if time.monotonic() >= deadline_s:
                late = f"no result within {context.answer_timeout_s:g} s: {goes_on}"
                hint = f"{_FOLLOW}; to wait longer: ebbgate --patience 30 COMMAND"
                raise Late(late, hint, number) from error
        except Unavailable as error:
            lost = f"{error.message}; request {number} was accepted, its result is not known"
            raise Unavailable(lost, _FOLLOW) from error
        except KeyboardInterrupt:
            print_note(f"ebbgate: {goes_on}\n  {_FOLLOW}")
            raise
        if sys.stderr.isatty() and not context.json:
            waited_s = time.monotonic() - began_s
            print_note(f"request {number} was accepted; waiting for its result ({waited_s:.0f} s)")
        next_note_s = time.monotonic() + _NOTE_EVERY_S


def _failed(volume: str | None, text: str, hint: str) -> EbbgateError:
    if text.startswith("no such volume"):
        return NotFound(
            f"the daemon does not manage {volume}",
            "it manages volumes with a cache attached; list them: ebbgate status",
        )
    # The daemon stores an error as one text: message, line feed, next step.
    message, _, rest = text.partition("\n")
    return ActuationError(
        message, hint or rest.strip() or "see the daemon's log: journalctl -u ebbgated"
    )


def draw_outcome(page: Page, document: Document) -> None:
    """Print the daemon's text."""
    page.line(str(document["outcome"]))

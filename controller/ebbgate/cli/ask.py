# SPDX-License-Identifier: GPL-2.0-only
"""`observe`, `advise`, `enforce`, `hold`: ask the daemon and wait for its answer. I/O: intents."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from ebbgate.cli.context import Context, json_option
from ebbgate.cli.link import need_daemon
from ebbgate.cli.output import Document, emit
from ebbgate.errors import ActuationError, EbbgateError, NotFound, Unavailable, UsageError
from ebbgate.intents.validation import LONGEST_NS, check
from ebbgate.model.volume import Mode
from ebbgate.model.wish import IntentKind
from ebbgate.probes.topology import find
from ebbgate.store.intents import Intent, Intents
from ebbgate.units import NS_PER_S, parse_duration_ns

if TYPE_CHECKING:
    from ebbgate.cli.page import Page

_SHORTEST_NS = NS_PER_S
# The daemon looks every tick (250 ms by default).
_POLL_S = 0.05


def _mode_command(mode: Mode, about: str) -> click.Command:
    @click.command(str(mode), help=about)
    @click.argument("volume")
    @json_option
    @click.pass_obj
    def command(context: Context, volume: str) -> None:
        context.need_root(f"ebbgate {mode}")
        name = find(context.sysfs, volume).name
        answer = ask(context, IntentKind.MODE, name, {"mode": str(mode)})
        emit(context, answer, _draw)

    return command


observe = _mode_command(Mode.OBSERVE, "Measure VOLUME and record; decide nothing, touch nothing.")
advise = _mode_command(
    Mode.ADVISE, "Decide for VOLUME and show each decision with its reason; touch nothing."
)
enforce = _mode_command(
    Mode.ENFORCE,
    "Tune VOLUME. Originals are kept first; they are put back by any other mode, `restore`, a stop "
    "or a crash of the daemon. Also takes back knobs that somebody else had changed.",
)


@click.command()
@click.argument("volume", required=False)
@click.option("--off", is_flag=True, help="Go on.")
@click.option("--for", "lasting", metavar="TIME", help="For so long, such as 10min.")
@json_option
@click.pass_obj
def hold(context: Context, volume: str | None, off: bool, lasting: str | None) -> None:
    """Freeze every knob of VOLUME (or of all volumes) where it is, until `hold --off`.

    `ebbgate release VOLUME` ends it, too. It outlives a restart of the daemon, which puts all knobs
    back and then touches none.
    """
    context.need_root("ebbgate hold")
    name = find(context.sysfs, volume).name if volume else None
    args: dict[str, Any] = {"on": not off}
    if lasting is not None:
        if off:
            raise UsageError("--off takes no time", "see ebbgate hold --help")
        args["for_ns"] = parse_for(lasting)
    emit(context, ask(context, IntentKind.HOLD, name, args), _draw)


def parse_for(text: str, what: str = "--for") -> int:
    """A duration from 1 s to 30 days. Raises UsageError."""
    try:
        duration_ns = parse_duration_ns(text)
    except ValueError as error:
        raise UsageError(f"{what}: {error}", f"for example {what} 10min") from error
    if not _SHORTEST_NS <= duration_ns <= LONGEST_NS:
        raise UsageError(f"{what} takes 1 s to 720 h", f"for example {what} 10min")
    return duration_ns


def ask(
    context: Context, kind: IntentKind, volume: str | None, args: Mapping[str, Any]
) -> Document:
    """Add the intent and wait for what becomes of it.

    Raises UsageError for what cannot be meant, Unavailable without a daemon or an answer, NotFound
    and ActuationError for a refusal.
    """
    check(kind, volume, args)
    need_daemon(context)
    intents = Intents.open(context.config.intents_path)
    try:
        number = intents.add_intent(kind, volume, args, who(), context.wall_ns())
        answer = _wait(lambda: intents.get(number), context.answer_timeout_s)
        if answer is None or answer.ok is None:
            # Nobody is to be surprised by it once the daemon wakes up.
            intents.resolve(number, "given up by the person who asked", ok=False)
            raise Unavailable(
                f"the daemon did not answer within {context.answer_timeout_s:g} s",
                "see what it does: systemctl status ebbgated; on a slow machine: --patience 30",
            )
    finally:
        intents.close()
    if not answer.ok:
        raise _refused(answer)
    return {"volume": volume, "asked": str(kind), **args, "outcome": answer.outcome}


def who() -> str:
    """The person behind sudo, or the user of this process."""
    user = os.environ.get("SUDO_USER")
    try:
        return user or pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def _wait(get: Callable[[], Intent | None], timeout_s: float) -> Intent | None:
    deadline = time.monotonic() + timeout_s
    while True:
        intent = get()
        if intent is None or intent.ok is not None or time.monotonic() >= deadline:
            return intent
        time.sleep(_POLL_S)


def _refused(answer: Intent) -> EbbgateError:
    text = answer.outcome or "refused without a reason"
    if text.startswith("no such volume"):
        return NotFound(
            f"the daemon does not follow {answer.volume}",
            "it follows volumes with a cache attached: see ebbgate status",
        )
    # An error of the daemon brings its next step with it.
    message, _, hint = text.partition("\n")
    return ActuationError(message, hint.strip() or "see the daemon's log: journalctl -u ebbgated")


def _draw(page: Page, document: Document) -> None:
    page.line(str(document["outcome"]))

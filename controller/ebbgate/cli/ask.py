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
from ebbgate.errors import ActuationError, EbbgateError, NotFound, Unavailable
from ebbgate.model.volume import Mode
from ebbgate.probes.topology import find
from ebbgate.store.intents import Intent, IntentKind, Intents

if TYPE_CHECKING:
    from ebbgate.cli.page import Page

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
@json_option
@click.pass_obj
def hold(context: Context, volume: str | None, off: bool) -> None:
    """Freeze every knob of VOLUME (or of all volumes) where it is, until `hold --off`."""
    context.need_root("ebbgate hold")
    name = find(context.sysfs, volume).name if volume else None
    emit(context, ask(context, IntentKind.HOLD, name, {"on": not off}), _draw)


def ask(
    context: Context, kind: IntentKind, volume: str | None, args: Mapping[str, Any]
) -> Document:
    """Add the intent and wait for what becomes of it.

    Raises Unavailable without a daemon or an answer, NotFound and ActuationError for a refusal.
    """
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
                "see what it does: systemctl status ebbgated",
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
    return ActuationError(text, "see the daemon's log: journalctl -u ebbgated")


def _draw(page: Page, document: Document) -> None:
    page.line(str(document["outcome"]))

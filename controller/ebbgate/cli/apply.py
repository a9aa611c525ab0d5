# SPDX-License-Identifier: GPL-2.0-only
"""`apply`: carries out one advice of `doctor`, once a person has said yes. I/O: intents, LVM."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from ebbgate.actuators.asked import is_trigger
from ebbgate.actuators.plan import GATE_KNOBS
from ebbgate.cli.ask import ask
from ebbgate.cli.context import Context, json_option
from ebbgate.cli.doctor import facts_of
from ebbgate.cli.link import Link, look, need_daemon
from ebbgate.cli.output import Document, emit
from ebbgate.doctor.advice import advise
from ebbgate.doctor.finding import Advice, Change
from ebbgate.errors import EbbgateError, NotFound, UsageError
from ebbgate.model.volume import Mode, Volume
from ebbgate.probes.topology import find
from ebbgate.run import run
from ebbgate.store.intents import IntentKind

if TYPE_CHECKING:
    from ebbgate.cli.page import Page

_LVM_TIMEOUT_S = 120.0
"""To load a table takes a second or two; another command of LVM may hold its lock for longer."""


@click.command()
@click.argument("advice", metavar="ID")
@click.argument("volume")
@click.option("--yes", is_flag=True, help="Do not ask back.")
@json_option
@click.pass_obj
def apply(context: Context, advice: str, volume: str, yes: bool) -> None:
    """Carry out the advice ID (such as EBB-206) on VOLUME.

    A knob is set through the daemon, which keeps its original; it lasts, over restarts and reboots
    too, until `ebbgate release`. A command of LVM is run as it is shown. What is yours alone to do
    (disks, cache modes, whatever needs the volume to be inactive) is refused, with its command.
    """
    context.need_root("ebbgate apply")
    found = find(context.sysfs, volume)
    link = look(context)
    chosen = _chosen(context, link, found, advice)
    change = _change(chosen, link, found, context.wall_ns())
    if change.knobs:
        need_daemon(context)
    if not yes:
        _confirm(chosen, found)
    emit(context, _carry_out(context, chosen, change, found), _draw)


def _chosen(context: Context, link: Link, volume: Volume, text: str) -> Advice:
    """Raises NotFound, with what is advised, for an advice that does not hold here now."""
    number = f"EBB-{text.upper().removeprefix('EBB-')}"
    known = {each.id: each for each in advise(facts_of(context, link, volume))}
    if number not in known:
        now = f"advised now: {', '.join(known)}" if known else "nothing is advised now"
        raise NotFound(f"{number} is not advised for {volume.title}", now)
    return known[number]


def _change(advice: Advice, link: Link, volume: Volume, wall_ns: int) -> Change:
    """Raises UsageError for what a person has to do, or what ebbgate does already."""
    if advice.change is None:
        by_hand = f"by hand: {advice.command}" if advice.command else "see ebbgate doctor"
        raise UsageError(f"{advice.id} is yours alone to do", by_hand)
    live = link.volume(volume.name, wall_ns)
    driven = [knob for knob, _ in advice.change.knobs if knob in GATE_KNOBS]
    if driven and live is not None and live.document.get("mode") == Mode.ENFORCE:
        raise UsageError(
            f"{volume.title} is in enforce, in which ebbgate drives {driven[0]} itself",
            f"give it back: ebbgate release {volume.title} {driven[0]}",
        )
    return advice.change


def _confirm(advice: Advice, volume: Volume) -> None:
    if not sys.stdin.isatty():
        raise UsageError("nobody is there to be asked", "say --yes")
    click.echo(f"{advice.id}: {advice.about} {advice.text}", err=True)
    if advice.effect:
        click.echo(f"Effect: {advice.effect}", err=True)
    click.echo(f"  {advice.command}", err=True)
    click.confirm(f"Do this to {volume.title}?", abort=True, err=True)


def _carry_out(context: Context, advice: Advice, change: Change, volume: Volume) -> dict[str, Any]:
    document: dict[str, Any] = {"id": advice.id, "volume": volume.name}
    if change.argv:
        done = run(change.argv, timeout_s=_LVM_TIMEOUT_S)
        said = done.stdout.strip() or f"done: {shlex.join(change.argv)}"
        return {**document, "outcome": [said], "undo": [shlex.join(change.undo_argv)]}
    outcomes: list[str] = []
    undo: list[str] = []
    for knob, value in change.knobs:
        try:
            args = {"knob": knob, "value": value}
            outcomes.append(str(ask(context, IntentKind.SET, volume.name, args)["outcome"]))
        except EbbgateError:
            _take_back(context, volume, change, len(outcomes))
            raise
        if not is_trigger(knob):
            undo.append(f"ebbgate release {volume.title} {knob}")
    return {**document, "outcome": outcomes, "undo": undo}


def _take_back(context: Context, volume: Volume, change: Change, count: int) -> None:
    """Nothing is half applied: what was set before the one that failed is given back."""
    for knob, _ in change.knobs[:count]:
        ask(context, IntentKind.RELEASE, volume.name, {"knob": knob})


def _draw(page: Page, document: Document) -> None:
    for line in document["outcome"]:
        page.line(line)
    if not document["undo"]:
        page.line("nothing is left to undo")
    for command in document["undo"]:
        page.line(f"undo: {command}")

# SPDX-License-Identifier: GPL-2.0-only
"""`apply`: applies one recommendation of `doctor` after asking. I/O: the control socket, LVM."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from ebbgate.cli.context import (
    Context,
    Document,
    emit,
    need_terminal,
    print_note,
    volume_argument,
    with_context,
)
from ebbgate.cli.daemon_status import look, need_daemon
from ebbgate.cli.doctor import device_users, facts_of
from ebbgate.cli.intents import ask
from ebbgate.cli.snapshot import view_volume
from ebbgate.doctor.advice import advise
from ebbgate.doctor.model import SEVERITY, Advice, Change
from ebbgate.doctor.remedy import (
    NOTHING_LEFT,
    UNDO,
    advice_by_id,
    advice_id,
    change_of,
    is_undo,
    undo_commands,
)
from ebbgate.kernel.run import run_unkilled
from ebbgate.model.override import IntentKind
from ebbgate.model.volume import Volume
from ebbgate.probes.topology import find
from ebbgate.text import clean_text

if TYPE_CHECKING:
    from ebbgate.cli.page import Page

_LVM_TIMEOUT_S = 120.0
"""Loading a table takes a second or two; another LVM command may hold the lock for longer."""


@click.command()
@click.argument("advice", metavar="ID")
@volume_argument()
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@with_context
def apply(context: Context, advice: str, volume: str, yes: bool) -> None:
    """Apply recommendation ID (such as EBB-206) to VOLUME, after asking.

    The daemon sets a knob and saves its original value. The setting survives restarts and reboots
    and lasts until `ebbgate release`. LVM commands are run as shown. ebbgate does not change disks,
    cache modes or anything that needs the volume to be inactive; for those it prints the command.
    """
    context.need_root("ebbgate apply")
    found = find(context.sysfs, volume)
    view = view_volume(context, look(context), found)
    advised = advise(facts_of(context, view, device_users(context)))
    wanted = advice_by_id(advised, advice_id(advice), found)
    change = change_of(wanted, found, view.status.mode)
    if change.knobs:
        need_daemon(context)
    if not yes:
        _confirm(wanted, found)
    emit(context, _carry_out(context, wanted, change, found), _draw)


def _confirm(advice: Advice, volume: Volume) -> None:
    need_terminal()
    print_note(f"{advice.id} {SEVERITY[advice.weight]}: {advice.text}")
    if advice.effect:
        print_note(f"Effect: {advice.effect}")
    if advice.evidence:
        print_note(f"Measured: {advice.evidence}")
    print_note(f"  {advice.command}")
    click.confirm(f"Apply this to {clean_text(volume.title)}?", abort=True, err=True)


def _carry_out(context: Context, advice: Advice, change: Change, volume: Volume) -> dict[str, Any]:
    undo = undo_commands(change, volume)
    document: dict[str, Any] = {"id": advice.id, "volume": volume.name, "undo": undo}
    if change.argv:
        done = run_unkilled(change.argv, timeout_s=_LVM_TIMEOUT_S)
        output = done.stdout.strip() or f"done: {shlex.join(change.argv)}"
        return {**document, "outcome": [output]}
    answer = ask(context, IntentKind.APPLY, volume, {"id": advice.id})
    # The undo lines at its end are left out: `undo` has the commands.
    lines = [each for each in str(answer["outcome"]).splitlines() if not is_undo(each)]
    return {**document, "outcome": lines}


def _draw(page: Page, document: Document) -> None:
    for line in document["outcome"]:
        page.line(line)
    if not document["undo"]:
        page.line(NOTHING_LEFT)
    for command in document["undo"]:
        page.line(f"{UNDO}{command}")

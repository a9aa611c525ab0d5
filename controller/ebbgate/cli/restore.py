# SPDX-License-Identifier: GPL-2.0-only
"""`restore`: every knob gets its original back. I/O: intents, or sysfs where no daemon runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ebbgate.actuators.restore import restore as put_back
from ebbgate.cli.ask import ask
from ebbgate.cli.context import Context, json_option
from ebbgate.cli.link import no_daemon
from ebbgate.cli.output import Document, emit
from ebbgate.errors import ActuationError
from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.probes.topology import find
from ebbgate.store.intents import IntentKind
from ebbgate.store.leftovers import Leftovers

if TYPE_CHECKING:
    from ebbgate.cli.page import Cell, Page


@click.command()
@click.argument("volume", required=False)
@json_option
@click.pass_obj
def restore(context: Context, volume: str | None) -> None:
    """Put every knob of VOLUME (or of all volumes) back to what it was before ebbgate.

    A running daemon does it and goes on in `advise`. Without one it is done here and now, so it
    also cleans up after a daemon that was killed. Values from before a reboot are not put back:
    the kernel's own are there again.
    """
    context.need_root("ebbgate restore")
    with no_daemon(context.config.lock_path) as alone:
        if alone:
            document = _here(context, volume)
        else:
            name = find(context.sysfs, volume).name if volume else None
            document = {"by": "daemon", **ask(context, IntentKind.RESTORE, name, {})}
    emit(context, document, _draw)
    failed = [row for row in document.get("knobs", ()) if row["outcome"] == OutcomeKind.FAILED]
    if failed:
        first = failed[0]
        raise ActuationError(
            f"{len(failed)} of {len(document['knobs'])} knobs could not be put back, "
            f"the first is {first['volume']} {first['knob']}: {first['note']}",
            "their originals are still kept: run ebbgate restore again",
        )


def _here(context: Context, volume: str | None) -> dict[str, Any]:
    """Write the originals from this process; the volume may be gone: its name is not looked up."""
    name = volume.removeprefix("/dev/") if volume else None
    # The file is left as it is: a daemon that starts moves a damaged one aside.
    journal = Leftovers.open(context.config.history_path, heal=False)
    try:
        outcomes = put_back(journal, context.sysfs, context.boot_id, name)
    finally:
        journal.close()
    return {
        "by": "command line",
        "knobs": [_row(outcome) for outcome in outcomes],
        "journal": journal.complaint or "up to date",
    }


def _row(outcome: Outcome) -> dict[str, str]:
    action = outcome.action
    return {
        "volume": action.volume,
        "knob": action.knob,
        "original": action.new,
        "outcome": str(outcome.kind),
        "note": outcome.error,
    }


def _draw(page: Page, document: Document) -> None:
    if document["by"] == "daemon":
        page.line(document["outcome"])
        return
    rows = document["knobs"]
    if not rows:
        page.line("nothing to put back: ebbgate holds no knob")
        return
    page.table(
        ("VOLUME", "KNOB", "ORIGINAL", ""),
        [(row["volume"], row["knob"], row["original"], _said(row)) for row in rows],
    )
    if document["journal"] != "up to date":
        page.line(document["journal"], "yellow")


def _said(row: Document) -> Cell:
    if row["outcome"] == OutcomeKind.CHANGED:
        return "put back"
    if row["outcome"] == OutcomeKind.FAILED:
        return f"FAILED: {row['note']}", "red"
    return str(row["note"])

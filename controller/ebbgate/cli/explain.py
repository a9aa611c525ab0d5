# SPDX-License-Identifier: GPL-2.0-only
"""`explain`: why ebbgate does what it does with a volume. I/O: reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from ebbgate.cli import format
from ebbgate.cli.context import Context, Document, emit, volume_argument, with_context
from ebbgate.cli.daemon_status import Link, look
from ebbgate.cli.snapshot import VolumeView, view_volume
from ebbgate.cli.status import MODELLED, draw_daemon, draw_missing, draw_sentence
from ebbgate.errors import Unavailable
from ebbgate.model.status import ProposalStatus
from ebbgate.model.status_json import status_from_json
from ebbgate.probes.topology import find
from ebbgate.store.connection import NothingRecorded
from ebbgate.store.queries import History
from ebbgate.units import NS_PER_S

if TYPE_CHECKING:
    from ebbgate.cli.page import Cell, Page

_MARKS: Final[dict[bool | None, Cell]] = {
    True: ("yes", "green"),
    False: "no",
    None: ("unknown", "yellow"),
}


@click.command()
@volume_argument()
@click.option(
    "--last",
    type=click.IntRange(0, 10_000),
    default=3,
    show_default=True,
    help="Number of past decisions to show.",
)
@with_context
def explain(context: Context, volume: str, last: int) -> None:
    """Show what each strategy and rule proposes for VOLUME, and which one decides.

    Each condition is shown with its measured value and its threshold. Without a running daemon only
    past decisions can be shown.
    """
    found = find(context.sysfs, volume)
    link = look(context)
    view = view_volume(context, link, found)
    history = _history(context, found.name, last)
    if not view.live and not history:
        raise Unavailable(
            f"no decision was recorded for {found.title}",
            "see ebbgate status" if link.alive else "start the daemon: systemctl start ebbgated",
        )
    document = {**view.document(), "history": history}
    emit(context, document, lambda page, _: _draw(page, view, link, history))


def _history(context: Context, volume: str, limit: int) -> Sequence[Document]:
    try:
        with History.open(context.config.history_path) as history:
            return history.decisions(volume, limit)
    except NothingRecorded:
        return []


@dataclass(frozen=True, slots=True)
class _Decision:
    """What is shown of a decision in the history."""

    at_unix_ns: int
    proposals: tuple[ProposalStatus, ...] = ()


def _draw(page: Page, view: VolumeView, link: Link, history: Sequence[Document]) -> None:
    status = view.status
    mode = str(status.mode or view.unmanaged.mode)
    policy = f", {format.policy(status)}" if status.policy else ""
    page.heading(view.volume.title, mode + policy)
    draw_sentence(page, view)
    if status.miss_ratio is not None:
        page.line(f"{MODELLED}: {format.hit_ratios(status.miss_ratio)}", indent=2)
    for proposal in status.proposals:
        page.gap()
        _proposal(page, proposal)
    draw_missing(page, status)
    if history:
        page.gap()
        page.heading("Last decisions")
        page.table(("AT (UTC)", "BY", "REASON"), _decisions(history))
    if not view.live:
        page.gap()
        draw_daemon(page, link)


def _proposal(page: Page, proposal: ProposalStatus) -> None:
    if proposal.unsupported:
        page.heading(proposal.strategy, "unsupported here")
        page.line(proposal.unsupported, indent=2)
        return
    won = ", ".join(proposal.wins)
    page.heading(proposal.strategy, f"decides {won}" if won else "decides nothing now")
    page.line(proposal.reason, indent=2)
    page.table(
        ("SIGNAL", "MEASURED", "", "THRESHOLD", "MET"),
        [
            (
                condition.signal,
                condition.measured or format.UNKNOWN,
                condition.comparison,
                condition.threshold,
                _MARKS[None if condition.measured is None else condition.holds],
            )
            for condition in proposal.conditions
        ],
    )


def _decisions(history: Sequence[Document]) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for decision in (status_from_json(_Decision, each) for each in history):
        at = datetime.fromtimestamp(decision.at_unix_ns / NS_PER_S, UTC)
        winners = [each for each in decision.proposals if each.wins]
        for first, proposal in enumerate(winners or decision.proposals[:1]):
            when = "" if first else f"{at:%m-%d %H:%M:%S}"
            rows.append((when, proposal.strategy, proposal.reason or proposal.unsupported))
    return rows

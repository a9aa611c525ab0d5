# SPDX-License-Identifier: GPL-2.0-only
"""`replay`: what ebbgate would have decided on a recording or the history. I/O: reads files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from ebbgate.cli import format
from ebbgate.cli.context import Context, Document, emit, with_context
from ebbgate.cli.replay_history import draw_gates, history_run
from ebbgate.errors import NotFound, PermissionDenied, UsageError
from ebbgate.model.decision import Gate
from ebbgate.policy import ADAPTIVE
from ebbgate.policy.defaults import Policy
from ebbgate.policy.language.compile import compile_policy
from ebbgate.policy_files.validation import named
from ebbgate.probes.recording import (
    Damaged,
    Recorded,
    RecordingHeader,
    read_recording,
    recorded_at_ns,
    recorded_kind,
)
from ebbgate.replay.recording import notes_of
from ebbgate.replay.recording import replay as decisions_of
from ebbgate.store.documents import decision_document
from ebbgate.units import NS_PER_S

if TYPE_CHECKING:
    from ebbgate.cli.page import Cell, Page


_COLOURS = {"-": "red", "+": "green", " ": "dim"}


@click.command()
@click.argument("file", type=click.Path(readable=False), required=False)
@click.option(
    "--policy",
    default=ADAPTIVE,
    show_default=True,
    help="Name of a shipped policy, or a policy file.",
)
@click.option("--against", help="Compare with this policy.")
@click.option(
    "--history", metavar="VOLUME", help="Use the recorded history of VOLUME instead of FILE."
)
@click.option(
    "--since", metavar="TIME", help="With --history: how far back, such as 7d (default 24h)."
)
@with_context
def replay(
    context: Context,
    file: str | None,
    policy: str,
    against: str | None,
    history: str | None,
    since: str | None,
) -> None:
    """Show what ebbgate would have decided on FILE, a recording (`-`: standard input).

    Needs no root, no probe and no volume. Schedules are ignored: a recording has no time of day.

    With --history, show where the policy would have decided differently from --against, or from the
    present policy of VOLUME. The history has one sample per second for the last six hours and one
    per minute before that; the output names what such samples cannot show. Schedules apply.
    """
    if (file is None) == (history is None):
        raise UsageError("replay needs either FILE or --history", "see ebbgate replay --help")
    if history is not None:
        history_run(context, history, since, policy, against)
        return
    if since is not None or file is None:
        raise UsageError("--since needs --history", "see ebbgate replay --help")
    wanted = named(policy)
    other = named(against) if against else None
    with _open(file) as lines:
        events = list(read_recording(lines))
    damaged = [f"line {event.line}: {event.why}" for event in events if isinstance(event, Damaged)]
    times = [at_ns for event in events if (at_ns := recorded_at_ns(event)) is not None]
    if not times:
        reason = f" ({damaged[0]})" if damaged else ""
        raise NotFound(
            f"{file} is not a recording{reason}", "make one: ebbgate record VOLUME > FILE"
        )
    kind, start_ns = recorded_kind(events), min(times)
    ours = compile_policy(wanted, kind)
    theirs = compile_policy(other, kind) if other is not None else None
    document: dict[str, Any] = {
        "file": file,
        "policy": wanted.name,
        "origin": [event.text for event in events if isinstance(event, RecordingHeader)],
        "records": len(times),
        "length_ns": max(times) - min(times),
        "damaged": damaged,
        "decisions": _decided(events, ours, start_ns),
        "notes": list(notes_of([ours] if theirs is None else [ours, theirs])),
    }
    if theirs is not None:
        document["against"] = {
            "policy": theirs.name,
            "decisions": _decided(events, theirs, start_ns),
        }
    emit(context, document, _draw)


def _decided(events: list[Recorded], policy: Policy, start_ns: int) -> list[dict[str, Any]]:
    return [
        {"after_ns": each.at_ns - start_ns, **decision_document(each)}
        for each in decisions_of(events, policy)
    ]


@contextmanager
def _open(file: str) -> Iterator[IO[str]]:
    if file == "-":
        yield sys.stdin
        return
    try:
        with Path(file).open(encoding="utf-8", errors="replace") as lines:
            yield lines
    except PermissionError as error:
        raise PermissionDenied(f"no access to {file}", "run this as root") from error
    except OSError as error:
        raise NotFound(f"{file}: {error.strerror}", "give the path of a recording") from error


def _draw(page: Page, document: Document) -> None:
    for text in document["origin"]:
        page.line(text, "dim")
    length = format.span(document["length_ns"])
    page.line(f"{document['records']} records, {length}, {len(document['decisions'])} decisions")
    page.gap()
    if "against" in document:
        _draw_difference(page, document)
    else:
        page.table(("AFTER", "GATE", "CUTOFF", "REASON"), map(_cells, document["decisions"]))
    damaged = document["damaged"]
    if document["notes"]:
        page.gap()
    for note in document["notes"]:
        page.line(f"- {note}", "dim")
    if damaged:
        page.gap()
        page.line(f"{len(damaged)} damaged lines skipped, first {damaged[0]}", "yellow")


def _draw_difference(page: Page, document: Document) -> None:
    against, ours = document["against"], document["decisions"]
    rows = differences(against["decisions"], ours)
    page.line(f"- only {against['policy']}, + only {document['policy']}")
    heads = ("", "AFTER", "GATE", "CUTOFF", "REASON")
    page.table(heads, [((sign, _COLOURS[sign]), *_cells(row)) for sign, row in rows])
    page.gap()
    length_ns = document["length_ns"]
    theirs = time_by_gate(against["decisions"], length_ns)
    mine = time_by_gate(ours, length_ns)
    draw_gates(page, (against["policy"], theirs), (document["policy"], mine))


def _cells(decision: Document) -> tuple[Cell, ...]:
    winners = [each["reason"] for each in decision["proposals"] if each["wins"]]
    reasons = winners or [
        each["unsupported"] or each["reason"] for each in decision["proposals"][:1]
    ]
    return (
        f"{decision['after_ns'] / NS_PER_S:.3f} s",
        format.gate(Gate(**decision["gate"]) if decision["gate"] else None),
        format.size(decision["sequential_cutoff_bytes"]),
        "; ".join(reasons),
    )


def differences(old: Sequence[Document], new: Sequence[Document]) -> list[tuple[str, Document]]:
    """Merge decisions of two policies in time order.

    `-`: only of the old policy; `+`: only of the new one; blank: of both.
    """
    matcher = SequenceMatcher(
        None, [_identity(r) for r in old], [_identity(r) for r in new], autojunk=False
    )
    found: list[tuple[str, Document]] = []
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag == "equal":
            found += [(" ", row) for row in new[new_from:new_to]]
            continue
        changed = [("-", row) for row in old[old_from:old_to]]
        changed += [("+", row) for row in new[new_from:new_to]]
        found += sorted(changed, key=lambda each: each[1]["after_ns"])
    return found


def time_by_gate(rows: Sequence[Document], end_ns: int) -> dict[str, int]:
    """Return for how long (ns) each kind of gate was decided until `end_ns`.

    Before the first decision the kernel's settings apply (`released`).
    """
    spans: dict[str, int] = {}
    since_ns, kind = 0, "released"
    for row in (*rows, {"after_ns": end_ns, "gate": None}):
        if row["after_ns"] > since_ns:
            spans[kind] = spans.get(kind, 0) + row["after_ns"] - since_ns
        since_ns, kind = row["after_ns"], _gate_kind(row)
    return spans


def _gate_kind(row: Document) -> str:
    return row["gate"]["kind"] if row["gate"] else "released"


def _identity(row: Document) -> tuple[object, ...]:
    gate = row["gate"] or {}
    reasons = tuple(each["reason"] for each in row["proposals"] if each["wins"])
    return row["after_ns"], gate.get("kind"), row["sequential_cutoff_bytes"], reasons

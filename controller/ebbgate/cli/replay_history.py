# SPDX-License-Identifier: GPL-2.0-only
"""`replay --history`: runs a policy on the history of a volume. I/O: reads the history."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from ebbgate.cli import format
from ebbgate.cli.context import Context
from ebbgate.cli.output import Document, emit
from ebbgate.errors import UsageError
from ebbgate.policy_files.validation import named
from ebbgate.probes.topology import find
from ebbgate.replay import history
from ebbgate.replay.compare import dry_run_to_json
from ebbgate.replay.history import Subject
from ebbgate.units import NS_PER_S, parse_duration_ns

if TYPE_CHECKING:
    from ebbgate.cli.page import Cell, Page

DEFAULT: Final = "24h"
_SHOWN_MAX: Final = 50


def history_run(
    context: Context, volume: str, since: str | None, policy: str, against: str | None
) -> None:
    """Run both policies and print where they differ.

    Raises UsageError, NotFound, ConfigError and Unavailable.
    """
    try:
        length_ns = parse_duration_ns(since or DEFAULT)
    except ValueError as error:
        raise UsageError(f"--since: {error}", "for example --since 24h") from error
    found = find(context.sysfs, volume)
    subject = Subject(found.name, found.title, found.kind)
    folder, until_ns = context.config.policy_dir, context.wall_ns()
    both = (
        named(policy, folder),
        named(against, folder) if against else history.compared_with(None, subject, folder),
    )
    path = context.config.history_path
    run = history.run(path, subject, both, until_ns - length_ns, until_ns)
    names = {"volume": found.name, "policy": both[0].name, "against": both[1].name}
    emit(context, {**names, **dry_run_to_json(run)}, _draw)


def _draw(page: Page, found: Document) -> None:
    since, until = found["from_unix_s"], found["until_unix_s"]
    covered = format.ratio(found["coverage_ratio"])
    page.line(
        f"{found['volume']} from {_when(since)} to {_when(until)}: {found['frames']} samples,"
        f" {covered} of the time; {found['against']} -> {found['policy']}"
    )
    page.gap()
    _draw_differences(page, found)
    page.gap()
    draw_gates(
        page,
        (found["against"], _ns(found["destage_s"]["before"])),
        (found["policy"], _ns(found["destage_s"]["after"])),
    )
    page.gap()
    for note in found["notes"]:
        page.line(f"- {note}", "dim")


def _draw_differences(page: Page, found: Document) -> None:
    differences = found["differences"]
    if not differences:
        page.line("no difference", "green")
        return
    longest = sorted(differences, key=_length_s, reverse=True)[:_SHOWN_MAX]
    rows: list[tuple[Cell, ...]] = [
        (
            _when(each["at_unix_s"]),
            format.span(_length_s(each) * NS_PER_S),
            each["setting"],
            f"{each['before']} -> {each['after']} ({each['why_after']})",
        )
        for each in sorted(longest, key=lambda each: each["at_unix_s"])
    ]
    page.table(("AT", "FOR", "SETTING", "CHANGE"), rows)
    left = len(differences) - len(rows) + found["left_out"]
    if left:
        page.line(f"and {left} shorter differences (all of them: --json)", "dim")


def draw_gates(
    page: Page, old: tuple[str, dict[str, int]], new: tuple[str, dict[str, int]]
) -> None:
    """Print side by side for how long each policy would have set each gate."""
    theirs, mine = old[1], new[1]
    page.table(
        ("GATE", old[0].upper(), new[0].upper()),
        [
            (kind, format.span(theirs.get(kind, 0)), format.span(mine.get(kind, 0)))
            for kind in sorted({*theirs, *mine})
        ],
    )


def _ns(spent_s: dict[str, float]) -> dict[str, int]:
    return {text: round(seconds * NS_PER_S) for text, seconds in spent_s.items()}


def _length_s(difference: Document) -> float:
    length: float = difference["until_unix_s"] - difference["at_unix_s"]
    return length


def _when(unix_s: float) -> str:
    return f"{datetime.fromtimestamp(unix_s):%m-%d %H:%M:%S}"

# SPDX-License-Identifier: GPL-2.0-only
"""`replay --history`: runs a policy on the history of a volume. I/O: reads the history."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from ebbgate.cli import format
from ebbgate.cli.context import Context, Document, duration_of, emit
from ebbgate.policy_files.validation import named
from ebbgate.probes.topology import find
from ebbgate.replay import history
from ebbgate.replay.compare import Difference, DryRun, dry_run_to_json
from ebbgate.replay.history import Subject
from ebbgate.units import NS_PER_S

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
    length_ns = duration_of("--since", since or DEFAULT, "for example --since 24h")
    found = find(context.sysfs, volume)
    subject = Subject.of(found)
    folder, until_ns = context.config.policy_dir, context.wall_ns()
    # SQLite takes no larger number; a longer time is all of the history.
    since_ns = max(0, until_ns - length_ns)
    both = (
        named(policy, folder),
        named(against, folder) if against else history.compared_with(None, subject, folder),
    )
    path = context.config.history_path
    run = history.run(path, subject, both, since_ns, until_ns)
    names = {"volume": found.name, "policy": both[0].name, "against": both[1].name}
    document = {**names, **dry_run_to_json(run)}
    emit(context, document, lambda page, drawn: _draw(page, drawn, run))


def _draw(page: Page, names: Document, run: DryRun) -> None:
    since, until = _when(run.from_unix_ns), _when(run.until_unix_ns)
    page.line(
        f"{names['volume']} from {since} to {until} UTC: {run.frames} samples,"
        f" {format.ratio(run.coverage_ratio)} of the time; {names['against']} -> {names['policy']}"
    )
    page.gap()
    _draw_differences(page, run)
    page.gap()
    before, after = run.destage_ns
    draw_gates(page, (names["against"], before), (names["policy"], after))
    page.gap()
    for note in run.notes:
        page.line(f"- {note}", "dim")


def _draw_differences(page: Page, run: DryRun) -> None:
    if not run.differences:
        page.line("no difference", "green")
        return
    longest = sorted(run.differences, key=_length_ns, reverse=True)[:_SHOWN_MAX]
    rows: list[tuple[Cell, ...]] = [
        (
            _when(each.at_unix_ns),
            format.span(_length_ns(each)),
            each.setting,
            f"{each.before} -> {each.after} ({each.why_after})",
        )
        for each in sorted(longest, key=lambda each: each.at_unix_ns)
    ]
    page.table(("AT (UTC)", "FOR", "SETTING", "CHANGE"), rows)
    left = len(run.differences) - len(rows) + run.left_out
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


def _length_ns(difference: Difference) -> int:
    return difference.until_unix_ns - difference.at_unix_ns


def _when(unix_ns: int) -> str:
    return f"{datetime.fromtimestamp(unix_ns / NS_PER_S, UTC):%m-%d %H:%M:%S}"

# SPDX-License-Identifier: GPL-2.0-only
"""`report`: what was changed over a time and what it gained; export. I/O: reads the history."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from ebbgate.cli import format
from ebbgate.cli.context import Context, Document, emit, with_context
from ebbgate.cli.export import csv_figures, write_rows
from ebbgate.errors import NotFound, UsageError
from ebbgate.probes.dm_status import lvm_dm_name
from ebbgate.probes.topology import find
from ebbgate.store.report_queries import ReportHistory
from ebbgate.store.rollup import bucket_ns
from ebbgate.store.summary import summarize
from ebbgate.units import HOUR_NS, NS_PER_S, parse_duration_ns

if TYPE_CHECKING:
    from ebbgate.cli.page import Page

EXPORTS: Final = ("samples", "decisions", "actions")
_DATE: Final = re.compile(r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?$")
_HINT: Final = "write for example --since 7d, 12h, 90min, 2026-11-01 or 2026-11-01T08:30 (UTC)"
_LEVELS: Final = "▁▂▃▄▅▆▇█"


@click.command()
@click.option(
    "--since",
    default="7d",
    show_default=True,
    help="Start: a time back such as 12h, or a date (UTC).",
)
@click.option("--volume", help="Report only on this volume.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "csv"]), help="Format of the output."
)
@click.option(
    "--export",
    type=click.Choice(EXPORTS),
    help="Export these rows of the history as csv or json instead.",
)
@with_context
def report(
    context: Context, since: str, volume: str | None, form: str | None, export: str | None
) -> None:
    """Summarize what ebbgate changed on each volume and what it gained.

    The report starts at a full hour. Figures that were not measured are shown as unknown, not as
    zero. Latencies are compared only if there was enough load both with and without tuning.
    """
    if context.json and form not in (None, "json"):
        raise UsageError(f"--json and --format {form} do not go together", "leave one of them out")
    now_ns = context.wall_ns()
    since_ns = since_unix_ns(since, now_ns)
    context.json = context.json or form == "json"
    with ReportHistory.open(context.config.history_path) as review:
        names = _names(context, review, volume)
        if export is not None:
            _export(review, export, names, (since_ns, now_ns), as_json=_json(context, form, export))
            return
        since_ns = bucket_ns(since_ns, HOUR_NS)
        with review.one_snapshot():
            found = [_volume(review, name, since_ns, now_ns) for name in names]
    document = {"since_unix_ns": since_ns, "until_unix_ns": now_ns, "volumes": found}
    if form == "csv":
        csv_figures(found, sys.stdout)
    else:
        emit(context, document, _draw)


def since_unix_ns(text: str, now_ns: int) -> int:
    """Parse the start: `7d` or a date. Raises UsageError."""
    if _DATE.match(text):
        try:
            at_ns = round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * NS_PER_S)
        except ValueError as error:
            raise UsageError(f"--since: not a valid date: {text}", _HINT) from error
    else:
        try:
            at_ns = now_ns - parse_duration_ns(text)
        except ValueError as error:
            raise UsageError(f"--since: not a time or a date: {text!r}", _HINT) from error
    if at_ns >= now_ns:
        raise UsageError(f"--since: {text} is not in the past", _HINT)
    return max(0, at_ns)


def _json(context: Context, form: str | None, export: str) -> bool:
    if form == "text":
        raise UsageError(f"--export {export} cannot be printed as text", "use --format csv or json")
    return context.json


def _names(context: Context, review: ReportHistory, volume: str | None) -> list[str]:
    """Return the names of the volumes to report on; they may no longer exist."""
    known = review.volumes()
    if volume is None:
        return known
    plain = volume.removeprefix("/dev/").removeprefix("mapper/")
    name = next((each for each in (plain, lvm_dm_name(plain)) if each in known), "")
    if not name:
        try:
            name = find(context.sysfs, volume).name
        except NotFound:
            name = ""
    if name not in known:
        recorded = (
            f"recorded volumes: {', '.join(known)}" if known else "no volume was recorded yet"
        )
        raise NotFound(f"the history has no records of {volume}", recorded)
    return [name]


def _volume(review: ReportHistory, name: str, since_ns: int, until_ns: int) -> dict[str, Any]:
    figures = summarize(
        review.rows(name, since_ns, until_ns),
        review.tallies(name, since_ns, until_ns),
        review.overrides(name, since_ns, until_ns),
        since_ns,
        until_ns,
    )
    return {"volume": name, **figures}


def _export(
    review: ReportHistory, kind: str, names: list[str], time_ns: tuple[int, int], *, as_json: bool
) -> None:
    rows = (
        row
        for name in names
        for row in (
            review.samples(name, *time_ns)
            if kind == "samples"
            else review.events(kind, name, *time_ns)
        )
    )
    write_rows(kind, rows, sys.stdout, as_json=as_json)


# ---- text ----------------------------------------------------------------------------------------
def _draw(page: Page, document: Document) -> None:
    since, until = (
        format.utc_time(document["since_unix_ns"]),
        format.utc_time(document["until_unix_ns"]),
    )
    length_s = (document["until_unix_ns"] - document["since_unix_ns"]) / NS_PER_S
    if not document["volumes"]:
        page.line(f"nothing was recorded from {since} to {until} UTC")
    for number, volume in enumerate(document["volumes"]):
        if number:
            page.gap()
        page.heading(volume["volume"], f"{since} to {until} UTC")
        page.line(_recorded(volume, length_s), indent=2)
        _draw_done(page, volume["done"])
        _draw_brought(page, volume["brought"])


def _recorded(volume: Document, length_s: float) -> str:
    if not volume["recorded_s"]:
        return "nothing was recorded in this time"
    modes = ", ".join(
        f"{mode} {format.ratio(spent / length_s)}" for mode, spent in volume["mode_s"].items()
    )
    return (
        f"recorded {format.ratio(min(1.0, volume['recorded_s'] / length_s))} of the time: {modes}"
    )


def _draw_done(page: Page, done: Document) -> None:
    page.gap()
    page.heading("What ebbgate did")
    page.table(
        ("BY", "KNOB", "WRITES"),
        [(row["strategy"], row["knob"], _counts(row["outcomes"])) for row in done["writes"]],
    )
    gaps, destaged, streams = done["gaps"], done["destaged"], done["streams"]
    pressure = f", {gaps['pressure']} times under pressure" if gaps["pressure"] else ""
    page.facts(
        [
            *([] if done["writes"] else [("knobs", "none changed")]),
            (
                "gaps",
                f"{gaps['seen']} seen, {format.span(gaps['length_ns'])} in total; "
                f"{gaps['used']} used{pressure}",
            ),
            (
                "written back",
                f"{_known(destaged['in_gaps_bytes'])} in gaps, "
                f"{_known(destaged['under_load_bytes'])} under load",
            ),
            (
                "streams",
                f"kept out {streams['kept_out']} times; {_known(streams['bypassed_bytes'])} "
                "bypassed the cache",
            ),
            *(("changed by others", _override(each)) for each in done["overrides"]),
        ]
    )


def _draw_brought(page: Page, brought: Document) -> None:
    dirty = brought["dirty"]
    page.gap()
    page.heading("What it gained")
    page.facts(
        [
            ("dirty data", spark(dirty["series_bytes"])),
            ("", f"mean {_known(dirty['mean_bytes'])}, maximum {_known(dirty['most_bytes'])}"),
            ("clean", _share(dirty["clean_ratio"], "of the time")),
            ("hit ratio", _share(brought["hit_ratio"], "of reads")),
        ]
    )
    page.table(
        ("P99 OF", "NOT TUNED", "TUNED", "REQUESTS"),
        [
            (row["path"], *(_side(row[side]) for side in ("untouched", "tuned")), _requests(row))
            for row in brought["latency"]
        ],
    )
    if not brought["latency"]:
        page.line("latency: unknown, too little load was recorded", indent=2)


def spark(series_bytes: list[float | None]) -> str:
    """`▁▂█?`: the level over time, relative to the highest; `?` where it is unknown."""
    most = max((each for each in series_bytes if each is not None), default=0) or 1
    top = len(_LEVELS) - 1
    return "".join(
        "?" if each is None else _LEVELS[round(each / most * top)] for each in series_bytes
    )


def _counts(outcomes: Document) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())


def _override(override: Document) -> str:
    at = format.utc_time(override["at_unix_ns"])
    return f"{override['knob']} at {at}: {override['found']}; left alone since then"


def _side(found: Document | None) -> str:
    return "unknown" if found is None else format.span(found["p99_ns"])


def _requests(row: Document) -> str:
    counts = [str(row[side]["ios"]) if row[side] else "too few" for side in ("untouched", "tuned")]
    return " / ".join(counts)


def _known(count_bytes: float | None) -> str:
    return "unknown" if count_bytes is None else format.size(count_bytes)


def _share(ratio: float | None, of_what: str) -> str:
    return "unknown" if ratio is None else f"{format.ratio(ratio)} {of_what}"

# SPDX-License-Identifier: GPL-2.0-only
"""Prints the report of `doctor`. I/O: stdout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ebbgate.cli import format
from ebbgate.cli.context import Document
from ebbgate.cli.daemon_status import Link
from ebbgate.cli.status import draw_daemon, draw_hidden
from ebbgate.model.volume import Volume

if TYPE_CHECKING:
    from ebbgate.cli.page import Cell, Page

_COLOURS: Final = {"fault": "bold red", "advice": "yellow", "note": "cyan"}
_TOUCH: Final = {
    "tuned": "tuned in enforce",
    "shown": "read only by ebbgate",
    "manual": "left alone: changed by someone else",
    "read-only": "needs root",
}


def draw(
    page: Page, document: Document, link: Link, volumes: Iterable[Volume], *, all_knobs: bool
) -> None:
    """Print the machine first, then each volume, then those that are not here."""
    _probe(page, document)
    page.gap()
    _cost(page, document["cost"])
    page.gap()
    page.heading("Daemon")
    draw_daemon(page, link, indent=2)
    if not document["volumes"]:
        page.gap()
        page.line(format.NO_VOLUME)
    draw_hidden(page, document)
    for volume, found in zip(volumes, document["volumes"], strict=True):
        page.gap()
        _volume(page, volume, found, link, all_knobs=all_knobs)
    for found in document["absent"]:
        page.gap()
        page.heading(found["volume"], "not here")
        for advice in found["advice"]:
            _advice(page, found, advice)


def _probe(page: Page, document: Document) -> None:
    probe, kernel = document["probe"], document["kernel"]
    page.heading("Signals", f"kernel {kernel['release']}, {probe['program']} {probe['version']}")
    if not probe["ok"]:
        page.line(probe["text"], "red", indent=2)
    if probe["kind"] == "bcc":
        page.line("this kernel has no BTF type information: the bcc probe runs", indent=2)
        page.line("it does not tell which cgroups and files miss the cache", indent=2)
    elif not kernel["btf"]:
        page.line(
            "this kernel has no BTF type information (CONFIG_DEBUG_INFO_BTF)", "red", indent=2
        )
    if kernel["lockdown"] and "locked down" not in probe["text"]:
        page.line(f"this kernel is locked down (lockdown={kernel['lockdown']})", indent=2)
    rows: list[tuple[Cell, ...]] = [
        (name, ("ok", "green")) if word == "ok" else (name, (word, "yellow"))
        for name, word in probe["signals"].items()
    ]
    page.table(("SIGNAL", "STATE"), rows)


def _cost(page: Page, cost: Document) -> None:
    page.heading("Cost per event")
    if cost["why"]:
        page.line(cost["why"], indent=2)
        return
    window = cost["window_ns"]
    when = f"in {format.span(window)}" if window else "since counting began"
    page.line(
        f"{format.span(cost['ns_per_run'])} per run, {cost['runs']} runs {when}; "
        f"counting itself adds about {cost['empty_run_ns']} ns",
        indent=2,
    )
    page.table(
        ("PROGRAM", "RUNS", "PER RUN"),
        [
            (
                program["name"] or f"program {program['id']}",
                str(program["runs"]),
                format.span(program["ns_per_run"]),
            )
            for program in cost["programs"]
            if program["runs"]
        ],
        right=("RUNS", "PER RUN"),
    )


def _volume(page: Page, of: Volume, volume: Document, link: Link, *, all_knobs: bool) -> None:
    mode = volume["mode"] or ("mode unknown" if link.alive is None else "not managed")
    headline = f"{volume['kind']} {volume['cache_mode'] or ''}, {volume['state'] or '?'} - {mode}"
    page.heading(volume["title"], headline)
    backing, caches = format.device(of.backing), format.caches(of)
    page.facts([("backing device", backing), ("cache device", caches)])
    if all_knobs:
        page.table(("KNOB", "VALUE", "EBBGATE"), _knobs(volume))
    else:
        tuned = sum(knob["touch"] == "tuned" for knob in volume["knobs"])
        page.line(
            f"{len(volume['knobs'])} knobs, {tuned} of them tuned (list them: --knobs)", indent=2
        )
    if any(knob["owner"] == "unknown" for knob in volume["knobs"]):
        step = "see journalctl -u ebbgated" if link.alive else "run this as root"
        page.line(f"no advice on knobs that ebbgate may have set: {step}", indent=2)
    elif not volume["advice"]:
        page.line("no problems found", "green", indent=2)
    for advice in volume["advice"]:
        _advice(page, volume, advice)


def _advice(page: Page, volume: Document, advice: Document) -> None:
    page.line(
        f"{advice['id']} {advice['severity']}: {advice['text']}",
        _COLOURS[advice["weight"]],
        indent=2,
    )
    if advice["evidence"]:
        page.line(f"Measured: {advice['evidence']}.", indent=4)
    if advice["effect"]:
        page.line(f"Effect: {advice['effect']}.", indent=4)
    if advice["command"]:
        page.command(advice["command"], indent=6)
    if advice["apply"]:
        page.command(f"sudo ebbgate apply {advice['id']} {volume['title']}", indent=6)
    if advice["lasts"]:
        page.line(advice["lasts"], indent=4)
    if advice["keep"]:
        page.command(advice["keep"], indent=6)
    if advice["undo"]:
        page.line("To undo:", indent=4)
        page.command(advice["undo"], indent=6)


def _knobs(volume: Document) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for knob in volume["knobs"]:
        touch = _TOUCH[knob["touch"]]
        if knob["original"] is not None:
            touch = f"set by ebbgate; original {format.knob_value(knob['name'], knob['original'])}"
        value = format.knob_value(knob["name"], knob["value"])
        rows.append((knob["name"], value, (touch, "" if knob["touch"] == "tuned" else "dim")))
    return rows

# SPDX-License-Identifier: GPL-2.0-only
"""`status`: every volume in one line and one sentence, or one volume in full. I/O: reads only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ebbgate.cli import dm_view, format
from ebbgate.cli.context import Context, json_option
from ebbgate.cli.daemon_status import look
from ebbgate.cli.output import Document, emit
from ebbgate.cli.snapshot import daemon_document, volume_document
from ebbgate.doctor import device_mapper
from ebbgate.model.volume import Kind
from ebbgate.policy import ADAPTIVE
from ebbgate.probes.topology import discover, find
from ebbgate.store.write_health import log_complaint

if TYPE_CHECKING:
    from ebbgate.cli.page import Page


@click.command()
@click.argument("volume", required=False)
@json_option
@click.pass_obj
def status(context: Context, volume: str | None) -> None:
    """What each volume does now, and what ebbgate does about it; VOLUME: one in full.

    Without a running daemon it shows what the kernel's own files say.
    """
    volumes = (find(context.sysfs, volume),) if volume else discover(context.sysfs)
    link = look(context)
    document: dict[str, Any] = {
        "daemon": daemon_document(link),
        **hidden_document(context),
        "volumes": [volume_document(context, link, each) for each in volumes],
    }
    emit(context, document, _draw_one if volume else _draw_all)


def _draw_all(page: Page, document: Document) -> None:
    if not document["volumes"]:
        page.line(format.NO_VOLUME)
    for number, volume in enumerate(document["volumes"]):
        if number:
            page.gap()
        _overview(page, volume)
    draw_hidden(page, document)
    page.gap()
    draw_daemon(page, document["daemon"])


def _overview(page: Page, volume: Document) -> None:
    page.heading(volume["title"], _headline(volume))
    page.table(
        ("IN USE", "", "DIRTY", "FULL IN", "CLEAN IN", "DESTAGE"),
        [
            (
                format.ratio(volume["in_use_ratio"]),
                format.bar(volume["in_use_ratio"], format.limits(volume), cells=20),
                format.size(volume["dirty_bytes"]),
                format.seconds(volume.get("time_to_full_s")),
                format.seconds(volume.get("time_to_clean_s")),
                format.gate(volume.get("gate")),
            )
        ],
        right=("IN USE",),
    )
    draw_sentence(page, volume)


def _draw_one(page: Page, document: Document) -> None:
    (volume,) = document["volumes"]
    page.heading(volume["title"], _headline(volume))
    draw_sentence(page, volume)
    page.gap()
    page.facts(_facts(volume))
    _paths(page, volume)
    _held_knobs(page, volume)
    _missing(page, volume)
    page.gap()
    draw_daemon(page, document["daemon"])


def _headline(volume: Document) -> str:
    mode = volume["mode"] or "no daemon"
    held = ", held" if volume.get("held") else ""
    policy = volume.get("policy")
    rules = f", {format.policy(volume)}" if policy and policy != ADAPTIVE else ""
    regime = volume.get("regime")
    load = f", {regime}" if regime and regime != "unknown" else ""
    return f"{volume['kind']} {volume['cache_mode'] or ''} - {mode}{held}{rules}{load}"


def draw_sentence(page: Page, volume: Document) -> None:
    """What happens now, and whether the kernel's own thread still sleeps through it."""
    page.line(_sentence(volume), indent=2)
    for wish in volume.get("wishes") or ():
        page.line(f"wish: {format.wish(wish)}", "cyan", indent=2)
    asleep = volume.get("kernel_sleep")
    if asleep:
        page.line(asleep["text"], "yellow", indent=2)


def _sentence(volume: Document) -> str:
    if volume["live"]:
        return str(volume.get("now") or "followed; nothing decided yet")
    if not volume["caches"]:
        return "no cache is attached: there is nothing to tune"
    return f"{volume['state'] or 'state unknown'}; not followed, the kernel's own settings hold"


def _facts(volume: Document) -> list[tuple[str, str]]:
    limits = format.limits(volume)
    level = f"{format.ratio(volume['in_use_ratio'])} of {format.size(volume['cache_bytes'])} in use"
    caches = ", ".join(format.device(device) for device in volume["caches"]) or "none"
    facts = [
        ("backing device", format.device(volume["backing"])),
        ("cache device", caches),
        ("cache", f"{format.bar(volume['in_use_ratio'], limits, cells=30)} {level}"),
        *_limits(volume, limits),
        ("dirty", format.size(volume["dirty_bytes"])),
        *(dm_view.facts(volume["mapping"]) if "mapping" in volume else ()),
    ]
    if not volume["live"]:
        return facts
    wait = f"{format.span(volume.get('wait_ns'))} of quiet"
    return [
        *facts,
        ("full in", format.seconds(volume.get("time_to_full_s"))),
        ("clean in", format.seconds(volume.get("time_to_clean_s"))),
        ("foreground", format.load(volume.get("foreground"))),
        ("destage", f"{format.gate(volume.get('gate'))}, opens after {wait}"),
    ]


def _limits(volume: Document, limits: tuple[float, float]) -> list[tuple[str, str]]:
    """bcache alone stops caching writes at a level."""
    if volume["kind"] != Kind.BCACHE:
        return []
    levels = f"{format.ratio(limits[0])} (asynchronous), {format.ratio(limits[1])} (synchronous)"
    return [("", f"┆ writes cached to {levels}")]


def _paths(page: Page, volume: Document) -> None:
    paths = [path for path in volume.get("paths", ()) if path["ios"]]
    if not paths:
        return
    page.gap()
    page.table(
        ("PATH", "", "REQUESTS", "BYTES", "P50", "P99"),
        [
            (
                path["op"],
                path["path"],
                str(path["ios"]),
                format.size(path["bytes"]),
                format.span(path["p50_ns"]),
                format.span(path["p99_ns"]),
            )
            for path in paths
        ],
        right=("REQUESTS", "BYTES", "P50", "P99"),
    )


def _held_knobs(page: Page, volume: Document) -> None:
    """Only what is not the kernel's: `doctor` lists all of them."""
    rows = [
        (
            name,
            format.knob_value(name, knob["value"]),
            format.knob_value(name, knob["original"]),
            knob["owner"],
        )
        for name, knob in volume["knobs"].items()
        if knob["owner"] != "kernel"
    ]
    if rows:
        page.gap()
        page.table(("KNOB", "NOW", "ORIGINAL", "OWNER"), rows)


def _missing(page: Page, volume: Document) -> None:
    for signal, why in (volume.get("missing") or {}).items():
        page.line(f"unknown: {signal} ({why})", "yellow", indent=2)
    for what, count in (volume.get("lost") or {}).items():
        if count:
            page.line(f"lost: {count} {what}", "yellow", indent=2)


def hidden_document(context: Context) -> dict[str, Any]:
    """Whether this process cannot see mapped volumes, and why, with the next step."""
    why = context.sysfs.dm.blocked()
    root = context.euid() == 0
    return {
        "hidden": bool(why),
        "hidden_why": device_mapper.of_this_process(why, root=root) if why else None,
    }


def draw_hidden(page: Page, document: Document) -> None:
    """Volumes that there may be, and that this process cannot see."""
    if document["hidden"]:
        page.line(document["hidden_why"], "yellow")


def draw_daemon(page: Page, daemon: Document, *, indent: int = 0) -> None:
    """One line on the daemon, and a warning where it left knobs behind."""
    if daemon["alive"] and not daemon["answers"]:
        text = f"ebbgated (pid {daemon['pid']}) does not answer. See: journalctl -u ebbgated"
        page.line(text, "bold red", indent=indent)
    elif daemon["alive"]:
        probe = daemon.get("probe") or {}
        state = f"probe {probe.get('kind', '?')}: {probe.get('state', 'unknown')}"
        page.line(
            f"daemon {daemon.get('version', '')} (pid {daemon['pid']}), {state}",
            "dim",
            indent=indent,
        )
        if why := daemon.get("device_mapper"):
            page.line(device_mapper.of_daemon(why), "bold red", indent=indent)
        lost = (daemon.get("history") or {}).get("dropped")
        if lost:
            text = f"{lost} records of the history are lost: it could not be written for a time"
            page.line(f"{text} ({daemon['history']['trouble']['why']})", "yellow", indent=indent)
        complaint = log_complaint(daemon.get("history") or {})
        if complaint:
            page.line(complaint, "yellow", indent=indent)
    else:
        text = "no daemon: nothing is measured. Start it: systemctl start ebbgated"
        page.line(text, "yellow", indent=indent)
    _draw_policies(page, daemon.get("policies") or {})
    if daemon.get("intents_error"):
        text = f"requests are not accepted, or not kept: {daemon['intents_error']}"
        page.line(text, "bold red", indent=indent)
    if daemon["left_behind"]:
        count = len(daemon["left_behind"])
        text = f"{count} knobs still hold values of ebbgate. Run: ebbgate restore"
        page.line(text, "bold red", indent=indent)


def _draw_policies(page: Page, policies: Document) -> None:
    """Files that are not right, all of them: no other place would tell."""
    problems = policies.get("problems") or ()
    if not problems:
        return
    kept = "the last good policies hold" if policies["kept"] else "nothing is tuned until they are"
    page.line(f"policies in {policies['folder']} are not right: {kept}", "bold red")
    for problem in problems:
        page.line(problem, "red", indent=2)

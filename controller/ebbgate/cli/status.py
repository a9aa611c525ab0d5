# SPDX-License-Identifier: GPL-2.0-only
"""`status`: a summary of all volumes, or one volume in detail. I/O: reads only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ebbgate.cli import format
from ebbgate.cli.context import Context, json_option
from ebbgate.cli.daemon_status import look
from ebbgate.cli.output import Document, emit
from ebbgate.cli.snapshot import daemon_document, volume_document
from ebbgate.doctor.remedy import device_mapper_text
from ebbgate.model.volume import Kind
from ebbgate.policy import ADAPTIVE
from ebbgate.probes.topology import discover, find
from ebbgate.store.write_health import log_warning

if TYPE_CHECKING:
    from ebbgate.cli.page import Page


@click.command()
@click.argument("volume", required=False)
@json_option
@click.pass_obj
def status(context: Context, volume: str | None) -> None:
    """Show what each volume does now and what ebbgate does; VOLUME: one in detail.

    Without a running daemon it shows only what the kernel reports.
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
        ("IN USE", "", "DIRTY", "FULL IN", "CLEAN IN", "WRITE-BACK"),
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
    frozen = ", on hold" if volume.get("frozen") else ""
    policy = volume.get("policy")
    rules = f", {format.policy(volume)}" if policy and policy != ADAPTIVE else ""
    regime = volume.get("regime")
    load = f", {regime}" if regime and regime != "unknown" else ""
    return f"{volume['kind']} {volume['cache_mode'] or ''} - {mode}{frozen}{rules}{load}"


def draw_sentence(page: Page, volume: Document) -> None:
    """Print what happens now, active overrides, and whether the kernel's thread still sleeps."""
    page.line(_sentence(volume), indent=2)
    for override in volume.get("overrides") or ():
        page.line(f"override: {format.override(override)}", "cyan", indent=2)
    asleep = volume.get("kernel_sleep")
    if asleep:
        page.line(asleep["text"], "yellow", indent=2)


def _sentence(volume: Document) -> str:
    if volume["live"]:
        return str(volume.get("now") or "measuring; no decision yet")
    if not volume["caches"]:
        return "no cache attached: nothing to tune"
    state = volume["state"] or "state unknown"
    return f"{state}; not managed by ebbgated, the kernel's settings apply"


def _facts(volume: Document) -> list[tuple[str, str]]:
    limits = format.limits(volume)
    level = f"{format.ratio(volume['in_use_ratio'])} of {format.size(volume['cache_bytes'])} in use"
    caches = ", ".join(format.device(device) for device in volume["caches"]) or "none"
    facts = [
        ("backing device", format.device(volume["backing"])),
        ("cache device", caches),
        ("cache", f"{format.bar(volume['in_use_ratio'], limits, cells=30)} {level}"),
        *_limits(volume, limits),
        ("dirty data", format.size(volume["dirty_bytes"])),
        *(_dm_facts(volume["mapping"]) if "mapping" in volume else ()),
    ]
    if not volume["live"]:
        return facts
    wait = f"{format.span(volume.get('wait_ns'))} without user I/O"
    return [
        *facts,
        ("full in", format.seconds(volume.get("time_to_full_s"))),
        ("clean in", format.seconds(volume.get("time_to_clean_s"))),
        ("user I/O", format.load(volume.get("foreground"))),
        ("write-back", f"{format.gate(volume.get('gate'))}, starts after {wait}"),
    ]


def _limits(volume: Document, limits: tuple[float, float]) -> list[tuple[str, str]]:
    """Describe the levels at which bcache, and only bcache, stops caching writes."""
    if volume["kind"] != Kind.BCACHE:
        return []
    levels = f"{format.ratio(limits[0])} (asynchronous), {format.ratio(limits[1])} (synchronous)"
    return [("", f"┆ writes cached to {levels}")]


def _dm_facts(mapping: Document) -> list[tuple[str, str]]:
    """Return names, metadata and the kernel's counters of a dm volume."""
    found = [("names", ", ".join(_dm_names(mapping)))]
    status = mapping["status"]
    if status is None:
        return found
    if "policy" not in status:
        counters = {name.replace("_", " "): count for name, count in status["counters"]}
        return [*found, *_counted({"under writeback": status["under_writeback"], **counters})]
    metadata = format.device(mapping["metadata"]) if mapping["metadata"] else format.UNKNOWN
    used, total = status["metadata_used"], status["metadata_total"]
    return [
        *found,
        ("metadata", f"{metadata}, {format.ratio(used / total if total else None)} used"),
        ("policy", f"{_dm_policy(status)}, blocks of {format.size(status['block_bytes'])}"),
        ("reads", f"{_hits(status, 'read')} since the metadata was made"),
        ("writes", _hits(status, "write")),
        ("moved", f"{status['promotions']} promotions, {status['demotions']} demotions since the "
                  "table was loaded"),
    ]  # fmt: skip


def _dm_names(mapping: Document) -> list[str]:
    """Return the names in LVM, device-mapper and the kernel."""
    known = (mapping["lvm_name"], mapping["dm_name"], mapping["kernel_name"])
    return [name for name in known if name]


def _dm_policy(status: Document) -> str:
    """Name the cache policy; for `mq` in the table the kernel runs smq."""
    return "smq (as mq)" if status["policy"] == "mq" else str(status["policy"])


def _hits(status: Document, way: str) -> str:
    hits, misses = status[f"{way}_hits"], status[f"{way}_misses"]
    if not hits + misses:
        return "none"
    return f"{format.ratio(hits / (hits + misses))} hits of {hits + misses}"


def _counted(counters: Mapping[str, int]) -> list[tuple[str, str]]:
    text = ", ".join(f"{count} {name}" for name, count in counters.items())
    return [("counters", f"{text} (blocks)")] if text else []


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
    """Print knobs that ebbgate or a person has set; `doctor` lists all."""
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
        page.line(f"not measured: {signal} ({why})", "yellow", indent=2)
    for what, count in (volume.get("lost") or {}).items():
        if count:
            page.line(f"lost: {count} {what}", "yellow", indent=2)


def hidden_document(context: Context) -> dict[str, Any]:
    """Return whether dm volumes are hidden from this process, and why."""
    why = context.sysfs.dm.blocked()
    if not why:
        return {"hidden": False, "hidden_why": None}
    root = context.euid() == 0
    step = "run this where /dev/mapper/control can be opened" if root else "run this as root"
    volumes = "dm-cache and dm-writecache volumes, if any, are not shown"
    return {"hidden": True, "hidden_why": f"cannot query device-mapper ({why}): {volumes}; {step}"}


def draw_hidden(page: Page, document: Document) -> None:
    """Say that this process cannot see dm volumes."""
    if document["hidden"]:
        page.line(document["hidden_why"], "yellow")


def draw_daemon(page: Page, daemon: Document, *, indent: int = 0) -> None:
    """Print the state of the daemon and its problems."""
    if daemon["alive"] and not daemon["answers"]:
        text = (
            f"ebbgated (pid {daemon['pid']}) does not answer; see its log: journalctl -u ebbgated"
        )
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
            page.line(device_mapper_text(why), "bold red", indent=indent)
        lost = (daemon.get("history") or {}).get("dropped")
        if lost:
            text = f"{lost} records of the history were lost: it could not be written for a time"
            page.line(f"{text} ({daemon['history']['trouble']['why']})", "yellow", indent=indent)
        complaint = log_warning(daemon.get("history") or {})
        if complaint:
            page.line(complaint, "yellow", indent=indent)
    else:
        text = "ebbgated is not running: nothing is measured; start it: systemctl start ebbgated"
        page.line(text, "yellow", indent=indent)
    _draw_policies(page, daemon.get("policies") or {})
    if daemon.get("intents_error"):
        text = f"changes are not possible, or are lost at a restart: {daemon['intents_error']}"
        page.line(text, "bold red", indent=indent)
    if daemon["left_behind"]:
        count = len(daemon["left_behind"])
        text = f"{count} knobs still have values from ebbgate; restore them: ebbgate restore"
        page.line(text, "bold red", indent=indent)


def _draw_policies(page: Page, policies: Document) -> None:
    """Print all errors in policy files; nothing else shows them."""
    problems = policies.get("problems") or ()
    if not problems:
        return
    effect = (
        "the last valid ones apply" if policies["kept"] else "nothing is tuned until they are fixed"
    )
    page.line(f"errors in the policies in {policies['folder']}: {effect}", "bold red")
    for problem in problems:
        page.line(problem, "red", indent=2)

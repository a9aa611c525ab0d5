# SPDX-License-Identifier: GPL-2.0-only
"""`status`: a summary of all volumes, or one volume in detail. I/O: reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from ebbgate.cli import format
from ebbgate.cli.context import Context, Document, emit, volume_argument, with_context
from ebbgate.cli.daemon_status import Link, look
from ebbgate.cli.snapshot import VolumeView, daemon_document, hidden_document, view_volume
from ebbgate.doctor.remedy import device_mapper_text, forget_command
from ebbgate.model import forecast
from ebbgate.model.decision import DISK_QUEUE
from ebbgate.model.dm import CacheStatus, WritecacheStatus
from ebbgate.model.frame import Regime
from ebbgate.model.status import DaemonStatus, PolicyFilesStatus, VolumeStatus
from ebbgate.model.volume import Kind, Volume
from ebbgate.policy import ADAPTIVE
from ebbgate.probes.topology import discover, find
from ebbgate.store.write_health import log_warning
from ebbgate.units import MINUTE_NS

if TYPE_CHECKING:
    from ebbgate.cli.page import Page

_MISSED_BY_MAX: Final = 5
_JOBS_SHOWN: Final = 4
MODELLED: Final = "hits (model)"
"""How the hit ratios of the miss-ratio curve are called."""


@click.command()
@volume_argument(required=False)
@with_context
def status(context: Context, volume: str | None) -> None:
    """Show what each volume does now and what ebbgate does; VOLUME: one in detail.

    Without a running daemon it shows only what the kernel reports.
    """
    volumes = (find(context.sysfs, volume),) if volume else discover(context.sysfs)
    link = look(context)
    views = [view_volume(context, link, each) for each in volumes]
    document: dict[str, Any] = {
        "daemon": daemon_document(link),
        **hidden_document(context),
        "volumes": [each.document() for each in views],
    }

    def draw(page: Page, drawn: Document) -> None:
        if volume:
            _draw_one(page, views[0])
        else:
            _draw_all(page, views)
            draw_hidden(page, drawn)
            _draw_absent(page, link.daemon or DaemonStatus())
        page.gap()
        draw_daemon(page, link)

    emit(context, document, draw)


def _draw_all(page: Page, views: Sequence[VolumeView]) -> None:
    if not views:
        page.line(format.NO_VOLUME)
    for number, view in enumerate(views):
        if number:
            page.gap()
        _overview(page, view)


def _draw_absent(page: Page, daemon: DaemonStatus) -> None:
    """Print what is kept for volumes that are not here; a command is never wrapped."""
    for absent in daemon.absent or ():
        page.gap()
        page.heading(absent.volume, f"not here: {absent.why}")
        for choice in absent.kept:
            page.line(f"kept: {format.kept(choice)}", "cyan", indent=2)
        if absent.uuid:
            page.command(f"uuid {absent.uuid}", indent=2)
        page.command(f"to drop this: sudo {forget_command(absent)}", indent=2)
    left_out = (daemon.absent_count or 0) - len(daemon.absent or ())
    if left_out > 0:
        page.gap()
        page.line(f"and {left_out} more volumes that are not here, for which something is kept")


def _overview(page: Page, view: VolumeView) -> None:
    status = view.status
    page.heading(view.volume.title, _headline(view))
    page.table(
        ("IN USE", "", "DIRTY", "FULL IN", "CLEAN IN", "WRITE-BACK"),
        [
            (
                format.ratio(status.in_use_ratio),
                format.bar(status.in_use_ratio, format.limits(status.kind, status.knobs), cells=20),
                format.size(status.dirty_bytes),
                format.seconds(forecast.time_s(status, "time_to_full_s")),
                format.seconds(forecast.time_s(status, "time_to_clean_s")),
                format.gate(status.gate),
            )
        ],
        right=("IN USE",),
    )
    draw_sentence(page, view)


def _draw_one(page: Page, view: VolumeView) -> None:
    page.heading(view.volume.title, _headline(view))
    draw_sentence(page, view)
    page.gap()
    page.facts(_facts(view))
    if view.volume.uuid:
        # For policies and settings: a uuid of LVM is as wide as a terminal.
        page.command(f"uuid {view.volume.uuid}", indent=2)
    _paths(page, view.status)
    _missed_by(page, view.status)
    _changed_knobs(page, view.status)
    draw_missing(page, view.status)
    for what, count in view.status.lost.items():
        if count:
            page.line(f"lost: {count} {what}", "yellow", indent=2)


def _headline(view: VolumeView) -> str:
    status = view.status
    mode = status.mode or view.unmanaged.mode
    frozen = ", on hold" if status.frozen else ""
    rules = f", {format.policy(status)}" if status.policy not in (None, ADAPTIVE) else ""
    load = f", {status.regime}" if status.regime not in (None, Regime.UNKNOWN) else ""
    return f"{view.volume.kind} {status.cache_mode or ''} - {mode}{frozen}{rules}{load}"


def draw_sentence(page: Page, view: VolumeView) -> None:
    """Print what happens now, active overrides, and whether the kernel's thread still sleeps."""
    page.line(_sentence(view), indent=2)
    for override in view.status.overrides:
        page.line(f"override: {format.override(override)}", "cyan", indent=2)
    jobs = [job for job in view.status.jobs if not job.state.over]
    for job in jobs[:_JOBS_SHOWN]:
        page.line(format.job(job), "cyan", indent=2)
    if len(jobs) > _JOBS_SHOWN:
        page.line(f"and {len(jobs) - _JOBS_SHOWN} more jobs: ebbgate jobs", "cyan", indent=2)
    if view.status.layout:
        page.line(format.layout(view.status.layout, view.status.at_ns), indent=2)
    for pin in view.status.pins:
        page.line(format.pin(pin), "cyan", indent=2)
    if view.status.promotion:
        page.line(format.promotion(view.status.promotion), indent=2)
    if view.status.kernel_sleep:
        page.line(view.status.kernel_sleep.text, "yellow", indent=2)


def _sentence(view: VolumeView) -> str:
    if view.live:
        return view.status.summary or "measuring; no decision yet"
    if not view.volume.caches:
        return "no cache attached: nothing to tune"
    state = view.status.state or "state unknown"
    return f"{state}; {view.unmanaged.why}"


def _facts(view: VolumeView) -> list[tuple[str, str]]:
    volume, status = view.volume, view.status
    limits = format.limits(status.kind, status.knobs)
    level = f"{format.ratio(status.in_use_ratio)} of {format.size(status.cache_bytes)} in use"
    facts = [
        ("backing device", format.device(volume.backing)),
        ("cache device", format.caches(volume)),
        ("cache", f"{format.bar(status.in_use_ratio, limits, cells=30)} {level}"),
        *_limits(volume, limits),
        ("dirty data", format.size(status.dirty_bytes)),
        *_dm_facts(volume, view.state.dm),
    ]
    if not view.live:
        return facts
    wait = f"{format.span(status.wait_ns)} without user I/O"
    return [
        *facts,
        ("disk state", format.disk_state(status)),
        ("full in", format.seconds(forecast.time_s(status, "time_to_full_s"))),
        ("clean in", format.seconds(forecast.time_s(status, "time_to_clean_s"))),
        ("user I/O", format.load(status.foreground)),
        ("write-back", f"{format.gate(status.gate)}, starts after {wait}"),
        *_disturbance(status),
        *_queue(status),
        *_hit_ratios(status),
    ]


def _queue(status: VolumeStatus) -> list[tuple[str, str]]:
    """Describe the disks' queues where the policy makes them short in gaps."""
    conditions = (each for proposal in status.proposals for each in proposal.conditions)
    queues = (each.measured for each in conditions if each.signal == DISK_QUEUE)
    return [("queue of the disks", each) for each in queues if each]


def _hit_ratios(status: VolumeStatus) -> list[tuple[str, str]]:
    modelled = status.miss_ratio
    return [(MODELLED, format.hit_ratios(modelled))] if modelled else []


def _disturbance(status: VolumeStatus) -> list[tuple[str, str]]:
    if status.disturbance_ns is None:
        return []
    longer = format.span(status.disturbance_ns)
    return [("", f"returning requests waited {longer} longer after the last one")]


def _limits(volume: Volume, limits: tuple[float, float]) -> list[tuple[str, str]]:
    """Describe the levels at which bcache, and only bcache, stops caching writes."""
    if volume.kind is not Kind.BCACHE:
        return []
    levels = f"{format.ratio(limits[0])} (asynchronous), {format.ratio(limits[1])} (synchronous)"
    return [("", f"┆ writes cached to {levels}")]


def _dm_facts(
    volume: Volume, status: CacheStatus | WritecacheStatus | None
) -> list[tuple[str, str]]:
    """Return names, metadata and the kernel's counters of a dm volume; nothing of another."""
    mapping = volume.mapping
    if mapping is None:
        return []
    names = (mapping.lvm_name, mapping.dm_name, volume.kernel_name)
    found = [("names", ", ".join(filter(None, names)))]
    if status is None:
        return found
    if isinstance(status, WritecacheStatus):
        counters = {name.replace("_", " "): count for name, count in status.counters}
        return [*found, *_counted({"under writeback": status.under_writeback, **counters})]
    metadata = format.device(volume.metadata) if volume.metadata else format.UNKNOWN
    used, total = status.metadata_used, status.metadata_total
    # For `mq` in the table the kernel runs smq.
    policy = "smq (as mq)" if status.policy == "mq" else status.policy
    return [
        *found,
        ("metadata", f"{metadata}, {format.ratio(used / total if total else None)} used"),
        ("policy", f"{policy}, blocks of {format.size(status.block_bytes)}"),
        ("reads", f"{_hits(status.read_hits, status.read_misses)} since the metadata was made"),
        ("writes", _hits(status.write_hits, status.write_misses)),
        ("moved", f"{status.promotions} promotions, {status.demotions} demotions since the "
                  "table was loaded"),
    ]  # fmt: skip


def _hits(hits: int, misses: int) -> str:
    if not hits + misses:
        return "none"
    return f"{format.ratio(hits / (hits + misses))} hits of {hits + misses}"


def _counted(counters: Mapping[str, int]) -> list[tuple[str, str]]:
    text = ", ".join(f"{count} {name}" for name, count in counters.items())
    return [("counters", f"{text} (blocks)")] if text else []


def _paths(page: Page, status: VolumeStatus) -> None:
    paths = [path for path in status.paths if path.ios]
    if not paths:
        return
    page.gap()
    page.table(
        ("PATH", "", "REQUESTS", "BYTES", "P50", "P99"),
        [
            (
                path.op,
                path.path,
                str(path.ios),
                format.size(path.bytes),
                format.span(path.p50_ns),
                format.span(path.p99_ns),
            )
            for path in paths
        ],
        right=("REQUESTS", "BYTES", "P50", "P99"),
    )


def _missed_by(page: Page, status: VolumeStatus) -> None:
    """Print whose requests missed the cache, those with the most first."""
    known = status.attribution
    if known is None or not known.observed_ns:
        return
    minutes = known.observed_ns / MINUTE_NS
    rows = [
        (kind, each.name or none, *(f"{ios / minutes:.0f}" for ios in (each.reads, each.writes)))
        for kind, found, none in (
            ("cgroup", known.cgroups, "unknown"),
            ("file", known.files, "unknown (direct I/O, metadata)"),
        )
        for each in found[:_MISSED_BY_MAX]
    ]
    if rows:
        page.gap()
        page.table(
            ("MISSED BY", "", "READS/MIN", "WRITES/MIN"), rows, right=("READS/MIN", "WRITES/MIN")
        )


def _changed_knobs(page: Page, status: VolumeStatus) -> None:
    """Print knobs that ebbgate or a person has set; `doctor` lists all."""
    rows = [
        (
            name,
            format.knob_value(name, knob.value),
            format.knob_value(name, knob.original),
            knob.owner,
        )
        for name, knob in status.knobs.items()
        if knob.owner not in ("kernel", "unknown")
    ]
    if rows:
        page.gap()
        page.table(("KNOB", "NOW", "ORIGINAL", "OWNER"), rows)


def draw_missing(page: Page, status: VolumeStatus) -> None:
    """Print which signals are unknown, and why."""
    for signal, why in status.missing.items():
        page.line(f"not measured: {signal} ({why})", "yellow", indent=2)


def draw_hidden(page: Page, document: Document) -> None:
    """Say that this process cannot see dm volumes."""
    if document["hidden"]:
        page.line(document["hidden_why"], "yellow")


def draw_daemon(page: Page, link: Link, *, indent: int = 0) -> None:
    """Print the state of the daemon and its problems."""
    status = link.daemon or DaemonStatus()
    if link.alive and not link.answers:
        text = f"ebbgated (pid {link.pid}) does not answer; see its log: journalctl -u ebbgated"
        page.line(text, "bold red", indent=indent)
    elif link.alive:
        _draw_running(page, link, status, indent)
    elif link.alive is None:
        page.line("whether ebbgated runs is unknown: run this as root", "yellow", indent=indent)
    else:
        text = "ebbgated is not running: nothing is measured; start it: systemctl start ebbgated"
        page.line(text, "yellow", indent=indent)
    _draw_policies(page, status.policies)
    if status.intents_error:
        text = f"changes are not possible, or are lost at a restart: {status.intents_error}"
        page.line(text, "bold red", indent=indent)
    if link.left_behind:
        count = len(link.left_behind)
        text = f"{count} knobs still have values from ebbgate; restore them: ebbgate restore"
        page.line(text, "bold red", indent=indent)


def draw_unknown(page: Page, link: Link, now_ns: int) -> bool:
    """Print why a list of what volumes have is not complete; return whether it is not."""
    if not link.alive or not link.answers:
        draw_daemon(page, link)
    silent = link.silent(now_ns)
    for title in silent:
        page.line(f"{title}: ebbgated does not update its status, so it is not listed", "yellow")
    return bool(silent) or not link.alive


def _draw_running(page: Page, link: Link, status: DaemonStatus, indent: int) -> None:
    probe, history = status.probe, status.history
    process = "" if link.pid is None else f" (pid {link.pid})"
    if link.lags:
        text = f"ebbgated{process} runs, but its last status is {format.span(link.age_ns)} old"
        text += ": the disk of its history may be full; see its log: journalctl -u ebbgated"
        page.line(text, "bold red", indent=indent)
        return
    state = f"probe {probe.kind or '?'}: {probe.state or 'unknown'}"
    page.line(f"daemon {status.version or ''}{process}, {state}", "dim", indent=indent)
    if status.device_mapper:
        page.line(device_mapper_text(status.device_mapper), "bold red", indent=indent)
    if history.dropped:
        why = history.trouble.why if history.trouble else "unknown"
        text = f"{history.dropped} records of the history were lost: it could not be written for"
        page.line(f"{text} a time ({why})", "yellow", indent=indent)
    if warning := log_warning(history.log):
        page.line(warning, "yellow", indent=indent)


def _draw_policies(page: Page, policies: PolicyFilesStatus) -> None:
    """Print all errors in policy files, and keys without effect; nothing else shows them."""
    for note in policies.notes or ():
        page.line(note, "yellow")
    if not policies.problems:
        return
    effect = (
        "the last valid ones apply" if policies.kept else "nothing is tuned until they are fixed"
    )
    page.line(f"errors in the policies in {policies.folder}: {effect}", "bold red")
    for problem in policies.problems:
        page.line(problem, "red", indent=2)

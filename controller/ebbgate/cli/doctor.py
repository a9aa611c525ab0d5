# SPDX-License-Identifier: GPL-2.0-only
"""`doctor`: checks machine and volumes. I/O: reads; `--measure` also writes a sysctl."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from ebbgate.cli.context import Context, Document, Seconds, emit, volume_argument, with_context
from ebbgate.cli.daemon_status import Link, look_as_far_as_allowed
from ebbgate.cli.doctor_view import draw
from ebbgate.cli.snapshot import VolumeView, daemon_document, hidden_document, view_volume
from ebbgate.doctor import cost, report, signals
from ebbgate.doctor.advice import advise, advise_on_daemon, without_repeats
from ebbgate.doctor.model import Advice, Facts
from ebbgate.errors import PermissionDenied
from ebbgate.model.status import DaemonStatus, VolumeStatus
from ebbgate.model.volume import Volume
from ebbgate.probes.disk_users import DeviceUsers, devices_in_use
from ebbgate.probes.topology import discover, find

if TYPE_CHECKING:
    from ebbgate.cli.page import Page


_SIGNALLED: Final = 128
"""Plus its number: the exit code of a program that a signal has ended, as a shell gives it."""


@click.command()
@volume_argument(required=False)
@click.option(
    "--measure",
    type=Seconds(0.1, 600),
    metavar="SECONDS",
    help="Measure for this time what each event costs the running probe (needs root).",
)
@click.option("--knobs", is_flag=True, help="List every knob, not only how many there are.")
@with_context
def doctor(context: Context, volume: str | None, measure: float | None, knobs: bool) -> None:
    """Check this machine, and VOLUME or all volumes: signals, cost, problems, recommendations.

    It changes nothing. Each finding has a number (EBB-...) that never changes its meaning.
    """
    volumes = (find(context.sysfs, volume),) if volume else discover(context.sysfs)
    probe = signals.check(context.config.probe_path)
    spent = _cost(context, measure)
    # Last: the daemon's status is valid for a few seconds only, and a measurement takes that long.
    link = look_as_far_as_allowed(context)
    document: dict[str, Any] = {
        "kernel": {
            "release": os.uname().release,
            "btf": context.sysfs.exists("/sys/kernel/btf/vmlinux"),
            "lockdown": report.lockdown(context.sysfs),
        },
        "root": context.euid() == 0,
        "probe": asdict(probe),
        "daemon": daemon_document(link),
        "cost": report.cost_document(spent),
        **hidden_document(context),
        "volumes": _volumes(context, link, volumes),
        "absent": [] if volume else _absent(link),
    }

    def show(page: Page, drawn: Document) -> None:
        draw(page, drawn, link, volumes, all_knobs=knobs or volume is not None)

    emit(context, document, show)


def device_users(context: Context) -> DeviceUsers:
    """Return what uses the devices of this machine."""
    return DeviceUsers(discover(context.sysfs), devices_in_use(context.proc))


def facts_of(context: Context, view: VolumeView, users: DeviceUsers) -> Facts:
    """Return everything that the advice on a volume is based on."""
    status = view.status if view.live else VolumeStatus()
    return report.facts(context.sysfs, view.volume, view.state, view.status.knobs, status, users)


def _volumes(context: Context, link: Link, volumes: Iterable[Volume]) -> list[dict[str, Any]]:
    users = device_users(context)
    views = [view_volume(context, link, each) for each in volumes]
    advice = without_repeats([advise(facts_of(context, view, users)) for view in views])
    return [_volume(context, view, each) for view, each in zip(views, advice, strict=True)]


def _absent(link: Link) -> list[dict[str, Any]]:
    """Return the advice on volumes that are not here."""
    found = advise_on_daemon(link.daemon or DaemonStatus())
    return [{"volume": each.about, "advice": [report.advice_document(each)]} for each in found]


def _volume(context: Context, view: VolumeView, advice: Iterable[Advice]) -> dict[str, Any]:
    document = view.document()
    return {
        **{key: document[key] for key in ("volume", "title", "kind", "mode", "backing", "caches")},
        "state": view.state.state,
        "cache_mode": view.state.cache_mode,
        "knobs": report.knob_documents(context.sysfs, view.volume, view.status.knobs),
        "advice": [report.advice_document(each) for each in advice],
    }


def _cost(context: Context, seconds: float | None) -> cost.Cost:
    if seconds is None:
        return cost.read(context.proc)
    try:
        with _ended_by_exception():
            return cost.measure(context.proc, seconds)
    except PermissionError as error:
        raise PermissionDenied("--measure needs root", "run it again with sudo") from error


@contextmanager
def _ended_by_exception() -> Iterator[None]:
    """Let signals end the program by an exception: else the kernel would go on counting."""
    # One that is ignored (nohup) stays so.
    numbers = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in numbers:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(_SIGNALLED + number)

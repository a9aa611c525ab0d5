# SPDX-License-Identifier: GPL-2.0-only
"""Advice and the doctor's report. I/O: HTTP, reads sysfs and the history."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from ebbgate.doctor import unprivileged
from ebbgate.doctor.remedy import ApplyRequest
from ebbgate.doctor.unprivileged import FreshStatus
from ebbgate.errors import EbbgateError
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.model.override import IntentKind
from ebbgate.web.models.doctor import AdviceList, DoctorReport
from ebbgate.web.places import Places
from ebbgate.web.responses import reply
from ebbgate.web.routes.declare import router
from ebbgate.web.security import client_of
from ebbgate.web.snapshot import Databases, Snapshot

_REQUESTS_MAX: Final = 1000
"""How many of the newest requests are searched for applied advice."""
_AT_ONCE: Final = 4
"""How many requests may read sysfs, so that threads are left for others: bcache's files hang for
minutes while the kernel registers a device.
"""


def routes_doctor(databases: Databases, sysfs: Sysfs, proc: Path) -> APIRouter:
    """Return the routes."""
    routes = router("doctor", 503)
    places = Places(_AT_ONCE, "other requests read the state of the devices already")

    @routes.get("/advice", summary="Advice, and what was applied", response_model=AdviceList)
    def advice(request: Request) -> Response:
        """The advice of `ebbgate doctor` that an unprivileged process can find; the rest is in
        `unknown`.
        """
        with places.hold(client_of(request.scope)):
            status = fresh_status(databases.snapshot())
            found = unprivileged.advice(sysfs, status, _apply_requests(databases), proc)
        return reply(AdviceList.read(found))

    @routes.get("/doctor", summary="Report of the doctor", response_model=DoctorReport)
    def doctor(request: Request) -> Response:
        """Kernel, probe, signals, cost and volumes, and what is missing."""
        with places.hold(client_of(request.scope)):
            found = unprivileged.doctor(sysfs, proc, fresh_status(databases.snapshot()))
        return reply(DoctorReport.read(found))

    return routes


def _apply_requests(databases: Databases) -> list[ApplyRequest]:
    """Return the advice that people applied, newest first; none if the list cannot be read."""
    try:
        with databases.history() as history:
            rows = history.intents.newest(_REQUESTS_MAX)
    except EbbgateError:
        return []
    return [
        ApplyRequest(
            str(row.args.get("id")), row.volume, row.who, row.at_unix_ns, row.resolved_unix_ns
        )
        for row in rows
        if row.kind == IntentKind.APPLY
        and row.ok
        and row.volume is not None
        and row.resolved_unix_ns is not None
    ]


def fresh_status(snapshot: Snapshot) -> FreshStatus:
    """Return the fresh statuses; nothing if the daemon is dead."""
    if not snapshot.alive:
        return FreshStatus()
    live, now_ns = snapshot.live, snapshot.now_unix_ns
    return FreshStatus(
        live.daemon.status if live.daemon and live.daemon.fresh(now_ns) else None,
        {name: each.status for name, each in live.volumes.items() if each.fresh(now_ns)},
    )

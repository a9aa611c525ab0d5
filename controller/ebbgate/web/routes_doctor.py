# SPDX-License-Identifier: GPL-2.0-only
"""Advice and the doctor's report. I/O: HTTP, reads sysfs and the history."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from starlette.responses import Response

from ebbgate.doctor import web_view
from ebbgate.doctor.web_view import Said
from ebbgate.sysfs import Sysfs
from ebbgate.web.databases import Databases, Look
from ebbgate.web.models_doctor import AdviceList, DoctorReport
from ebbgate.web.plain import build
from ebbgate.web.reply import reply
from ebbgate.web.route import answers
from ebbgate.web.shape import STALE_NS


def routes_doctor(databases: Databases, sysfs: Sysfs, proc: Path) -> APIRouter:
    """Their routes."""
    router = APIRouter(tags=["doctor"])

    @router.get("/advice", summary="What is worth doing", **answers(AdviceList))
    def advice() -> Response:
        """As `ebbgate doctor` has it, as far as a process without rights can; the rest is said to
        be unknown.
        """
        return reply(build(AdviceList, web_view.advice(sysfs, said(databases.look()))))

    @router.get("/doctor", summary="What works here", **answers(DoctorReport))
    def doctor() -> Response:
        """Kernel, probe, signals, cost and volumes, and what is missing."""
        return reply(build(DoctorReport, web_view.doctor(sysfs, proc, said(databases.look()))))

    return router


def said(look: Look) -> Said:
    """What the daemon says and is fresh; nothing of a dead one."""
    fresh = {
        name: each.document
        for name, each in look.live.items()
        if look.alive and look.now_unix_ns - each.at_unix_ns <= STALE_NS
    }
    daemon = fresh.pop("", {})
    return Said(daemon, fresh)

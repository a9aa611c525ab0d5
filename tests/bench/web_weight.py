# SPDX-License-Identifier: GPL-2.0-only
"""`web-weight`: how heavy the dashboard is in a real browser; needs no lab, but `make webui`.

The site of `web-load`: a daemon that goes on, a day of 64 volumes. Chromium opens the overview with
an empty profile several times, then keeps it open; its heap is looked at once a minute, after a
collection that is forced, and what it grew from the second minute on is said for an hour. The
variant `hour` waits for a whole one.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from statistics import linear_regression, median

from tests.bench.context import Context, Scenario
from tests.bench.report import Report
from tests.bench.web_load import UI, VOLUMES, site
from tests.lab import host
from tests.lab.errors import NoLab
from tests.programs import REPO

MINUTES, HOUR = 5, 60
LOADS = 5
BROWSER = REPO / "tests" / "browser"
NOTES = (
    "without a guest, on loopback; interactive: all 64 volumes are painted and the page is idle",
    "page_kib: all files of build/webui that the first page loads; api_kib: its answers until then",
)


def measure(context: Context) -> dict[str, float]:
    """One site."""
    if not (UI / "app.js").exists() or not (BROWSER / "node_modules").exists():
        raise NoLab(
            "the dashboard is not built, or its browser is missing: make webui test-browser"
        )
    minutes = HOUR if context.variant == "hour" else MINUTES
    with site(context) as running:
        told = {
            "EBBGATE_URL": f"http://127.0.0.1:{running.port}",
            "EBBGATE_TOKEN": secrets.token_urlsafe(),
            "EBBGATE_ARTEFACTS": str(running.folder / "artefacts"),
            "EBBGATE_VOLUMES": str(VOLUMES),
            "EBBGATE_LOADS": str(LOADS),
            "EBBGATE_MINUTES": str(minutes),
        }
        context.say(f"{LOADS} loads, then {minutes} minutes open")
        argv: list[str | Path] = ["node", BROWSER / "weigh.mjs"]
        out = host.run(argv, env={**os.environ, **told}, timeout_s=600 + 90 * minutes)
    found = json.loads(out)
    loads = found["loads"]
    return {
        "interactive_ms": median(each["interactive_ms"] for each in loads),
        "interactive_ms_worst": max(each["interactive_ms"] for each in loads),
        "browser_cpu_ms": median(each["cpu_ms"] for each in loads),
        "page_kib": max(each["page"] for each in loads) / 1024,
        "api_kib": max(each["api"] for each in loads) / 1024,
        "heap_mib_end": found["heap_mib"][-1],
        "heap_mib_per_h": growth_per_h(found["heap_mib"]),
    }


def growth_per_h(by_minute: Sequence[float]) -> float:
    """From the second minute on: in the first one a page fills what it keeps of a fixed size."""
    later = by_minute[1:]
    return linear_regression(range(len(later)), later).slope * 60


def run(context: Context) -> Report:
    """One site for each repetition."""
    runs = [measure(context) for _ in range(context.repetitions)]
    ratios = {
        "page_kib": max(each["page_kib"] for each in runs),
        "interactive_ms": median(each["interactive_ms"] for each in runs),
        "heap_mib_per_h": median(each["heap_mib_per_h"] for each in runs),
    }
    goals = {"page_kib": "<= 200", "interactive_ms": "<= 1000", "heap_mib_per_h": "<= 10"}
    return Report("web-weight", {"dashboard": runs}, ratios, goals, NOTES)


SCENARIO = Scenario(
    "web-weight", "the first page is small, loads fast and does not grow", 9, run, ("hour",)
)

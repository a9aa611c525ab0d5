# SPDX-License-Identifier: GPL-2.0-only
"""`fleet`: what 200 machines cost one Prometheus, and a scrape costs a machine; needs no lab.

Twenty processes of the real ebbgate-web, all at once, each over a history of its own that is a day
long, or of minutes, and whose statuses are written anew each second (fleet_machines.py). Each
process is ten of the 200 targets: each scrape is a real one of a page made for it, and Prometheus
keeps the series of each target apart by its labels.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench.context import Context, Scenario
from tests.bench.report import Report, percentile
from tests.bench.web_load import rss_max_kib
from tests.lab import host
from tests.programs import Program, get, running, until, web_words
from tests.prometheus.stack import FLEET_RULES, RULES, Prometheus, prometheus

MINUTES, SHORT = 10, 1
PROCESSES, TARGETS, VOLUMES = 20, 200, 4
SCRAPE_S, SETTLE_S = 15, 35
HOST_SERIES, VOLUME_SERIES, RECORDED = 13, 335, 11
"""As packaging/README.md states them."""
FLEET_TARGETS = 1000
NOTES = (
    "20 processes of ebbgate-web, each scraped as ten targets every 15 s; four volumes each",
    "without a guest and without the proxy, all on one machine of two cores",
    "growth_with_history: a scrape of a history of 24 h against one of 6 minutes, the medians",
    "waited_for_cpu_share: of the time in which the event loops of ebbgate-web had something to do",
    "for_1000_mib: memory of Prometheus for 1000 machines at this many bytes a series",
)


@dataclass(frozen=True, slots=True)
class Fleet:
    """All that runs."""

    webs: Sequence[Program]
    prometheus: Prometheus

    @property
    def processes(self) -> tuple[int, ...]:
        """The process ids of ebbgate-web."""
        return tuple(each.process.pid for each in self.webs)


@contextmanager
def fleet(context: Context, folder: Path) -> Iterator[Fleet]:
    """From an empty folder; each process is ended by its own id."""
    with ExitStack() as exits:
        context.say(f"{PROCESSES} histories of {VOLUMES} volumes")
        words: list[str | Path] = ["-m", "tests.bench.fleet_machines", folder]
        words += [str(PROCESSES), str(VOLUMES)]
        made = exits.enter_context(running(folder, "machines", [sys.executable, *words]))
        until("the histories", lambda: made.said("(ready)"), patience_s=600)
        context.say(f"{PROCESSES} times ebbgate-web")
        webs = [exits.enter_context(_web(folder / str(number))) for number in range(PROCESSES)]
        addresses = [_address(web) for web in webs]
        config = folder / "prometheus.yml"
        config.write_text(scrape_config(addresses))
        yield Fleet(webs, exits.enter_context(prometheus(folder, config)))


@contextmanager
def _web(folder: Path) -> Iterator[Program]:
    words = web_words(folder, folder, folder / "policies", folder / "no-pages")
    with running(folder, "web", [sys.executable, *words]) as web:
        yield web


def _address(web: Program) -> str:
    return until("ebbgate-web", lambda: web.said(r"http://(127\.0\.0\.1:\d+)/"))


def scrape_config(addresses: Sequence[str]) -> str:
    """The targets by name; those of one process have one address."""
    groups = []
    for number in range(TARGETS):
        name = f"nas{number:03d}"
        history = "short" if number % len(addresses) % 2 else "long"
        labels = {"instance": name, "host": name, "history": history}
        groups.append({"targets": [addresses[number % len(addresses)]], "labels": labels})
    return json.dumps(
        {
            "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": "30s"},
            "rule_files": [str(RULES), str(FLEET_RULES)],
            "scrape_configs": [{"job_name": "ebbgate", "static_configs": groups}],
        }
    )


def measure(context: Context) -> dict[str, float]:
    """Let Prometheus scrape for some minutes."""
    minutes = SHORT if context.variant == "1min" else MINUTES
    with tempfile.TemporaryDirectory() as name, fleet(context, Path(name)) as running_fleet:
        asked = running_fleet.prometheus
        context.say(f"{TARGETS} targets; {SETTLE_S} s until all were scraped")
        time.sleep(SETTLE_S)
        before = scheduled(running_fleet)
        context.say(f"{minutes} minutes")
        time.sleep(60 * minutes)
        after = scheduled(running_fleet)
        cpu_s, ran_ns, waited_ns = (b - a for a, b in zip(before, after, strict=True))
        context.say(f"errors: {_errors(asked) or 'none'}")
        return {
            **_scrapes(asked, minutes, cpu_s),
            **_series(asked),
            "waited_for_cpu_share": waited_ns / (ran_ns + waited_ns),
            "web_rss_mib_max": max(map(rss_max_kib, running_fleet.processes)) / 1024,
            "web_processes": len(running_fleet.processes),
        }


def scheduled(running_fleet: Fleet) -> tuple[float, int, int]:
    """CPU time (s) of all ebbgate-web; how long (ns) their main threads ran, and waited for it."""
    pids = running_fleet.processes
    main = [host.scheduled_ns(pid)[pid] for pid in pids]
    return sum(map(host.cpu_seconds, pids)), sum(r for r, _ in main), sum(w for _, w in main)


def _errors(asked: Prometheus) -> dict[str, int]:
    """How often each error is the last one of a target."""
    targets = asked.ask("targets", state="active")["activeTargets"]
    texts = [re.sub(r'".*?"', "URL", each["lastError"]) for each in targets]
    return dict(Counter(text for text in texts if text))


def _scrapes(asked: Prometheus, minutes: int, cpu_s: float) -> dict[str, float]:
    """What became of the scrapes; `cpu_s`: of all of them."""
    durations = _matrix(asked, f"scrape_duration_seconds[{minutes}m]")
    every_ms = [value * 1e3 for _, values in durations for value in values]
    of = {
        history: median(v * 1e3 for labels, vs in durations if labels["history"] == history
                        for v in vs)
        for history in ("long", "short")
    }  # fmt: skip
    answers = [value for _, values in _matrix(asked, f"up[{minutes}m]") for value in values]
    return {
        "scrapes": len(answers),
        "failed_scrapes": answers.count(0.0),
        "missing_scrapes_share": 1 - len(answers) / (TARGETS * 60 * minutes / SCRAPE_S),
        "scrape_ms_p50": median(every_ms),
        "scrape_ms_p99": percentile(every_ms, 0.99),
        "scrape_ms_max": max(every_ms),
        "growth_with_history": of["long"] / of["short"],
        "web_cpu_ms_per_scrape": cpu_s * 1e3 / len(answers),
    }


def _series(asked: Prometheus) -> dict[str, float]:
    """How many series there are, and what they take of Prometheus' memory."""
    own = get(f"{asked.url}/metrics")
    head = _own(own, "prometheus_tsdb_head_series")
    rss_kib = rss_max_kib(asked.program.process.pid)
    of_a_host = HOST_SERIES + VOLUMES * VOLUME_SERIES
    recorded = 'max(count by (instance) ({__name__=~"instance:ebbgate.*"}))'
    return {
        "series": head,
        "series_per_host_max": _one(asked, "max(scrape_samples_scraped)"),
        "recorded_per_host_max": _one(asked, recorded),
        "prometheus_rss_mib": rss_kib / 1024,
        "bytes_per_series": rss_kib * 1024 / head,
        "for_1000_mib": rss_kib / 1024 / head * FLEET_TARGETS * of_a_host,
        "rules_s_max": max(_all(own, "prometheus_rule_group_last_duration_seconds")),
    }


def _matrix(asked: Prometheus, expression: str) -> list[tuple[dict[str, str], list[float]]]:
    found = asked.ask("query", query=expression)["result"]
    return [(each["metric"], [float(value) for _, value in each["values"]]) for each in found]


def _one(asked: Prometheus, expression: str) -> float:
    ((_, value),) = asked.query(expression)
    return value


def _own(page: str, name: str) -> float:
    (value,) = _all(page, name)
    return value


def _all(page: str, name: str) -> list[float]:
    return [float(each) for each in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", page, re.M)]


def run(context: Context) -> Report:
    """One fleet for each repetition."""
    runs = [measure(context) for _ in range(context.repetitions)]

    def worst(name: str) -> float:
        return max(each[name] for each in runs)

    names = (
        *("failed_scrapes", "missing_scrapes_share", "scrape_ms_p99", "web_cpu_ms_per_scrape"),
        "growth_with_history",
        *("series_per_host_max", "recorded_per_host_max", "web_rss_mib_max", "bytes_per_series"),
    )
    ratios = {name: worst(name) for name in names}
    ratios["web_processes"] = min(each["web_processes"] for each in runs)
    goals = {
        "failed_scrapes": "== 0",
        # The first and the last interval are cut.
        "missing_scrapes_share": "<= 0.02",
        # Half of Prometheus' own limit: all share two processors with whatever else runs there.
        "scrape_ms_p99": "<= 5000",
        "web_cpu_ms_per_scrape": "<= 30",
        "growth_with_history": "<= 1.3",
        "series_per_host_max": f"<= {HOST_SERIES + VOLUMES * VOLUME_SERIES}",
        "recorded_per_host_max": f"<= {RECORDED}",
        "web_rss_mib_max": "<= 100",
        "bytes_per_series": "<= 6000",
        "web_processes": ">= 10",
    }
    return Report("fleet", {"fleet": runs}, ratios, goals, NOTES)


SCENARIO = Scenario("fleet", "one Prometheus scrapes 200 machines", 13, run, ("1min",))

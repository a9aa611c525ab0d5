# SPDX-License-Identifier: GPL-2.0-only
"""The daemon, ebbgate-web and Prometheus, each a process of its own on free ports of the loopback.

The daemon's machine is one of files (tests/fake_machine). I/O: processes, HTTP.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fake_machine import machine
from tests.programs import REPO, Program, free_port, get, running, until, web_words
from tests.prometheus import program

PACKAGING = REPO / "packaging"
RULES = PACKAGING / "prometheus/ebbgate.rules.yml"
FLEET_RULES = PACKAGING / "prometheus/ebbgate-fleet.rules.yml"
DASHBOARDS = {
    "machine": PACKAGING / "grafana/ebbgate.json",
    "fleet": PACKAGING / "grafana/ebbgate-fleet.json",
}

POLICY = """\
version: 1
name: hot
why: Every strategy has its metrics.
strategies: [idle_destage, stream_bypass, promote_hot]
"""


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A Prometheus that answers."""

    url: str
    program: Program

    def ask(self, path: str, **parameters: object) -> Any:
        """Its answer. Raises OSError for one that is an error."""
        words = urllib.parse.urlencode(parameters)
        answer = json.loads(get(f"{self.url}/api/v1/{path}?{words}"))
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Labels and values of now."""
        found = self.ask("query", query=expression)["result"]
        return [(each["metric"], float(each["value"][1])) for each in found]


@dataclass(slots=True)
class Stack:
    """All that runs."""

    folder: Path
    daemon: Program
    web_url: str
    prometheus: Prometheus

    def metrics(self, *, openmetrics: bool = False) -> str:
        """The page as it is now."""
        kind = "application/openmetrics-text; version=1.0.0" if openmetrics else "text/plain"
        return get(f"{self.web_url}/metrics", Accept=kind)

    def ask(self, path: str, **parameters: object) -> Any:
        """Prometheus' answer. Raises OSError for one that is an error."""
        return self.prometheus.ask(path, **parameters)

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Labels and values of now."""
        return self.prometheus.query(expression)

    def query_range(self, expression: str, length_s: int) -> list[list[float]]:
        """The values of each series over the last time, by the second."""
        now_s = time.time()
        found = self.ask("query_range", query=expression, start=now_s - length_s, end=now_s, step=1)
        return [[float(value) for _, value in each["values"]] for each in found["result"]]


@contextmanager
def prometheus(folder: Path, config: Path) -> Iterator[Prometheus]:
    """A Prometheus with this configuration, once it answers."""
    port = free_port()
    with running(folder, "prometheus", _argv(folder, config, port)) as program:
        until("Prometheus", lambda: program.said("(ready to receive)"))
        yield Prometheus(f"http://127.0.0.1:{port}", program)


@contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """Everything, from an empty folder."""
    with ExitStack() as exits:
        machine.make(folder)
        (folder / "policies").mkdir()
        (folder / "policies/hot.yaml").write_text(POLICY)
        daemon = exits.enter_context(running(folder, "daemon", machine.argv(folder, "daemon")))
        state, run, policies = (folder / name for name in ("state", "run", "policies"))
        words = web_words(state, run, policies, folder / "no-pages")
        web = exits.enter_context(running(folder, "web", [sys.executable, *words]))
        web_url = until("ebbgate-web", lambda: web.said(r"(http://127\.0\.0\.1:\d+)/"))
        config = folder / "prometheus.yml"
        config.write_text(scrape_config(web_url.removeprefix("http://")))
        made = Stack(folder, daemon, web_url, exits.enter_context(prometheus(folder, config)))
        until("the first scrape", lambda: made.query("up == 1"))
        yield made


def scrape_config(target: str) -> str:
    """As packaging/README.md has it, but faster."""
    return f"""
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: ["{RULES}", "{FLEET_RULES}"]
scrape_configs:
  - job_name: ebbgate
    static_configs: [{{targets: ["{target}"]}}]
"""


def _argv(folder: Path, config: Path, port: int) -> list[str | Path]:
    return [
        program.find("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]

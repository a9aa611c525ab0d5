# SPDX-License-Identifier: GPL-2.0-only
"""The daemon, ebbgate-web and Prometheus, each a process of its own on free ports of the loopback.

I/O: processes, HTTP. What was started is ended by its process id.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.prometheus import program

REPO = Path(__file__).resolve().parent.parent.parent
PACKAGING = REPO / "packaging"
RULES = PACKAGING / "prometheus/ebbgate.rules.yml"
DASHBOARD = PACKAGING / "grafana/ebbgate.json"
PATIENCE_S = 150.0
_END_S = 15.0
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
Found = TypeVar("Found")


def get(url: str, **headers: str) -> str:
    """What a server answers. Raises OSError where it does not."""
    request = urllib.request.Request(url, headers=headers)
    with _OPENER.open(request, timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def until(what: str, look: Callable[[], Found | None], patience_s: float = PATIENCE_S) -> Found:
    """The first answer that is one; a server that is not there yet has none."""
    deadline_s, pause_s, why = time.monotonic() + patience_s, 0.02, "nothing"
    while time.monotonic() < deadline_s:
        try:
            found = look()
        except OSError as error:
            found, why = None, str(error)
        if found:
            return found
        time.sleep(pause_s)
        pause_s = min(0.5, pause_s * 1.5)
    raise AssertionError(f"{what} did not come true in {patience_s:g} s; last: {why}")


@dataclass(slots=True)
class Program:
    """One process; `log`: what it wrote to standard output and error."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self, pattern: str) -> str | None:
        """The first group of the first match in its log. Raises AssertionError where it ended."""
        assert self.process.poll() is None, f"ended: {self.log.read_text()[-2000:]}"
        match = re.search(pattern, self.log.read_text())
        return match[1] if match else None

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """By its id; with SIGKILL where it does not hear."""
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def running(folder: Path, name: str, argv: Sequence[str | Path]) -> Iterator[Program]:
    """A program, ended on the way out."""
    log = folder / f"{name}.log"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPO / "controller"), str(REPO)])}
    with log.open("wb") as out:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=folder,
        )
    program = Program(process, log)
    try:
        yield program
    finally:
        program.end()


@dataclass(slots=True)
class Stack:
    """All that runs, with the addresses of the two servers."""

    daemon: Program
    web_url: str
    prometheus_url: str

    def metrics(self, *, openmetrics: bool = False) -> str:
        """The page as it is now."""
        kind = "application/openmetrics-text; version=1.0.0" if openmetrics else "text/plain"
        return get(f"{self.web_url}/metrics", Accept=kind)

    def ask(self, path: str, **parameters: object) -> Any:
        """Prometheus' answer. Raises OSError for one that is an error."""
        query = urllib.parse.urlencode(parameters)
        answer = json.loads(get(f"{self.prometheus_url}/api/v1/{path}?{query}"))
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Labels and values of now."""
        found = self.ask("query", query=expression)["result"]
        return [(each["metric"], float(each["value"][1])) for each in found]

    def query_range(self, expression: str, length_s: int) -> list[list[float]]:
        """The values of each series over the last time, by the second."""
        now_s = time.time()
        found = self.ask("query_range", query=expression, start=now_s - length_s, end=now_s, step=1)
        return [[float(value) for _, value in each["values"]] for each in found["result"]]


@contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """Everything, from an empty folder."""
    with ExitStack() as exits:
        argv: list[str | Path] = [sys.executable, "-m", "tests.prometheus.machine", folder]
        daemon = exits.enter_context(running(folder, "daemon", argv))
        web = exits.enter_context(running(folder, "web", _web(folder)))
        web_url = until("ebbgate-web", lambda: web.said(r"(http://127\.0\.0\.1:\d+)/"))
        port = free_port()
        config = folder / "prometheus.yml"
        config.write_text(scrape_config(web_url.removeprefix("http://")))
        argv = _prometheus(folder, config, port)
        prometheus = exits.enter_context(running(folder, "prometheus", argv))
        made = Stack(daemon, web_url, f"http://127.0.0.1:{port}")
        until("Prometheus", lambda: prometheus.said("(ready to receive)") and made.query("up == 1"))
        yield made


def scrape_config(target: str) -> str:
    """As packaging/README.md has it, but faster."""
    return f"""
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: ["{RULES}"]
scrape_configs:
  - job_name: ebbgate
    static_configs: [{{targets: ["{target}"]}}]
"""


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _web(folder: Path) -> list[str | Path]:
    argv = [sys.executable, "-m", "ebbgate.web", "--listen", "127.0.0.1:0"]
    folders = {"--state-dir": "state", "--policy-dir": "policies", "--ui": "no-pages"}
    for option, name in folders.items():
        argv += [option, str(folder / name)]
    return [*argv, *(["--as-root"] if os.geteuid() == 0 else [])]


def _prometheus(folder: Path, config: Path, port: int) -> list[str | Path]:
    return [
        program.find("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]

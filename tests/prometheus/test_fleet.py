# SPDX-License-Identifier: GPL-2.0-only
"""Many machines: Prometheus scrapes ebbgate-web through a real proxy with TLS and a token."""

from __future__ import annotations

import secrets
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.programs import free_port, get, running, until, web_words
from tests.prometheus import program
from tests.prometheus.proxies import Target, fleet, make_ca, proxy
from tests.prometheus.stack import Prometheus, Stack

pytestmark = pytest.mark.timeout(180)
OPEN, CLOSED, GONE = "nas1", "nas2", "nas3"
MODES = ("observe", "advise", "enforce", "hold")


@dataclass(frozen=True, slots=True)
class Fleet:
    """Two machines and one that does not answer. `lean`: the Prometheus without histograms."""

    full: Prometheus
    lean: Prometheus
    open_proxy: str
    closed_web: str
    ca: Path
    token: str
    own_token: str


@pytest.fixture(scope="module")
def machines(seen: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Everything, over the history of the stack; the second machine wants its token for reading."""
    folder: Path = tmp_path_factory.mktemp("fleet")
    token, own_token = secrets.token_hex(32), secrets.token_urlsafe(32)
    make_ca(folder)
    with ExitStack() as exits:
        closed_web = exits.enter_context(_closed_web(seen, folder, own_token))
        first = exits.enter_context(proxy(folder / OPEN, folder, seen.web_url, token))
        second = exits.enter_context(proxy(folder / CLOSED, folder, closed_web, token, own_token))
        targets = [
            Target(first, OPEN, "attic"),
            Target(second, CLOSED, "cellar"),
            Target(f"127.0.0.1:{free_port()}", GONE, "cellar"),
        ]
        full = exits.enter_context(fleet(folder / "full", folder, token, targets))
        lean = exits.enter_context(fleet(folder / "lean", folder, token, targets, lean=True))
        until("the sums", lambda: summed(full) and summed(lean))
        yield Fleet(full, lean, first, closed_web, folder, token, own_token)


def summed(prometheus: Prometheus) -> bool:
    """Whether the sums of both machines are there."""
    return len(prometheus.query("instance:ebbgate_mode:sum")) == 2 * len(MODES)


@contextmanager
def _closed_web(seen: Stack, folder: Path, own_token: str) -> Iterator[str]:
    """An ebbgate-web that wants its token for reading; its address."""
    (folder / "web-token").write_text(own_token)
    (folder / "web-token").chmod(0o640)
    settings = folder / "ebbgate.toml"
    settings.write_text(f'[web]\nreading = "token"\ntoken_file = "{folder / "web-token"}"\n')
    state, run, policies = (seen.folder / name for name in ("state", "run", "policies"))
    words = [*web_words(state, run, policies, folder / "no-pages"), "--config", settings]
    with running(folder, "web", [sys.executable, *words]) as web:
        yield until("ebbgate-web", lambda: web.said(r"(http://127\.0\.0\.1:\d+)/"))


def answer(machines: Fleet, path: str, token: str = "", method: str = "GET") -> int:
    """The status that the proxy of the first machine gives."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(
        f"https://{machines.open_proxy}{path}", headers=headers, method=method
    )
    context = ssl.create_default_context(cafile=str(machines.ca / "ca.crt"))
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as found:
            status: int = found.status
            return status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_each_machine_is_scraped_through_its_proxy(machines: Fleet) -> None:
    found = {labels["host"]: value for labels, value in machines.full.query("up")}
    assert found == {OPEN: 1, CLOSED: 1, GONE: 0}
    hosts = {labels["host"] for labels, _ in machines.full.query("ebbgate_dirty_data_bytes")}
    assert hosts == {OPEN, CLOSED}


def test_sums_and_alerts_keep_the_labels_of_a_machine(machines: Fleet) -> None:
    found = machines.full.query("instance:ebbgate_volumes:count")
    assert {(labels["host"], labels["site"], value) for labels, value in found} == {
        (OPEN, "attic", 1),
        (CLOSED, "cellar", 1),
    }
    pending = 'ALERTS{alertname="EbbgateWebDown", alertstate="pending"}'
    ((labels, _),) = until("the alert", lambda: machines.full.query(pending))
    assert (labels["host"], labels["site"]) == (GONE, "cellar")


def test_without_histograms_everything_else_is_there(machines: Fleet) -> None:
    buckets = 'count({job="ebbgate", __name__=~".*_bucket"})'
    assert machines.full.query(buckets)
    assert not machines.lean.query(buckets)
    names = "count by (__name__) ({__name__=~'.*ebbgate_.*', __name__!~'.*_(bucket|sum)|.*_to_.*'})"

    def named(prometheus: Prometheus) -> set[str]:
        return {labels["__name__"] for labels, _ in prometheus.query(names)}

    # What happens for the first time is in one of them a moment earlier.
    until("the same series", lambda: named(machines.full) == named(machines.lean))
    (count,) = (
        value
        for labels, value in machines.lean.query("scrape_samples_post_metric_relabeling")
        if labels["host"] == OPEN
    )
    assert count < 13 + 120


@pytest.mark.parametrize("how", ["none", "wrong", "other case", "the machine's own"])
def test_the_proxy_wants_the_token_of_the_scraper(machines: Fleet, how: str) -> None:
    token = {
        "none": "",
        "wrong": machines.token[:-1],
        "other case": machines.token.upper(),
        "the machine's own": machines.own_token,
    }[how]
    assert answer(machines, "/metrics", token) == 401
    assert answer(machines, "/metrics", machines.token) == 200


@pytest.mark.parametrize("path", ["/", "/api/v1/volumes", "/metrics/", "/api/v1/events"])
def test_the_proxy_passes_on_nothing_but_the_metrics(machines: Fleet, path: str) -> None:
    assert answer(machines, path, machines.token) == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_the_proxy_lets_nothing_be_changed(machines: Fleet, method: str) -> None:
    assert answer(machines, "/metrics", machines.token, method) == 403


def test_a_proxy_without_the_token_of_its_machine_would_read_nothing(machines: Fleet) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(f"{machines.closed_web}/metrics", Authorization=f"Bearer {machines.token}")
    with refused.value as error:
        assert error.code == 401


def test_a_certificate_of_another_ca_is_refused(machines: Fleet, tmp_path: Path) -> None:
    make_ca(tmp_path)
    targets = [Target(machines.open_proxy, OPEN, "attic")]
    with fleet(tmp_path / "other", tmp_path, machines.token, targets) as prometheus:
        until("a failed scrape", lambda: prometheus.query("up == 0"))


@pytest.mark.parametrize("name", ["full", "lean"])
def test_promtool_accepts_the_configuration(machines: Fleet, name: str) -> None:
    config = machines.ca / name / "prometheus.yml"
    found = subprocess.run(
        [program.find("promtool"), "check", "config", config],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr

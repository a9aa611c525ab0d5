# SPDX-License-Identifier: GPL-2.0-only
"""The files of packaging/prometheus for many machines, in use: a CA, proxies, a Prometheus.

Only addresses, the names of machines and the times between scrapes are other ones. I/O: openssl,
processes on the loopback.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from tests.programs import free_port, running, until
from tests.prometheus import program
from tests.prometheus.stack import FLEET_RULES, PACKAGING, RULES, Prometheus, prometheus

NGINX = PACKAGING / "prometheus/ebbgate-nginx.conf"
CONFIG = PACKAGING / "prometheus/ebbgate-fleet.yml"
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-batch")
_NGINX = """
daemon off; pid nginx.pid; error_log stderr; worker_processes 1; {user}
events {{}}
http {{
    access_log off;
    client_body_temp_path temp; proxy_temp_path temp; fastcgi_temp_path temp;
    uwsgi_temp_path temp; scgi_temp_path temp;
    include conf.d/ebbgate.conf;
}}
"""


def make_ca(folder: Path) -> None:
    """Make ca.crt and ca.key."""
    _openssl(folder, "req", "-x509", *_KEY, "-subj", "/CN=test CA", "-keyout", "ca.key",
             "-out", "ca.crt", "-days", "2")  # fmt: skip


def certify(ca: Path, folder: Path) -> None:
    """Make tls.crt and tls.key of the loopback in a folder, by the CA of another one."""
    _openssl(folder, "req", *_KEY, "-subj", "/CN=machine", "-keyout", "tls.key", "-out", "tls.csr",
             "-addext", "subjectAltName=IP:127.0.0.1")  # fmt: skip
    signer = ("-CA", ca / "ca.crt", "-CAkey", ca / "ca.key", "-copy_extensions", "copy")
    _openssl(folder, "x509", "-req", "-in", "tls.csr", *signer, "-days", "2", "-out", "tls.crt")


def _openssl(folder: Path, *words: str | Path) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


@contextmanager
def proxy(folder: Path, ca: Path, web_url: str, token: str, own_token: str = "") -> Iterator[str]:
    """nginx with the example as it is, in front of an ebbgate-web; yields its host and port.

    `token`: of the scraper; `own_token`: of an ebbgate-web that wants one for reading.
    """
    for name in ("conf.d", "ebbgate", "temp"):
        (folder / name).mkdir(parents=True)
    certify(ca, folder / "ebbgate")
    (folder / "ebbgate/scrape-token").write_text(f'"~^Bearer {token}$" 1;\n')
    if own_token:
        line = f'proxy_set_header Authorization "Bearer {own_token}";\n'
        (folder / "ebbgate/web-token.conf").write_text(line)
    address = f"127.0.0.1:{free_port()}"
    text = NGINX.read_text()
    for here, there in (("listen 9380 ", f"listen {address} "), ("http://127.0.0.1:8380", web_url)):
        assert text.count(here) == 1
        text = text.replace(here, there)
    (folder / "conf.d/ebbgate.conf").write_text(text)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(_NGINX.format(user=user))
    argv: list[str | Path] = [program.find("nginx"), "-p", folder, "-c", folder / "nginx.conf"]
    with running(folder, "nginx", [*argv, "-e", "stderr"]):
        until("nginx", (folder / "nginx.pid").exists, patience_s=20)
        yield address


@dataclass(frozen=True, slots=True)
class Target:
    """A machine in the list of machines; `host`: the loopback has one name for all."""

    address: str
    host: str
    site: str


@contextmanager
def fleet(
    folder: Path, ca: Path, token: str, targets: Sequence[Target], *, lean: bool = False
) -> Iterator[Prometheus]:
    """A Prometheus with the example as it is. `lean`: without histograms."""
    folder.mkdir()
    text = CONFIG.read_text()
    for slow in ("30s", "10s"):
        text = text.replace(f": {slow}\n", ": 1s\n")
    if lean:
        head, mark, tail = text.partition("    # metric_relabel_configs:")
        assert mark
        text = head + (mark + tail).replace("    # ", "    ")
    config = folder / "prometheus.yml"
    config.write_text(text)
    for rules in (RULES, FLEET_RULES):
        shutil.copy(rules, folder)
    shutil.copy(ca / "ca.crt", folder / "ebbgate-ca.crt")
    (folder / "ebbgate-scrape-token").write_text(token + "\n")
    hosts = [
        {"targets": [each.address], "labels": {"host": each.host, "site": each.site}}
        for each in targets
    ]
    (folder / "ebbgate-hosts.yml").write_text(yaml.safe_dump(hosts))
    with prometheus(folder, config) as started:
        yield started

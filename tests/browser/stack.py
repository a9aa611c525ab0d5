# SPDX-License-Identifier: GPL-2.0-only
"""Histories and real servers for a browser: `ebbgate-web` on free ports. I/O: files, processes."""

from __future__ import annotations

import os
import re
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.lab import host

REPO = Path(__file__).resolve().parents[2]
UI = REPO / "build" / "webui"
DEADLINE_S = 180.0
_HISTORIES = {
    "live": ["--volumes", "3", "--hours", "24", "--live"],
    # Only the overview shows it: the present state is enough.
    "many": ["--volumes", "64", "--hours", "0.05"],
}
_PATH = f"PYTHONPATH={REPO / 'controller'}:{REPO}"


@dataclass(frozen=True, slots=True)
class Stack:
    """`url`: three volumes with new data every second; `many_url`: 64 volumes without a daemon;
    `empty_url`: no history; `closed_url`: as `url`, but reading requires the token, too.
    """

    url: str
    many_url: str
    empty_url: str
    closed_url: str
    token: str


@contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """Run the servers while the body does; each process is ended by its own id."""
    token = _token(folder)
    closed = folder / "closed.toml"
    closed.write_text('[web]\nreading = "token"\n', encoding="ascii")
    with ExitStack() as ended:
        for name in _HISTORIES:
            _history(folder, name, ended)
        live, many, empty = (_serve(folder, name, ended) for name in ("live", "many", "empty"))
        closed_url = _serve(folder, "live", ended, "--config", closed)
        yield Stack(live, many, empty, closed_url, token)


@contextmanager
def live_server(folder: Path) -> Iterator[tuple[str, str]]:
    """Run the first server of the stack alone; yield its address and its token."""
    token = _token(folder)
    with ExitStack() as ended:
        _history(folder, "live", ended)
        yield _serve(folder, "live", ended), token


def _token(folder: Path) -> str:
    token = secrets.token_urlsafe(32)
    (folder / "token").write_text(token + "\n", encoding="ascii")
    return token


def _history(folder: Path, name: str, ended: ExitStack) -> None:
    """Start the writer of a history; return once the past is written."""
    log = folder / f"{name}.log"
    writer = _start(["tests.web_history", folder / name, *_HISTORIES[name]], log)
    ended.callback(host.stop, writer)
    _wait_for(log, r"volumes, .* hours", writer)


def _serve(root: Path, name: str, ended: ExitStack, *options: str | Path) -> str:
    """Start a server for the history `name`; return its address."""
    folder, log = root / name, root / f"web-{name}{len(options)}.log"
    policies = folder / "policies.d"
    policies.mkdir(parents=True, exist_ok=True)
    # Without a history there are no caches either.
    argv: list[str | Path] = ["tests.browser.sys_web", log.with_suffix(".sys")]
    if name == "empty":
        argv = ["ebbgate.web"]
    argv += ["--state-dir", folder, "--runtime-dir", folder, "--policy-dir", policies]
    argv += ["--ui", UI, "--token-file", root / "token", "--listen", "127.0.0.1:0", *options]
    if os.geteuid() == 0:
        argv.append("--as-root")
    server = _start(argv, log)
    ended.callback(host.stop, server)
    return _wait_for(log, r"http://\S+", server)


def _start(argv: list[str | Path], log: Path) -> host.Running:
    return host.start(["env", _PATH, sys.executable, "-m", *argv], log)


def _wait_for(log: Path, pattern: str, process: host.Running) -> str:
    """Return the first match in the output of a program, once it is there."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        text = host.text_of(log)
        found = re.search(pattern, text)
        if found:
            return found.group(0)
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise AssertionError(f"{log.name}: no {pattern!r} in its output:\n{text}")

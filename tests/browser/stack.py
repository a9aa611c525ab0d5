# SPDX-License-Identifier: GPL-2.0-only
"""Histories and real servers for a browser: `ebbgate-web` on free ports. I/O: files, processes."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.programs import REPO, running, until, web_words

UI = REPO / "build" / "webui"
DEADLINE_S = 180.0
_HISTORIES = {
    "live": ["--volumes", "3", "--hours", "24", "--live"],
    # Only the overview shows it: the present state is enough.
    "many": ["--volumes", "64", "--hours", "0.05"],
    "stopped": ["--volumes", "3", "--hours", "0.5", "--stopped"],
}


@dataclass(frozen=True, slots=True)
class Stack:
    """`url`: three volumes with new data every second; `many_url`: 64 volumes of a daemon that
    died; `stopped_url`: the history of one that was stopped; `empty_url`: no history;
    `closed_url`: as `url`, but reading requires the token, too; `policies`: the folder of the
    policies at `url`.
    """

    url: str
    many_url: str
    stopped_url: str
    empty_url: str
    closed_url: str
    token: str
    policies: Path


@contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """Run the servers while the body does; each process is ended by its own id."""
    token = _token(folder)
    closed = folder / "closed.toml"
    closed.write_text('[web]\nreading = "token"\n', encoding="ascii")
    with ExitStack() as ended:
        for name in _HISTORIES:
            _history(folder, name, ended)
        names = ("live", "many", "stopped", "empty")
        live, many, stopped, empty = (_serve(folder, name, ended) for name in names)
        closed_url = _serve(folder, "live", ended, "--config", closed)
        policies = _policies(folder / "live")
        yield Stack(live, many, stopped, empty, closed_url, token, policies)


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
    words = ["-m", "tests.web_history", *_HISTORIES[name]]
    argv: list[str | Path] = [sys.executable, *words, folder / name]
    writer = ended.enter_context(running(folder, name, argv))
    until("the history", lambda: writer.said(r"(volumes, .* hours)"), DEADLINE_S)


def _policies(folder: Path) -> Path:
    return folder / "policies.d"


def _serve(root: Path, name: str, ended: ExitStack, *options: str | Path) -> str:
    """Start a server for the history `name`; return its address."""
    folder, web = root / name, f"web-{name}{len(options)}"
    policies = _policies(folder)
    policies.mkdir(parents=True, exist_ok=True)
    words = [*web_words(folder, folder, policies, UI), "--token-file", root / "token", *options]
    if name != "empty":
        # Without a history there are no caches either.
        words[:2] = ["-m", "tests.browser.sys_web", root / f"{web}.sys"]
    server = ended.enter_context(running(root, web, [sys.executable, *words]))
    return until("a server", lambda: server.said(r"(http://\S+)"), DEADLINE_S)

# SPDX-License-Identifier: GPL-2.0-only
"""Histories and real servers for a browser: `ebbgate-web` on free ports. I/O: files, processes."""

from __future__ import annotations

import os
import re
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.lab import host

REPO = Path(__file__).resolve().parents[2]
UI = REPO / "build" / "webui"
DEADLINE_S = 180.0
_HISTORIES = {
    "live": ["--volumes", "3", "--hours", "24", "--live"],
    # For the overview alone, which shows how each volume is now.
    "many": ["--volumes", "64", "--hours", "0.05"],
}
_PATH = f"PYTHONPATH={REPO / 'controller'}:{REPO}"


@dataclass(frozen=True, slots=True)
class Stack:
    """`url`: three volumes of which a writer tells every second; `many_url`: 64 of which nobody
    tells any more; `empty_url`: no history at all; `closed_url`: the first, which shows nothing
    without the token. `token`: what all of them take for changes.
    """

    url: str
    many_url: str
    empty_url: str
    closed_url: str
    token: str


@contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """Everything runs while the body does; each process is ended by its own id."""
    token = folder / "token"
    token.write_text(secrets.token_urlsafe(32) + "\n", encoding="ascii")
    with ExitStack() as ended:
        writers: dict[str, host.Running] = {}
        for name, words in _HISTORIES.items():
            argv: list[str | Path] = ["tests.web_history", folder / name, *words]
            writers[name] = _start(argv, folder / f"{name}.log")
            ended.callback(host.stop, writers[name])
        for name, writer in writers.items():
            _said(folder / f"{name}.log", r"volumes, .* hours", writer)
        closed = folder / "closed.toml"
        closed.write_text('[web]\nreading = "token"\n', encoding="ascii")
        with_token: list[str | Path] = ["--config", closed]
        urls: list[str] = []
        for name, more in (("live", []), ("many", []), ("empty", []), ("live", with_token)):
            (folder / name).mkdir(exist_ok=True)
            log = folder / f"web-{len(urls)}.log"
            server, url = _serve(folder / name, token, more, log)
            ended.callback(host.stop, server)
            urls.append(url)
        live, many, empty, closed_url = urls
        yield Stack(live, many, empty, closed_url, token.read_text(encoding="ascii").strip())


def _serve(
    folder: Path, token: Path, more: Sequence[str | Path], log: Path
) -> tuple[host.Running, str]:
    policies = folder / "policies.d"
    policies.mkdir(exist_ok=True)
    # Of a server without a history nothing is known: not of a cache either.
    module = (
        ["ebbgate.web"]
        if folder.name == "empty"
        else ["tests.browser.sys_web", log.with_suffix(".sys")]
    )
    words: list[str | Path] = [*module, "--state-dir", folder, "--runtime-dir", folder]
    words += ["--policy-dir", policies]
    words += ["--ui", UI, "--token-file", token, "--listen", "127.0.0.1:0", *more]
    if os.geteuid() == 0:
        words.append("--as-root")
    server = _start(words, log)
    return server, _said(log, r"http://\S+", server)


def _start(words: list[str | Path], log: Path) -> host.Running:
    return host.start(["env", _PATH, sys.executable, "-m", *words], log)


def _said(log: Path, pattern: str, process: host.Running) -> str:
    """What a program has printed, once it has."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        text = host.text_of(log)
        found = re.search(pattern, text)
        if found:
            return found.group(0)
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise AssertionError(f"{log.name}: no {pattern!r}; it said:\n{text}")

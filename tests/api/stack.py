# SPDX-License-Identifier: GPL-2.0-only
"""ebbgate-web on each set of packages, over a history that goes on. I/O: processes, HTTP.

A set is an interpreter with its packages: Debian 12's own, and current ones in an environment of
their own (tests/requirements-web.lock), so that none of one is ever seen by the other.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.programs import REPO, Program, running, until, web_words
from tests.unit.web.web_fixture import JSON, RIGHT, TOKEN, Served

BUILD = REPO / "build"
SETS = {"debian": Path("/usr/bin/python3"), "current": BUILD / "venv-web" / "bin" / "python"}
SCHEMATHESIS = BUILD / "venv-api" / "bin" / "schemathesis"
WITH_TOKEN = {**RIGHT, **JSON}
_VOLUMES = ("--volumes", "3", "--hours", "0.3")


@contextmanager
def history(folder: Path) -> Iterator[Path]:
    """The state folder of something like a daemon, which holds the lock and answers requests."""
    state = folder / "state"
    argv: list[str | Path] = [sys.executable, "-m", "tests.web_history", state, *_VOLUMES, "--live"]
    with running(folder, "history", argv) as writer:
        until("the history", lambda: writer.said(r"(3 volumes)"))
        yield state


@dataclass(frozen=True, slots=True)
class Site:
    """ebbgate-web as a process. Its requests are those of `Served`."""

    program: Program
    url: str

    @property
    def client(self) -> Served:
        """Asks it."""
        return Served(self.program.process, int(self.url.rpartition(":")[2]))  # type: ignore[arg-type]


@contextmanager
def served(folder: Path, state: Path, name: str, port: int = 0) -> Iterator[Site]:
    """ebbgate-web on the set of this name, with pages, as where it is installed."""
    token, pages = folder / f"{name}-token", folder / f"{name}-pages"
    token.write_text(f"{TOKEN}\n")
    pages.mkdir(exist_ok=True)
    (pages / "index.html").write_text("<!doctype html><title>ebbgate</title>\n")
    shutil.copy(REPO / "webui/openapi.json", pages)
    words = web_words(state, state, folder / "policies", pages, port)
    with running(folder, f"web-{name}", [SETS[name], *words, "--token-file", token]) as web:
        yield Site(web, until("it", lambda: web.said(r"(http://127\.0\.0\.1:\d+)/")))
    # What the log says of a bug, a test is to know of, whatever status it was answered with.
    assert not re.search("internal error|Traceback", web.log.read_text()), web.log

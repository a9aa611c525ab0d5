# SPDX-License-Identifier: GPL-2.0-only
"""The dashboard in a real Chromium against the real `ebbgate-web`; the tests are `*.test.mjs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import node
from tests.browser.stack import UI, Stack, stack

TIMEOUT_S = 900
PARTS = (
    *("pages", "heat", "pins", "warm", "decisions", "changes", "advice"),
    *("policy", "keyboard", "connection", "absent", "stopped", "charts"),
)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One stack for all parts: each part undoes its changes."""
    assert (UI / "app.js").exists(), "build it first: make webui"
    with stack(tmp_path_factory.mktemp("stack")) as made:
        yield made


@pytest.mark.timeout(TIMEOUT_S + 300)
@pytest.mark.parametrize("part", PARTS)
def test_dashboard_part_passes(part: str, running: Stack, tmp_path: Path) -> None:
    variables = {
        "EBBGATE_URL": running.url,
        "EBBGATE_MANY_URL": running.many_url,
        "EBBGATE_STOPPED_URL": running.stopped_url,
        "EBBGATE_EMPTY_URL": running.empty_url,
        "EBBGATE_CLOSED_URL": running.closed_url,
        "EBBGATE_TOKEN": running.token,
        "EBBGATE_POLICIES": str(running.policies),
    }
    node.check(part, variables, tmp_path, TIMEOUT_S)

# SPDX-License-Identifier: GPL-2.0-only
"""The dashboard in a real Chromium against the real `ebbgate-web`; the tests are `*.test.mjs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import node
from tests.browser.stack import UI, Stack, stack

TIMEOUT_S = 1500


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """For all parts: each leaves everything as it was."""
    assert (UI / "app.js").exists(), "build it first: make webui"
    with stack(tmp_path_factory.mktemp("stack")) as made:
        yield made


@pytest.mark.timeout(TIMEOUT_S + 300)
@pytest.mark.parametrize("part", ["pages", "use"])
def test_the_dashboard_does_what_its_browser_tests_claim(
    part: str, running: Stack, tmp_path: Path
) -> None:
    told = {
        "EBBGATE_URL": running.url,
        "EBBGATE_MANY_URL": running.many_url,
        "EBBGATE_EMPTY_URL": running.empty_url,
        "EBBGATE_CLOSED_URL": running.closed_url,
        "EBBGATE_TOKEN": running.token,
    }
    node.check(part, told, tmp_path, TIMEOUT_S)

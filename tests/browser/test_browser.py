# SPDX-License-Identifier: GPL-2.0-only
"""The dashboard in a real Chromium against the real `ebbgate-web`; the tests are `*.test.mjs`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.browser.stack import REPO, UI, stack
from tests.lab import host
from tests.lab.errors import CommandFailed

HERE = Path(__file__).resolve().parent
ARTEFACTS = REPO / "build" / "browser"
TIMEOUT_S = 1500


@pytest.mark.timeout(TIMEOUT_S + 300)
@pytest.mark.parametrize("part", ["pages", "use"])
def test_the_dashboard_does_what_its_browser_tests_claim(part: str, tmp_path: Path) -> None:
    assert (UI / "app.js").exists(), "build it first: make webui"
    with stack(tmp_path) as running:
        told = {
            "EBBGATE_URL": running.url,
            "EBBGATE_MANY_URL": running.many_url,
            "EBBGATE_EMPTY_URL": running.empty_url,
            "EBBGATE_TOKEN": running.token,
            "EBBGATE_ARTEFACTS": str(ARTEFACTS),
        }
        report = tmp_path / "report.txt"
        how = ["--test-reporter=spec", f"--test-reporter-destination={report}"]
        argv: list[str | Path] = ["node", "--test", *how, HERE / f"{part}.test.mjs"]
        try:
            host.run(argv, env={**os.environ, **told}, timeout_s=TIMEOUT_S)
        except CommandFailed as error:
            said = report.read_text(encoding="utf-8") if report.exists() else str(error)
            pytest.fail(said, pytrace=False)

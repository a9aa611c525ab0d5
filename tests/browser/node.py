# SPDX-License-Identifier: GPL-2.0-only
"""Runs one file of the browser tests, which are JavaScript, and reports its result.

I/O: a process of Node.js, which starts Chromium; screenshots in build/browser.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.lab import host
from tests.lab.errors import CommandFailed
from tests.programs import ENDS_WITH_STARTER

HERE = Path(__file__).resolve().parent
ARTEFACTS = HERE.parents[1] / "build" / "browser"


def check(part: str, variables: Mapping[str, str], folder: Path, timeout_s: float) -> None:
    """Run `PART.test.mjs` with these environment variables; fail with its report."""
    report = folder / "report.txt"
    environment = {**os.environ, "EBBGATE_ARTEFACTS": str(ARTEFACTS), **variables}
    argv: list[str | Path] = [*ENDS_WITH_STARTER, "node", "--test", "--test-reporter=spec"]
    argv += [f"--test-reporter-destination={report}", HERE / f"{part}.test.mjs"]
    try:
        host.run(argv, env=environment, timeout_s=timeout_s)
    except CommandFailed as error:
        pytest.fail(host.text_of(report) or str(error), pytrace=False)

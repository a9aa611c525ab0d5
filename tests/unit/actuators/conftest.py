# SPDX-License-Identifier: GPL-2.0-only
"""A gate worker, which ends with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gate_worker_fixture import DEADLINE_S, GateHarness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[GateHarness]:
    harness = GateHarness(tmp_path)
    yield harness
    harness.let_go.set()
    assert harness.worker.stop(DEADLINE_S)

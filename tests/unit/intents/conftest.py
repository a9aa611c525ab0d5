# SPDX-License-Identifier: GPL-2.0-only
"""A control socket that is served, and one client of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.control_fixture import Client, ControlHarness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ControlHarness]:
    made = ControlHarness(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def client(harness: ControlHarness) -> Iterator[Client]:
    with closing(Client(harness.path)) as made:
        yield made

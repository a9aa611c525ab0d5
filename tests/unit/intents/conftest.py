# SPDX-License-Identifier: GPL-2.0-only
"""A control socket that is served, and one client of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.control_fixture import Bench, Client


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def client(bench: Bench) -> Iterator[Client]:
    with closing(Client(bench.path)) as made:
        yield made

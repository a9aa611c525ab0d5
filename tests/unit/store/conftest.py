# SPDX-License-Identifier: GPL-2.0-only
"""A history, who records into it, and one with clocks to move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbgate.store import connection_manager
from ebbgate.store import recorder as module
from ebbgate.store.recorder import Recorder
from ebbgate.units import NS_PER_S
from tests.unit.store.store_fixture import StoreHarness


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture
def recorder(path: Path) -> Iterator[Recorder]:
    made = Recorder(path)
    yield made
    made.stop()


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[StoreHarness]:
    made = StoreHarness(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are written, and a lost file is opened again, at once."""
    monkeypatch.setattr(module, "_FLUSH_S", 0.02)
    monkeypatch.setattr(connection_manager, "_REOPEN_NS", NS_PER_S // 20)

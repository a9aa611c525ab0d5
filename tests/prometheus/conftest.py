# SPDX-License-Identifier: GPL-2.0-only
"""One stack for all tests of this tier: a real Prometheus needs a while to have data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs import until
from tests.prometheus.stack import Stack, stack

RAN_S = 25
"""So long after its start each part of the load was there once."""


@pytest.fixture(scope="session")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that has run until both recordings were played."""
    folder: Path = tmp_path_factory.mktemp("stack")
    with stack(folder) as made:
        both = (
            'ebbgate_io_seconds_count{op="read", path="hit"} > 0'
            ' and on (volume) ebbgate_bypass_bytes_total{reason="sequential"} > 0'
            f" and on (volume) count_over_time(ebbgate_decisions_total[{RAN_S}s]) >= {RAN_S - 3}"
        )
        until("the load", lambda: made.query(both))
        yield made

# SPDX-License-Identifier: GPL-2.0-only
"""The guest that counts instructions: what a comparison stands on, and the gate on the probe.

A change that makes each request dearer shows here.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bench import counted
from tests.lab.session import Session

_REQUESTS = 20_000
# fio's millisecond.
_RESOLUTION = 1e6 / _REQUESTS
_ADDED_MAX = {
    "bcache_hit": 1350,
    "bcache_write": 1450,
    "dm_cache_hit": 1800,
    "lvm_cache_hit": 1900,
}


@pytest.fixture(scope="module")
def null_guest(counting_guest: Session) -> Iterator[Session]:
    """The counting guest with null disks."""
    with counted.null_disks(counting_guest):
        yield counting_guest


@pytest.mark.full
def test_the_same_work_takes_the_same_instructions(null_guest: Session) -> None:
    first, second = (counted.plain(null_guest, _REQUESTS) for _ in range(2))
    assert abs(first - second) <= 2 * _RESOLUTION
    assert 2_000 < first < 20_000


def test_all_signals_cost_a_plain_disk_few_instructions(null_guest: Session) -> None:
    cost = counted.plain_cost(null_guest, _REQUESTS)
    assert 0 < cost.added <= 700


@pytest.mark.parametrize("path", _ADDED_MAX)
def test_a_request_of_a_cached_volume_costs_few_instructions(
    null_guest: Session, path: str
) -> None:
    # A write also waits for bcache's journal and workers, whose turns differ from run to run.
    pairs = 3 if path == "bcache_write" else 1
    cost = counted.path_cost(null_guest, counted.PATHS[path], _REQUESTS, pairs)
    assert 0 < cost.added <= _ADDED_MAX[path]

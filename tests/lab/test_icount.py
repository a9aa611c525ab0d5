# SPDX-License-Identifier: GPL-2.0-only
"""The guest that counts instructions: what a comparison stands on, and the gate on the probe.

A change that makes each request dearer shows here.
"""

from __future__ import annotations

import pytest

from tests.bench import probe_cost
from tests.lab import fio
from tests.lab.session import Session

_READS = 20_000
_ADDED_INSTRUCTIONS_MAX = 700


def nanoseconds_per_read(guest: Session) -> float:
    """Virtual time, and so instructions, for one read of a block device that does nothing."""
    options: dict[str, str | int] = {"number_ios": _READS, "size": "1g", "gtod_reduce": 1}
    job = fio.Job(f"/dev/{probe_cost.DISK}", "randread", "4k", options=options)
    done = fio.run(guest, job, seed=1, timeout_s=200).only.read
    assert done.ios == _READS
    return done.runtime_ms * 1e6 / done.ios


@pytest.mark.full
def test_the_same_work_takes_the_same_instructions(counting_guest: Session) -> None:
    with probe_cost.null_disk(counting_guest):
        nanoseconds_per_read(counting_guest)  # the first run also fills caches of the kernel
        first, second = (nanoseconds_per_read(counting_guest) for _ in range(2))
    # fio reports whole milliseconds of a run of about a hundred.
    assert abs(first - second) <= 2e6 / _READS
    assert 2_000 < first < 20_000


def test_all_signals_cost_a_request_few_instructions(counting_guest: Session) -> None:
    with probe_cost.null_disk(counting_guest) as disk:
        without, ours = probe_cost.of_the_probe(counting_guest, disk)
    assert 0 < ours - without <= _ADDED_INSTRUCTIONS_MAX

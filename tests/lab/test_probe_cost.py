# SPDX-License-Identifier: GPL-2.0-only
"""The gate on the probe's cost: a change that makes each request dearer shows here."""

from __future__ import annotations

from tests.bench import probe_cost
from tests.lab.session import Session

ADDED_INSTRUCTIONS_MAX = 700


def test_all_signals_cost_a_request_few_instructions(counting_guest: Session) -> None:
    with probe_cost.null_disk(counting_guest) as disk:
        without, ours = probe_cost.of_the_probe(counting_guest, disk)
    assert 0 < ours - without <= ADDED_INSTRUCTIONS_MAX

# SPDX-License-Identifier: GPL-2.0-only
"""Twenty seconds of the scenario hostile-client; it needs root, and no guest."""

from __future__ import annotations

import os

import pytest

from tests.bench import hostile_client
from tests.bench.context import Context
from tests.bench.report import holds

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the daemon has to be root's")


def test_a_client_with_the_web_users_rights_harms_no_other_client() -> None:
    report = hostile_client.run(Context(repetitions=1, seed=1, variant="20s"))
    found = dict(report.ratios)
    # Beside other tests the loop may wait for a core; that is not what is tested here.
    found["silence_ms_max"] -= found["starved_ms_max"]
    missed = [name for name, goal in report.goals.items() if not holds(goal, found.get(name))]
    assert missed == [], report.runs

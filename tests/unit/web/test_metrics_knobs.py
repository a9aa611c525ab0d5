# SPDX-License-Identifier: GPL-2.0-only
"""What Prometheus is told of knobs that somebody else has changed."""

from __future__ import annotations

import pytest

from ebbgate.store.queries import Statuses, TimedStatus
from ebbgate.web.metrics.page import render
from tests.builders import live_status

NOW_NS = 1_800_000_000_000_000_000
SCHEDULER = 'ebbgate_knob_manual{knob="scheduler:sda",volume="bcache0"}'


def knob_lines(knob: str, value: str, owner: str) -> list[str]:
    """The samples of a knob."""
    status = live_status(knobs={knob: {"value": value, "owner": owner}})
    statuses = Statuses(None, {"bcache0": TimedStatus(NOW_NS, status)})
    lines = render(statuses, NOW_NS, True, False).splitlines()
    return [line for line in lines if f'knob="{knob}"' in line and "_changes_" not in line]


def test_a_knob_whose_value_is_a_word_is_counted_while_it_is_manual() -> None:
    """Or no alert would tell of an I/O scheduler that somebody has changed."""
    assert knob_lines("scheduler:sda", "none", "manual") == [f"{SCHEDULER} 1.0"]


@pytest.mark.parametrize("owner", ["ebbgate", "kernel"])
def test_a_knob_whose_value_is_a_word_has_no_series_else(owner: str) -> None:
    assert knob_lines("scheduler:sda", "bfq", owner) == []


@pytest.mark.parametrize(("owner", "manual"), [("manual", 1), ("ebbgate", 0)])
def test_a_number_has_a_series_whoever_has_set_it(owner: str, manual: float) -> None:
    found = knob_lines("sequential_cutoff", "4194304", owner)
    assert [float(line.rpartition(" ")[2]) for line in found] == [4194304, manual]

# SPDX-License-Identifier: GPL-2.0-only
"""What the demo says of its measurements."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from ebbgate.model.decision import GateKind
from ebbgate.model.status import GateStatus
from ebbgate.units import MIB
from tests.lab import demo_run
from tests.lab.demo_screen import Moment
from tests.lab.demo_watch import moment_of


def test_a_volume_without_a_daemon_has_only_a_level() -> None:
    assert moment_of({"dirty_mib": 1.5}) == Moment(1.5)


@pytest.mark.parametrize(
    ("gate", "text"),
    [
        (GateStatus(GateKind.OPEN), "open"),
        (GateStatus(GateKind.PACED, 4 * MIB), "paced 4 MiB/s"),
        (GateStatus(GateKind.PACED, depth_ios=4), "paced, 4 at once"),
    ],
)
def test_the_gate_is_that_of_the_daemon_s_live_document(gate: GateStatus, text: str) -> None:
    document = json.loads(json.dumps(asdict(gate)))
    assert moment_of({"dirty_mib": 1.5, "gate": document}).gate == text


def test_a_cache_that_did_not_come_clean_is_reported_with_what_is_left() -> None:
    assert demo_run.clean_text(demo_run.Result(clean_s=3.14)) == "3.1 s"
    assert demo_run.clean_text(demo_run.Result(left_mib=281.6)) == "> 40 s, 282 MiB left"

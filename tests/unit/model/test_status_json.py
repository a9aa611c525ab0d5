# SPDX-License-Identifier: GPL-2.0-only
"""A volume's status survives JSON, and one of another version is read as far as it can be."""

from __future__ import annotations

import json

import pytest

from ebbgate.model.decision import GateKind
from ebbgate.model.frame import Regime
from ebbgate.model.records import Direction
from ebbgate.model.status import GateStatus, KnobStatus, VolumeStatus
from ebbgate.model.status_json import status_from_json, status_to_json
from ebbgate.model.volume import Mode
from tests.volume_loop_fixture import LoopHarness


def test_a_status_of_the_daemon_is_the_same_after_json(enforced: LoopHarness) -> None:
    enforced.gap_and_back()
    text = json.dumps(enforced.kept.document)
    status = status_from_json(json.loads(text))
    assert json.dumps(status_to_json(status)) == text
    assert (status.mode, status.knobs["writeback_percent"].owner) == (Mode.ENFORCE, "ebbgate")
    assert status.foreground is not None
    assert Direction.WRITE in status.foreground


def test_json_keys_that_scripts_read_stay() -> None:
    document = status_to_json(VolumeStatus(frozen=True, summary="drains"))
    assert (document["frozen"], document["now"], document["overrides"]) == (True, "drains", [])


def test_missing_keys_leave_the_defaults() -> None:
    assert status_from_json({}) == VolumeStatus()
    assert status_from_json({"gate": {"kind": "closed"}}).gate == GateStatus(GateKind.CLOSED)


@pytest.mark.parametrize(
    "document",
    [
        {"mode": "brave"},
        {"regime": "storm"},
        {"dirty_bytes": "much"},
        {"dirty_bytes": True},
        {"dirty_ratio": "0.5"},
        {"frozen": 1},
        {"knobs": []},
        {"knobs": {"writeback_percent": 40}},
        {"foreground": {"sideways": {"iops": 1, "bytes_per_s": 1}}},
        {"foreground": {"read": {"iops": 1}}},
        {"gate": {"kind": "ajar"}},
        {"gap_counts": {"0": 1}},
        {"an unknown key": 1},
    ],
)
def test_values_of_another_type_leave_the_defaults(document: dict[str, object]) -> None:
    found = status_from_json(document)
    assert found.foreground is None
    assert found == VolumeStatus()


def test_one_unreadable_key_does_not_hide_the_others() -> None:
    found = status_from_json(
        {"mode": "brave", "regime": "gap", "knobs": {"writeback_percent": {"value": "10"}}}
    )
    assert (found.mode, found.regime) == (None, Regime.GAP)
    assert found.knobs == {"writeback_percent": KnobStatus("10")}

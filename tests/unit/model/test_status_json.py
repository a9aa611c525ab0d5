# SPDX-License-Identifier: GPL-2.0-only
"""A status survives JSON, and one of another version is read as far as it can be."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ebbgate.model.decision import GateKind
from ebbgate.model.frame import Regime
from ebbgate.model.records import Direction
from ebbgate.model.status import (
    DaemonStatus,
    FlowTotals,
    GateStatus,
    KnobStatus,
    OverrideStatus,
    VolumeStatus,
    VolumeTotals,
)
from ebbgate.model.status_json import status_from_json, status_from_text, status_to_json
from ebbgate.model.volume import Mode
from tests.volume_loop_fixture import LoopHarness


def test_a_status_of_the_daemon_is_the_same_after_json(enforced: LoopHarness) -> None:
    enforced.gap_and_back()
    text = json.dumps(enforced.kept.document)
    status = status_from_json(VolumeStatus, json.loads(text))
    assert json.dumps(status_to_json(status)) == text
    assert (status.mode, status.knobs["writeback_percent"].owner) == (Mode.ENFORCE, "ebbgate")
    assert status.foreground is not None
    assert Direction.WRITE in status.foreground


def test_json_keys_that_scripts_read_stay() -> None:
    document = status_to_json(VolumeStatus(frozen=True, summary="drains"))
    assert (document["frozen"], document["now"], document["overrides"]) == (True, "drains", [])


def test_missing_keys_leave_the_defaults() -> None:
    assert status_from_json(VolumeStatus, {}) == VolumeStatus()
    assert status_from_json(VolumeStatus, {"gate": {"kind": "closed"}}).gate == GateStatus(
        GateKind.CLOSED
    )


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
    found = status_from_json(VolumeStatus, document)
    assert found.foreground is None
    assert found == VolumeStatus()


def test_one_unreadable_key_does_not_hide_the_others() -> None:
    found = status_from_json(
        VolumeStatus,
        {"mode": "brave", "regime": "gap", "knobs": {"writeback_percent": {"value": "10"}}},
    )
    assert (found.mode, found.regime) == (None, Regime.GAP)
    assert found.knobs == {"writeback_percent": KnobStatus("10")}


# ---- any status, any JSON -----------------------------------------------------------------------
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
KEYS = {
    status: [*sorted(status_to_json(status())), "wishes", "held"]
    for status in (VolumeStatus, DaemonStatus)
}


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.from_type(VolumeStatus) | st.from_type(DaemonStatus))
def test_any_status_is_equal_after_json(status: VolumeStatus | DaemonStatus) -> None:
    text = json.dumps(status_to_json(status))
    found = status_from_text(type(status), text)
    assert json.dumps(status_to_json(found)) == text
    # NaN differs from itself.
    assert found == status or "NaN" in text


@pytest.mark.parametrize("cls", [VolumeStatus, DaemonStatus])
@given(data=st.data())
def test_any_json_object_is_a_status(
    cls: type[VolumeStatus | DaemonStatus], data: st.DataObject
) -> None:
    document = data.draw(st.dictionaries(st.sampled_from(KEYS[cls]), ANYTHING))
    found = status_from_json(cls, document)
    json.dumps(status_to_json(found))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '"x"', "[" * 100_000])
def test_text_that_is_no_object_is_an_unknown_status(text: str) -> None:
    assert status_from_text(DaemonStatus, text) == DaemonStatus()


@pytest.mark.parametrize(
    "document",
    [
        {"pid": "12"},
        {"tick_ns": True},
        {"history": None},
        {"history": {"written": "yes", "dropped": 1.5, "trouble": "full", "log": []}},
        {"policies": {"problems": "a.yaml", "names": [1]}},
        {"probe": {"state": 3, "restarts": "7", "signals": {"path": None}}},
        {"control": []},
    ],
)
def test_a_garbled_status_of_the_daemon_leaves_unknown_and_never_zero(
    document: dict[str, object],
) -> None:
    found = status_from_json(DaemonStatus, document)
    assert replace(found, control=None) == DaemonStatus()


@pytest.mark.parametrize(
    "document",
    [
        {"paths": [{"op": "read"}]},
        {"overrides": [{"knob": "sequential_cutoff"}]},
        {"kernel_sleep": {"text": "it sleeps"}},
        {"cleaning": {"who": "jo"}},
        {"totals": {"paths": {"read hit": {"ios": 1}}, "destage": {"bytes": 1}, "gap_sum_ns": "1"}},
        {"totals": {"knob_changes": [{"knob": "writeback_rate"}]}},
    ],
)
def test_a_part_without_its_figures_is_unknown_and_never_zero(document: dict[str, object]) -> None:
    assert status_from_json(VolumeStatus, document) == VolumeStatus()


def test_a_status_of_version_0_1_is_read() -> None:
    found = status_from_json(
        VolumeStatus,
        {
            "mode": "enforce",
            "held": True,
            "wishes": [{"kind": "set", "knob": "writeback_percent", "value": "30", "who": "jo"}],
            "totals": {"guard_trips": {"gate": 2}, "destage": {"ios": 1, "bytes": 512}},
        },
    )
    override = OverrideStatus("set", "writeback_percent", "30", "jo")
    assert (found.mode, found.frozen, found.overrides) == (Mode.ENFORCE, True, (override,))
    assert found.totals == VolumeTotals(rollbacks={"gate": 2}, destage=FlowTotals(1, 512))


def test_a_gate_of_an_earlier_version_is_read_as_paced() -> None:
    found = status_from_json(VolumeStatus, {"gate": {"kind": "pulsed", "rate_bytes_per_s": 9}})
    assert found.gate == GateStatus(GateKind.PACED, 9)

# SPDX-License-Identifier: GPL-2.0-only
"""The gate of a dm volume as knob writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.actuators.bcache_steps import write
from ebbgate.actuators.gate_plan import plan_for, split_steps
from ebbgate.knobs.catalog import MAX_SECTORS, THRESHOLD
from ebbgate.knobs.places import knob_path
from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.volume import Kind
from ebbgate.probes.topology import find
from ebbgate.probes.volume_state import read_state
from tests.fake_dm import WRITECACHE, lvm_disks, lvm_machine
from tests.fake_sysfs import FakeSysfs


@pytest.fixture
def fake(tmp_path: Path) -> FakeSysfs:
    return lvm_disks(tmp_path)


def test_a_writecache_has_no_knob(fake: FakeSysfs) -> None:
    sysfs, _ = lvm_machine(fake, WRITECACHE)
    volume = find(sysfs, "vg/data")
    assert volume.kind is Kind.DM_WRITECACHE
    assert read_state(sysfs, volume, 5).dirty_bytes == 600 * 4096
    assert knob_path(volume, THRESHOLD) is None
    assert plan_for(volume).steps(Gate(GateKind.CLOSED)) == ()


def test_the_gate_is_the_number_of_blocks_in_flight(fake: FakeSysfs) -> None:
    sysfs, _ = lvm_machine(fake)
    plan = plan_for(find(sysfs, "vg/data"))
    assert plan.steps(Gate(GateKind.CLOSED, 512)) == (write(THRESHOLD, 0),)
    assert plan.steps(Gate(GateKind.RESTING, 512)) == (write(THRESHOLD, 0),)
    assert plan.steps(Gate(GateKind.PACED, depth_ios=4)) == (write(THRESHOLD, 512),)
    assert plan.steps(Gate(GateKind.PACED)) == (write(THRESHOLD, 128),)
    with pytest.raises(ValueError, match="open"):
        plan.steps(Gate(GateKind.OPEN))


def test_requests_are_split_to_half_a_block(fake: FakeSysfs) -> None:
    sysfs, _ = lvm_machine(fake)
    assert split_steps(find(sysfs, "vg/data")) == (write(MAX_SECTORS, 32),)

# SPDX-License-Identifier: GPL-2.0-only
"""Each row of the catalogue is whole, and nothing leads to a knob that is never written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.actuators.bcache_steps import (
    Step,
    base_steps,
    congestion_off_steps,
    cutoff_steps,
)
from ebbgate.actuators.gate_plan import cleaner_step, plan_for, split_steps
from ebbgate.actuators.reason import Reason
from ebbgate.knobs.catalog import BOUNDS, BY_NAME, KNOBS, NEVER, TABLE, same_value
from ebbgate.knobs.knob import Knob, ResetCause
from ebbgate.knobs.places import knob_path
from ebbgate.model.decision import Gate, GateKind, OutcomeKind
from ebbgate.model.volume import Kind, Volume
from tests.builders import dm_volume, volume
from tests.fake_dm import CACHE_TABLE, LENGTH_SECTORS
from tests.fake_sysfs import SET_UUID
from tests.knob_writer_fixture import WriterHarness

VOLUMES = [volume(), dm_volume(), dm_volume(Kind.DM_WRITECACHE)]
EVERY = pytest.mark.parametrize("found", VOLUMES, ids=lambda found: str(found.kind))
NUMBERS = st.integers(min_value=-(1 << 70), max_value=1 << 70)
GATES = st.builds(
    Gate,
    st.sampled_from([GateKind.CLOSED, GateKind.PACED, GateKind.RESTING, GateKind.OPEN]),
    NUMBERS,
    NUMBERS,
)
OWN = "/sys/block/bcache0/bcache"
SET = f"/sys/fs/bcache/{SET_UUID}"


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_a_row_is_complete(knob: Knob) -> None:
    assert knob.about
    assert knob.written == bool(knob.purpose)
    assert not (knob.written and knob.never)
    assert knob.written or not (knob.gate or knob.trigger or knob.interval_ns)
    if knob.bounds is not None:
        assert knob.bounds.low <= knob.bounds.high
        assert knob.bounds.why
        assert knob.bounds.source
    if knob.written and not knob.trigger:
        # Else a journalled original would outlive what it is about.
        assert ResetCause.REBOOT in knob.resets


def test_every_name_is_unique() -> None:
    assert len(BY_NAME) == len(KNOBS)


@pytest.mark.parametrize("found", VOLUMES, ids=lambda found: str(found.kind))
def test_the_gate_of_a_volume_has_the_knobs_marked_as_gate(found: Volume) -> None:
    gate = {knob.name for knob in KNOBS if knob.gate and found.kind in knob.kinds}
    assert set(plan_for(found).knobs) == gate


@pytest.mark.parametrize(
    ("found", "knob", "path"),
    [
        (volume(), "writeback_percent", f"{OWN}/writeback_percent"),
        (volume(), "congested_read_threshold_us", f"{SET}/congested_read_threshold_us"),
        (volume(), "idle_max_writeback_rate", f"{SET}/internal/idle_max_writeback_rate"),
        (volume(set_uuid=""), "idle_max_writeback_rate", None),
        (volume(), "migration_threshold", None),
        (volume(), "queue_depth:vda", "/sys/block/vda/device/queue_depth"),
        (volume(), "queue_depth:vdb", None),
        (volume(), "max_sectors_kb:vda", "/sys/block/vda/queue/max_sectors_kb"),
        (dm_volume(), "queue_depth:vda", None),
        (dm_volume(), "sequential_cutoff", None),
        (dm_volume(), "flush", None),
        (dm_volume(Kind.DM_WRITECACHE), "migration_threshold", None),
    ],
)
def test_a_knob_is_where_the_kernel_has_it(found: Volume, knob: str, path: str | None) -> None:
    assert knob_path(found, knob) == path


@pytest.mark.parametrize(
    ("knob", "written", "seen", "same"),
    [
        ("sequential_cutoff", "4194304", "4194304", True),
        ("sequential_cutoff", "4194303", "4089446", True),
        ("sequential_cutoff", "4000000", "3984588", True),
        ("sequential_cutoff", "4194304", "3670016", False),
        ("sequential_cutoff", "4194304", "0", False),
        ("sequential_cutoff", "4194304", "much", False),
        ("writeback_percent", "40", "40", True),
        ("writeback_percent", "40", "39", False),
        ("writeback_percent", "40", "41", False),
        ("writeback_delay", "0", "1", False),
        ("writeback_rate", "16384", "16588", True),
        ("writeback_rate", "1", "2", True),
        ("cache_mode", "none", "writeback", False),
    ],
)
def test_a_rounded_value_is_the_same_value(knob: str, written: str, seen: str, same: bool) -> None:
    assert same_value(knob, written, seen) is same


def steps_of(found: Volume, gate: Gate, cutoff: int) -> list[Step]:
    """Every step that any code path can make for the volume."""
    steps = list(plan_for(found).base)
    try:
        steps += plan_for(found).steps(gate)
    except ValueError:
        assert found.kind is Kind.DM_CACHE, "bcache's gate has steps for each kind"
    if found.kind is Kind.BCACHE:
        return [*steps, *base_steps(), *cutoff_steps(cutoff), *congestion_off_steps()]
    if found is not VOLUMES[1]:
        return steps
    return [*steps, *split_steps(found), cleaner_step(f"0 {LENGTH_SECTORS} cache {CACHE_TABLE}")]


@EVERY
@given(gate=GATES, cutoff=NUMBERS)
def test_no_gate_leads_to_a_knob_that_is_never_written(
    found: Volume, gate: Gate, cutoff: int
) -> None:
    for step in steps_of(found, gate, cutoff):
        assert step.knob not in NEVER
        assert step.knob in BOUNDS or step.knob == TABLE


@pytest.mark.parametrize("knob", NEVER)
def test_a_writer_refuses_an_existing_knob_that_is_never_written(tmp_path: Path, knob: str) -> None:
    harness = WriterHarness(tmp_path)
    harness.fake.write(f"/sys/block/bcache0/bcache/{knob}", "0")
    (outcome,) = harness.writer.apply((Step(knob, "1"),), Reason("a bug", "a bug"))
    assert (outcome.kind, outcome.error) == (OutcomeKind.REFUSED, "ebbgate never writes it")
    assert harness.sysfs.log == []
    assert harness.journal.kept == {}

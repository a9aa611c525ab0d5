# SPDX-License-Identifier: GPL-2.0-only
"""What may be written and within which bounds, and that nothing leads to any other knob."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.actuators.bcache_steps import (
    BASE,
    Step,
    StepKind,
    base_steps,
    congestion_off_steps,
    cutoff_steps,
    write,
)
from ebbgate.actuators.gate_plan import cleaner_step, plan_for, split_steps
from ebbgate.actuators.knob_writer import Reason
from ebbgate.errors import UsageError
from ebbgate.knobs.bounds import (
    BOUNDS,
    NEVER,
    KnobUnit,
    clamped,
    format_range,
    format_value,
    parse_figure,
)
from ebbgate.knobs.catalog import BY_NAME
from ebbgate.knobs.dm_cache import FLUSH, TABLE
from ebbgate.knobs.settable import asked_value, check_knob, settable
from ebbgate.model.decision import Gate, GateKind, OutcomeKind
from ebbgate.model.volume import Kind, Volume
from ebbgate.units import KIB, MIB
from tests.builders import mapped_volume, volume
from tests.knob_writer_fixture import HandBench

VOLUMES = [volume(), mapped_volume(), mapped_volume(Kind.DM_WRITECACHE)]
EVERY = pytest.mark.parametrize("found", VOLUMES, ids=lambda found: str(found.kind))
NUMBERS = st.integers(min_value=-(1 << 70), max_value=1 << 70)
GATES = st.builds(
    Gate,
    st.sampled_from([GateKind.CLOSED, GateKind.PACED, GateKind.PULSED, GateKind.OPEN]),
    NUMBERS,
    st.integers(min_value=0, max_value=1 << 40),
    NUMBERS,
)


# ---- the never list -----------------------------------------------------------------------------
def test_nothing_is_both_writable_and_never_written() -> None:
    assert set(BOUNDS).isdisjoint(NEVER)
    assert {TABLE, FLUSH}.isdisjoint(NEVER)


def steps_of(found: Volume, gate: Gate, cutoff: int) -> list[Step]:
    """Every step that any code path can make for the volume."""
    steps = list(plan_for(found).base)
    try:
        steps += plan_for(found).steps(gate)
    except ValueError:
        assert found.kind is Kind.DM_CACHE, "bcache's gate has steps for each kind"
    if found.kind is Kind.BCACHE:
        return [*steps, *base_steps(), *cutoff_steps(cutoff), *congestion_off_steps()]
    return [*steps, *split_steps(found), cleaner_step(found)] if found is VOLUMES[1] else steps


@EVERY
@given(gate=GATES, cutoff=NUMBERS)
def test_no_plan_whatever_the_gate_leads_to_a_knob_of_the_never_list(
    found: Volume, gate: Gate, cutoff: int
) -> None:
    for step in steps_of(found, gate, cutoff):
        if step.kind is StepKind.WRITE:
            assert step.knob not in NEVER
            assert step.knob in BOUNDS or step.knob == TABLE


@pytest.mark.parametrize("knob", NEVER)
def test_a_hand_refuses_a_knob_of_the_never_list_though_its_file_is_there(
    tmp_path: Path, knob: str
) -> None:
    bench = HandBench(tmp_path)
    bench.fake.write(f"/sys/block/bcache0/bcache/{knob}", "0")
    (outcome,) = bench.hand.apply((Step(StepKind.WRITE, knob, "1"),), Reason("a bug", "a bug"))
    assert (outcome.kind, outcome.error) == (OutcomeKind.REFUSED, "ebbgate never writes it")
    assert bench.sysfs.log == []
    assert bench.notebook.kept == {}


@pytest.mark.parametrize("knob", NEVER)
@EVERY
def test_no_person_can_ask_for_a_knob_of_the_never_list(found: Volume, knob: str) -> None:
    with pytest.raises(UsageError, match="never writes"):
        asked_value(found, knob, "1")


# ---- clamps -------------------------------------------------------------------------------------
@pytest.mark.parametrize("knob", BOUNDS)
def test_every_bound_has_its_reason_and_source_and_lies_within_a_known_knob(knob: str) -> None:
    bound = BOUNDS[knob]
    assert bound.low <= bound.high
    assert bound.why
    assert bound.source
    assert BY_NAME[knob].tuned
    assert bound.interval_ns >= 0


@given(st.sampled_from(sorted(BOUNDS)), NUMBERS)
def test_a_value_outside_is_moved_to_the_bound_and_that_is_said(knob: str, value: int) -> None:
    within, said = clamped(knob, value)
    bound = BOUNDS[knob]
    assert bound.low <= within <= bound.high
    assert bool(said) == (within != value)
    assert clamped(knob, within) == (within, "")


def test_what_was_clamped_is_in_the_outcome_and_the_journal(tmp_path: Path) -> None:
    bench = HandBench(tmp_path)
    (outcome,) = bench.hand.apply(cutoff_steps(0), Reason("stream_bypass", "a stream"))
    assert outcome.action.new == str(64 * KIB)
    assert outcome.action.reason.startswith("a stream (0 was asked for, the bound is 65536: ")
    assert bench.notebook.kept["sequential_cutoff"].why == outcome.action.reason


def test_a_knob_without_bounds_cannot_be_written() -> None:
    with pytest.raises(KeyError):
        write("writeback_metadata", 1)


def test_a_value_that_is_there_already_is_kept_and_not_written(tmp_path: Path) -> None:
    bench = HandBench(tmp_path)
    bench.someone_writes("idle_max_writeback_rate", "0")
    step = write("idle_max_writeback_rate", BASE["idle_max_writeback_rate"])
    (outcome,) = bench.hand.apply((step,), Reason("idle_destage", "a gap"))
    assert outcome.kind is OutcomeKind.UNCHANGED
    assert bench.sysfs.log == []
    assert bench.notebook.kept["idle_max_writeback_rate"].original == "0"


# ---- what a person writes -----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("knob", "text", "value"),
    [
        ("sequential_cutoff", "4MiB", str(4 * MIB)),
        ("sequential_cutoff", "4194304", "4194304"),
        ("sequential_cutoff", "1.5 MiB", str(3 * MIB // 2)),
        ("writeback_percent", "20%", "20"),
        ("writeback_percent", "0", "0"),
        ("writeback_rate", "10MiB/s", "20480"),
        ("writeback_rate", "8", "8"),
        ("writeback_delay", "2min", "120"),
        ("congested_read_threshold_us", "2ms", "2000"),
        ("idle_max_writeback_rate", "1", "1"),
    ],
)
def test_a_figure_with_its_unit_or_in_the_kernels_own(knob: str, text: str, value: str) -> None:
    assert asked_value(volume(), knob, text) == value


@pytest.mark.parametrize(
    ("knob", "text", "value"),
    [("migration_threshold", "1MiB", "2048"), ("max_sectors_kb", "32KiB", "32")],
)
def test_dm_caches_own_knobs(knob: str, text: str, value: str) -> None:
    assert asked_value(mapped_volume(), knob, text) == value


@pytest.mark.parametrize(
    ("knob", "text", "message", "hint"),
    [
        ("sequential_cutoff", "0", "0 is out of bounds", "64 KiB to 4.0 GiB"),
        ("sequential_cutoff", "8GiB", "8GiB is out of bounds", "64 KiB to 4.0 GiB"),
        ("sequential_cutoff", "-1", "'-1' is no value", "64 KiB to 4.0 GiB"),
        ("sequential_cutoff", "4M", "'4M' is no value", "64 KiB to 4.0 GiB"),
        ("sequential_cutoff", "0.3B", "no whole number of bytes", "64 KiB"),
        ("writeback_percent", "41", "41 is out of bounds", "0% to 40%"),
        ("writeback_percent", "4MiB", "'4MiB' is no value", "0% to 40%"),
        ("writeback_percent", "", "'' is no value", "0% to 40%"),
        ("writeback_percent", "٣", "is no value", "0% to 40%"),
        ("writeback_rate", "10MiB", "'10MiB' is no value", "512 B/s to 512 GiB/s"),
        ("writeback_rate", "9" * 40, "is no value", "512 B/s"),
        ("writeback_delay", "1500ms", "no whole number of seconds", "0 s to 60 min"),
        ("writeback_runing", "1", "no knob writeback_runing", "did you mean writeback_running?"),
        ("writeback_rate_minimum", "8", "no knob writeback_rate_minimum", "did you mean"),
        ("xyzzy", "1", "no knob xyzzy", "knobs: sequential_cutoff, writeback_percent"),
        ("cache_mode", "none", "never writes cache_mode", "by hand"),
        ("migration_threshold", "1", "no knob migration_threshold", "knobs: "),
    ],
)
def test_what_is_refused_says_what_is_allowed(
    knob: str, text: str, message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as refused:
        asked_value(volume(), knob, text)
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_a_volume_without_a_cache_has_no_knob_of_the_set() -> None:
    with pytest.raises(UsageError, match="no cache is attached"):
        check_knob(volume(set_uuid=""), "congested_read_threshold_us")


def test_dm_writecache_has_nothing_to_set() -> None:
    found = mapped_volume(Kind.DM_WRITECACHE)
    assert settable(found) == ()
    with pytest.raises(UsageError, match="no knob to set while it runs"):
        check_knob(found, "high_watermark")


@given(st.sampled_from(sorted(BOUNDS)), st.text(max_size=30))
def test_no_text_leads_to_anything_but_a_value_or_a_sentence(knob: str, text: str) -> None:
    found = volume() if knob in settable(volume()) else mapped_volume()
    try:
        value = asked_value(found, knob, text)
    except UsageError as error:
        assert error.message
    else:
        assert BOUNDS[knob].low <= int(value) <= BOUNDS[knob].high


@pytest.mark.parametrize("knob", BOUNDS)
def test_what_is_said_can_be_written_again(knob: str) -> None:
    low = BOUNDS[knob].low
    if BOUNDS[knob].unit is not KnobUnit.FLAG:
        assert parse_figure(knob, format_value(knob, low)) == low
    assert format_value(knob, low) in format_range(knob)

# SPDX-License-Identifier: GPL-2.0-only
"""What a person may set, and what a refusal says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.errors import UsageError
from ebbgate.knobs.catalog import BOUNDS, NEVER
from ebbgate.knobs.settable import beyond_limits, check_knob, checked_value, settable
from ebbgate.model.volume import Kind, Volume
from ebbgate.units import KIB, MIB
from tests.builders import dm_volume, volume

VOLUMES = [volume(), dm_volume(), dm_volume(Kind.DM_WRITECACHE)]


@pytest.mark.parametrize("knob", NEVER)
@pytest.mark.parametrize("found", VOLUMES, ids=lambda found: str(found.kind))
def test_a_knob_that_is_never_written_cannot_be_set(found: Volume, knob: str) -> None:
    with pytest.raises(UsageError, match="never writes"):
        checked_value(found, knob, "1")


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
def test_a_value_may_have_a_unit(knob: str, text: str, value: str) -> None:
    assert checked_value(volume(), knob, text) == value


@pytest.mark.parametrize(
    ("knob", "text", "value"),
    [("migration_threshold", "1MiB", "2048"), ("max_sectors_kb", "32KiB", "32")],
)
def test_a_value_of_a_dm_knob_may_have_a_unit(knob: str, text: str, value: str) -> None:
    assert checked_value(dm_volume(), knob, text) == value


@pytest.mark.parametrize(
    ("knob", "text", "message", "hint"),
    [
        ("sequential_cutoff", "0", "0 is out of bounds", "64 KiB to 4.0 GiB"),
        ("sequential_cutoff", "8GiB", "8GiB is out of bounds", "64 KiB to 4.0 GiB"),
        ("sequential_cutoff", "-1", "'-1' is not a value", "64 KiB to 4.0 GiB"),
        ("sequential_cutoff", "4M", "'4M' is not a value", "64 KiB to 4.0 GiB"),
        ("sequential_cutoff", "0.3B", "not a whole number of bytes", "64 KiB"),
        ("writeback_percent", "41", "41 is out of bounds", "0% to 40%"),
        ("writeback_percent", "4MiB", "'4MiB' is not a value", "0% to 40%"),
        ("writeback_percent", "", "'' is not a value", "0% to 40%"),
        ("writeback_percent", "٣", "is not a value", "0% to 40%"),
        ("writeback_rate", "10MiB", "'10MiB' is not a value", "512 B/s to 512 GiB/s"),
        ("writeback_rate", "9" * 40, "is not a value", "512 B/s"),
        ("writeback_delay", "1500ms", "not a whole number of seconds", "0 s to 60 min"),
        ("writeback_runing", "1", "no knob writeback_runing", "did you mean writeback_running?"),
        ("writeback_rate_minimum", "8", "no knob writeback_rate_minimum", "did you mean"),
        ("xyzzy", "1", "no knob xyzzy", "knobs: sequential_cutoff, writeback_percent"),
        ("cache_mode", "none", "never writes cache_mode", "by hand"),
        ("migration_threshold", "1", "no knob migration_threshold", "knobs: "),
    ],
)
def test_a_refusal_names_what_is_allowed(knob: str, text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        checked_value(volume(), knob, text)
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_knobs_of_the_set_cannot_be_set_without_a_cache() -> None:
    with pytest.raises(UsageError, match="no cache is attached"):
        check_knob(volume(set_uuid=""), "congested_read_threshold_us")


def test_dm_writecache_has_no_knob_to_set() -> None:
    found = dm_volume(Kind.DM_WRITECACHE)
    assert settable(found) == ()
    with pytest.raises(UsageError, match="no knob to set while it runs"):
        check_knob(found, "high_watermark")


@given(st.sampled_from(sorted(BOUNDS)), st.text(max_size=30))
def test_any_text_is_a_value_within_bounds_or_refused(knob: str, text: str) -> None:
    found = volume() if knob in settable(volume()) else dm_volume()
    try:
        value = checked_value(found, knob, text)
    except UsageError as error:
        assert error.message
    else:
        assert BOUNDS[knob].low <= int(value) <= BOUNDS[knob].high


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (512 * KIB, MIB, None, "under the 1 MiB"),
        (2 * MIB, None, MIB, "above the 1 MiB"),
        (MIB, MIB, MIB, ""),
        (0, None, None, ""),
    ],
)
def test_a_value_beyond_the_limits_of_the_policy_is_named(
    value: int, low: int | None, high: int | None, words: str
) -> None:
    assert beyond_limits("sequential_cutoff", value, low, high) == words

# SPDX-License-Identifier: GPL-2.0-only
"""Advice on settings from guides: recommended only where a measurement supports it."""

from __future__ import annotations

import pytest

from ebbgate.doctor.advice import advise
from ebbgate.doctor.model import Weight
from ebbgate.model.records import Direction
from ebbgate.model.status import PathStatus, VolumeStatus
from tests.unit.doctor.test_advice import CALM, facts, state

LIVE = VolumeStatus(
    run_bytes={Direction.WRITE: (*[0] * 12, 10.0, *[0] * 3, 90.0)},
    bypass_bytes={"congested": 3 << 20},
    dirty_ratio=0.36,
    time_to_full_s=12.0,
    destage_bytes_per_s=5.0 * (1 << 20),
    paths=(PathStatus("read", "hit", 1, 512, p99_ns=41_000_000), PathStatus("read", "miss", 0, 0)),
)


@pytest.mark.parametrize(
    ("knobs", "evidence"),
    [
        (
            {"sequential_cutoff": "0"},
            "recently 90% of the bytes of writes were in runs longer than 4 MiB",
        ),
        (
            {"congested_read_threshold_us": "10000", "congested_write_threshold_us": "40000"},
            "3 MiB bypassed the cache for this reason in the last second",
        ),
        ({"writeback_percent": "40"}, "36% of the cache is dirty now, full in 12 s"),
        (
            {"writeback_percent": "0"},
            "dirty data is being written back at 5 MiB/s, and the p99 latency of users is 41 ms",
        ),
        (
            {"writeback_percent": "1"},
            "dirty data is being written back at 5 MiB/s, and the p99 latency of users is 41 ms",
        ),
    ],
)
def test_advice_on_guides_has_measured_evidence(knobs: dict[str, str], evidence: str) -> None:
    (found,) = advise(facts(state=state(knobs=knobs), status=LIVE))
    assert found.evidence == evidence
    assert found.effect
    (without,) = advise(facts(state=state(knobs=knobs)))
    assert (without.id, without.evidence) == (found.id, "")
    (idle,) = advise(facts(state=state(knobs=knobs), status=VolumeStatus()))
    assert idle.evidence == ""


SILENT = VolumeStatus(
    run_bytes={Direction.WRITE: (100.0, *[0] * 16)},
    bypass_bytes={"congested": 0},
    dirty_ratio=0.02,
    time_to_full_s=float("inf"),
    destage_bytes_per_s=0.0,
    paths=(PathStatus("read", "hit", 1, 512, p99_ns=41_000_000),),
)


@pytest.mark.parametrize(
    "knobs",
    [
        {"sequential_cutoff": "0"},
        {"sequential_cutoff": "32768"},
        {"congested_read_threshold_us": "2000"},
        {"writeback_percent": "40"},
        {"writeback_percent": "0"},
    ],
)
def test_advice_without_supporting_evidence_is_info(knobs: dict[str, str]) -> None:
    """`worth it` stood beside a measured 0%."""
    weights = [
        advise(facts(state=state(knobs=knobs), status=status))[0].weight
        for status in (LIVE, SILENT, VolumeStatus())
    ]
    assert weights == [Weight.ADVICE, Weight.NOTE, Weight.NOTE]


def test_a_cutoff_that_caches_nothing_needs_no_measurement() -> None:
    (found,) = advise(facts(state=state(knobs={"sequential_cutoff": "1"}), status=SILENT))
    assert found.weight is Weight.ADVICE


def test_a_high_writeback_percent_is_noted_with_its_benefit() -> None:
    (found,) = advise(facts(state=state(knobs={"writeback_percent": "40"}), status=SILENT))
    assert "nothing gets faster" not in found.text
    assert "reach the disk less often" in found.text
    assert found.evidence == "2.0% of the cache is dirty now"


def test_thresholds_of_0_are_confirmed() -> None:
    found = advise(facts(state=state(knobs={"sequential_cutoff": "0", **CALM})))
    assert [each.id for each in found] == ["EBB-206", "EBB-214"]
    assert "that is right" in found[1].text
    assert found[1].change is None
    ours = facts(state=state(knobs=CALM), owned=frozenset(CALM))
    assert advise(ours) == ()


def test_raised_thresholds_differ_from_the_kernels_own() -> None:
    stock = {"congested_read_threshold_us": "2000", "congested_write_threshold_us": "20000"}
    guide = {"congested_read_threshold_us": "10000", "congested_write_threshold_us": "40000"}
    texts = [advise(facts(state=state(knobs=knobs)))[0].text for knobs in (stock, guide)]
    assert ["only makes it rarer" in text for text in texts] == [False, True]


@pytest.mark.parametrize(
    ("read", "write", "says"),
    [
        ("2000", "20000", "after reads above 2000 us or writes above 20000 us on"),
        ("2000", "0", "after reads above 2000 us on"),
        ("0", "20000", "after writes above 20000 us on"),
    ],
)
def test_a_threshold_that_is_off_is_not_named(read: str, write: str, says: str) -> None:
    knobs = {"congested_read_threshold_us": read, "congested_write_threshold_us": write}
    (found,) = advise(facts(state=state(knobs=knobs)))
    assert says in found.text


@pytest.mark.parametrize("knob", ["writeback_percent", "sequential_cutoff"])
@pytest.mark.parametrize("value", ["0", "1", "40"])
def test_knobs_set_by_ebbgate_get_no_advice(knob: str, value: str) -> None:
    assert advise(facts(state=state(knobs={knob: value}), owned=frozenset({knob}))) == ()

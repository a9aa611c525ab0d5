# SPDX-License-Identifier: GPL-2.0-only
"""The scenario `mrc`, on traces that are short enough to reckon by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.context import Context
from tests.bench.mrc import SCENARIO, is_sampled, references_of
from tests.bench.stack_distance import exact_curve
from tests.bench.trace import requests_of
from tests.lab.errors import LabError

HEADER = "t_us,op,offset,size,dev"


def test_a_request_refers_to_each_block_that_it_touches() -> None:
    lines = [HEADER, "0,R,4095,2,0", "1,W,8192,4096,1", "2,R,0,0,0"]
    other = 1 << 48
    assert references_of(requests_of(lines)) == [(0, True), (1, True), (other + 2, False)]


def test_the_exact_curve_is_that_of_an_lru_cache() -> None:
    curve = exact_curve([(1, True), (2, True), (1, True), (3, False), (2, True)])
    assert (curve.reads, curve.blocks) == (4, 3)
    assert curve.miss_ratios([0, 1, 2, 3, 9]) == [1.0, 1.0, 0.75, 0.5, 0.5]


@pytest.mark.parametrize(("chunk", "place"), [(0, 158), (1, 60), (77, 52), (1 << 40, 232)])
def test_the_sampled_blocks_are_those_of_the_probe(chunk: int, place: int) -> None:
    """The same figures as in tests/bpf_host/reuse_test.c."""
    assert is_sampled(chunk * 256 + place, 256)


@pytest.mark.parametrize("sampled_of", [1, 16, 256])
def test_one_block_of_each_chunk_is_sampled(sampled_of: int) -> None:
    for chunk in (0, 1, 77, 1 << 40):
        blocks = range(chunk * sampled_of, (chunk + 1) * sampled_of)
        assert sum(is_sampled(block, sampled_of) for block in blocks) == 1


def test_the_scenario_reports_each_trace_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "loop.csv"
    rows = [f"{n},R,{n % 5000 * 4096},4096,0" for n in range(20_000)]
    path.write_text("\n".join([HEADER, *rows]))
    report = SCENARIO.run(Context(2, 1, traces=(path,)))
    assert report.ratios["loop_ebbgate_error"] < 0.1
    assert report.goals == {"loop_ebbgate_error": "<= 0.02"}
    # No size below the whole loop helps; with it each block is missed once.
    assert report.notes[0].endswith("1.000 1.000 1.000 1.000 1.000 1.000 1.000 1.000 1.000 0.250")


def test_without_a_trace_the_scenario_names_the_next_step() -> None:
    with pytest.raises(LabError, match="S=mrc TRACE=FILE"):
        SCENARIO.run(Context(1, 1))

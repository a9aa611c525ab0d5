# SPDX-License-Identifier: GPL-2.0-only
"""The samples of a volume together have each of its requests once, whatever `tick` is."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from ebbgate.model.frame import Frame
from ebbgate.signals.frame import FrameState, build, on_tick
from ebbgate.store.queries_web import WebHistory
from ebbgate.store.recorder import Recorder
from ebbgate.store.rollup import BYTES, IOS, SECOND_NS, Row, merge
from ebbgate.store.summary import destaged
from ebbgate.units import INT64_MAX, KIB, MIB, MINUTE_NS, NS_PER_MS
from tests.builders import tick, volume_state

LENGTH_MS = 42_000
"""One request comes in each of them."""
NOT_YET_MS = 1000
"""The last ones may be in no sample yet."""


def frames(tick_ms: int) -> list[Frame]:
    state, found = FrameState(), []
    for at_ms in range(0, LENGTH_MS + 1, tick_ms):
        flow = {"ios": at_ms, "bytes": at_ms * 4 * KIB, "lat": [0] * 20 + [at_ms]}
        at_ns = (1000 + at_ms) * NS_PER_MS
        state = on_tick(state, tick(ns=at_ns, path={"read": {"hit": flow}}))
        found.append(build(state, volume_state(at_ns=at_ns), "bcache0", at_ns))
    return found


def recorded(path: Path) -> list[Row]:
    with closing(WebHistory.open(path)) as history:
        return history.rows("bcache0", 0, INT64_MAX, SECOND_NS)


@pytest.mark.parametrize("tick_ms", [50, 250, 300, 400, 500, 700, 1000, 3000])
def test_every_request_is_in_one_sample(recorder: Recorder, path: Path, tick_ms: int) -> None:
    for each in frames(tick_ms):
        recorder.sample(each)
    recorder.flush()
    rows = recorded(path)
    read = [row["paths"]["read hit"] for row in rows if row["paths"]]
    requests = sum(figures[IOS] for figures in read)
    assert LENGTH_MS - NOT_YET_MS < requests <= LENGTH_MS
    assert sum(figures[BYTES] for figures in read) == requests * 4 * KIB


def test_what_only_gaps_write_back_is_in_the_report_as_written_back_in_gaps(
    recorder: Recorder, path: Path
) -> None:
    """Gaps of 1.5 s that end within the second of a sample."""
    state, done_bytes = FrameState(), 0
    for number in range(160):
        idle = number % 10 > 4
        done_bytes += 2 * MIB if number % 10 > 5 else 0
        at_ns = (1000 + 250 * number) * NS_PER_MS
        destage = {"done_ios": done_bytes // MIB, "done_bytes": done_bytes}
        seen = tick(ns=at_ns, state="idle" if idle else "busy", destage=destage)
        state = on_tick(state, seen)
        recorder.sample(build(state, volume_state(at_ns=at_ns), "bcache0", at_ns))
    recorder.flush()
    found = destaged([merge(recorded(path), 0, MINUTE_NS)])
    assert found["in_gaps_bytes"] == pytest.approx(done_bytes, rel=0.06)
    assert found["under_load_bytes"] <= 0.06 * done_bytes

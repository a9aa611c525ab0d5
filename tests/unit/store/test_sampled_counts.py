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
from ebbgate.store.rollup import BYTES, IOS, SECOND_NS
from ebbgate.units import INT64_MAX, KIB, NS_PER_MS
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


@pytest.mark.parametrize("tick_ms", [50, 250, 300, 400, 500, 700, 1000, 3000])
def test_every_request_is_in_one_sample(recorder: Recorder, path: Path, tick_ms: int) -> None:
    for each in frames(tick_ms):
        recorder.sample(each)
    recorder.flush()
    with closing(WebHistory.open(path)) as history:
        rows = history.rows("bcache0", 0, INT64_MAX, SECOND_NS)
    read = [row["paths"]["read hit"] for row in rows if row["paths"]]
    requests = sum(figures[IOS] for figures in read)
    assert LENGTH_MS - NOT_YET_MS < requests <= LENGTH_MS
    assert sum(figures[BYTES] for figures in read) == requests * 4 * KIB

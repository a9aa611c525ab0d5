# SPDX-License-Identifier: GPL-2.0-only
"""When a garbage collection is over, from what the kernel shows in whole seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.units import NS_PER_S
from ebbgate.warm.collection import Collection

BEGIN_S = 1000.0
MOST_S = 4.0


@pytest.mark.parametrize(
    ("ended_before_s", "takes_s", "seen_s"),
    [
        (5.3, 0.4, 0.4),
        # Less than a second ago the file says 0, so that another 0 tells nothing yet.
        (0.5, 0.2, 1.0),
        (0.5, 1.4, 1.4),
        (9.9, 2.2, 2.2),
        (None, 0.3, 0.3),
        (5.0, 7.0, MOST_S),
    ],
)
def test_an_end_is_seen_as_soon_as_it_can_be_told(
    tmp_path: Path, ended_before_s: float | None, takes_s: float, seen_s: float
) -> None:
    file = tmp_path / "btree_gc_last_sec"

    def at(elapsed_s: float) -> int:
        ended = elapsed_s >= takes_s
        before = -1 if ended_before_s is None else int(elapsed_s + ended_before_s)
        file.write_text(f"{int(elapsed_s - takes_s) if ended else before}\n")
        return int((BEGIN_S + elapsed_s) * NS_PER_S)

    collection = Collection.begin(tmp_path, at(0.0), MOST_S)
    steps = (step / 20 for step in range(200))
    assert next(s for s in steps if collection.is_over(at(s))) == pytest.approx(seen_s, abs=0.06)


@pytest.mark.parametrize("content", [None, "", "x\n"])
def test_what_cannot_be_read_is_over_after_its_time(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "btree_gc_last_sec"
    if content is not None:
        file.write_text(content)
    collection = Collection.begin(tmp_path, 0, MOST_S)
    assert not collection.is_over(int(MOST_S * NS_PER_S) - 1)
    assert collection.is_over(int(MOST_S * NS_PER_S))

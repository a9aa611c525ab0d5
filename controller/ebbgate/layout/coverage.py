# SPDX-License-Identifier: GPL-2.0-only
"""Tells whether the parts of a file are still where they were. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import TypeVar

Place = TypeVar("Place")
Part = tuple[int, int, Place]
"""Start and end in the file, and where its byte 0 would lie if all of it were contiguous."""


def still_there(before: Iterable[Part[Place]], now: Iterable[Part[Place]]) -> bool:
    """Return whether each part of `before` is in `now`, at the same place.

    What is in `now` is sorted and does not overlap. It may be split or joined in other ways, and
    more may be there.
    """
    runs = _joined(now)
    for start, end, place in before:
        number = bisect_right(runs, start, key=lambda run: run[0]) - 1
        if number < 0 or end > runs[number][1] or place != runs[number][2]:
            return False
    return True


def _joined(parts: Iterable[Part[Place]]) -> list[Part[Place]]:
    """Join parts that are contiguous in the file and at their place."""
    runs: list[Part[Place]] = []
    for start, end, place in parts:
        if runs and runs[-1][1:] == (start, place):
            runs[-1] = (runs[-1][0], end, place)
        else:
            runs.append((start, end, place))
    return runs

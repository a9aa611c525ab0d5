# SPDX-License-Identifier: GPL-2.0-only
"""Reading what the probe printed, for tests of the probe itself.

Pure. Records stay plain dictionaries here: the controller's parser is not what is tested.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

Record = dict[str, Any]


def parse(text: str) -> list[Record]:
    """The whole lines of a probe's output; its last line may be half written."""
    whole = text.rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def of_type(records: Iterable[Record], kind: str, **fields: object) -> list[Record]:
    """The records of a type whose fields have these values."""
    return [
        record
        for record in records
        if record["t"] == kind and all(record.get(key) == value for key, value in fields.items())
    ]


def latency_floor_us(bucket: int) -> int:
    """Lowest latency of a bucket, as bpf/README.md defines it."""
    return bucket if bucket < 4 else (4 + bucket % 4) << (bucket // 4 - 1)


def percentile_us(buckets: Sequence[int], share: float) -> tuple[int, int]:
    """The bucket in which this share is reached: its lowest value, and the next bucket's."""
    left = share * sum(buckets)
    for bucket, count in enumerate(buckets):
        left -= count
        if count and left <= 0:
            return latency_floor_us(bucket), latency_floor_us(bucket + 1)
    raise ValueError("an empty histogram has no percentile")


def bytes_by_run(sizes: Iterable[int]) -> list[int]:
    """What `runs` says of one stream of requests of these sizes, from its first byte."""
    buckets = [0] * 32
    run = 0
    for size in sizes:
        run += size
        buckets[(run // 512).bit_length() - 1] += size
    while buckets and not buckets[-1]:
        buckets.pop()
    return buckets


def added(now: Sequence[int], before: Sequence[int]) -> list[int]:
    """What a trimmed cumulative histogram gained."""
    longest = max(len(now), len(before))
    padded = [list(one) + [0] * (longest - len(one)) for one in (now, before)]
    return [later - earlier for later, earlier in zip(*padded, strict=True)]


class Difference:
    """What the counters gained while something was done."""

    def __init__(self, before: Record, after: Record) -> None:
        self._before, self._after = before, after

    def __call__(self, *keys: str) -> int:
        before, after = self._values(keys)
        return int(after) - int(before)

    def histogram(self, *keys: str) -> list[int]:
        before, after = self._values(keys)
        return added(after, before)

    def _values(self, keys: tuple[str, ...]) -> tuple[Any, Any]:
        before, after = self._before, self._after
        for key in keys:
            before, after = before[key], after[key]
        return before, after

# SPDX-License-Identifier: GPL-2.0-only
"""Which parts of a volume were used of late, and how that is sent as text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ebbgate.units import INT64_MAX, MIB

CHUNK_BYTES_MIN: Final = MIB
"""The probe samples one block of each MiB, so that nothing finer is known."""
CHUNKS_MAX: Final = 16_384
"""Of one hot set. A chunk is larger where the cache holds more MiB than this."""
TEXT_MAX: Final = 60_000
"""Characters of a hot set as text, which fits into one message of the control socket."""
_RANGE: Final = re.compile(r"(-?[0-9a-f]{1,15})(?:\+([0-9a-f]{1,15}))?")


@dataclass(frozen=True, slots=True)
class ChunkRange:
    """Chunks `first` to `first + count - 1`, numbered from the volume's start."""

    first: int
    count: int = 1

    @property
    def end(self) -> int:
        """The first chunk behind the range."""
        return self.first + self.count


@dataclass(frozen=True, slots=True)
class HotSet:
    """The parts of a volume that were used of late.

    `ranges`: of chunks of `chunk_bytes`, hottest first: groups of about the same heat follow one
    another, each ascending. `observed_ns`: for how long the daemon has watched.
    """

    chunk_bytes: int
    ranges: tuple[ChunkRange, ...]
    observed_ns: int

    @property
    def total_bytes(self) -> int:
        """How much they are."""
        return sum(each.count for each in self.ranges) * self.chunk_bytes


def check_ranges(ranges: Sequence[ChunkRange], chunk_bytes: int) -> None:
    """Raise ValueError unless they are whole, apart from each other and not too many."""
    if chunk_bytes < CHUNK_BYTES_MIN or chunk_bytes & (chunk_bytes - 1):
        raise ValueError("the size of a chunk is not a power of two of at least 1 MiB")
    if not ranges:
        raise ValueError("it has no range")
    end = 0
    for each in sorted(ranges, key=lambda one: one.first):
        if each.first < 0 or each.count < 1 or each.end * chunk_bytes > INT64_MAX:
            raise ValueError("a range is outside of any volume")
        if each.first < end:
            raise ValueError("two ranges overlap")
        end = each.end
    if sum(each.count for each in ranges) > CHUNKS_MAX:
        raise ValueError(f"it has more than {CHUNKS_MAX} chunks")


def ranges_to_text(ranges: Iterable[ChunkRange]) -> str:
    """Return the ranges as text: hexadecimal numbers, separated by commas.

    Each is the distance from the end of the range before it, then `+` and how many chunks follow
    its first one, if any. The coldest are left out if all do not fit into `TEXT_MAX` characters.
    """
    parts, length, end = [], -1, 0
    for each in ranges:
        more = f"+{each.count - 1:x}" if each.count > 1 else ""
        part = f"{each.first - end:x}{more}"
        length += len(part) + 1
        if length > TEXT_MAX:
            break
        parts.append(part)
        end = each.end
    return ",".join(parts)


def part_in_text(found: HotSet, text: str) -> HotSet:
    """Return what of a hot set is in the text of its ranges."""
    return replace(found, ranges=found.ranges[: text.count(",") + 1])


def ranges_from_text(text: str) -> tuple[ChunkRange, ...]:
    """Return the ranges in a text. Raises ValueError; `check_ranges` checks what they are."""
    if len(text) > TEXT_MAX:
        raise ValueError(f"it has more than {TEXT_MAX} characters")
    # First, since parsing 30,000 parts keeps the daemon's event loop busy for 30 ms.
    if text.count(",") >= CHUNKS_MAX:
        raise ValueError(f"it has more than {CHUNKS_MAX} chunks")
    found, end = [], 0
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError("it is no list of ranges")
        first, more = end + int(match[1], 16), int(match[2] or "0", 16)
        found.append(ChunkRange(first, more + 1))
        end = found[-1].end
    return tuple(found)


def fitting(ranges: Iterable[ChunkRange], chunks: int) -> tuple[ChunkRange, ...]:
    """Return the hottest of the ranges, up to so many chunks."""
    found = []
    for each in ranges:
        count = min(each.count, chunks)
        if count < 1:
            break
        found.append(ChunkRange(each.first, count))
        chunks -= count
    return tuple(found)

# SPDX-License-Identifier: GPL-2.0-only
"""Limits of the history: size and age, which the administrator sets, and derived ones. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ebbgate.units import DAY_NS, GIB, MIB

SIZE_BYTES_MIN: Final = 16 * MIB
SIZE_BYTES_MAX: Final = 1024 * GIB
AGE_NS_MIN: Final = DAY_NS
AGE_NS_MAX: Final = 3660 * DAY_NS
LOG_BYTES: Final = 4 * MIB
"""SQLite checkpoints its log (WAL) at this size and truncates it to it."""
LOG_BYTES_HELD: Final = LOG_BYTES + LOG_BYTES // 4
"""A larger log could not be checkpointed, because another program keeps reading the file."""
_LOG_ROOM_BYTES: Final = LOG_BYTES + LOG_BYTES // 2
BATCH_BYTES: Final = MIB
"""One transaction usually adds less than this to the log."""
_RESERVE_BYTES_MAX: Final = 32 * MIB
_RESERVE_PART: Final = 16


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """`size_bytes`: of file and log together; `age_ns`: of minutes and knob writes.

    Ascending: `pages_bytes`, `file_bytes`, `sampling_bytes`, `writing_bytes`,
    `size_bytes`.
    """

    size_bytes: int = 256 * MIB
    age_ns: int = 30 * DAY_NS

    @property
    def pages_bytes(self) -> int:
        """Rows are deleted while the used pages exceed this."""
        return self.sampling_bytes - _LOG_ROOM_BYTES

    @property
    def file_bytes(self) -> int:
        """Unused pages are returned to the file system while the file exceeds this."""
        return self.pages_bytes + _LOG_ROOM_BYTES - LOG_BYTES_HELD

    @property
    def sampling_bytes(self) -> int:
        """Size of file and a log that cannot be checkpointed from which only status is written."""
        return self.writing_bytes - min(self.size_bytes // _RESERVE_PART, _RESERVE_BYTES_MAX)

    @property
    def writing_bytes(self) -> int:
        """Size of file and a log that cannot be checkpointed from which nothing is written."""
        return self.size_bytes - BATCH_BYTES


DEFAULT_LIMITS: Final = HistoryLimits()

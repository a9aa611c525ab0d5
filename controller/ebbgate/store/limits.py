# SPDX-License-Identifier: GPL-2.0-only
"""How much of the history is kept: the administrator's two numbers and their bounds. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ebbgate.units import GIB, MIB, NS_PER_S

DAY_NS: Final = 24 * 3600 * NS_PER_S
SIZE_BYTES_MIN: Final = 16 * MIB
SIZE_BYTES_MAX: Final = 1024 * GIB
AGE_NS_MIN: Final = DAY_NS
AGE_NS_MAX: Final = 3660 * DAY_NS
LOG_BYTES: Final = 4 * MIB
"""What SQLite's log (WAL) is cut back to; it may be twice that for a moment."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`size_bytes`: of the file and its log together; `age_ns`: of minutes and knob writes."""

    size_bytes: int = 256 * MIB
    age_ns: int = 30 * DAY_NS

    @property
    def pages_bytes(self) -> int:
        """What the file itself may hold."""
        return self.size_bytes - 2 * LOG_BYTES


DEFAULT_LIMITS: Final = Limits()

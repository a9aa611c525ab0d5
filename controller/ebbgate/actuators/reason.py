# SPDX-License-Identifier: GPL-2.0-only
"""Who wants a knob written, and why. No I/O."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """Who wants a write and why, for the log and the journal.

    `decision`: the number of the decision behind it, counted by the volume's loop.
    """

    strategy: str
    text: str
    decision: int | None = None
